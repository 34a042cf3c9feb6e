//! A client of iperf3: the far end of a measurement is `iperf3 -s`, which has no token, no inventory and no counters.

pub mod auth;
mod connect;
mod control;
mod profile;
mod running;
mod streams;
mod test;

pub use connect::{Iperf3Error, Peer, is_iperf3};
