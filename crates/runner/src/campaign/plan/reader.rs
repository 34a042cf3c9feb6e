//! Values of a plan file, each mistake with its line and column.

use narrows_model::words::units::parse_duration;
use narrows_wire::problem::Problem;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key and its value.
pub(super) type Item<'a> = (&'a str, &'a Spanned<DeValue<'a>>);

/// The most mistakes that are reported.
pub const MAX_PROBLEMS: usize = 100;
/// The most words of a command.
const WORDS_MAX: usize = 64;

/// Reads values and collects what is wrong with them.
pub(super) struct Reader<'t> {
    text: &'t str,
    pub(super) problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, problems: Vec::new() }
    }

    /// Notes a mistake at a position of the text.
    pub(super) fn note(&mut self, at: usize, key: &str, says: impl Into<String>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let before = self.text.get(..at).unwrap_or(self.text);
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
        let line = before.matches('\n').count() + 1;
        self.problems.push(Problem { line, column, key: key.to_owned(), says: says.into() });
    }

    /// A mistake at a value.
    pub(super) fn note_at(&mut self, (key, value): Item<'_>, says: impl Into<String>) {
        self.note(value.span().start, key, says);
    }

    pub(super) fn unknown(&mut self, at: usize, key: &str, known: &str) {
        self.note(at, key, format!("unknown key; known keys: {known}"));
    }

    /// A string, a number or a switch, as text of 1 to `most` bytes on one line.
    fn text_of(&mut self, item: Item<'_>, most: usize) -> Option<String> {
        let text = match item.1.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(on) => if *on { "on" } else { "off" }.to_owned(),
            _ => {
                self.note_at(item, "must be a string, a number or true or false");
                return None;
            }
        };
        let fits = !text.is_empty() && text.len() <= most && !text.contains(char::is_control);
        if !fits {
            self.note_at(item, format!("must have 1 to {most} characters on one line"));
        }
        fits.then_some(text)
    }

    pub(super) fn scalar(&mut self, item: Item<'_>) -> Option<String> {
        self.text_of(item, 200)
    }

    pub(super) fn list(&mut self, (key, value): Item<'_>, most: usize) -> Vec<(usize, String)> {
        let DeValue::Array(items) = value.get_ref() else {
            return self.scalar((key, value)).map(|it| (value.span().start, it)).into_iter().collect();
        };
        if items.len() > most {
            self.note_at((key, value), format!("has {} values; the maximum is {most}", items.len()));
            return Vec::new();
        }
        items.iter().filter_map(|it| Some((it.span().start, self.scalar((key, it))?))).collect()
    }

    /// A program and its arguments.
    pub(super) fn command(&mut self, (key, value): Item<'_>) -> Option<Vec<String>> {
        let items = match value.get_ref() {
            DeValue::Array(items) if (1..=WORDS_MAX).contains(&items.len()) => items,
            _ => {
                self.note_at(
                    (key, value),
                    format!("must be a list of 1 to {WORDS_MAX} words: [\"program\", \"argument\"]"),
                );
                return None;
            }
        };
        // An argument may be a script.
        let words: Vec<String> = items.iter().filter_map(|it| self.text_of((key, it), 4096)).collect();
        (words.len() == items.len()).then_some(words)
    }

    pub(super) fn number(&mut self, item: Item<'_>, min: u64, max: u64) -> Option<u64> {
        let text = self.scalar(item)?;
        let number = text.parse().ok().filter(|it| (min..=max).contains(it));
        if number.is_none() {
            self.note_at(item, format!("`{text}` is not a number from {min} to {max}"));
        }
        number
    }

    /// A time, milliseconds.
    pub(super) fn time(&mut self, item: Item<'_>, min_ms: u64, max_ms: u64) -> Option<u64> {
        let text = self.scalar(item)?;
        let ms = parse_duration(&text).ok().and_then(|it| u64::try_from(it.as_millis()).ok());
        let ms = ms.filter(|it| (min_ms..=max_ms).contains(it));
        if ms.is_none() {
            self.note_at(item, format!("`{text}` is not a time from {min_ms}ms to {}s", max_ms / 1000));
        }
        ms
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(&mut self, item: Item<'_>, known: &[(&str, T)]) -> Option<T> {
        let text = self.scalar(item)?;
        let found = known.iter().find(|(word, _)| *word == text).map(|(_, it)| *it);
        if found.is_none() {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            self.note_at(item, format!("`{text}` is not one of {}", words.join(", ")));
        }
        found
    }

    pub(super) fn table<'a>(&mut self, item: Item<'a>) -> Option<&'a DeTable<'a>> {
        match item.1.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.note_at(item, "must be a table");
                None
            }
        }
    }
}
