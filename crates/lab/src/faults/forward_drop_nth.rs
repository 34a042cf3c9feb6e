//! # forward-drop-nth
//!
//! A rule of the router's packet filter drops every Nth packet that it forwards, in either direction (nf_tables, hook
//! *forward*, `numgen inc mod N == 0`), and counts the drops.
//!
//! Truth: the rule's counter, `filter_forward_drops` of the host. Of n packets since the rule was added it has dropped n ÷ N,
//! rounded up.

use super::undo::with_table;
use super::{takes, Fault, ROUTER, Unit};
use crate::host::FORWARD_FILTER;
use narrows_sys::nftables;

pub(super) const FAULT: Fault = Fault {
    id: "forward-drop-nth",
    about: "a filter rule of the router drops every Nth forwarded packet",
    places: ROUTER,
    parameter: takes(Unit::Count, "1000", "drop one of this many packets"),
    host: Some(|host, value| with_table(host, FORWARD_FILTER, || nftables::add_forward_drop(FORWARD_FILTER, value.number32()))),
    ..Fault::NONE
};
