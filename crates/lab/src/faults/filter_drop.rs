//! # filter-drop
//!
//! A rule of the host's own packet filter drops every so many-th UDP packet that comes in (nf_tables, hook *input*), and counts
//! what it drops. Reassembly is before the rule, the socket behind it. TCP passes, so that the control connection lives.
//!
//! Truth: the rule's counter, `filter_input_drops` of the host. Each packet comes by itself while the fault is in force, so that
//! one packet of the rule is one datagram.

use super::{Fault, HOSTS, Parameter, Undo, Unit, Value, Way};
use crate::Result;
use crate::host::Host;
use narrows_model::lab::Impairment;
use narrows_sys::nftables::{self, Hook};

/// The table that holds the rule.
pub(crate) const TABLE: &str = "narrows-lab-input";

pub(super) const FAULT: Fault = Fault {
    id: "filter-drop",
    about: "a rule of the host's filter drops UDP packets that come in",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Count, default: "100", about: "one of how many UDP packets is dropped" }),
    host: Some(inject),
    path: Some(impair),
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    drop_some(host, TABLE, Hook::Input, value.number32())
}

fn impair(path: &mut Impairment, _: &Value, way: Way) {
    path.single_packets |= way.leads_to_it();
}

/// Puts a table with a rule into the host's network that drops one UDP packet of `one_of`; the way back takes the table away.
pub(super) fn drop_some(host: &Host, table: &'static str, hook: Hook, one_of: u32) -> Result<Undo> {
    const UDP: u8 = 17;
    host.set_filtered();
    host.run(|| nftables::add_drop(table, hook, UDP, one_of))??;
    Ok(Undo::new(move |host| Ok(host.run(|| nftables::delete_table(table))??)))
}
