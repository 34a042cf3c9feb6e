//! Messages between the two ends, as bytes and types. No IO: every function converts between bytes and values, so each can be
//! tested and fuzzed without a network.
//!
//! - [`first`]: identifies a connection by its first bytes; all kinds share one port.
//! - [`frame`]: the raw frames of a generator and its receiver.
//! - [`hello`]: the fixed-length hello of a data connection, and its answer.
//! - [`icmp`]: ICMP errors and their extensions.
//! - [`api`]: requests, answers and events of the control connection (HTTP and JSON).
//! - [`columns`]: plain columns of numbers, which a comparison reads.
//! - [`iperf3`]: the protocol of iperf3.
//! - [`iperf3_report`]: reports of `iperf3 -J`, which the store takes in.
//! - [`pack`]: answers and events as gzip.
//! - [`probe`]: the datagrams of a UDP trial.
//! - [`problem`]: what is wrong with a plan file.
//! - [`profile`]: what the ends of a path profile say to each other.
//! - [`quic`]: loads over QUIC.
//! - [`rr`]: the header of a request and a response over UDP.
//! - [`stamp`]: STAMP and TWAMP Light, of senders and reflectors.
//! - [`tables`]: the entries that fill a table of a device under test.
//! - [`token`]: the string that identifies both sides.
//! - [`version`]: the protocol's number, those that are spoken, and the error if the ends have none in common.

pub mod api;
pub mod columns;
pub mod first;
pub mod frame;
pub mod hello;
pub mod icmp;
pub mod iperf3;
pub mod iperf3_report;
pub mod ndt7;
pub mod pack;
pub mod probe;
pub mod problem;
pub mod profile;
pub mod quic;
pub mod responsiveness;
pub mod rr;
pub mod stamp;
pub mod tables;
pub mod token;
pub mod version;

pub use first::{Kind, classify};
pub use hello::{Answer, DataHello, Key, Wanted};
pub use token::Token;
pub use version::{Mismatch, PROTOCOL, SPOKEN};
