//! Whether this program is accurate on this machine, where the lab makes the truth: the emulator, the packet ledger, the search for
//! the highest load, the forwarding benchmark.

mod forwarding;
mod ledger;
mod noise;
mod search;

pub use narrows_lab::{Row, Watch};

use crate::demo::StageError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The emulator against sockets that know nothing of it (a minute).
    Emulator,
    /// Packet ledgers against what the lab dropped where (two minutes).
    Ledger,
    /// Searches against paths of known capacity (two to three minutes).
    Search,
    /// The forwarding benchmark against a device whose properties are known (a minute).
    Forwarding,
    /// Searches with several trials per load against plain bisection, on a disturbed machine (seven minutes).
    Noise,
}

/// Verifies one part, and passes each row on as soon as it is complete.
pub fn verify(part: Part, watch: &mut dyn Watch) -> Result<(), StageError> {
    match part {
        Part::Emulator => narrows_lab::accuracy(watch).map_err(StageError::from),
        Part::Ledger => ledger::verify(watch),
        Part::Search => search::verify(watch),
        Part::Forwarding => forwarding::verify(watch),
        Part::Noise => noise::verify(watch),
    }
}
