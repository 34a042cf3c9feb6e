//! # congestion-control
//!
//! The congestion control of new connections. A loss-based one such as Reno (RFC 5681) does not fill a long path with a
//! little loss; the fault shows only together with loss.

use super::undo::set_sysctl;
use super::{takes, Fault, HOSTS, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "congestion-control",
    about: "a different default congestion control",
    places: HOSTS,
    parameter: takes(Unit::Word, "reno", "congestion control (see net.ipv4.tcp_available_congestion_control)"),
    host: Some(|host, value| set_sysctl(host, "net.ipv4.tcp_congestion_control", &value.to_string())),
    ..Fault::NONE
};
