//! What the rules on buffer sizes share: how much memory a path needs, and how long a path a size is enough for.

use narrows_model::Snapshot;
use narrows_model::units::{bytes, micros};

use crate::audit::rule::whole;

/// The round-trip time that is assumed where no path was measured: across a continent or an ocean.
pub(super) const ASSUMED_RTT_S: f64 = 0.1;
/// Buffer memory for each byte in flight: the kernel's own bookkeeping takes up to half of a buffer.
pub(super) const OVERHEAD: f64 = 2.0;
/// The kernel's limits are signed 32-bit numbers.
const LARGEST: f64 = 2_147_483_647.0;

/// What a buffer at the end of this host's link needs at the assumed RTT, bytes.
pub(super) fn needed(host: &Snapshot) -> Option<f64> {
    let speed = host.number("nic.speed").filter(|speed| *speed > 0.0)?;
    Some((OVERHEAD * speed / 8.0 * ASSUMED_RTT_S).min(LARGEST))
}

/// `6 MiB is enough for 1 Gbit/s up to 25.2 ms`, of a buffer's largest size.
pub(super) fn enough(host: &Snapshot, size: f64) -> Option<String> {
    let speed = host.number("nic.speed").filter(|speed| *speed > 0.0)?;
    let rtt_us = whole(size / OVERHEAD * 8.0 / speed * 1e6);
    let speed = narrows_model::show::nominal(&narrows_model::units::bps(speed));
    Some(format!("{} is enough for the {speed} of the link up to an RTT of {}", bytes(whole(size)), micros(rtt_us)))
}

/// The three numbers of `tcp_rmem` or `tcp_wmem` with a maximum that is enough, rounded up to a power of two.
pub(super) fn triple(host: &Snapshot, family: &str, default: u64, needed: f64) -> String {
    let known = |part: &str, or: u64| host.number(&format!("tcp.{family}.{part}")).map_or(or, whole);
    let most = whole(needed.max(1.0)).next_power_of_two().min(whole(LARGEST));
    format!("{} {} {most}", known("min", 4096), known("default", default))
}
