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

/// The tables whose readers are written by hand, a block each: its name, how it is written, what it is about; then a line for each
/// key: the key, what it is, what is taken without it.
const TABLES: &str = include_str!("keys.txt");

impl Section {
    /// The table of that name among those with a reader of their own; a test reads a file with every one.
    pub(super) fn of(name: &str) -> Self {
        let block = TABLES.split("\n\n").find(|block| block.lines().next() == Some(name)).unwrap_or_default();
        let mut lines = block.lines();
        let mut next = || lines.next().unwrap_or_default();
        let (name, written, what) = (next(), next().to_owned(), next().to_owned());
        let key = |line: &'static str| {
            let (name, rest) = line.split_once(" | ")?;
            let (what, default) = rest.split_once(" | ")?;
            Some(Key { name, what: what.to_owned(), default: default.to_owned() })
        };
        Self { name, written, what, keys: lines.filter_map(key).collect() }
    }

    /// The table of that name, whose keys are those of another one.
    pub(super) fn like(name: &str, other: &str) -> Self {
        Self { keys: Self::of(other).keys, ..Self::of(name) }
    }
}
