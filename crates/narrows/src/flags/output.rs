//! What is shown and what is saved.

use crate::failure::Failure;
use crate::output::{formats, style, written};
use crate::progress::SavedRun;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
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

/// What the ending of a file asks for, where it is no JSON: a format, or none that `--format` has.
fn asked(file: &Path) -> Option<(&'static str, Option<Format>)> {
    const ENDINGS: [(&str, Option<Format>); 6] = [
        ("html", Some(Format::Html)),
        ("htm", Some(Format::Html)),
        ("csv", Some(Format::Csv)),
        ("md", Some(Format::Markdown)),
        ("markdown", Some(Format::Markdown)),
        ("svg", None),
    ];
    let ending = file.extension()?.to_str()?;
    ENDINGS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(ending))
}

fn formats_of<R: Document>() -> Vec<Format> {
    R::formats().collect()
}

/// Parses the name of a file for the record. One that promises another form than JSON is refused before anything is measured; of the
/// formats of the report that form is named.
fn record_file(formats: &[Format]) -> impl TypedValueParser<Value = PathBuf> + use<> {
    let formats = formats.to_vec();
    PathBufValueParser::new().try_map(move |file| {
        let Some((ending, format)) = asked(&file) else { return Ok(file) };
        let json = format!("the run is saved as JSON: name it {}", file.with_extension("json").display());
        Err(match format.filter(|format| formats.contains(format)) {
            Some(format) => format!("{json}; for {ending} use --format {} > {}", format.word(), file.display()),
            None => json,
        })
    })
}

/// Where the record goes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArg {
    /// Save the run to this file (JSON)
    #[arg(long, short = 'o', value_name = "PATH", value_parser = record_file(&[]))]
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
#[command(next_help_heading = "Output", mut_arg("output", |it| it.value_parser(record_file(&formats_of::<R>()))))]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use narrows_model::host::watch::WatchView;
    use narrows_model::load::stamp::StampReport;

    #[derive(Debug, clap::Parser)]
    struct Alone<R: Document> {
        #[command(flatten)]
        result: ResultArgs<R>,
    }

    #[test]
    fn a_record_is_json_and_named_so() {
        let with_page = |file: &str| Alone::<StampReport>::try_parse_from(["x", "-o", file]);
        for file in ["a.json", "a", "/dev/full", "a.run", "-"] {
            assert_eq!(with_page(file).expect(file).result.output(), Some(Path::new(file)));
        }
        let refused = with_page("a.HTML").expect_err("no page").to_string();
        let says = "error: invalid value 'a.HTML' for '--output <PATH>': the run is saved as JSON: name it a.json; for html use \
            --format html > a.HTML\n";
        assert!(refused.starts_with(says), "{refused}");
        let refused = Alone::<WatchView>::try_parse_from(["x", "-o", "a.html"]).expect_err("no page").to_string();
        assert!(refused.contains("name it a.json\n"), "{refused}");
    }
}
