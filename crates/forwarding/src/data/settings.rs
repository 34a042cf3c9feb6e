//! How the keys of a plan file are declared: each is a field of a typed struct, with its documentation, its range and its default in
//! one place. The reader of the file and the page of the manual take them from here.

use narrows_model::run::search::Goal;
use serde_json::Value as Json;
use std::ops::RangeInclusive;

/// Which defaults a plan takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// For a small lab: a report in minutes.
    Quick,
    /// The RFC's own sizes, durations and repetitions.
    Rfc2544,
}

impl Preset {
    /// The words of the plan file.
    pub const WORDS: [(&'static str, Self); 2] = [("quick", Self::Quick), ("rfc2544", Self::Rfc2544)];

    /// One of two values.
    pub const fn pick<T: Copy>(self, quick: T, rfc2544: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Rfc2544 => rfc2544,
        }
    }
}

/// What a value of a plan file may be.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A duration in whole milliseconds; the field holds the milliseconds.
    Duration(RangeInclusive<u64>),
    /// A whole number.
    Whole(RangeInclusive<u64>),
    /// A number.
    Number(RangeInclusive<f64>),
    /// Search goals, by name or as tables.
    Goals,
    /// The words of a command, the program first.
    Command,
}

/// A value that a key has where the file does not give it.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// A duration, ms.
    Ms(u64),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// Names of goals.
    Goals(&'static [&'static str]),
}

/// What a key has where the file does not give it.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// Nothing: the file must give it.
    Required,
    /// The same in each preset.
    Always(Value),
    /// One in the quick preset and one in that of RFC 2544.
    Presets(Value, Value),
    /// It follows from the rest of the plan, in these words; until then the field is 0.
    Derived(&'static str),
}

/// A key of a plan file.
#[derive(Debug, Clone)]
pub struct Key {
    /// As the file writes it.
    pub name: &'static str,
    /// The field of the struct.
    pub field: &'static str,
    /// What it is: the documentation of the field.
    pub doc: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is without the file.
    pub default: Default,
}

/// A table of a plan file, as a struct.
pub trait Settings {
    /// What it is about: the documentation of the struct.
    const DOC: &'static str;
    /// Its keys.
    const KEYS: &'static [Key];
}

impl Value {
    fn json(self) -> Json {
        match self {
            Self::Ms(number) | Self::Whole(number) => number.into(),
            Self::Number(number) => number.into(),
            Self::Goals(names) => {
                let goals: Vec<Goal> = names.iter().filter_map(|name| Goal::by_name(name)).collect();
                serde_json::to_value(goals).unwrap_or_default()
            }
        }
    }

    /// As a plan file writes it.
    fn words(self) -> String {
        match self {
            Self::Ms(ms) if ms >= 7_200_000 && ms.is_multiple_of(3_600_000) => format!("\"{}h\"", ms / 3_600_000),
            Self::Ms(ms) if ms >= 120_000 && ms.is_multiple_of(60_000) => format!("\"{}m\"", ms / 60_000),
            Self::Ms(ms) if ms.is_multiple_of(1_000) => format!("\"{}s\"", ms / 1_000),
            Self::Ms(ms) => format!("\"{ms}ms\""),
            Self::Whole(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Goals(names) => format!("[\"{}\"]", names.join("\", \"")),
        }
    }
}

impl Default {
    /// The value of the field; `None` where the file must give it.
    pub fn json(self, preset: Preset) -> Option<Json> {
        match self {
            Self::Required => None,
            Self::Always(value) => Some(value.json()),
            Self::Presets(quick, rfc2544) => Some(preset.pick(quick, rfc2544).json()),
            Self::Derived(_) => Some(0.into()),
        }
    }

    /// As the page of the manual has it.
    pub fn words(self) -> String {
        match self {
            Self::Required => "required".to_owned(),
            Self::Always(value) => value.words(),
            Self::Presets(quick, rfc2544) => format!("quick {}, rfc2544 {}", quick.words(), rfc2544.words()),
            Self::Derived(words) => words.to_owned(),
        }
    }
}

/// A documentation comment within a sentence: `How long each trial is.` becomes `how long each trial is`.
pub fn in_a_sentence(doc: &str) -> String {
    let doc = doc.trim();
    let doc = doc.strip_suffix('.').unwrap_or(doc);
    let mut letters = doc.chars();
    let plain = letters.clone().nth(1).is_some_and(|second| !second.is_uppercase());
    match letters.next() {
        Some(first) if plain => first.to_lowercase().chain(letters).collect(),
        _ => doc.to_owned(),
    }
}

/// Declares structs whose fields are keys of a plan file: `field: type = key, kind, default`.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $what:literal])+
                pub $field:ident: $type:ty = $key:literal, $kind:expr, $default:expr;
            )*
        }
    )*) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $( $(#[doc = $what])+ pub $field: $type, )*
        }

        impl $crate::data::settings::Settings for $name {
            const DOC: &'static str = concat!($($doc),+);
            const KEYS: &'static [$crate::data::settings::Key] = &[
                $( $crate::data::settings::Key {
                    name: $key,
                    field: stringify!($field),
                    doc: concat!($($what),+),
                    kind: $kind,
                    default: $default,
                }, )*
            ];
        }
    )*};
}
pub(crate) use settings;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_a_file_has_them() {
        let ms = [500, 5_000, 60_000, 120_000, 5_400_000, 7_200_000].map(|ms| Value::Ms(ms).words());
        assert_eq!(ms, ["\"500ms\"", "\"5s\"", "\"60s\"", "\"2m\"", "\"90m\"", "\"2h\""]);
        assert_eq!(Value::Goals(&["ndr", "pdr"]).words(), "[\"ndr\", \"pdr\"]");
        assert_eq!(Value::Number(0.1).words(), "0.1");
    }

    #[test]
    fn documentation_becomes_part_of_a_sentence() {
        assert_eq!(in_a_sentence(" How many."), "how many");
        assert_eq!(in_a_sentence(" RFC 2544."), "RFC 2544");
        assert_eq!(in_a_sentence(" \"quick\" or so"), "\"quick\" or so");
    }
}
