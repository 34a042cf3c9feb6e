//! Facts: what is known of a host, each with its unit and the place it was read from.

use super::keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The unit of a [`Fact`] or of a rule's need. A closed list: a unit that is not here cannot be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A word or a sentence.
    Text,
    /// On or off.
    Flag,
    /// A plain number without a dimension.
    Number,
    /// A running number of events since some start (only differences mean anything).
    Count,
    /// Bytes of memory or of data.
    Bytes,
    /// Memory pages, as `tcp_mem` counts them.
    Pages,
    /// Packets.
    Packets,
    /// Bits per second.
    BitsPerSecond,
    /// Microseconds.
    Microseconds,
    /// Hertz.
    Hertz,
    /// Giga-transfers per second of one PCIe lane.
    GigaTransfersPerSecond,
    /// PCIe lanes.
    Lanes,
    /// A CPU number or a list of them.
    Cpu,
    /// A fraction from 0 to 1 (or above, for quotas of several cores).
    Fraction,
}

/// A value read from a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// Words.
    Text(String),
    /// Several words: a list of congestion controls, of CPUs, of rules.
    List(Vec<String>),
}

impl Value {
    /// The value as a number, where it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Flag(on) => Some(f64::from(u8::from(*on))),
            Self::Integer(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Text(_) | Self::List(_) => None,
        }
    }

    /// The value as words, where it is words.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("on"),
            Self::Flag(false) => f.write_str("off"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x}"),
            Self::Text(text) => f.write_str(text),
            Self::List(items) => f.write_str(&items.join(" ")),
        }
    }
}

macro_rules! values {
    ($($from:ty: $make:expr;)*) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                $make(value)
            }
        }
    )*};
}

values! {
    bool: Self::Flag;
    i64: Self::Integer;
    u64: |n| Self::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    u32: |n| Self::Integer(i64::from(n));
    f64: Self::Float;
    &str: |text: &str| Self::Text(text.to_owned());
    String: Self::Text;
    Vec<String>: Self::List;
}

/// What a collector promises to provide, a rule needs and a table shows: a name and the unit that it comes in. All of
/// them are defined in [`keys`](super::keys).
///
/// A name that ends in `.*` stands for a family of open keys, such as `nic.stat.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FactKey {
    /// Dotted, lower case, most general word first: `tcp.rmem.max`.
    pub name: &'static str,
    /// The unit that every fact of this name comes in.
    pub unit: Unit,
    /// What a table calls it; empty where it has no row of its own.
    pub label: &'static str,
}

impl AsRef<str> for FactKey {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl From<FactKey> for String {
    fn from(key: FactKey) -> Self {
        key.name.to_owned()
    }
}

impl FactKey {
    /// A key by its name and unit.
    pub const fn new(name: &'static str, unit: Unit) -> Self {
        Self { name, unit, label: "" }
    }

    /// The same key with the label of its row.
    pub const fn label(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    /// Whether `name` is this key or a member of its family.
    pub fn covers(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.len() > prefix.len() && name.starts_with(prefix),
            None => self.name == name,
        }
    }
}

/// One thing known of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Dotted name, most general word first: `tcp.rmem.max`.
    pub key: String,
    /// What was read.
    pub value: Value,
    /// Its unit.
    pub unit: Unit,
    /// The file, netlink attribute or ioctl that it was read from.
    pub source: String,
}

/// A collector that could not run or a fact that could not be read, and why. Missing data is not zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Absent {
    /// The collector's id.
    pub collector: String,
    /// What is missing: a key or a family of keys.
    pub what: String,
    /// One sentence: why, and what would help.
    pub why: String,
}

impl Absent {
    pub(super) fn covers(&self, key: &str) -> bool {
        self.what == key || self.what.strip_suffix('*').is_some_and(|prefix| key.starts_with(prefix))
    }
}

/// How one collector did: the measurer is measured too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectorRun {
    /// The collector's id.
    pub collector: String,
    /// How long it took.
    pub duration_us: u64,
    /// How many facts it gave.
    pub facts: u32,
}

