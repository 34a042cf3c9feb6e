//! # qdisc-drop
//!
//! The queue of the host's own interface is too small for the bursts that TCP or UDP sends: packets are lost before they
//! leave. The rate of the discipline is far above the path's, so that only its queue matters.
//!
//! Truth: `qdisc_drops` of the host. Batches of more than 4 KiB are split first and each packet counts; a smaller one is one
//! packet.

use super::local_shaper::set_root;
use super::{takes, Fault, HOSTS, Unit};
use narrows_sys::rtnl::Qdisc;

pub(super) const FAULT: Fault = Fault {
    id: "qdisc-drop",
    about: "the host's own queueing discipline drops bursts",
    places: HOSTS,
    parameter: takes(Unit::Bytes, "20k", "queue limit of the discipline"),
    host: Some(|host, value| {
        let limit_bytes = value.number32();
        set_root(host, &Qdisc::TokenBucket { rate_bps: RATE_BPS, burst_bytes: BURST_BYTES, limit_bytes })
    }),
    ..Fault::NONE
};

/// High, and yet lower than the speed at which a burst arrives.
const RATE_BPS: u64 = 2_000_000_000;
/// A little more than an Ethernet packet: super-packets are split here, and the segments queue up.
const BURST_BYTES: u32 = 4 << 10;
