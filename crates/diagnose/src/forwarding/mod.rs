//! The forwarding benchmark, reconciled and compared: pure functions of its records.
//!
//! - [`books()`]: one direction of a trial in double entry, from the generator to the receiver.
//! - [`device_seen`]: what became of a device over a trial, from a look before it and one after it.
//! - [`storms`]: whether interrupts took the device's time from it.
//! - [`compare`]: throughputs of two configurations of the device, row by row.

mod ab;
mod books;
mod claims;
mod device;
mod found;
mod kept_back;
mod looks_like;
mod storm;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use ab::compare;
pub use books::books;
pub use device::{device_seen, device_trouble};
pub use storm::{Storm, storms};
