//! A fact's value in a reader's words: the one place that knows how each unit is written; and text that is safe to show.

use crate::host::fact::{Unit, Value};
use crate::words::units;

/// The value with its unit: `256 KiB`, `10 Gbit/s`, `x4`, `on`.
pub fn value(value: &Value, unit: Unit) -> String {
    let Some(number) = value.as_f64().filter(|number| number.is_finite()) else {
        return value.to_string();
    };
    match unit {
        Unit::Text => value.to_string(),
        Unit::Flag => match value {
            Value::Integer(0) => "off".to_owned(),
            Value::Integer(1) => "on".to_owned(),
            other => other.to_string(),
        },
        Unit::Bytes => whole(number).map_or_else(|| format!("{value} B"), units::bytes),
        Unit::Microseconds => whole(number).map_or_else(|| format!("{value} us"), units::micros),
        Unit::BitsPerSecond => nominal(&units::bps(number)),
        Unit::Hertz => hertz(number),
        Unit::GigaTransfersPerSecond => format!("{value} GT/s"),
        Unit::Lanes => format!("x{value}"),
        Unit::Pages => format!("{} pages", grouped(value)),
        Unit::Packets => format!("{} packets", grouped(value)),
        Unit::Count => grouped(value),
        Unit::Fraction => format!("{number:.2}"),
        Unit::Number | Unit::Cpu => value.to_string(),
    }
}

/// A rate of a link or a bus as its data sheet has it: `1 Gbit/s` rather than `1.00 Gbit/s`.
pub fn nominal(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let short = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{short} {unit}").trim_end().to_owned()
}

fn whole(number: f64) -> Option<u64> {
    (0.0..1.8e19).contains(&number).then_some(number as u64)
}

fn hertz(number: f64) -> String {
    if number >= 1e9 { format!("{:.2} GHz", number / 1e9) } else { format!("{:.0} MHz", number / 1e6) }
}

/// Thousands parted by commas, so that long counters can be read.
fn grouped(value: &Value) -> String {
    match value {
        Value::Integer(number) if number.unsigned_abs() >= 10_000 => units::grouped(*number),
        other => other.to_string(),
    }
}

/// The text without anything that a terminal or a page would interpret, or that nobody sees: control characters (escape sequences
/// included), characters that change the writing direction or have no width, and tags (U+E0000) become `?`; a tab or a line break becomes a
/// blank.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' | '\r' => ' ',
            c if c.is_control() || is_unseen(c) => '?',
            c => c,
        })
        .collect()
}

/// Whether a reader does not see a character, which a program may obey.
pub const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// `1 stream`, `4 streams`.
pub fn plural(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_in_its_own_words() {
        for (held, unit, want) in [
            (Value::Integer(262_144), Unit::Bytes, "256 KiB"),
            (Value::Integer(1500), Unit::Bytes, "1500 B"),
            (Value::Integer(10_000_000_000), Unit::BitsPerSecond, "10 Gbit/s"),
            (Value::Integer(2_500_000_000), Unit::BitsPerSecond, "2.5 Gbit/s"),
            (Value::Integer(100_000_000), Unit::BitsPerSecond, "100 Mbit/s"),
            (Value::Float(2.5), Unit::GigaTransfersPerSecond, "2.5 GT/s"),
            (Value::Integer(4), Unit::Lanes, "x4"),
            (Value::Integer(1), Unit::Flag, "on"),
            (Value::Flag(false), Unit::Flag, "off"),
            (Value::Integer(178_067), Unit::Count, "178,067"),
            (Value::Integer(1024), Unit::Count, "1024"),
            (Value::Integer(3_400_000_000), Unit::Hertz, "3.40 GHz"),
            (Value::Integer(800_000_000), Unit::Hertz, "800 MHz"),
            (Value::Integer(35_000), Unit::Microseconds, "35.0 ms"),
            (Value::Float(1.5), Unit::Fraction, "1.50"),
            (Value::Integer(-1), Unit::Bytes, "-1 B"),
            (Value::List(vec!["cubic".into(), "bbr".into()]), Unit::Text, "cubic bbr"),
            (Value::Text("e1000".into()), Unit::Number, "e1000"),
        ] {
            assert_eq!(value(&held, unit), want);
        }
    }

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        assert_eq!(clean("a\x1b[31mred\x07\r\nb\u{202e}c"), "a?[31mred?  b?c");
        assert_eq!(clean("a\u{e0041}\u{200b}\u{2028}ö→é"), "a???ö→é");
    }
}
