//! # window-scaling-off
//!
//! Without the option of RFC 7323 section 2 a window has 16 bits: at most 65,535 bytes are in flight.

use super::undo::set_sysctl;
use super::{Fault, HOSTS};

pub(super) const FAULT: Fault = Fault {
    id: "window-scaling-off",
    about: "TCP window scaling is off: windows are at most 64 KiB",
    places: HOSTS,
    host: Some(|host, _| set_sysctl(host, "net.ipv4.tcp_window_scaling", "0")),
    ..Fault::NONE
};
