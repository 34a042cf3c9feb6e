//! Clients of iperf3: a port of its own, TCP and UDP, that takes many tests at once.
//!
//! The cookie tells which test a connection belongs to: the first one with it is the control connection ([`session`]), the next ones
//! are its streams ([`gather`]). Each connection is a task of its own, so that none can hold up another; what each can cause before
//! and during its test is bounded by [`limits`].

mod control;
mod gather;
mod limits;
mod listen;
mod logins;
mod output;
mod session;
mod table;
mod test;

pub(super) use listen::{Ports, serve};
