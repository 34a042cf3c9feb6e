//! Where results go and in which format.

use crate::failure::{Failure, Outcome};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use narrows_render::{AnyDocument, Document, Format, OfAnyRun, Style};
use narrows_runner::stored;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

/// Parses `--format`: the formats of a report, each with its help.
pub(crate) fn formats<R: Document>() -> impl TypedValueParser<Value = Format> {
    let value = |format: Format, help| PossibleValue::new(format.word()).help(help);
    let values = R::FORMATS.iter().map(|writer| value(writer.format, writer.help));
    PossibleValuesParser::new(values)
        .try_map(|word| R::formats().find(|format| format.word() == word).ok_or("no such format"))
}

/// A report in a format.
pub(crate) fn written(report: &dyn AnyDocument, format: Format, style: Style) -> Result<String, Failure> {
    let text = report.write(format, style).map_err(Failure::run)?;
    let (name, formats) = report.about();
    text.ok_or_else(|| no_such_format(name, format, formats.into_iter()))
}

/// A report does not have the format that was asked for. Of its formats those are named that every stored run may be asked for.
fn no_such_format(report: &str, format: Format, formats: impl Iterator<Item = Format>) -> Failure {
    let asked_for = |format: &Format| OfAnyRun::formats().any(|other| other == *format);
    let words: Vec<&str> = formats.filter(asked_for).map(Format::word).collect();
    let words = match words.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    };
    let format = format.word();
    Failure::usage(format!("cannot write {report} as {format}: unsupported format; use {words}"))
}

/// The style of text on this terminal: its colours and width.
pub(crate) fn style() -> Style {
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let exported = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .filter(|columns| (20..=1000).contains(columns));
    let terminal = || terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
    // What is no terminal has no width.
    let wide = exported.is_none() && !std::io::stdout().is_terminal();
    let width = exported.unwrap_or_else(terminal);
    Style { color, width, wide, ..Style::default() }
}

/// Writes a piece of text; a closed pipe is an error.
pub(crate) fn write(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints a result. A closed pipe (`narrows … | head`) is not a failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}

/// A file, if the user asked for it, and what makes its text.
pub(crate) type Wanted<'a> = (Option<&'a Path>, &'a dyn Fn() -> Result<String, Failure>);

/// Writes the files of a run; `id`: where the run is in the store.
pub(crate) fn write_files(id: Option<&str>, files: &[Wanted<'_>]) -> Result<(), Failure> {
    let place = id.map(|id| format!("; it is in the store as {id}")).unwrap_or_default();
    let wanted = files.iter().filter_map(|(file, text)| file.map(|file| (file, text)));
    let write = |(file, text): (&Path, &&dyn Fn() -> Result<String, Failure>)| {
        stored::write(file, &text()?).map_err(|error| Failure::run(format!("{error}{place}")))
    };
    wanted.map(write).fold(Ok(()), Result::and)
}

/// Prints a result, keeps its run and only then writes the files: a full disk loses no result. `keep` returns the id in the store.
pub(crate) fn deliver(text: &str, keep: impl FnOnce() -> Option<String>, files: &[Wanted<'_>]) -> Result<(), Failure> {
    let printed = print(text);
    printed.and(write_files(keep().as_deref(), files))
}

/// Prints the result of a command that is done with it.
pub(crate) fn printed(text: &str) -> Outcome {
    print(text).map(|()| 0)
}
