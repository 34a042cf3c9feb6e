//! Failed commands: one sentence on stderr and an exit code (1 the run failed, 2 usage).

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;

/// A line for the terminal: what a peer, a file or a command said in it controls nothing.
macro_rules! note {
    ($($words:tt)*) => { $crate::failure::tell(&format!($($words)*)) };
}
pub(crate) use note;

/// Writes a line to the terminal. That it cannot, as with a full disk behind it, ends no measurement.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", shown(text));
}

/// The text without what a terminal would interpret.
pub(crate) fn shown(text: &str) -> String {
    text.lines().map(narrows_model::words::show::clean).collect::<Vec<_>>().join("\n")
}

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line or a file of the user is invalid.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// The run failed.
    pub(crate) fn run(message: impl Display) -> Self {
        Self { code: 1, message: message.to_string() }
    }

    /// The user interrupted it before anything was measured.
    pub(crate) fn interrupted() -> Self {
        Self { code: 130, message: "interrupted before anything was measured".to_owned() }
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        note!("narrows: {}", self.message);
        ExitCode::from(self.code)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// The exit code of a command.
pub(crate) type Outcome = Result<u8, Failure>;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;
    use proptest::prelude::*;

    /// Errors of every crate that quotes what comes from outside.
    fn errors(word: &str) -> Vec<Failure> {
        let io = || std::io::Error::other(word.to_owned());
        let path = || std::path::PathBuf::from(word);
        vec![
            Failure::run(narrows_sys::Error::new("open", word.to_owned(), io())),
            Failure::run(narrows_runner::ends::EndsError::Failed(word.to_owned())),
            Failure::run(narrows_runner::stored::LoadError::Unknown(path(), path())),
            Failure::run(narrows_runner::stored::LoadError::Other(word.to_owned(), "trace")),
            Failure::usage(crate::cli::Cli::command().error(clap::error::ErrorKind::InvalidValue, word)),
        ]
    }

    proptest! {
        /// Whatever error it is made of, a failure is its text.
        #[test]
        fn no_failure_controls_the_terminal(text in "\\PC*|[\\x00-\\x1f\\x7f-\\u{9f}\\u{202a}-\\u{202e}\\PC]{0,40}") {
            for failure in errors(&text) {
                let shown = shown(&failure.message);
                prop_assert!(shown.chars().all(|it| it == '\n' || !it.is_control()), "{shown:?}");
                let turns = shown.contains(['\u{202e}', '\u{61c}']);
                prop_assert!(!turns, "{shown:?}");
            }
        }
    }
}
