//! # filter-drop
//!
//! A rule of the host's own packet filter drops every Nth UDP packet that arrives (nf_tables, hook *input*), and counts the
//! drops. Reassembly happens before the rule, socket delivery after it. TCP passes, so that the control connection survives.
//!
//! Truth: the rule's counter, `filter_input_drops` of the host. Packets are not merged while the fault is active, so that one
//! packet of the rule is one datagram.

use super::undo::drop_some;
use super::{takes, Fault, HOSTS, Unit};
use crate::host::INPUT_FILTER;
use narrows_sys::nftables::Hook;

pub(super) const FAULT: Fault = Fault {
    id: "filter-drop",
    about: "a filter rule of the host drops incoming UDP packets",
    places: HOSTS,
    parameter: takes(Unit::Count, "100", "drop one of this many UDP packets"),
    host: Some(|host, value| drop_some(host, INPUT_FILTER, Hook::Input, value)),
    path: Some(|path, _, way| path.single_packets |= way.is_towards_fault()),
};
