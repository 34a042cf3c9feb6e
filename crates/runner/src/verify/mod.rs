//! Whether this program keeps its word on this machine, where the truth is known since the lab makes it: the emulator, the packet
//! ledger, and the search for the highest load.

mod ledger;
mod noise;
mod search;

pub use narrows_lab::Row;

use crate::demo::{DemoError, Stage};
use std::process::{Output, Stdio};
use thiserror::Error;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The emulator against sockets that know nothing of it (a minute).
    Emulator,
    /// Packet ledgers against what the lab dropped where (three minutes).
    Ledger,
    /// Searches against paths of known capacity (four minutes).
    Search,
    /// Searches with several trials a load against plain bisection, on a machine that is disturbed (ten minutes).
    Noise,
}

/// Why something could not be looked at.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The lab or its server.
    #[error(transparent)]
    Stage(#[from] DemoError),
    /// The lab.
    #[error(transparent)]
    Lab(#[from] narrows_lab::Error),
    /// A run that was just made.
    #[error(transparent)]
    Kept(#[from] crate::stored::LoadError),
    /// A program of the lab's client.
    #[error("{0} on the lab's client failed: {1}")]
    Failed(&'static str, String),
}

/// Hears of each row; false ends the rest.
pub type Show<'a> = &'a mut dyn FnMut(&Row) -> bool;

/// Looks at one part, and hands each row over as soon as it is known.
///
/// # Errors
/// Why it could not be looked at.
pub fn verify(part: Part, show: Show<'_>) -> Result<(), VerifyError> {
    match part {
        Part::Emulator => narrows_lab::accuracy(show).map_err(VerifyError::from),
        Part::Ledger => ledger::verify(show),
        Part::Search => search::verify(show),
        Part::Noise => noise::verify(show),
    }
}

/// Runs narrows on the client of a stage; what it printed. A diagnosis that found something is no failure.
fn client(stage: &Stage, what: &'static str, words: &[&str]) -> Result<Output, VerifyError> {
    let output = stage.client(words)?.stdin(Stdio::null()).output();
    let output = output.map_err(|error| DemoError::Start(what, error))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(VerifyError::Failed(what, String::from_utf8_lossy(&output.stderr).trim().chars().take(400).collect()))
}
