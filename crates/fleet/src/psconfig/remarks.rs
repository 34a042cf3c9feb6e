//! What of a template could not be taken over, in a sentence each.

use super::template::Named;
use narrows_model::words::show::clean;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const REMARKS_MAX: usize = 100;
/// Objects that are named in one remark.
const NAMED_MAX: usize = 5;
/// Of one remark, in characters.
const WORDS_MAX: usize = 300;

/// Keys that need no remark: a load is made in both directions, and slips by itself.
const QUIET: &[&str] =
    &["source", "dest", "source-node", "dest-node", "duration", "reverse", "schema", "slip", "sliprand"];

/// Why a key is not taken over, or what happens instead.
const WHY: &[(&str, &str)] = &[
    ("archives", "the controller keeps the results in its own store"),
    ("bandwidth", "a load is TCP as fast as it goes"),
    ("contexts", "an agent measures where it runs"),
    ("default-address-label", "a host has one address"),
    ("excludes", "all pairs of the group are tested"),
    ("excludes-self", "a host is never tested with itself"),
    ("includes", "the files that it names are not read"),
    ("ip-version", "the addresses of the hosts decide"),
    ("label", "a host has one address"),
    ("labels", "a host has one address"),
    ("no-agent", "each host of a fleet needs an agent"),
    ("parallel", "a load is one stream"),
    ("remote-addresses", "a host has one address"),
    ("subtasks", "each test has a period of its own"),
    ("tools", "narrows measures itself"),
    ("udp", "a load is TCP as fast as it goes"),
    ("unidirectional", "loads are made in both directions"),
];

/// What is said, and of which objects.
#[derive(Debug, Default)]
pub(super) struct Remarks(BTreeMap<String, BTreeSet<String>>);

impl Remarks {
    pub(super) fn note(&mut self, object: &str, says: &str) {
        self.0.entry(short(says)).or_default().insert(short(object));
    }

    /// Notes the keys that are not taken over.
    pub(super) fn keys(&mut self, object: &str, rest: &Named<Value>) {
        for (key, value) in rest {
            let key = key.as_str();
            if key.starts_with(['_', '#']) || QUIET.contains(&key) || says_nothing(value) {
                continue;
            }
            let why = WHY.iter().find(|(of, _)| *of == key).map_or("narrows has no such thing", |(_, why)| *why);
            self.note(object, &format!("`{key}` is not taken over: {why}"));
        }
    }

    pub(super) fn sentences(self) -> Vec<String> {
        let more = self.0.len().saturating_sub(REMARKS_MAX);
        let sentence = |(says, objects): (String, BTreeSet<String>)| {
            let named: Vec<&str> = objects.iter().take(NAMED_MAX).map(String::as_str).collect();
            let others = match objects.len() - named.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            format!("{}{others}: {says}", named.join(", "))
        };
        let last = (more > 0).then(|| format!("{more} more remarks are left out"));
        self.0.into_iter().take(REMARKS_MAX).map(sentence).chain(last).collect()
    }
}

/// Words of a template, so that they can be shown.
pub(super) fn short(words: &str) -> String {
    clean(&words.chars().take(WORDS_MAX).collect::<String>())
}

/// Whether a key with this value is as good as none.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        // What `excludes-self` is where nothing is said.
        Value::String(word) => word == "host",
        Value::Bool(true) | Value::Number(_) => false,
    }
}
