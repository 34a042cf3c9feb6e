//! A table of a plan file and its keys, as the reader and the manual need them.

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// `generator`; empty: the top of the file.
    pub name: &'static str,
    /// How it is written: `[generator]`, `[[traffic]]`.
    pub written: String,
    /// What it is about.
    pub what: String,
    /// Its keys.
    pub keys: Vec<Key>,
}

/// A key of a table.
#[derive(Debug, Clone)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it is, and what is allowed.
    pub what: String,
    /// Without it: `required`, or the value that is taken.
    pub default: String,
}

/// A key whose reader is written by hand.
pub(super) fn key(name: &'static str, what: &str, default: &str) -> Key {
    Key { name, what: what.to_owned(), default: default.to_owned() }
}

impl Section {
    pub(super) fn of(name: &'static str, written: &str, what: &str, keys: Vec<Key>) -> Self {
        Self { name, written: written.to_owned(), what: what.to_owned(), keys }
    }
}
