//! # forward-rules
//!
//! N rules of the router's packet filter, one after another. Every forwarded packet is compared with each of them, and none
//! matches. For comparisons of a device with and without them.
//!
//! Truth: nothing is dropped; the counters of the rules stay at 0.

use super::undo::with_table;
use super::{takes, Fault, ROUTER, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::nftables::{self, Hook};

const TABLE: &str = "narrows-lab-forward-rules";

pub(super) const FAULT: Fault = Fault {
    id: "forward-rules",
    about: "the router evaluates many filter rules that never match, for each packet",
    places: ROUTER,
    parameter: takes(Unit::Count, "100", "number of rules, at most 100000"),
    host: Some(inject),
    ..Fault::NONE
};

/// The kernel adds this many within seconds, and evaluates them within a millisecond per packet.
pub(super) const RULES_MAX: u32 = 100_000;

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let rules = value.number32();
    if rules > RULES_MAX {
        return Err(FAULT.refused(&rules.to_string(), &format!("more than {RULES_MAX} rules")));
    }
    with_table(host, TABLE, || nftables::add_misses(TABLE, Hook::Forward, rules))
}
