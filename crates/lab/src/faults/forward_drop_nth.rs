//! # forward-drop-nth
//!
//! A rule of the router's packet filter drops every Nth packet that it forwards, in either direction (nf_tables, hook
//! *forward*, `numgen inc mod N == 0`), and counts the drops.
//!
//! Truth: the rule's counter, `filter_forward_drops` of the host. Of n packets since the rule was added it has dropped n ÷ N,
//! rounded up.

use super::{Fault, Parameter, ROUTER, Undo, Unit, Value};
use crate::Result;
use crate::host::{Host, FORWARD_FILTER};
use narrows_sys::nftables;

pub(super) const FAULT: Fault = Fault {
    id: "forward-drop-nth",
    about: "a rule of the router's filter drops every so many-th packet that it forwards",
    places: ROUTER,
    parameter: Some(Parameter { unit: Unit::Count, default: "1000", about: "one of how many packets is dropped" }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    with_table(host, FORWARD_FILTER, || nftables::add_forward_drop(FORWARD_FILTER, value.number32()))
}

/// Adds a table to the host's network; undoing it removes the table.
pub(super) fn with_table(
    host: &Host,
    table: &'static str,
    make: impl FnOnce() -> nftables::Result<()> + Send,
) -> Result<Undo> {
    host.note_filter();
    host.run(make)??;
    Ok(Undo::new(move |host| Ok(host.run(|| nftables::delete_table(table))??)))
}
