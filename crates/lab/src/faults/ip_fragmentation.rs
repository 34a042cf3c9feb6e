//! # ip-fragmentation
//!
//! The host has almost no memory for fragments that wait for the rest of their datagram (`ipfrag_high_thresh`, and the same
//! for IPv6), so reassembly fails. Datagrams that fit into one packet are not affected. Above the limit every further
//! fragment is refused, also of datagrams that began earlier, and their memory is freed only after `ipfrag_time`, 30 s
//! (kernel net/ipv4/inet_fragment.c, `inet_frag_find`).
//!
//! Truth: datagrams above the MTU do not arrive; `Ip: ReasmFails` counts the refused fragments.

use super::undo::set_sysctl;
use super::{takes, Fault, HOSTS, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::sysctl;

pub(super) const FAULT: Fault = Fault {
    id: "ip-fragmentation",
    about: "too little memory to reassemble fragments",
    places: HOSTS,
    parameter: takes(Unit::Bytes, "1k", "memory for waiting fragments"),
    host: Some(inject),
    ..Fault::NONE
};

/// The lower threshold must never exceed the higher one: it is set first and restored last.
const KEYS: [&str; 4] = [
    "net.ipv4.ipfrag_low_thresh",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv6.ip6frag_low_thresh",
    "net.ipv6.ip6frag_high_thresh",
];

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let mut undo = Undo::default();
    for key in KEYS {
        // Absent if IPv6 is disabled. Without the IPv4 keys the fault is not possible.
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
