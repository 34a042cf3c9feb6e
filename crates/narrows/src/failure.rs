//! Failed commands: one sentence on stderr and an exit code (1 the run failed, 2 usage).

use std::fmt::Display;
use std::process::ExitCode;

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

    /// The message for a terminal: what a peer, a file or a command said in it controls nothing.
    fn shown(&self) -> String {
        self.message.lines().map(narrows_model::words::show::clean).collect::<Vec<_>>().join("\n")
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        anstream::eprintln!("narrows: {}", self.shown());
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
    use proptest::prelude::*;

    proptest! {
        /// Whatever error it is made of, a failure is its text.
        #[test]
        fn no_failure_controls_the_terminal(text in "\\PC*|[\\x00-\\x1f\\x7f-\\u{9f}\\u{202a}-\\u{202e}\\PC]{0,40}") {
            let shown = Failure::run(std::io::Error::other(text.clone())).shown();
            prop_assert!(shown.chars().all(|it| it == '\n' || !it.is_control()), "{shown:?}");
            let turns = shown.contains('\u{202e}');
            prop_assert!(!turns);
        }
    }
}
