//! `narrows lab verify` while it runs: one line per row on standard output, and on standard error what is checked now.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::progress::Progress;
use narrows_runner::Stop;
use narrows_runner::verify::{Row, Watch};

/// Prints the rows, and counts those that differ.
pub(super) struct Rows {
    progress: Progress,
    broken: u32,
    printed: Result<(), Failure>,
    stop: Stop,
}

impl Rows {
    pub(super) fn new(stop: Stop) -> Self {
        Self { progress: Progress::new(false, "* {msg} … {elapsed}"), broken: 0, printed: Ok(()), stop }
    }

    /// Clears the line that moves, until the next row begins.
    pub(super) fn pause(&self) {
        self.progress.clear();
    }

    /// The exit code.
    pub(super) fn end(self) -> Outcome {
        self.printed?;
        Ok(u8::from(self.broken > 0))
    }
}

impl Watch for Rows {
    fn begins(&mut self, what: &str) {
        if self.progress.moves() {
            self.progress.show(what.to_owned());
            self.progress.tick();
        } else {
            self.progress.line(&format!("* {what}"));
        }
    }

    fn row(&mut self, row: &Row) -> bool {
        self.broken += u32::from(!row.met);
        let met = if row.met { "kept" } else { "BROKEN" };
        let line = format!(
            "{:<70} {:>12.3} {:>12.3} {:<8} {:<20} {met}",
            row.what, row.requested, row.measured, row.unit, row.tolerance
        );
        if let Err(why) = self.progress.above(|| print(&line)) {
            self.printed = Err(why);
        }
        !self.stop.is_set()
    }
}
