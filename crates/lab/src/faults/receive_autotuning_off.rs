//! # receive-autotuning-off
//!
//! The kernel lets no receive buffer grow (`net.ipv4.tcp_moderate_rcvbuf` is 0): each stays at the default of `net.ipv4.tcp_rmem`. Source:
//! kernel Documentation/networking/ip-sysctl.rst.

use super::undo::set_sysctl;
use super::{Fault, HOSTS};

pub(super) const FAULT: Fault = Fault {
    id: "receive-autotuning-off",
    about: "receive buffers keep their initial size",
    places: HOSTS,
    host: Some(|host, _| set_sysctl(host, "net.ipv4.tcp_moderate_rcvbuf", "0")),
    ..Fault::NONE
};
