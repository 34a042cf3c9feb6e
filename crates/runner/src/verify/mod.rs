//! Whether this program keeps its word on this machine, where the truth is known since the lab makes it: the emulator, the packet
//! ledger, and the search for the highest load.

mod forwarding;
mod ledger;
mod noise;
mod search;

pub use narrows_lab::{Row, Watch};

use crate::demo::{Stage, StageError};
use std::process::{Output, Stdio};

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The emulator against sockets that know nothing of it (a minute).
    Emulator,
    /// Packet ledgers against what the lab dropped where (two minutes).
    Ledger,
    /// Searches against paths of known capacity (two to three minutes).
    Search,
    /// The forwarding benchmark against a device of which everything is known (a minute).
    Forwarding,
    /// Searches with several trials a load against plain bisection, on a machine that is disturbed (seven minutes).
    Noise,
}

/// Looks at one part, and hands each row over as soon as it is known.
///
/// # Errors
/// Why it could not be looked at.
pub fn verify(part: Part, watch: &mut dyn Watch) -> Result<(), StageError> {
    match part {
        Part::Emulator => narrows_lab::accuracy(watch).map_err(StageError::from),
        Part::Ledger => ledger::verify(watch),
        Part::Search => search::verify(watch),
        Part::Forwarding => forwarding::verify(watch),
        Part::Noise => noise::verify(watch),
    }
}

/// Runs narrows on the client of a stage; what it printed. A diagnosis that found something is no failure.
fn client(stage: &Stage, what: &'static str, words: &[&str]) -> Result<Output, StageError> {
    let output = stage.client(words)?.stdin(Stdio::null()).output();
    let output = output.map_err(|error| StageError::Start(what, error))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(StageError::Failed(what, String::from_utf8_lossy(&output.stderr).trim().chars().take(400).collect()))
}
