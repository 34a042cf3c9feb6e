//! The diagnosis: a [`Run`](narrows_model::Run) in, accounts and a verdict out. Pure: no IO, no clock.
//!
//! ```text
//! Run -> Evidence -> every cause's ceiling and assessment -> judge -> Report
//! ```

pub mod audit;
pub mod causes;
mod connection;
mod diagnosis;
pub mod evidence;
pub mod experiments;
mod interrupted;
pub mod judge;
pub mod latency;
mod layers;
pub mod ledger;
mod middlebox;
pub mod path;
pub mod report;
pub mod role;
pub mod underlay;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use diagnosis::{Diagnosis, diagnose, falls_short, path_profile, weigh};
pub use ledger::{ledger, tcp_ledger};
pub use report::{carried_bytes, report};
pub use role::Role;
