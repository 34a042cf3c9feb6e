//! Progress on stderr, and the file that a long run is saved to meanwhile.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_model::Run;
use narrows_runner::stored;
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

/// The file that a run is saved to while it is measured.
pub(crate) struct SavedRun {
    /// `None` of a run that is not saved.
    pub(crate) file: Option<PathBuf>,
    failed: Option<String>,
}

impl SavedRun {
    pub(crate) const fn new(file: PathBuf) -> Self {
        Self { file: Some(file), failed: None }
    }

    /// A run that is not saved: because the user does not want it, or why it cannot be.
    pub(crate) const fn nowhere(why: Option<String>) -> Self {
        Self { file: None, failed: why }
    }

    pub(crate) fn save(&mut self, run: &Run) {
        if let Some(file) = &self.file {
            self.failed = stored::save(run, file).err().map(|error| error.to_string());
        }
    }

    /// Why it is not saved although it should be.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.as_deref().filter(|_| self.file.is_some())
    }

    /// Says where the run is. `what`: `run`, `sweep`. `next`: what can be done with the file.
    pub(crate) fn report(&self, what: &str, quiet: bool, next: &str) {
        match (&self.failed, &self.file) {
            (Some(why), _) => anstream::eprintln!("cannot save the {what}: {why}"),
            (None, Some(file)) if !quiet => anstream::eprintln!("saved to {}{next}", file.display()),
            _ => {}
        }
    }
}
