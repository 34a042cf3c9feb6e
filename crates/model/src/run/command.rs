//! A run of another program whose output has a number: iperf3, a script.

use crate::host::fact::Unit;
use crate::run::history::Headline;
use crate::words::units::{decimal, without_bits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the program was asked, and what it printed. The stored form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRecord {
    /// Unique on the machine that made it: time and a random part.
    pub id: String,
    /// The program that made the record.
    pub made_by: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// How long it ran, microseconds.
    pub elapsed_us: u64,
    /// The host that it measured, in the user's words.
    pub host: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The regular expression that finds the number.
    pub pattern: String,
    /// The unit of the number, in the user's words.
    pub unit: String,
    /// The number, as printed; `None`: the run failed.
    pub value: Option<f64>,
    /// Why the run failed, if it did.
    pub failed: Option<String>,
    /// The end of its output, 16 KiB at most.
    pub output: String,
}

/// What a unit in the user's words is: the unit, and the factor to it.
pub fn scale(unit: &str) -> (Unit, f64) {
    match unit {
        "us" => (Unit::Microseconds, 1.0),
        "ms" => (Unit::Microseconds, 1e3),
        "s" => (Unit::Microseconds, 1e6),
        "%" => (Unit::Fraction, 0.01),
        _ if without_bits(unit) == unit => (Unit::Number, 1.0),
        _ => decimal(without_bits(unit)).map_or((Unit::Number, 1.0), |factor| (Unit::BitsPerSecond, factor)),
    }
}

impl CommandRecord {
    /// The file name of the program.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it))
    }

    /// The number in one of narrows's own units where it has one; `None` if the run failed.
    pub fn figure(&self) -> Option<Headline> {
        let (unit, factor) = scale(&self.unit);
        let plain = unit == Unit::Number && !self.unit.is_empty();
        let name = if plain { format!("{} ({})", self.program(), self.unit) } else { self.program().to_owned() };
        Some(Headline::new(name, self.value? * factor, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_units_become_those_of_narrows() {
        assert_eq!(scale("Mbit/s"), (Unit::BitsPerSecond, 1e6));
        assert_eq!(scale("bits/s"), (Unit::BitsPerSecond, 1.0));
        assert_eq!(scale("ms"), (Unit::Microseconds, 1e3));
        assert_eq!(scale("requests/s"), (Unit::Number, 1.0));
        assert_eq!(scale("M"), (Unit::Number, 1.0));
    }
}
