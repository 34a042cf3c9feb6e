//! Tables and values of a plan file with their places: each is read as what it must be, and what it is not is noted and
//! reading goes on, so that one look tells everything.

use super::problem::{Lines, MISSING, Problems, nearest};
use super::section::Section;
use narrows_model::words::units::{BareShare, parse_share};
use narrows_wire::problem::Problem;
use std::cell::{Cell, RefCell};
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file, and what was found wrong so far.
#[derive(Debug)]
pub(super) struct Ink<'t> {
    /// Every table that a file may have.
    sections: &'static [Section],
    lines: Lines<'t>,
    problems: RefCell<Vec<Problem>>,
    /// Problems beyond those that are kept.
    more: Cell<usize>,
}

/// Problems that are kept until they are sorted: enough that those of the file's begin are among them.
const KEPT: usize = 10 * Problems::MOST;

impl<'t> Ink<'t> {
    pub(super) fn new(text: &'t str, sections: &'static [Section]) -> Self {
        Self { sections, lines: Lines::of(text), problems: RefCell::default(), more: Cell::new(0) }
    }

    pub(super) const fn lines(&self) -> &Lines<'t> {
        &self.lines
    }

    /// What a table at a path may hold: `traffic[0].modifiers[1]` is a table of `traffic.modifiers`.
    fn section(&self, path: &str) -> &'static Section {
        let name: String = path.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect();
        // A file with every table is read by a test.
        self.sections.iter().find(|section| section.name == name).unwrap_or(&self.sections[0])
    }

    /// Whether more problems would only be counted.
    fn is_full(&self) -> bool {
        self.problems.borrow().len() >= KEPT
    }

    pub(super) fn note(&self, at: usize, key: &str, says: impl Into<String>) {
        if self.is_full() {
            self.more.set(self.more.get() + 1);
            return;
        }
        let (line, column) = self.lines.at(at);
        self.problems.borrow_mut().push(Problem { line, column, key: key.to_owned(), says: says.into() });
    }

    /// The problems that were kept, and how many more there are.
    pub(super) fn into_problems(self) -> (Vec<Problem>, usize) {
        (self.problems.into_inner(), self.more.get())
    }
}

/// A table of the plan, all of whose keys are known.
#[derive(Debug, Clone)]
pub(super) struct Table<'a> {
    ink: &'a Ink<'a>,
    table: &'a DeTable<'a>,
    at: usize,
    section: &'static Section,
    /// Its path: `traffic[0]`; empty at the top.
    prefix: String,
}

/// A value with its path.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    ink: &'a Ink<'a>,
    value: &'a Spanned<DeValue<'a>>,
    path: String,
}

impl<'a> Table<'a> {
    pub(super) fn root(ink: &'a Ink<'a>, table: &'a DeTable<'a>) -> Self {
        Self { ink, table, at: 0, section: ink.section(""), prefix: String::new() }.checked()
    }

