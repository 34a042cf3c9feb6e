//! `narrows fleet`: hosts that are tested again and again.

use crate::failure::{Failure, Outcome};
use crate::flags::FormatArg;
use crate::output::{printed, style};
use clap::Subcommand;
use narrows_model::run::fleet::FleetCheck;
use std::path::PathBuf;

/// Test many hosts again and again
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Tell what the file of a fleet asks for: tests, bytes and time of a day
    Check(Check),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows fleet check fleet.toml\n  \
    narrows fleet check fleet.toml --format json\n\
    Nothing is sent. docs/fleet.md describes the file.")]
struct Check {
    /// The file of the fleet (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    format: FormatArg<FleetCheck>,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let What::Check(check) = self.what;
        let report = narrows_runner::fleet::check(&check.file).map_err(Failure::usage)?;
        printed(&check.format.write(&report, style())?)?;
        Ok(if report.is_possible() { 0 } else { 3 })
    }
}
