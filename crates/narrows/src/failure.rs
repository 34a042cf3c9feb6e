//! How a command fails: one sentence on stderr and an exit code (1 the run failed, 2 usage).

use std::fmt::Display;
use std::process::ExitCode;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    says: String,
}

impl Failure {
    /// The user's words were off.
    pub(crate) fn usage(says: impl Display) -> Self {
        Self { code: 2, says: says.to_string() }
    }

    /// The run failed.
    pub(crate) fn run(says: impl Display) -> Self {
        Self { code: 1, says: says.to_string() }
    }

    /// Says it, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        anstream::eprintln!("narrows: {}", self.says);
        ExitCode::from(self.code)
    }
}

/// What a command gives back: its exit code.
pub(crate) type Outcome = Result<u8, Failure>;
