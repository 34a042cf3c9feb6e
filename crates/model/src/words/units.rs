//! The user's words for rates, sizes and durations, and their way back into text.
//!
//! Bits per second are powers of ten (`100M`, `9.4G`). Bytes of memory are powers of two (`9k` is 9216).

use std::time::Duration;
use thiserror::Error;

/// A word that is no rate, size or duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Not a number with a known suffix.
    #[error("invalid {what} `{word}`; write it like {examples}")]
    NotA {
        /// What the user wrote.
        word: String,
        /// `rate`, `size`, `duration`.
        what: &'static str,
        /// What would be one.
        examples: &'static str,
    },
    /// A number out of range.
    #[error("invalid {what} `{word}`: too large")]
    TooLarge {
        /// What the user wrote.
        word: String,
        /// `rate`, `size`, `duration`.
        what: &'static str,
    },
}

/// An offered or intended load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Bits per second.
    Bits(u64),
    /// Packets per second.
    Packets(u64),
}

pub(crate) fn split(word: &str) -> (&str, &str) {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
    (&word[..end], &word[end..])
}

/// The number of a part of `word`, times the factor of its suffix.
fn scaled(
    word: &str,
    part: &str,
    (what, examples): (&'static str, &'static str),
    factor: impl Fn(&str) -> Option<f64>,
) -> Result<u64, UnitError> {
    let not_a = || UnitError::NotA { word: word.to_owned(), what, examples };
    let (digits, suffix) = split(part);
    let number: f64 = digits.parse().map_err(|_| not_a())?;
    let value = (number * factor(suffix).ok_or_else(not_a)?).round();
    // 2^53: beyond it an f64 no longer holds every whole number.
    if value > 9_007_199_254_740_992.0 {
        return Err(UnitError::TooLarge { word: word.to_owned(), what });
    }
    Ok(value as u64)
}

pub(crate) fn decimal(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        "t" | "T" => 1e12,
        _ => return None,
    })
}

/// A rate without its unit of bits.
pub(crate) fn without_bits(word: &str) -> &str {
    ["bit/s", "bits/s", "bps", "bit"].iter().find_map(|unit| word.strip_suffix(unit)).unwrap_or(word)
}

/// Reads `100M`, `9.4G`, `250kbit`, `10Mbit/s`, `1.2Mpps`.
/// Errors: the word, where it is none of these or beyond 2^53.
pub fn parse_rate(word: &str) -> Result<Rate, UnitError> {
    const RATE: (&str, &str) = ("rate", "100M, 9.4G or 1.2Mpps");
    match word.trim().strip_suffix("pps") {
        Some(packets) => scaled(word, packets, RATE, decimal).map(Rate::Packets),
        None => scaled(word, without_bits(word.trim()), RATE, decimal).map(Rate::Bits),
    }
}

/// What a share without a percent sign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareShare {
    /// `0.01` is one percent: the keys of a plan, the shares of packets.
    Ratio,
    /// `1` is one percent: flags that say so.
    Percent,
}

/// Reads a share, from 0 to 1: `1%` is 0.01 everywhere; a bare number is what `bare` says.
/// Errors: the word, where it is no number or beyond 100 %.
pub fn parse_share(word: &str, bare: BareShare) -> Result<f64, UnitError> {
    let (number, divisor) = match (word.strip_suffix('%'), bare) {
        (Some(number), _) => (number, 100.0),
        (None, BareShare::Percent) => (word, 100.0),
        (None, BareShare::Ratio) => (word, 1.0),
    };
    let share = number.trim().parse::<f64>().ok().map(|value| value / divisor);
    let examples = match bare {
        BareShare::Ratio => "1% or 0.01, from 0 to 1",
        BareShare::Percent => "0.5% or 0.5, from 0 to 100",
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| UnitError::NotA {
        word: word.to_owned(),
        what: "share",
        examples,
    })
}

/// Reads a rate in bits per second.
pub fn parse_bps(word: &str) -> Result<u64, UnitError> {
    match parse_rate(word)? {
        Rate::Bits(bps) => Ok(bps),
        Rate::Packets(_) => {
            Err(UnitError::NotA { word: word.to_owned(), what: "rate in bit/s", examples: "100M or 9.4G" })
        }
    }
}

/// Reads a list of numbers as the kernel writes CPUs, `0-3,8`, in its order; nothing is an empty list.
/// Errors: the part that is neither a number nor a range, or with which there are more than `most` numbers.
pub fn parse_list(text: &str, most: usize) -> Result<Vec<u32>, String> {
    let mut numbers = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| part.to_owned());
        let (first, last) = (number(first)?, number(last)?);
        if last < first || (last - first) as usize >= most - numbers.len().min(most) {
            return Err(part.to_owned());
        }
        numbers.extend(first..=last);
    }
    Ok(numbers)
}

