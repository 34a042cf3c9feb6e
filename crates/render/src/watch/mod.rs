//! Interfaces of both ends while traffic runs: samples in, one frame of text out.

pub mod frame;

pub use frame::frame;
