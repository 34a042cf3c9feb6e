//! # heavy-ruleset
//!
//! Each packet that the host receives is compared with many rules of its packet filter, one after another, and packet steering
//! (`rps_cpus`) brings all packets of the interface to one core, as a NIC with a single queue does. No rule matches.
//!
//! Truth: the counters of the rules stay at 0.

use super::costly_core::steer;
use super::forward_rules::RULES_MAX;
use super::undo::with_table;
use super::{takes, Fault, HOSTS, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::nftables::{self, Hook};

const TABLE: &str = "narrows-lab-rules";

pub(super) const FAULT: Fault = Fault {
    id: "heavy-ruleset",
    about: "each received packet is compared with many filter rules in the softirq of one core",
    places: HOSTS,
    parameter: takes(Unit::Count, "5000", "how many rules, at most 100000"),
    host: Some(inject),
    path: Some(|path, _, way| path.single_packets |= way.is_towards_fault()),
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let rules = value.number32();
    if rules > RULES_MAX {
        return Err(FAULT.refused(&rules.to_string(), &format!("more than {RULES_MAX} rules")));
    }
    Ok(steer(host, 0)?.then(with_table(host, TABLE, || nftables::add_misses(TABLE, Hook::Input, rules))?))
}
