//! # forward-drop-nth
//!
//! A rule of the router's packet filter drops every so many-th packet that it forwards, of either direction (nf_tables, hook
//! *forward*, `numgen inc mod N == 0`), and counts what it drops.
//!
//! Truth: the rule's counter, `filter_forward_drops` of the host. Of n packets since the rule was made it has dropped n ÷ N,
//! rounded up.

use super::{Fault, Parameter, ROUTER, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::nftables;

/// The table that holds the rule.
pub(crate) const TABLE: &str = "narrows-lab-forward-drop";

pub(super) const FAULT: Fault = Fault {
    id: "forward-drop-nth",
    about: "a rule of the router's filter drops every so many-th packet that it forwards",
    places: ROUTER,
    parameter: Some(Parameter { unit: Unit::Count, default: "1000", about: "one of how many packets is dropped" }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    with_table(host, TABLE, || nftables::add_forward_drop(TABLE, value.number32()))
}

/// Makes a table in the host's network; the way back takes it away.
pub(super) fn with_table(
    host: &Host,
    table: &'static str,
    make: impl FnOnce() -> nftables::Result<()> + Send,
) -> Result<Undo> {
    host.set_filtered();
    host.run(make)??;
    Ok(Undo::new(move |host| Ok(host.run(|| nftables::delete_table(table))??)))
}
