//! # tcp-send-buffer
//!
//! Send buffer autotuning ends at the maximum of `net.ipv4.tcp_wmem`: unacknowledged data must fit into it, so no more than
//! that is in flight per round trip. Source: kernel Documentation/networking/ip-sysctl.rst.

use super::undo::set_maximum;
use super::{takes, Fault, HOSTS, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "tcp-send-buffer",
    about: "a small maximum of the TCP send buffer",
    places: HOSTS,
    parameter: takes(Unit::Bytes, "256k", "maximum of net.ipv4.tcp_wmem"),
    host: Some(|host, value| set_maximum(host, "net.ipv4.tcp_wmem", value.number())),
    ..Fault::NONE
};
