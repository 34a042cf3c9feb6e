//! What is shown and what is saved.

use crate::failure::Failure;
use crate::output::{formats, style, written};
use clap::Args;
use narrows_render::{Document, Format, Style};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// The format of a report `R`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatArg<R: Document> {
    /// Output format
    #[arg(long, value_parser = formats::<R>(), default_value = "text")]
    pub(crate) format: Format,
    #[arg(skip)]
    report: PhantomData<R>,
}

/// Where the record goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArg {
    /// Save the run to this file (JSON)
    #[arg(long, short = 'o', value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// What a command that measures shows and saves; `R` is its report.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResultArgs<R: Document> {
    #[command(flatten)]
    format: FormatArg<R>,
    #[command(flatten)]
    output: OutputArg,
    /// Suppress progress and interval lines
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
}

/// A picture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SvgArg {
    /// Write a plot of the trials to this file (SVG)
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

impl FullArg {
    /// The style of text on this terminal, with all of the result where that was asked for.
    pub(crate) fn style(&self) -> Style {
        Style { full: self.full, ..style() }
    }
}

impl<R: Document> FormatArg<R> {
    /// The report in this format.
    pub(crate) fn write(&self, report: &R, style: Style) -> Result<String, Failure> {
        written(report, self.format, style)
    }
}

impl<R: Document> ResultArgs<R> {
    pub(crate) const fn format(&self) -> Format {
        self.format.format
    }

    /// The file for the record.
    pub(crate) fn output(&self) -> Option<&Path> {
        self.output.output.as_deref()
    }

    /// The report in the format that was chosen.
    pub(crate) fn write(&self, report: &R, style: Style) -> Result<String, Failure> {
        self.format.write(report, style)
    }
}
