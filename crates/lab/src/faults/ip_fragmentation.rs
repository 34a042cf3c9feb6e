//! # ip-fragmentation
//!
//! The host has next to no memory for fragments that wait for the rest of their datagram (`ipfrag_high_thresh`, and the same for
//! IPv6): what must be reassembled is not. Datagrams that fit into one packet are untouched. Above the limit every further
//! fragment is refused, also of datagrams that began earlier, and what they hold is freed only after `ipfrag_time`, 30 s
//! (kernel net/ipv4/inet_fragment.c, `inet_frag_find`).
//!
//! Truth: datagrams above the MTU do not arrive; `Ip: ReasmFails` counts their refused fragments.

use super::undo::set_sysctl;
use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::sysctl;

pub(super) const FAULT: Fault = Fault {
    id: "ip-fragmentation",
    about: "fragments find no memory to be reassembled in",
    places: HOSTS,
    parameter: Some(Parameter { unit: Unit::Bytes, default: "1k", about: "memory for all fragments that wait" }),
    host: Some(inject),
    path: None,
};

/// The lower threshold may never be above the higher one: it goes first, and comes back last.
const KEYS: [&str; 4] = [
    "net.ipv4.ipfrag_low_thresh",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv6.ip6frag_low_thresh",
    "net.ipv6.ip6frag_high_thresh",
];

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let mut undo = Undo::default();
    for key in KEYS {
        // Absent where the kernel was told to do without IPv6. Without those of IPv4 there is no such fault.
        if key.starts_with("net.ipv6") && !host.run(|| sysctl::exists(key))? {
            continue;
        }
        match set_sysctl(host, key, &value.number().to_string()) {
            Ok(step) => undo = undo.then(step),
            Err(error) => {
                undo.take_back(host)?;
                return Err(error);
            }
        }
    }
    Ok(undo)
}
