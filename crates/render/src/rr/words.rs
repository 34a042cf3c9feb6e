//! Latencies and rates of transactions in words.

/// `820 ns`, `9.41 us`, `35.0 ms`, `1.20 s`.
pub(crate) fn nanos(value: f64) -> String {
    // The next unit begins where three digits would round up to a thousand.
    let (factor, unit) = match value.abs() {
        v if v >= 999.5e6 => (1e9, "s"),
        v if v >= 999.5e3 => (1e6, "ms"),
        v if v >= 999.5 => (1e3, "us"),
        _ => return format!("{value:.0} ns"),
    };
    let scaled = value / factor;
    let digits = match scaled.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$} {unit}")
}

/// `20554 /s`, `99.5 /s`, `0.50 /s`.
pub(crate) fn per_s(value: f64) -> String {
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} /s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_in_the_unit_that_fits() {
        let values = [0.0, 820.0, 999.6, 9_410.0, 99_960.0, 35e6, 999.9e6, 1.2e9, -3.2e6];
        let words = ["0 ns", "820 ns", "1.00 us", "9.41 us", "100 us", "35.0 ms", "1.00 s", "1.20 s", "-3.20 ms"];
        assert_eq!(values.map(nanos), words);
        assert_eq!([20_553.7, 99.5, 0.5].map(per_s), ["20554 /s", "99.5 /s", "0.50 /s"]);
    }
}