/// Reads `64`, `9k`, `256KiB`, `4M`: bytes, suffixes as powers of two.
/// Errors: the word, where it is none of these or beyond 2^53.
pub fn parse_size(word: &str) -> Result<u64, UnitError> {
    scaled(word, word.trim(), ("size", "64, 9k or 4M"), |suffix| {
        let prefix = suffix.strip_suffix("iB").or_else(|| suffix.strip_suffix('B')).unwrap_or(suffix);
        Some(match prefix {
            "" => 1.0,
            "k" | "K" => 1024.0,
            "m" | "M" => 1_048_576.0,
            "g" | "G" => 1_073_741_824.0,
            _ => return None,
        })
    })
}

/// Reads `10s`, `250ms`, `1.5m`, `2h`, `30d`, `90us`; a bare number is seconds.
/// Errors: the word, where it is none of these or longer than a year.
pub fn parse_duration(word: &str) -> Result<Duration, UnitError> {
    let micros = scaled(word, word.trim(), ("duration", "10s, 250ms or 2m"), |suffix| {
        Some(match suffix {
            "us" => 1.0,
            "ms" => 1e3,
            "" | "s" => 1e6,
            "m" | "min" => 60e6,
            "h" => 3600e6,
            "d" => 86_400e6,
            _ => return None,
        })
    })?;
    if micros > 366 * 24 * 3600 * 1_000_000 {
        return Err(UnitError::TooLarge { word: word.to_owned(), what: "duration" });
    }
    Ok(Duration::from_micros(micros))
}

/// Three significant digits, no trailing point: 941, 94.1, 9.41.
fn three_digits(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// `941 Mbit/s`, `9.41 Gbit/s`, `0 bit/s`.
pub fn bps(value: f64) -> String {
    if !value.is_finite() {
        return "unlimited".to_owned();
    }
    // The next unit begins where three digits would round up to a thousand.
    let (factor, unit) = match value.abs() {
        v if v >= 999.5e9 => (1e12, "Tbit/s"),
        v if v >= 999.5e6 => (1e9, "Gbit/s"),
        v if v >= 999.5e3 => (1e6, "Mbit/s"),
        v if v >= 999.5 => (1e3, "kbit/s"),
        _ => return format!("{value:.0} bit/s"),
    };
    format!("{} {unit}", three_digits(value / factor))
}

/// `256 KiB`, `4 MiB`, `1500 B`.
pub fn bytes(value: u64) -> String {
    let float = value as f64;
    let (factor, unit) = match value {
        v if v >= 1 << 30 => (f64::from(1 << 30), "GiB"),
        v if v >= 1 << 20 => (f64::from(1 << 20), "MiB"),
        v if v >= 10 << 10 => (1024.0, "KiB"),
        _ => return format!("{value} B"),
    };
    let scaled = float / factor;
    if (scaled - scaled.round()).abs() < 0.005 {
        format!("{scaled:.0} {unit}")
    } else {
        format!("{} {unit}", three_digits(scaled))
    }
}

/// `4.00 GiB`, `337 MiB`, `9.77 KiB`: what was counted, with three digits always, so that a column of them lines up.
pub fn amount(value: u64) -> String {
    let float = value as f64;
    let (factor, unit) = match value {
        v if v >= 1 << 40 => (1_099_511_627_776.0, "TiB"),
        v if v >= 1 << 30 => (f64::from(1 << 30), "GiB"),
        v if v >= 1 << 20 => (f64::from(1 << 20), "MiB"),
        v if v >= 1 << 10 => (1024.0, "KiB"),
        _ => return format!("{value} B"),
    };
    format!("{} {unit}", three_digits(float / factor))
}

/// `35.0 ms`, `120 us`, `20.0 s`.
pub fn micros(value: u64) -> String {
    let float = value as f64;
    match value {
        0..1_000 => format!("{value} us"),
        1_000..1_000_000 => format!("{} ms", three_digits(float / 1e3)),
        _ => format!("{} s", three_digits(float / 1e6)),
    }
}

/// `99.7 %`, `>99.9 %`: a percentage that would round to 100 % and is less; `None` of any other.
pub fn nearly_all(percent: f64) -> Option<String> {
    match percent {
        99.5..99.95 => Some(format!("{percent:.1} %")),
        99.95..100.0 => Some(">99.9 %".to_owned()),
        _ => None,
    }
}

/// `37 %`, `0.120 %`: a fraction as per cent with no more digits than it deserves; only all is 100 %, and only nothing 0 %.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if let Some(text) = nearly_all(percent) {
        text
    } else if percent.abs() >= 9.95 || percent == 0.0 {
        // Half away from zero; `{:.0}` rounds half to even.
        format!("{} %", percent.round())
    } else if percent.abs() >= 0.995 {
        format!("{percent:.1} %")
    } else if percent.abs() < 0.0005 {
        "<0.001 %".to_owned()
    } else {
        format!("{percent:.3} %")
    }
}

