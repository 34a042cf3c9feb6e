//! The diagnosis of UDP: where datagrams die, which cause that is, and what to do about it. Pure, as all of this crate.
//!
//! ```text
//! UdpTrial -> ledger -> UdpEvidence -> every cause's testimony -> verdict
//! ```
//!
//! A cause needs two witnesses: the ledger's stage that holds the loss, and a second counter, a state of the CPU or of the
//! buffer, or an experiment that says the same. Loss on the path alone is told apart by experiments ([`paced`]).

pub mod causes;
pub mod evidence;
pub mod experiments;
pub mod paced;
mod verdict;

pub use causes::{TABLE, UdpCause};
pub use evidence::{UdpEnd, UdpEvidence, UdpView};
pub use experiments::{plan_of_udp, what_of_udp};
pub use paced::{PacedUdp, Part};
pub use verdict::{UdpDiagnosis, diagnose_udp};

#[cfg(test)]
mod tests;
