//! # udp-send-queue
//!
//! Behind the socket is a link of 1 Gbit/s with a queue of few packets (a short `txqueuelen`): datagrams that are sent faster
//! for longer than the queue is deep are dropped in the host. The sender gets `ENOBUFS` if it asked for it (`IP_RECVERR`),
//! and `Udp: SndbufErrors` counts in any case, once per call of which nothing was accepted. Paced below 1 Gbit/s nothing is
//! lost.
//!
//! Truth: `qdisc_drops` of the host: the discipline splits batches (`UDP_SEGMENT`) and counts each datagram.

use super::local_shaper::set_root;
use super::{takes, Fault, HOSTS, Unit};
use narrows_sys::rtnl::{Links, Qdisc};

pub(super) const FAULT: Fault = Fault {
    id: "udp-send-queue",
    about: "a short queue behind the sending socket",
    places: HOSTS,
    parameter: takes(Unit::Count, "10", "full-size queue limit in packets"),
    host: Some(|host, value| {
        let device = host.device();
        // Includes the header of a device that has one.
        let packet_bytes = host.run(|| Links::open()?.get(device))??.mtu + 14;
        // Less than two packets at once: batches are split, and their segments queue up.
        let burst_bytes = packet_bytes + packet_bytes / 2;
        let limit_bytes = packet_bytes.saturating_mul(value.number32());
        set_root(host, &Qdisc::TokenBucket { rate_bps: RATE_BPS, burst_bytes, limit_bytes })
    }),
    ..Fault::NONE
};

const RATE_BPS: u64 = 1_000_000_000;
