//! # filter-drop
//!
//! A rule of the host's own packet filter drops every Nth UDP packet that arrives (nf_tables, hook *input*), and counts the
//! drops. Reassembly happens before the rule, socket delivery after it. TCP passes, so that the control connection survives.
//!
//! Truth: the rule's counter, `filter_input_drops` of the host. Packets are not merged while the fault is active, so that one
//! packet of the rule is one datagram.

use super::{Fault, HOSTS, Parameter, Undo, Unit, Value, Way};
use crate::Result;
use crate::host::{Host, INPUT_FILTER};
use narrows_model::lab::Impairment;
use narrows_sys::nftables::{self, Hook};

pub(super) const FAULT: Fault = Fault {
    id: "filter-drop",
    about: "a rule of the host's filter drops UDP packets that come in",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Count, default: "100", about: "one of how many UDP packets is dropped" }),
    host: Some(inject),
    path: Some(impair),
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    drop_some(host, INPUT_FILTER, Hook::Input, value.number32())
}

fn impair(path: &mut Impairment, _: &Value, way: Way) {
    path.single_packets |= way.is_towards_fault();
}

/// Adds a table with a rule to the host's network that drops one UDP packet of `one_of`; undoing it removes the table.
pub(super) fn drop_some(host: &Host, table: &'static str, hook: Hook, one_of: u32) -> Result<Undo> {
    const UDP: u8 = 17;
    host.note_filter();
    host.run(|| nftables::add_drop(table, hook, UDP, one_of))??;
    Ok(Undo::new(move |host| Ok(host.run(|| nftables::delete_table(table))??)))
}
