//! Progress on stderr, and where a long run is saved meanwhile.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_model::Run;
use narrows_runner::stored::{self, StoreError};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// Lines that stay, and on a terminal one line below them that moves.
pub(crate) struct Progress {
    quiet: bool,
    moving: bool,
    bar: ProgressBar,
}

impl Progress {
    /// `template`: the line that moves, in the syntax of `indicatif`.
    pub(crate) fn new(quiet: bool, template: &str) -> Self {
        let moving = !quiet && std::io::stderr().is_terminal();
        let target = if moving { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { quiet, moving, bar }
    }

    /// Whether there is a line that moves.
    pub(crate) const fn moves(&self) -> bool {
        self.moving
    }

    /// Prints a line that stays.
    pub(crate) fn line(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprintln!("{}", text.trim_end_matches('\n')));
        }
    }

    /// Prints to standard output, above the line that moves.
    pub(crate) fn above<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Changes the line that moves.
    pub(crate) fn show(&self, text: String) {
        self.bar.set_message(text);
        self.bar.tick();
    }

    /// How much of the whole is done; a whole of `None` is unknown.
    pub(crate) fn position(&self, done: u64, whole: Option<u64>) {
        if let Some(whole) = whole {
            self.bar.set_length(whole);
        }
        self.bar.set_position(done);
    }

    /// Moves the line by itself each second, from now on.
    pub(crate) fn tick(&self) {
        self.bar.reset();
        self.bar.enable_steady_tick(Duration::from_secs(1));
    }

    /// Clears the line that moves.
    pub(crate) fn clear(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

/// Where a run is saved while it is measured: in the store, and in a file if the user names one.
pub(crate) struct SavedRun {
    /// The file, if the user named one.
    pub(crate) file: Option<PathBuf>,
    /// Its tags there; `None`: it is not stored.
    tags: Option<Vec<String>>,
    /// Its id, once it was saved in the store.
    id: Option<String>,
    failed: Option<StoreError>,
    /// Why it is in its file only.
    not_stored: Option<StoreError>,
}

impl SavedRun {
    pub(crate) const fn new(file: Option<PathBuf>, tags: Option<Vec<String>>) -> Self {
        Self { file, tags, id: None, failed: None, not_stored: None }
    }

    pub(crate) fn save(&mut self, run: &Run) {
        if let Some(file) = &self.file {
            self.failed = stored::save(run, file).err();
        }
        let Some(tags) = &self.tags else { return };
        match (stored::keep(run, tags), &self.file) {
            (Ok(()), _) => (self.id, self.not_stored) = (Some(run.id.clone()), None),
            (Err(error), None) => self.failed = Some(error),
            // Without a state directory there is no store, and the file is what the user asked for.
            (Err(StoreError::NoPlace), Some(_)) => {}
            (Err(error), Some(_)) => self.not_stored = Some(error),
        }
    }

    /// Why it is not saved although there is a place for it.
    pub(crate) fn failure(&self) -> Option<&StoreError> {
        self.failed.as_ref().filter(|error| !matches!(error, StoreError::NoPlace))
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What names the run on the command line: its file, or its id in the store.
    pub(crate) fn word(&self) -> Option<String> {
        self.file.as_ref().map(|file| file.display().to_string()).or_else(|| self.id.clone())
    }

    /// Says where the run is. `what`: `run`, `sweep`. `next`: what can be done with it.
    /// Errors: it is not in the file that the user named.
    pub(crate) fn report(&self, what: &str, quiet: bool, next: &str) -> Result<(), Failure> {
        match (&self.failed, self.word()) {
            (Some(why), _) => {
                let place = self
                    .id
                    .as_ref()
                    .map_or_else(|| "it is saved nowhere".to_owned(), |id| format!("it is in the store as {id}"));
                let says = format!("cannot save the {what}: {why}; {place}");
                if self.file.is_some() {
                    return Err(Failure::run(says));
                }
                crate::failure::note!("{says}");
            }
            (None, Some(word)) if !quiet => {
                let how = if self.file.is_some() { "to" } else { "as" };
                crate::failure::note!("saved {how} {word}{next}");
            }
            _ => {}
        }
        if let (Some(why), None) = (&self.not_stored, &self.failed) {
            crate::failure::note!("the {what} is in its file only: {why}");
        }
        Ok(())
    }
}