/// `1,234,567`.
pub fn grouped(n: impl Into<i128>) -> String {
    let n: i128 = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if n < 0 {
        text.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_powers_of_ten() {
        assert_eq!(parse_rate("100M"), Ok(Rate::Bits(100_000_000)));
        assert_eq!(parse_rate("9.4G"), Ok(Rate::Bits(9_400_000_000)));
        assert_eq!(parse_rate("1.2Mpps"), Ok(Rate::Packets(1_200_000)));
        assert_eq!(parse_rate("250kbit"), Ok(Rate::Bits(250_000)));
        assert_eq!(parse_rate("10Mbit/s"), Ok(Rate::Bits(10_000_000)));
    }

    #[test]
    fn sizes_are_powers_of_two() {
        assert_eq!(parse_size("64"), Ok(64));
        assert_eq!(parse_size("9k"), Ok(9216));
        assert_eq!(parse_size("256KiB"), Ok(262_144));
        assert_eq!(parse_size("4M"), Ok(4_194_304));
    }

    #[test]
    fn durations_know_their_suffix() {
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("3"), Ok(Duration::from_secs(3)));
    }

    #[test]
    fn a_share_with_a_percent_sign_is_the_same_everywhere() {
        for bare in [BareShare::Ratio, BareShare::Percent] {
            assert_eq!(parse_share("0.5%", bare), Ok(0.005));
            assert_eq!(parse_share("100 %", bare), Ok(1.0));
        }
        assert_eq!(parse_share("0.5", BareShare::Ratio), Ok(0.5));
        assert_eq!(parse_share("0.5", BareShare::Percent), Ok(0.005));
        for word in ["", "%", "x", "101%", "-1%", "NaN", "1.5"] {
            let error = parse_share(word, BareShare::Ratio).expect_err(word).to_string();
            assert_eq!(error, format!("invalid share `{word}`; write it like 1% or 0.01, from 0 to 1"));
        }
        assert!(parse_share("101", BareShare::Percent).is_err());
    }

    #[test]
    fn a_bad_word_is_named_with_examples() {
        for word in ["", "fast", "10X", "1.2.3M", "-5M", "Mpps", "1e99999"] {
            let error = parse_rate(word).expect_err(word).to_string();
            assert!(error.contains(&format!("`{word}`")), "{error}");
        }
        assert!(parse_size("9z").is_err());
        assert!(parse_duration("10 parsecs").is_err());
        assert!(parse_duration("99999999h").is_err());
    }

    #[test]
    fn text_keeps_three_digits() {
        assert_eq!(bps(941.3e6), "941 Mbit/s");
        assert_eq!(bps(9.41e9), "9.41 Gbit/s");
        assert_eq!(bps(999.9e6), "1.00 Gbit/s");
        assert_eq!(bps(12.0), "12 bit/s");
        assert_eq!(bytes(262_144), "256 KiB");
        assert_eq!(bytes(1500), "1500 B");
        assert_eq!(bytes(2_770_000), "2.64 MiB");
        assert_eq!(
            [0, 1023, 1024, 4 << 30, 3_790_000_000].map(amount),
            ["0 B", "1023 B", "1.00 KiB", "4.00 GiB", "3.53 GiB"]
        );
        assert_eq!([1023 << 20, 353_000_000, 5 << 40].map(amount), ["1023 MiB", "337 MiB", "5.00 TiB"]);
        assert_eq!(micros(35_000), "35.0 ms");
        assert_eq!(percent(0.37), "37 %");
        assert_eq!([0.725, 0.775].map(percent), ["73 %", "78 %"]);
    }

    #[test]
    fn only_all_is_100_percent_and_only_nothing_is_none() {
        let texts = [0.0, 1e-9, 0.000_012, 0.5, 0.994, 0.997_16, 0.999_5, 1.0 - 1e-12, 1.0, 1.002].map(percent);
        let expected = ["0 %", "<0.001 %", "0.001 %", "50 %", "99 %", "99.7 %", ">99.9 %", ">99.9 %", "100 %", "100 %"];
        assert_eq!(texts, expected);
    }
}
