//! The forwarding benchmark, reconciled and compared: pure functions of its records.
//!
//! - [`books()`]: one direction of a trial in double entry, from the generator to the receiver.
//! - [`compare`]: throughputs of two configurations of the device, row by row.

mod ab;
mod books;
mod claims;
mod found;
mod looks_like;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use ab::compare;
pub use books::books;
