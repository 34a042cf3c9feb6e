//! # tcp-receive-window
//!
//! Receive buffer autotuning ends at the maximum of `net.ipv4.tcp_rmem`, so the advertised window does too, and no more than
//! one window is in flight per round trip. Source: kernel Documentation/networking/ip-sysctl.rst.

use super::undo::set_maximum;
use super::{takes, Fault, HOSTS, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "tcp-receive-window",
    about: "a small maximum of the TCP receive buffer",
    places: HOSTS,
    parameter: takes(Unit::Bytes, "256k", "maximum of net.ipv4.tcp_rmem"),
    host: Some(|host, value| set_maximum(host, "net.ipv4.tcp_rmem", value.number())),
    ..Fault::NONE
};
