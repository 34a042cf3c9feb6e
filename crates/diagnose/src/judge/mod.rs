//! The judge: what is said of a baseline, of all causes that are assessed.

pub mod assessment;
pub mod ceilings;
pub(crate) mod disproof;
mod exclusion;
pub mod tcp;
pub mod udp;