    /// Notes every key that is not known, with the nearest one that is.
    fn checked(self) -> Self {
        for key in self.table.keys() {
            let name = key.get_ref();
            if self.section.keys.iter().any(|known| known.name == name.as_ref()) {
                continue;
            }
            if self.ink.is_full() {
                self.ink.note(key.span().start, "", "");
                continue;
            }
            let known = self.section.keys.iter().map(|key| key.name);
            let hint = nearest(name, known.clone()).map_or_else(
                || format!("known keys: {}", known.collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            self.ink.note(key.span().start, &self.path(&shown(name)), format!("unknown key; {hint}"));
        }
        self
    }

    /// The path of a key of this table.
    pub(super) fn path(&self, key: &str) -> String {
        if self.prefix.is_empty() { key.to_owned() } else { format!("{}.{key}", self.prefix) }
    }

    /// Notes a problem at a key, or at the table where it has no such key.
    pub(super) fn note(&self, key: &str, says: impl Into<String>) {
        let at = self.table.get(key).map_or(self.at, |value| value.span().start);
        self.ink.note(at, &self.path(key), says);
    }

    /// Notes keys of the table that one of its kind does not have: `a source of the kind "snmp" has no host`.
    pub(super) fn refuse_others(&self, allowed: &[&str], kind: &str) {
        for key in self.section.keys.iter().filter(|key| self.has(key.name) && !allowed.contains(&key.name)) {
            self.note(key.name, format!("{kind} has no {}", key.name));
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of a key.
    pub(super) fn item(&self, key: &str) -> Option<Item<'a>> {
        debug_assert!(self.section.keys.iter().any(|known| known.name == key), "{key} is not in the table of keys");
        let value = self.table.get(key)?;
        Some(Item { ink: self.ink, value, path: self.path(key) })
    }

    /// The value of a key that must be there.
    pub(super) fn required(&self, key: &str) -> Option<Item<'a>> {
        let item = self.item(key);
        if item.is_none() {
            let what = self.section.keys.iter().find(|known| known.name == key).map_or("", |known| known.what.as_str());
            self.ink.note(self.at, &self.path(key), format!("{MISSING}: {what}"));
        }
        item
    }

    /// A table below this one.
    pub(super) fn table(&self, key: &str) -> Option<Self> {
        self.item(key)?.into_table()
    }

    /// A table below this one that must be there.
    pub(super) fn required_table(&self, key: &str) -> Option<Self> {
        self.required(key)?.into_table()
    }

    /// A list of tables, so many at most.
    pub(super) fn tables(&self, key: &str, most: usize) -> Vec<Self> {
        let Some(item) = self.item(key) else { return Vec::new() };
        let items = item.list(0..=most, &format!("tables, each as [[{key}]]")).unwrap_or_default();
        items.into_iter().filter_map(Item::into_table).collect()
    }
}

/// As much of a user's word as a sentence takes.
fn shown(word: &str) -> String {
    const MOST: usize = 60;
    if word.chars().count() <= MOST { word.to_owned() } else { word.chars().take(MOST).chain("…".chars()).collect() }
}

impl<'a> Item<'a> {
    fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// What it is, for sentences.
    pub(super) fn shown(&self) -> String {
        match self.value.get_ref() {
            DeValue::String(word) => format!("`{}`", shown(word)),
            DeValue::Integer(number) => shown(&number.to_string()),
            DeValue::Float(number) => shown(&number.to_string()),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub(super) fn note(&self, says: impl Into<String>) {
        self.ink.note(self.span().start, &self.path, says);
    }

    /// `<value> is no <what>`, noted; nothing.
    pub(super) fn refuse<T>(&self, must: &str) -> Option<T> {
        self.note(format!("it is {}, but must be {must}", self.shown()));
        None
    }

    pub(super) fn as_text(&self) -> Option<&'a str> {
        match self.value.get_ref() {
            DeValue::String(word) => Some(word.as_ref()),
            _ => None,
        }
    }

    /// A whole number, without a note where it is none.
    pub(super) fn as_whole(&self) -> Option<u64> {
        match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        }
    }

    /// Text of 1 to `most` characters without control characters.
    pub(super) fn text(&self, most: usize, what: &str) -> Option<String> {
        let text = self.as_text().filter(|text| {
            let n = text.chars().count();
            (1..=most).contains(&n) && !text.chars().any(char::is_control) && !text.trim().is_empty()
        });
        text.map(str::to_owned).or_else(|| self.refuse(&format!("{what}, text of 1 to {most} characters")))
    }

    pub(super) fn flag(&self) -> Option<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            _ => self.refuse("true or false"),
        }
    }

    /// A whole number of a range.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let (least, most) = (*range.start(), *range.end());
        let number = self.as_whole().filter(|number| range.contains(number));
        number.or_else(|| self.refuse(&format!("a whole number from {least} to {most}")))
    }

    /// The same, of 32 bits.
    pub(super) fn count(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.whole(u64::from(*range.start())..=u64::from(*range.end()))?;
        u32::try_from(number).ok()
    }

    /// A number of a range; a share may also be written as text, like `"0.5%"`.
    pub(super) fn number(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let number = match self.value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::String(word) if word.ends_with('%') => parse_share(word, BareShare::Ratio).ok(),
            _ => self.as_whole().map(|number| number as f64),
        };
        // A NaN is in no range.
        number
            .filter(|number| range.contains(number))
            .or_else(|| self.refuse(&format!("a number from {} to {}", range.start(), range.end())))
    }

    /// A duration like `60s` of a range, in ms; a bare number is seconds.
    pub(super) fn duration_ms(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let word = self.as_text().map(str::to_owned).or_else(|| self.as_whole().map(|seconds| seconds.to_string()));
        let ms = word.as_deref().and_then(|word| narrows_model::words::units::parse_duration(word).ok());
        let ms = ms.filter(|duration| duration.subsec_nanos() % 1_000_000 == 0).map(|duration| duration.as_millis());
        let ms = ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| range.contains(ms));
        let text = |ms: u64| if ms.is_multiple_of(1_000) { format!("{}s", ms / 1_000) } else { format!("{ms}ms") };
        ms.or_else(|| {
            self.refuse(&format!(
                "a duration like 10s, 250ms or 2m, of whole milliseconds from {} to {}",
                text(*range.start()),
                text(*range.end())
            ))
        })
    }

    /// One of some words.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let found = self.as_text().and_then(|text| words.iter().find(|(word, _)| *word == text));
        found.map(|(_, value)| *value).or_else(|| {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.refuse(&known.join(" or "))
        })
    }

    /// The values of a list with so many entries.
    pub(super) fn list(&self, range: RangeInclusive<usize>, of: &str) -> Option<Vec<Self>> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return self.refuse(&format!("a list of {of}"));
        };
        if !range.contains(&array.len()) {
            self.note(format!(
                "it has {} entries, but must have {} to {}: {of}",
                array.len(),
                range.start(),
                range.end()
            ));
            return None;
        }
        let entry = |(nth, value)| Self { ink: self.ink, value, path: format!("{}[{nth}]", self.path) };
        Some(array.iter().enumerate().map(entry).collect())
    }

    pub(super) fn into_table(self) -> Option<Table<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => {
                let at = self.span().start;
                let section = self.ink.section(&self.path);
                Some(Table { ink: self.ink, table, at, section, prefix: self.path }.checked())
            }
            _ => self.refuse("a table"),
        }
    }
}
