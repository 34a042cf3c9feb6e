//! What is shown and what is saved.

use crate::failure::Failure;
use crate::output::{formats, style, written};
use crate::progress::SavedRun;
use clap::Args;
use narrows_render::{Document, Format, Style};
use narrows_runner::stored::{self, Begun, StoreError};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// The format of a report `R`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FormatArg<R: Document> {
    /// Output format
    #[arg(long, value_parser = formats::<R>(), default_value = "text")]
    format: Format,
    /// Same as --format json, as in iperf3
    #[arg(long, short = 'J', conflicts_with = "format", hide_short_help = true)]
    json: bool,
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

/// Where a run goes: into the store, unless the user wants it not, and to a file if the user names one.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct SaveArgs {
    /// Do not save the run in the store (`narrows history`)
    #[arg(long, hide_short_help = true)]
    pub(crate) no_save: bool,
    /// Tag of the saved run, for `history` and `compare`; repeatable
    #[arg(long, value_name = "TAG", value_parser = super::values::tag, conflicts_with = "no_save", hide_short_help = true)]
    pub(crate) tag: Vec<String>,
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

/// The live view.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TuiArg {
    /// Show a live view with graphs in the terminal; q quits
    #[arg(long)]
    pub(crate) tui: bool,
}

/// What is shown, and where.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) full: FullArg,
    #[command(flatten)]
    pub(crate) tui: TuiArg,
}

impl FullArg {
    /// The style of text on this terminal, with all of the result where that was asked for.
    pub(crate) fn style(&self) -> Style {
        Style { full: self.full, ..style() }
    }
}

impl<R: Document> FormatArg<R> {
    pub(crate) const fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// The report in this format.
    pub(crate) fn write(&self, report: &R, style: Style) -> Result<String, Failure> {
        written(report, self.format(), style)
    }
}

impl SaveArgs {
    /// Where a new run is saved. The file that the user names is checked before anything is measured.
    pub(crate) fn run_file(&self, output: Option<&Path>) -> Result<SavedRun, Failure> {
        if let Some(file) = output {
            stored::check(file).map_err(Failure::run)?;
        }
        Ok(self.saved(output.map(Into::into)))
    }

    /// As [`SaveArgs::run_file`], with a file that was checked.
    pub(crate) fn saved(&self, file: Option<PathBuf>) -> SavedRun {
        SavedRun::new(file, (!self.no_save).then(|| self.tag.clone()))
    }

    /// Saves a record of another kind (frames, forwarding) to the store: a failure is reported and changes nothing else. Returns its id
    /// there.
    pub(crate) fn keep(
        &self,
        begun: &Begun,
        quiet: bool,
        put: impl FnOnce(&Begun) -> Result<(), StoreError>,
    ) -> Option<String> {
        if self.no_save {
            return None;
        }
        match put(&Begun { tags: self.tag.clone(), ..begun.clone() }) {
            Ok(()) => {
                if !quiet {
                    crate::failure::note!("saved as {}", begun.id);
                }
                Some(begun.id.clone())
            }
            Err(error) => {
                crate::failure::note!("cannot save the run: {error}");
                None
            }
        }
    }
}

impl<R: Document> ResultArgs<R> {
    pub(crate) const fn format(&self) -> Format {
        self.format.format()
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
