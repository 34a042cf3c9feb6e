//! The TCP engine: bulk data over connected sockets.
//!
//! One blocking thread per stream moves the data; the caller's thread samples TCP_INFO, socket memory and CPU times.

mod application;
mod batch;
mod engine;
mod layered;
mod options;
mod payload;
mod receiver;
mod sender;
mod streams;
mod worker;

pub(crate) use engine::run;
pub use options::prepare;
