//! Latencies and rates of transactions in words.

use crate::figures;

/// `820 ns`, `9.41 us`, `35.0 ms`, `-1.20 ms`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, and not below 0
pub(crate) fn nanos(value: f64) -> String {
    let size = figures::nanos(value.abs().round() as u64);
    if value < 0.0 { format!("-{size}") } else { size }
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
        let values = [0.0, 820.4, 9_410.0, 99_960.0, 35e6, 1.2e9, -3.2e6, f64::NAN];
        let words = ["0 ns", "820 ns", "9.41 us", "100 us", "35.0 ms", "1.20 s", "-3.20 ms", "0 ns"];
        assert_eq!(values.map(nanos), words);
        assert_eq!([20_553.7, 99.5, 0.5].map(per_s), ["20554 /s", "99.5 /s", "0.50 /s"]);
    }
}
