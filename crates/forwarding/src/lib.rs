//! The benchmark of a device under test, without IO and without a clock: procedures as in RFC 2544, RFC 5180, RFC 9004; words as in
//! RFC 1242 and RFC 2285.
//!
//! ```text
//! plan file -> ForwardingPlan -> procedures: the next trial -> ForwardingRecord -> judge -> views: the report -> writing: bytes
//! ```

pub mod data;
pub mod judge;
pub mod plan_file;
pub mod procedures;
pub mod rip;
pub mod views;
pub mod writing;

/// The simulated device of the search, which knows it by this path.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../search/src/sim.rs"]
mod sim;
#[cfg(test)]
mod testing;

#[cfg(test)]
use narrows_search::search;
