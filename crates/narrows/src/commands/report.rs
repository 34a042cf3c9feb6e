//! `narrows report`: a stored run, rendered and diagnosed again.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg};
use crate::output::printed;
use narrows_model::Report;
use narrows_runner::stored;
use std::path::PathBuf;

/// Render a stored run again
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show every parameter, every rejected look-alike and each ceiling's arithmetic")),
    after_help = "Example: narrows report 20260101-120000-1a2b3c4d --format markdown"
)]
pub(crate) struct Args {
    /// A run's file, or the id of a run in the state directory
    run: PathBuf,
    #[command(flatten)]
    format: FormatArg<Report>,
    #[command(flatten)]
    full: FullArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let run = stored::load(&self.run).map_err(Failure::run)?;
        let style = self.full.style();
        let text = super::render_run(&run, self.format.format, style)?;
        printed(&text)
    }
}
