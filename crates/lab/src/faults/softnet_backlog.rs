//! # softnet-backlog
//!
//! Packets arrive at the host in bursts larger than its backlog (`net.core.netdev_max_backlog`, 1000 by default), and are
//! dropped before any protocol sees them, although the receiving core has idle time on average. The path holds the host's
//! packets back and releases them at once; packet steering brings them to the backlog of one core, where a few packet taps
//! make processing a packet more expensive than delivering it.
//!
//! The queue itself is not shortened: its length is a setting of the machine, not of the host. So the load must be high
//! enough for the holding time: at 20,000 packets per second, 100 ms are 2000 packets. Of a burst of n about n - 1000 are
//! lost.
//!
//! Truth: `rx_dropped` of the host's interface; packets are not merged, so one drop is one datagram.

use super::costly_core::steer;
use super::{takes, Fault, HOSTS, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "softnet-backlog",
    about: "bursts overflow the receive backlog of a core",
    places: HOSTS,
    parameter: takes(Unit::Duration, "100ms", "time that packets are batched"),
    host: Some(|host, _| steer(host, TAPS)),
    path: Some(|path, value, way| {
        if way.is_towards_fault() {
            path.gather_us = value.number().min(1_000_000);
            path.single_packets = true;
        }
    }),
};

/// About 16 µs per packet: ten times the cost of delivering one, and still 60,000 packets per second.
const TAPS: u64 = 4;
