//! What is shown and what is saved.

use clap::Args;
use std::path::PathBuf;

/// Where the record goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArg {
    /// Keep the run in this file
    #[arg(long, short = 'o', value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// A picture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SvgArg {
    /// Draw the trials into this file (SVG)
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,
}

/// More of the result.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FullArg {
    /// Show each stream
    #[arg(long)]
    pub(crate) full: bool,
}

/// Less while it is made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct QuietArg {
    /// No interval lines
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}
