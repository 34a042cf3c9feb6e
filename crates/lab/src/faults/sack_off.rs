//! # sack-off
//!
//! Without selective acknowledgements (RFC 2018) a sender repairs one loss per round trip. The fault shows only if there is
//! loss.

use super::undo::set_sysctl;
use super::{Fault, HOSTS};

pub(super) const FAULT: Fault = Fault {
    id: "sack-off",
    about: "selective acknowledgements are off",
    places: HOSTS,
    host: Some(|host, _| set_sysctl(host, "net.ipv4.tcp_sack", "0")),
    ..Fault::NONE
};
