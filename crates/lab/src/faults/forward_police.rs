//! # forward-police
//!
//! A policer without a queue in front of the router's output: packets above N per second, once a bucket of B packets is
//! empty, are dropped and counted (nf_tables `limit rate over N/second burst B packets`, only for packets that leave by
//! `out0`).
//!
//! Truth: the kernel keeps the cost of a packet in whole nanoseconds, so that the rate is 10^9 ÷ ⌊10^9 ÷ N⌋ packets/s: exact
//! if N divides 10^9 (200,000; 250,000; 1,000,000), otherwise up to N ÷ 10^9 too high. Of any greater load without pauses
//! longer than the bucket takes to fill, a trial of T seconds carries rate × T + B packets. A burst of B ÷ (1 − rate ÷ its
//! own rate) packets passes without loss, as it would through a queue of B packets in front of that rate.

use super::undo::with_table;
use super::{takes, Fault, ROUTER, Unit};
use narrows_sys::nftables;

const TABLE: &str = "narrows-lab-forward-police";

pub(super) const FAULT: Fault = Fault {
    id: "forward-police",
    about: "the router polices to a rate in packets/s",
    places: ROUTER,
    parameter: takes(Unit::Numbers(&["packets/s", "packets of burst"]), "200000x1000", "rate x bucket"),
    host: Some(|host, value| {
        let [rate, burst] = value.numbers();
        let burst = u32::try_from(burst).unwrap_or(u32::MAX);
        with_table(host, TABLE, || nftables::add_forward_police(TABLE, "out0", rate, burst))
    }),
    ..Fault::NONE
};
