//! `narrows lab verify` while it runs: a line for each row on standard output, and on standard error what is looked at just now.

use crate::failure::{Failure, Outcome};
use crate::output::print;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_runner::stop::Stop;
use narrows_runner::verify::{Row, Watch};
use std::io::IsTerminal as _;
use std::time::Duration;

/// Tells the user, and counts what was not kept.
pub(super) struct Told {
    bar: ProgressBar,
    moving: bool,
    broken: u32,
    shown: Result<(), Failure>,
    stop: Stop,
}

impl Told {
    pub(super) fn new(stop: Stop) -> Self {
        let moving = std::io::stderr().is_terminal();
        let target = if moving { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("* {msg} … {elapsed}") {
            bar.set_style(style);
        }
        Self { bar, moving, broken: 0, shown: Ok(()), stop }
    }

    /// Clears the line that moves, until the next row begins.
    pub(super) fn pause(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }

    /// Whether everything was kept.
    pub(super) fn end(self) -> Outcome {
        self.shown?;
        Ok(u8::from(self.broken > 0))
    }
}

impl Watch for Told {
    fn begins(&mut self, what: &str) {
        if self.moving {
            self.bar.set_message(what.to_owned());
            self.bar.reset();
            self.bar.enable_steady_tick(Duration::from_secs(1));
        } else {
            anstream::eprintln!("* {what}");
        }
    }

    fn row(&mut self, row: &Row) -> bool {
        self.broken += u32::from(!row.kept);
        let kept = if row.kept { "kept" } else { "BROKEN" };
        let line = format!(
            "{:<70} {:>12.3} {:>12.3} {:<8} {:<20} {kept}",
            row.what, row.asked, row.measured, row.unit, row.promise
        );
        if let Err(why) = self.bar.suspend(|| print(&line)) {
            self.shown = Err(why);
        }
        !self.stop.is_set()
    }
}
