//! The number of a fault, as the user writes it.

use narrows_model::words::units;
use std::fmt;

/// What kind of number a fault takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `256k`
    Bytes,
    /// `100M`
    Rate,
    /// `1%` or `0.01`
    Probability,
    /// `20ms`
    Duration,
    /// `20`
    Count,
    /// `reno`
    Word,
    /// `200000x64`: whole numbers with these names.
    Numbers(&'static [&'static str]),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "size",
            Self::Rate => "rate",
            Self::Probability => "probability",
            Self::Duration => "duration",
            Self::Count => "number",
            Self::Word => "word",
            Self::Numbers(_) => "product",
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// The fault takes none.
    None,
    /// Bytes, microseconds, bits per second or a count, as the unit says.
    Number(Unit, u64),
    /// From 0 to 1.
    Probability(f64),
    Word(String),
    /// Several numbers with their names.
    Numbers(&'static [&'static str], Vec<u64>),
}

/// The maximum of each of several numbers.
const NUMBER_MAX: u64 = 1_000_000_000;

impl Value {
    /// Parses the user's text.
    pub fn parse(unit: Unit, words: &str) -> Result<Self, String> {
        let number = |parsed: Result<u64, units::UnitError>| match parsed {
            Ok(0) => Err("it must be more than 0".to_owned()),
            Ok(number) => Ok(Self::Number(unit, number)),
            Err(error) => Err(error.to_string()),
        };
        match unit {
            Unit::Bytes => number(units::parse_size(words)),
            Unit::Rate => number(units::parse_bps(words)),
            Unit::Duration => {
                number(units::parse_duration(words).map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX)))
            }
            Unit::Count => match words.parse::<u64>() {
                Ok(count @ 1..=1_000_000) => Ok(Self::Number(unit, count)),
                _ => Err("it must be a whole number from 1 to 1000000".to_owned()),
            },
            Unit::Probability => {
                let (digits, factor) = words.strip_suffix('%').map_or((words, 1.0), |digits| (digits.trim(), 0.01));
                match digits.parse::<f64>().map(|value| value * factor) {
                    Ok(value) if value > 0.0 && value < 1.0 => Ok(Self::Probability(value)),
                    _ => Err("it must be from 0 to 1, or from 0 % to 100 %".to_owned()),
                }
            }
            Unit::Numbers(names) => {
                let numbers = words.split('x').map(|word| word.trim().parse::<u64>());
                let good = |number: &u64| (1..=NUMBER_MAX).contains(number);
                match numbers.collect::<Result<Vec<_>, _>>() {
                    Ok(numbers) if numbers.len() == names.len() && numbers.iter().all(good) => {
                        Ok(Self::Numbers(names, numbers))
                    }
                    _ => Err(format!(
                        "write {} whole numbers from 1 to {NUMBER_MAX} with x between them: {}",
                        names.len(),
                        names.join(" x ")
                    )),
                }
            }
            Unit::Word => {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
                match words {
                    "" => Err("it is empty".to_owned()),
                    word if word.len() <= 64 && word.bytes().all(plain) => Ok(Self::Word(word.to_owned())),
                    _ => Err("only letters, digits, `-` and `_` are allowed".to_owned()),
                }
            }
        }
    }

    /// As a whole number; 0 if it is not one.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Number(_, number) => *number,
            _ => 0,
        }
    }

    /// As a 32-bit number, saturated.
    pub fn number32(&self) -> u32 {
        u32::try_from(self.number()).unwrap_or(u32::MAX)
    }

    /// The several numbers; 0 for missing ones.
    pub fn numbers<const N: usize>(&self) -> [u64; N] {
        let numbers = match self {
            Self::Numbers(_, numbers) => numbers.as_slice(),
            _ => &[],
        };
        std::array::from_fn(|index| numbers.get(index).copied().unwrap_or(0))
    }

    /// As a probability; 0 if it is not one.
    pub const fn probability(&self) -> f64 {
        match self {
            Self::Probability(value) => *value,
            _ => 0.0,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Number(Unit::Bytes, bytes) => f.write_str(&units::bytes(*bytes)),
            Self::Number(Unit::Rate, bps) => f.write_str(&units::bps(*bps as f64)),
            Self::Number(Unit::Duration, time) => f.write_str(&units::micros(*time)),
            Self::Number(_, number) => write!(f, "{number}"),
            Self::Probability(value) => f.write_str(&units::percent(*value)),
            Self::Word(word) => f.write_str(word),
            Self::Numbers(names, numbers) => {
                let words = numbers.iter().zip(*names).map(|(number, name)| format!("{number} {name}"));
                f.write_str(&words.collect::<Vec<_>>().join(" x "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_and_printed() {
        let shown = |unit, words| Value::parse(unit, words).map(|value| value.to_string());
        assert_eq!(shown(Unit::Bytes, "256k").as_deref(), Ok("256 KiB"));
        assert_eq!(shown(Unit::Rate, "100M").as_deref(), Ok("100 Mbit/s"));
        assert_eq!(shown(Unit::Probability, "1%").as_deref(), Ok("1.0 %"));
        assert_eq!(shown(Unit::Probability, "0.01").as_deref(), Ok("1.0 %"));
        assert_eq!(shown(Unit::Duration, "20ms").as_deref(), Ok("20.0 ms"));
        assert_eq!(shown(Unit::Word, "bbr").as_deref(), Ok("bbr"));
        const TWO: Unit = Unit::Numbers(&["packets/s", "bytes"]);
        assert_eq!(shown(TWO, "200000x64").as_deref(), Ok("200000 packets/s x 64 bytes"));
        let refused = shown(TWO, "200000").expect_err("one is missing");
        assert_eq!(refused, "write 2 whole numbers from 1 to 1000000000 with x between them: packets/s x bytes");
        for (unit, words) in [
            (Unit::Bytes, "0"),
            (Unit::Rate, "x"),
            (Unit::Probability, "100%"),
            (Unit::Probability, "nan"),
            (Unit::Count, "-1"),
            (Unit::Word, "a b"),
            (TWO, "1x2x3"),
            (TWO, "1x0"),
            (TWO, "1xfast"),
            (TWO, "1x1000000001"),
        ] {
            assert!(Value::parse(unit, words).is_err(), "{words}");
        }
    }
}
