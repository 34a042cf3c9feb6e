//! What is common to all kinds of settings: each is read, set and rolled back as one line of text, its *note* in the journal.

use super::error::TuneError;

/// One thing on this host that can be read, set and rolled back.
pub(super) trait Knob {
    /// What it is, for errors.
    fn what(&self) -> String;
    /// The note of the value that is to be set.
    fn target(&self) -> String;
    /// Whether the value makes sense and may be set at all. Writes nothing.
    fn check(&self) -> Result<(), TuneError>;
    /// The note of the current value, exact enough for [`Knob::write`].
    fn current(&self) -> Result<String, TuneError>;
    /// Sets the value of a note.
    fn write(&self, note: &str) -> Result<(), TuneError>;

    /// Whether the target is set already.
    fn holds(&self) -> Result<bool, TuneError> {
        Ok(self.current()? == self.target())
    }

    /// Whether what was read back will do.
    fn is_obtained(&self, got: &str) -> bool {
        got == self.target()
    }

    /// Sets the target and reads it back.
    fn set(&self) -> Result<(), TuneError> {
        self.write(&self.target())?;
        let got = self.current()?;
        if self.is_obtained(&got) { Ok(()) } else { Err(self.not_obtained(got)) }
    }

    fn not_obtained(&self, got: String) -> TuneError {
        TuneError::NotObtained { what: self.what(), wanted: self.target(), got }
    }

    /// `value` is not `form`, such as `a number from 0 to 1`.
    fn bad(&self, value: &str, form: impl Into<String>) -> TuneError
    where
        Self: Sized,
    {
        TuneError::BadValue { what: self.what(), value: shown(value), wanted: form.into() }
    }
}

/// Refuses an old value that no kernel gave: of the journal, before it is written.
pub(super) fn check_note(note: &str) -> Result<(), TuneError> {
    const MAX_NOTE: usize = 64 << 10;
    if note.len() <= MAX_NOTE && !note.chars().any(|c| c.is_control() && c != '\t') {
        return Ok(());
    }
    Err(TuneError::BadValue {
        what: "the old value in the journal".to_owned(),
        value: shown(note),
        wanted: "one line of text".to_owned(),
    })
}

/// A word from outside, for an error.
fn shown(word: &str) -> String {
    word.chars().take(64).collect::<String>().escape_default().to_string()
}

/// `word` is not one of those that may be set; `kind` says what it should be.
pub(super) fn not_in_table<'a>(kind: &str, word: &str, allowed: impl IntoIterator<Item = &'a str>) -> TuneError {
    let allowed = allowed.into_iter().map(str::to_owned).collect();
    TuneError::NotInTable { kind: kind.to_owned(), word: shown(word), allowed }
}

pub(super) const fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

pub(super) fn parse_on_off(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}
