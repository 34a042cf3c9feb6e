//! Progress on stderr: lines that stay, and on a terminal one line that moves.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_model::{Place, Run, words::units};
use narrows_runner::TrialProgress;
use narrows_runner::diagnosis::Watch;
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// Tells the user, and keeps the run on disk.
pub(crate) struct Teller {
    quiet: bool,
    bar: ProgressBar,
    last: Option<(u64, u64)>,
    file: Option<PathBuf>,
    unsaved: Option<String>,
}

impl Teller {
    /// `file` is where the run is kept, or nowhere.
    pub(crate) fn new(quiet: bool, file: Option<PathBuf>) -> Self {
        let moving = !quiet && std::io::stderr().is_terminal();
        let target = if moving { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) = ProgressStyle::with_template("  {bar:30} {msg}") {
            bar.set_style(style);
        }
        Self { quiet, bar, last: None, file, unsaved: None }
    }

    /// Why the run could not be kept, where it could not.
    pub(crate) fn unsaved(&self) -> Option<&str> {
        self.unsaved.as_deref()
    }

    /// Clears the moving line.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprintln!("{text}"));
        }
    }
}

impl Watch for Teller {
    fn step(&mut self, text: &str) {
        self.last = None;
        self.bar.set_position(0);
        self.bar.set_message(String::new());
        self.line(&format!("* {text}"));
    }

    fn result(&mut self, text: &str) {
        self.line(&format!("  {text}"));
    }

    fn progress(&mut self, place: Place, progress: &TrialProgress, planned_ms: Option<u64>) {
        // One end is enough for a moving line; the client's own is always there.
        if place != Place::Client {
            return;
        }
        let bytes: u64 = progress.streams.iter().map(|stream| stream.bytes).sum();
        if let Some((at_us, before)) = self.last
            && progress.at_us > at_us
        {
            #[allow(clippy::cast_precision_loss)]
            let bps = bytes.saturating_sub(before) as f64 * 8e6 / (progress.at_us - at_us) as f64;
            let left = planned_ms.map_or_else(String::new, |ms| {
                format!(", {} left", units::micros((ms * 1000).saturating_sub(progress.at_us)))
            });
            self.bar.set_message(format!("{}{left}", units::bps(bps)));
        }
        self.last = Some((progress.at_us, bytes));
        if let Some(ms) = planned_ms {
            self.bar.set_length(ms * 1000);
            self.bar.set_position(progress.at_us.min(ms * 1000));
        }
    }

    fn save(&mut self, run: &Run) {
        if let Some(file) = &self.file
            && let Err(error) = narrows_runner::stored::save(run, file)
        {
            self.unsaved = Some(error.to_string());
        }
    }
}
