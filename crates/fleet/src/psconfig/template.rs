//! What of a pSConfig template is read. Keys that are not known are kept, so that they can be named.

use crate::plan::Kind;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) type Named<T> = BTreeMap<String, T>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Template {
    pub(super) addresses: Named<Address>,
    #[serde(rename = "address-classes")]
    pub(super) classes: Named<Class>,
    pub(super) groups: Named<Group>,
    pub(super) hosts: Named<Machine>,
    pub(super) schedules: Named<Schedule>,
    pub(super) tasks: Named<Task>,
    pub(super) tests: Named<Test>,
    #[serde(rename = "_meta")]
    pub(super) meta: Value,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Address {
    pub(super) address: String,
    /// The machine that has it.
    pub(super) host: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) disabled: bool,
    #[serde(rename = "_meta")]
    pub(super) meta: Value,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Machine {
    pub(super) tags: Vec<String>,
    pub(super) disabled: bool,
    #[serde(rename = "_meta")]
    pub(super) meta: Value,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

/// Addresses by what they have in common.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Class {
    #[serde(rename = "data-source")]
    pub(super) source: Value,
    #[serde(rename = "match-filter")]
    pub(super) matching: Value,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Group {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) addresses: Vec<Selector>,
    #[serde(rename = "a-addresses")]
    pub(super) a: Vec<Selector>,
    #[serde(rename = "b-addresses")]
    pub(super) b: Vec<Selector>,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Selector {
    pub(super) name: Option<String>,
    pub(super) class: Option<String>,
    pub(super) disabled: bool,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Schedule {
    pub(super) repeat: Option<String>,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    pub(super) group: String,
    pub(super) test: String,
    pub(super) schedule: Option<String>,
    pub(super) disabled: bool,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Test {
    #[serde(rename = "type")]
    pub(super) of: String,
    pub(super) spec: Named<Value>,
    #[serde(flatten)]
    pub(super) rest: Named<Value>,
}

impl Template {
    pub(super) fn machine(&self, address: &Address) -> Option<&Machine> {
        self.hosts.get(address.host.as_ref()?)
    }

    pub(super) fn is_disabled(&self, address: &Address) -> bool {
        address.disabled || self.machine(address).is_some_and(|machine| machine.disabled)
    }

    /// The addresses of a class; `None`: it is not there, or made by more than a tag.
    pub(super) fn of_class(&self, name: &str) -> Option<Vec<(&String, &Address)>> {
        let class = self.classes.get(name)?;
        let filter = &class.matching;
        let (by, tag) = (word(filter, "type"), word(filter, "tag"));
        let is_tag = tag.is_some() && filter.as_object().is_some_and(|keys| keys.len() == 2);
        let is_known = filter.is_null() || is_tag && matches!(by, Some("tag" | "host"));
        let is_current = word(&class.source, "type") == Some("current-config");
        if !is_known || !is_current || class.rest.contains_key("exclude-filter") {
            return None;
        }
        let is_of = |address: &Address| {
            let tags = if by == Some("host") { self.machine(address).map(|it| &it.tags) } else { Some(&address.tags) };
            filter.is_null() || tags.is_some_and(|tags| tags.iter().any(|it| Some(it.as_str()) == tag))
        };
        Some(self.addresses.iter().filter(|(_, address)| is_of(address)).collect())
    }
}

fn word<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

impl Test {
    /// The test of a fleet that measures the same.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self.of.as_str() {
            "throughput" => Some(Kind::Load),
            "latency" | "latencybg" | "rtt" | "trace" | "mtu" => Some(Kind::Probe),
            _ => None,
        }
    }

    /// The one end of all its tests: the groups that are lists name the other ones.
    pub(super) fn end(&self) -> Option<&str> {
        let fixed = |key: &str| self.spec.get(key)?.as_str().filter(|end| !end.contains("{%"));
        fixed("dest").or_else(|| fixed("source"))
    }
}

impl Address {
    /// The host of the fleet that has it, by the name of its machine: in the file, `@` would mean a group, and whoever reads it in a
    /// terminal should see what is there.
    pub(super) fn fleet_host(&self, name: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || ":._-".contains(c) { c } else { '_' };
        self.host.as_deref().unwrap_or(name).chars().map(plain).collect()
    }
}

pub(super) const SECOND_MS: u64 = 1_000;
pub(super) const MINUTE_MS: u64 = 60 * SECOND_MS;
pub(super) const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: u64 = 24 * HOUR_MS;

/// Milliseconds of an ISO 8601 duration of weeks, days, hours, minutes and seconds: `PT4H`, `P1DT30M`.
pub(super) fn iso_ms(word: &str) -> Option<u64> {
    let (days, times) = word.strip_prefix('P').map(|rest| rest.split_once('T').unwrap_or((rest, "")))?;
    let days = sum_ms(days, &[('W', 7 * DAY_MS), ('D', DAY_MS)])?;
    let ms = days + sum_ms(times, &[('H', HOUR_MS), ('M', MINUTE_MS), ('S', SECOND_MS)])?;
    (1.0..1e15).contains(&ms).then(|| ms.round() as u64)
}

/// Numbers with their units, each at most once and in this order.
fn sum_ms(mut rest: &str, units: &[(char, u64)]) -> Option<f64> {
    let (mut units, mut sum) = (units.iter(), 0.0);
    while !rest.is_empty() {
        let at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let letter = rest[at..].chars().next()?;
        let (_, ms) = units.find(|(unit, _)| *unit == letter)?;
        sum += rest[..at].parse::<f64>().ok()? * (*ms as f64);
        rest = &rest[at + letter.len_utf8()..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_iso_8601() {
        let long = format!("PT{}H", "9".repeat(400));
        for (word, ms) in [
            ("PT4H", Some(4 * HOUR_MS)),
            ("P1DT30M", Some(DAY_MS + 30 * MINUTE_MS)),
            ("P1W", Some(7 * DAY_MS)),
            ("PT0.5S", Some(500)),
            ("PT1H2M3S", Some(HOUR_MS + 2 * MINUTE_MS + 3 * SECOND_MS)),
            ("P", None),
            ("PT", None),
            ("4H", None),
            ("PT5M1H", None),
            ("PT1H1H", None),
            ("PT1.2.3S", None),
            ("PT5", None),
            ("PT5é", None),
            ("P1M", None),
            ("PT-1H", None),
            ("@R/PT1H", None),
            (long.as_str(), None),
        ] {
            assert_eq!(iso_ms(word), ms, "{word}");
        }
    }
}
