//! Numbers as C's `%g` writes them.

/// As `%.<precision>g`.
pub(super) fn g(value: f64, precision: usize) -> String {
    if value.is_nan() {
        // What x86 makes of a root of a negative number has its sign set.
        return "-nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let significant = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= significant {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
    }
    let decimals = usize::try_from(significant - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{value:.decimals$}")).to_owned()
}

fn trimmed(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::g;

    #[test]
    fn as_printf_writes_them() {
        for (value, precision, text) in [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (100.0, 6, "100"),
            (123_456.5, 6, "123456"),
            (1_234_567.0, 6, "1.23457e+06"),
            (999_999.5, 6, "1e+06"),
            (0.0001, 6, "0.0001"),
            (0.000_01, 6, "1e-05"),
            (1.581_138_830_084_19, 8, "1.5811388"),
            (1e9, 8, "1e+09"),
            (1e-300, 8, "1e-300"),
            (f64::NAN, 8, "-nan"),
        ] {
            assert_eq!(g(value, precision), text);
        }
    }
}
