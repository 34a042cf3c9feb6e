//! Where results go and in which form.

use crate::failure::Failure;
use clap::ValueEnum;
use narrows_render::Style;
use std::io::{IsTerminal as _, Write as _};

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a terminal
    Text,
    /// For programs; the schema is in docs/
    Json,
    /// For a ticket or a wiki
    Markdown,
}

/// How text looks here: colours on a terminal that wants them, as wide as it is.
pub(crate) fn style() -> Style {
    let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let width = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
    Style { color, width, ..Style::default() }
}

/// Prints a result. A reader that went away (`narrows … | head`) is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write the result: {error}")))
        }
        _ => Ok(()),
    }
}
