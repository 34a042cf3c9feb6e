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

    /// Prints the message and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        anstream::eprintln!("narrows: {}", self.message);
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