/// What was known of one host at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Snapshot {
    /// The host's own name.
    pub host: String,
    /// When it was taken, microseconds since the Unix epoch by that host's clock.
    pub taken_unix_us: u64,
    /// All facts, in the order of their keys.
    pub facts: Vec<Fact>,
    /// What could not be read.
    pub absent: Vec<Absent>,
    /// The cost of each collector.
    pub collectors: Vec<CollectorRun>,
}

impl Snapshot {
    /// The fact of that key.
    pub fn get(&self, key: impl AsRef<str>) -> Option<&Fact> {
        // Sorted by `seal`, but a snapshot from outside may not be.
        self.facts.iter().find(|fact| fact.key == key.as_ref())
    }

    /// The fact of that key as a number.
    pub fn number(&self, key: impl AsRef<str>) -> Option<f64> {
        self.get(key)?.value.as_f64()
    }

    /// The fact of that key as words.
    pub fn text(&self, key: impl AsRef<str>) -> Option<&str> {
        self.get(key)?.value.as_text()
    }

    /// All facts whose key begins with `prefix`.
    pub fn family<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Fact> + 'a {
        self.facts.iter().filter(move |fact| fact.key.starts_with(prefix))
    }

    /// Why a key is missing, where a collector said so.
    pub fn why_absent(&self, key: impl AsRef<str>) -> Option<&str> {
        self.absent.iter().find(|absent| absent.covers(key.as_ref())).map(|absent| absent.why.as_str())
    }

    /// Sorts the facts by key; of two with one key the first stays.
    pub fn seal(&mut self) {
        self.facts.sort_by(|a, b| a.key.cmp(&b.key));
        self.facts.dedup_by(|later, first| later.key == first.key);
    }

    /// What a host is set to and made of, by key: what may be compared with other hosts, and with the same one at another time. No counters,
    /// names and times, and nothing that changes by itself, as which classes of a shaper are busy.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let is_setting = |fact: &&Fact| {
            fact.unit != Unit::Count
                && !["host.", "time.", "qdisc.class."].iter().any(|begin| fact.key.starts_with(begin))
                && !keys::MOMENTARY.iter().any(|key| key.name == fact.key)
        };
        self.facts.iter().filter(is_setting).map(|fact| (fact.key.clone(), fact.value.to_string())).collect()
    }

    /// What grew between `before` and `self`: every fact of unit [`Unit::Count`], as a difference.
    ///
    /// A counter that is missing on either side, or that went backwards, is left out.
    pub fn counts_since(&self, before: &Self) -> BTreeMap<String, u64> {
        let earlier: BTreeMap<&str, &Value> = before
            .facts
            .iter()
            .filter(|fact| fact.unit == Unit::Count)
            .map(|fact| (fact.key.as_str(), &fact.value))
            .collect();
        self.facts
            .iter()
            .filter(|fact| fact.unit == Unit::Count)
            .filter_map(|fact| match (earlier.get(fact.key.as_str())?, &fact.value) {
                (Value::Integer(then), Value::Integer(now)) => {
                    Some((fact.key.clone(), u64::try_from(now.checked_sub(*then)?).ok()?))
                }
                _ => None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(key: &str, n: i64) -> Fact {
        Fact { key: key.into(), value: Value::Integer(n), unit: Unit::Count, source: "test".into() }
    }

    #[test]
    fn counts_since_leaves_out_what_is_missing_or_went_backwards() {
        let before = Snapshot { facts: vec![count("a", 5), count("b", 9)], ..Snapshot::default() };
        let after = Snapshot { facts: vec![count("a", 7), count("b", 3), count("c", 1)], ..Snapshot::default() };
        assert_eq!(after.counts_since(&before), BTreeMap::from([("a".to_owned(), 2)]));
    }

    #[test]
    fn a_family_key_covers_its_members_and_not_itself() {
        let family = FactKey::new("nic.stat.*", Unit::Count);
        assert!(family.covers("nic.stat.rx_missed"));
        assert!(!family.covers("nic.stat."));
        assert!(!family.covers("nic.mtu"));
    }
}
