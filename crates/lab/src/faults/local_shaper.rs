//! # local-shaper
//!
//! A token bucket filter at the root of the interface (tc-tbf(8)): the host's packets leave at that rate, and wait in the
//! host.

use super::{takes, Fault, HOSTS, Undo, Unit};
use crate::Result;
use crate::host::Host;
use narrows_sys::rtnl::{Links, Qdisc};

pub(super) const FAULT: Fault = Fault {
    id: "local-shaper",
    about: "the host shapes its own output",
    places: HOSTS,
    parameter: takes(Unit::Rate, "100M", "the rate of the token bucket filter"),
    host: Some(|host, value| {
        let qdisc = Qdisc::TokenBucket { rate_bps: value.number(), burst_bytes: BURST_BYTES, limit_bytes: LIMIT_BYTES };
        set_root(host, &qdisc)
    }),
    ..Fault::NONE
};

/// Room for one super-packet, so that none must be split.
const BURST_BYTES: u32 = 128 << 10;
/// Above TCP's own limit on packets that wait in a host: nothing is dropped here.
const LIMIT_BYTES: u32 = 4 << 20;

/// Puts a queueing discipline at the root of the host's interface; undoing it restores the kernel's default.
pub(super) fn set_root(host: &Host, qdisc: &Qdisc) -> Result<Undo> {
    set_root_of(host, host.device(), qdisc)
}

/// The same for an interface of the host by its name.
pub(super) fn set_root_of(host: &Host, device: &'static str, qdisc: &Qdisc) -> Result<Undo> {
    host.run(|| Links::open()?.replace_qdisc(device, qdisc))??;
    Ok(Undo::new(move |host| Ok(host.run(|| Links::open()?.delete_qdisc(device))??)))
}
