//! Bytes and types of what the two ends say to each other. No IO: every function here takes bytes or values and gives
//! values or bytes, so each can be tested and fuzzed without a network.
//!
//! - [`first`]: the first bytes of a connection tell what it is; all kinds share one port.
//! - [`forwarding_plan`]: the file of a forwarding benchmark.
//! - [`frame`]: the raw frames of a generator and its receiver.
//! - [`hello`]: the fixed-length greeting of a data connection, and its answer.
//! - [`api`]: requests, answers and events of the control connection (HTTP and JSON).
//! - [`probe`]: the datagrams of a UDP trial.
//! - [`rip`]: routing updates as frames.
//! - [`rr`]: the header of a request and a response over UDP.
//! - [`token`]: the string that carries both sides' identity.
//! - [`version`]: the protocol's number, and the sentence when the numbers do not meet.

pub mod api;
pub mod first;
pub mod forwarding_plan;
pub mod frame;
pub mod hello;
pub mod probe;
pub mod rip;
pub mod rr;
pub mod token;
pub mod version;

pub use first::{Kind, classify};
pub use hello::{Answer, DataHello, Key, Wanted};
pub use token::Token;
pub use version::{Mismatch, PROTOCOL};
