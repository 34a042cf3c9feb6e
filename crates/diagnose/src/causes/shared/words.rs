//! Small builders, so that a cause's file reads as its rule.

use crate::judge::{Assessment, Evidence, Experiment};
use crate::role::Role;
use narrows_model::{Command, Fix, Setting, Witness, words::units};

pub(crate) fn witness(kind: &str, says: impl Into<String>) -> Witness {
    Witness { kind: kind.to_owned(), says: says.into() }
}

pub(crate) fn counter(says: impl Into<String>) -> Witness {
    witness("counter", says)
}

pub(crate) fn parameter(says: impl Into<String>) -> Witness {
    witness("parameter", says)
}

pub(crate) fn experiment(says: impl Into<String>) -> Witness {
    witness("experiment", says)
}

pub(crate) fn contradicts(why: impl Into<String>) -> Assessment {
    Assessment::Contradicts(why.into())
}

pub(crate) fn cannot_tell(why: impl Into<String>) -> Assessment {
    Assessment::CannotTell { why: why.into(), ask: None }
}

pub(crate) fn ask(experiment: &'static Experiment, why: impl Into<String>) -> Assessment {
    Assessment::CannotTell { why: why.into(), ask: Some(experiment) }
}

/// That four times the streams carried about as much.
pub(crate) fn no_more(more_bps: f64, bps: f64) -> String {
    let gain = more_bps / bps - 1.0;
    let than =
        if gain < 0.005 { "no more than".to_owned() } else { format!("only {} more than", units::percent(gain)) };
    format!("four times the streams carried {}, {than} {}", units::bps(more_bps), units::bps(bps))
}

/// A fix in words alone.
pub(crate) fn advice(text: impl Into<String>) -> Fix {
    Fix { advice: text.into(), ..Fix::default() }
}

/// A fix by one setting, which `--try` can apply.
pub(crate) fn setting_fix(evidence: &impl Evidence, role: Role, advice: impl Into<String>, setting: Setting) -> Fix {
    let fix = command_fix(evidence, role, advice, [setting.to_string()]);
    Fix { settings: vec![(evidence.place(role), setting)], ..fix }
}

/// A fix by one sysctl, which `--try` can apply.
pub(crate) fn sysctl_fix(
    evidence: &impl Evidence,
    role: Role,
    advice: impl Into<String>,
    key: &str,
    value: impl Into<String>,
) -> Fix {
    setting_fix(evidence, role, advice, Setting::Sysctl { key: key.to_owned(), value: value.into() })
}

/// A fix by commands that narrows does not apply itself.
pub(crate) fn command_fix(
    evidence: &impl Evidence,
    role: Role,
    advice: impl Into<String>,
    commands: impl IntoIterator<Item = String>,
) -> Fix {
    let at = evidence.place(role);
    let commands = commands.into_iter().map(|run| Command { at, run }).collect();
    Fix { commands, ..self::advice(advice) }
}

#[cfg(test)]
mod tests {
    use super::no_more;

    #[test]
    fn a_little_more_is_said_to_be_more() {
        assert_eq!(no_more(256e6, 245e6), "four times the streams carried 256 Mbit/s, only 4.5 % more than 245 Mbit/s");
        assert_eq!(no_more(191e6, 191e6), "four times the streams carried 191 Mbit/s, no more than 191 Mbit/s");
    }
}
