//! # send-filter
//!
//! A rule of the host's own packet filter drops every Nth UDP packet that the host sends (nf_tables, hook *output*). The
//! sender's call fails with `EPERM`, and the datagram is unsent, not lost.
//!
//! Truth: the rule's counter, `filter_output_drops` of the host. A batch (`UDP_SEGMENT`) is one packet here: send each
//! datagram by itself if the count matters.

use super::undo::drop_some;
use super::{takes, Fault, HOSTS, Unit};
use crate::host::OUTPUT_FILTER;
use narrows_sys::nftables::Hook;

pub(super) const FAULT: Fault = Fault {
    id: "send-filter",
    about: "a filter rule of the host rejects outgoing UDP packets",
    places: HOSTS,
    parameter: takes(Unit::Count, "100", "reject one of this many UDP packets"),
    host: Some(|host, value| drop_some(host, OUTPUT_FILTER, Hook::Output, value)),
    ..Fault::NONE
};
