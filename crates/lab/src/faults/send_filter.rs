//! # send-filter
//!
//! A rule of the host's own packet filter drops every Nth UDP packet that the host sends (nf_tables, hook *output*). The
//! sender's call fails with `EPERM`, and the datagram is unsent, not lost.
//!
//! Truth: the rule's counter, `filter_output_drops` of the host. A batch (`UDP_SEGMENT`) is one packet here: send each
//! datagram by itself if the count matters.

use super::filter_drop::drop_some;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::{Host, OUTPUT_FILTER};
use narrows_sys::nftables::Hook;

pub(super) const FAULT: Fault = Fault {
    id: "send-filter",
    about: "a rule of the host's filter refuses UDP packets that it sends",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Count, default: "100", about: "one of how many UDP packets is refused" }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    drop_some(host, OUTPUT_FILTER, Hook::Output, value.number32())
}
