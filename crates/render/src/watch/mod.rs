//! Interfaces of both ends while traffic runs: samples in, one frame of text out.

pub mod accumulator;
pub mod frame;

pub use accumulator::Accumulator;
pub use frame::frame;
