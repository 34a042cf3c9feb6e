//! The forwarding benchmark, reconciled and compared: pure functions of its records.
//!
//! - [`correct`]: a trial as its counts are meant, from a trial as they were read.
//! - [`account`]: one direction of a trial in double entry, from the generator to the receiver.
//! - [`judge`]: whether a trial is invalid, and why.
//! - [`dut_seen`]: what became of a device over a trial, from its state before and after.
//! - [`interrupt_notes`]: whether interrupts took the device's time from it.
//! - [`compare`]: throughputs of two configurations of the device, row by row.

mod ab;
mod accounting;
mod broadcast;
mod correct;
mod counts;
mod dut;
mod interrupts;
mod losses;
mod pattern;
mod validity;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use ab::compare;
pub use accounting::account;
pub use correct::correct;
pub use dut::dut_seen;
pub use interrupts::{InterruptNote, interrupt_notes};
pub use validity::{is_lost, judge};
