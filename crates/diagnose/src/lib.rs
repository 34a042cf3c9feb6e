//! The diagnosis: a [`Run`](narrows_model::Run) in, accounts and a verdict out. Pure: no IO, no clock.
//!
//! ```text
//! Run -> Evidence -> every cause's ceiling and testimony -> roofline, time budget -> verdict -> Report
//! ```

pub mod audit;
pub mod budget;
pub mod causes;
mod disproof;
pub mod evidence;
mod exclusion;
pub mod experiment;
pub mod forwarding;
pub mod latency;
pub mod ledger;
pub mod report;
pub mod roofline;
pub mod udp;
pub mod verdict;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Seat};
pub use experiment::Experiment;
pub use ledger::{ledger, tcp_ledger};
pub use report::report;
pub use udp::{UdpDiagnosis, diagnose_udp};
pub use verdict::{ActDiagnosis, diagnose_act};
