//! Several changes that belong together: all of them, or none.

use super::{TuneError, Tuner, Undone, look};
use narrows_model::{Change, Place, Setting};
use std::fmt;

/// Why several changes were not made; what had been made of them is undone.
#[derive(Debug)]
pub struct NotTogether {
    /// Why the one could not be made that could not.
    pub why: Box<TuneError>,
    /// How many were to be made.
    pub of: usize,
    /// Those that were made before it, and how each was undone.
    pub undone: Vec<(Change, Result<Undone, TuneError>)>,
}

impl fmt::Display for NotTogether {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.why)?;
        if self.of < 2 {
            return Ok(());
        }
        f.write_str("; ")?;
        if self.undone.is_empty() {
            return f.write_str("nothing was changed");
        }
        let list = |back: bool| {
            let some = self.undone.iter().filter(|(_, outcome)| outcome.is_ok() == back);
            some.map(|(change, _)| change.set.to_string()).collect::<Vec<_>>().join(", ")
        };
        let left = list(false);
        if left.is_empty() {
            return write!(f, "nothing is changed: earlier settings are rolled back ({})", list(true));
        }
        let failed = || self.undone.iter().filter_map(|(change, outcome)| Some((change, outcome.as_ref().err()?)));
        let why: Vec<_> = failed().map(|(_, error)| error.to_string()).collect();
        let again: Vec<_> = failed().map(|(change, _)| format!("`narrows tune undo {}`", change.id)).collect();
        write!(f, "cannot roll back {left} ({}); try {}", why.join("; "), again.join(", "))
    }
}

impl std::error::Error for NotTogether {}

impl Tuner {
    /// Makes several changes, each to stay until it is undone. Where one cannot be made, those before it are undone.
    pub fn apply_together(&self, settings: &[Setting], at: Place) -> Result<Vec<Change>, NotTogether> {
        // What is wrong is reported before anything is changed, as far as it is known then.
        for setting in settings {
            if let Err(why) = look(setting) {
                return Err(NotTogether { why: Box::new(why), of: settings.len(), undone: Vec::new() });
            }
        }
        let mut made: Vec<Change> = Vec::new();
        for setting in settings {
            let kept = self.apply(setting, at).and_then(|change| {
                made.push(change);
                made.last().map_or(Ok(()), |change| self.keep(&change.id).map(drop))
            });
            if let Err(why) = kept {
                let undone = made.into_iter().rev().map(|change| {
                    let outcome = self.undo(&change.id);
                    (change, outcome)
                });
                return Err(NotTogether { why: Box::new(why), of: settings.len(), undone: undone.collect() });
            }
        }
        Ok(made)
    }
}
