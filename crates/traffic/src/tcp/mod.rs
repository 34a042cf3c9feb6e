//! The TCP engine: bulk data over connected sockets.
//!
//! One blocking thread per stream moves the data; the caller's thread samples TCP_INFO, socket memory and CPU times.

mod application;
mod batch;
mod counters;
mod dispatch;
mod engine;
mod options;
mod outcome;
mod payload;
mod receiver;
mod sender;
mod stream;
mod streams;
mod worker;

pub(crate) use dispatch::of as streams_of;
pub use engine::run;
pub use options::prepare;
pub use stream::Stream;
