//! What the rules on buffer sizes share: how much memory a path needs, and how long a path a size is enough for.

use narrows_model::Snapshot;
use narrows_model::words::units::{bps, bytes, micros};

use crate::audit::rule::{Found, sysctl_words, whole};

/// The audit measures no path. A buffer is worth a word where it ends below what a path across a continent takes: hosts that
/// their engineers had tuned for such a path held 41 ms of 10 Gbit/s, and 80 ms of 1 Gbit/s.
const USUAL_RTT_S: f64 = 0.04;
/// What the command that mends it provides for: across an ocean.
const AMPLE_RTT_S: f64 = 0.1;
/// Buffer memory for each byte in flight: the kernel's own bookkeeping takes up to half of a buffer.
const OVERHEAD: f64 = 2.0;
/// The kernel's limits are signed 32-bit numbers.
const LARGEST: f64 = 2_147_483_647.0;

/// `tcp_rmem` or `tcp_wmem`.
pub(super) struct Buffer {
    /// `rmem` or `wmem`, as in the keys and the kernel parameter.
    pub(super) name: &'static str,
    /// `receive` or `send`.
    pub(super) word: &'static str,
    /// The kernel's default size, where the host's is not known.
    pub(super) default: u64,
}

impl Buffer {
    /// The finding where the largest buffer is too small for the rate that it meets: that of the link or, where the other
    /// end is known, of the slower one.
    pub(super) fn small(&self, host: &Snapshot, peer: Option<&Snapshot>) -> Option<Found> {
        let most = host.number(&format!("tcp.{}.max", self.name))?;
        let own = speed(host)?;
        let rate = peer.and_then(speed).map_or(own, |other| own.min(other));
        if most >= needed(rate, USUAL_RTT_S) {
            return None;
        }
        let rtt_us = whole(most / OVERHEAD * 8.0 / rate * 1e6);
        let says = format!(
            "{} buffers end early: {} is enough for the {} of the {} up to an RTT of {}",
            self.word,
            bytes(whole(most)),
            narrows_model::words::show::nominal(&bps(rate)),
            if rate < own { "slower link" } else { "link" },
            micros(rtt_us)
        );
        let key = format!("net.ipv4.tcp_{}", self.name);
        Some(Found::new(says).mend(sysctl_words(&key, self.triple(host, needed(rate, AMPLE_RTT_S)))))
    }

    /// The three numbers with a maximum that is enough, rounded up to a power of two.
    fn triple(&self, host: &Snapshot, needed: f64) -> String {
        let known = |part: &str, or: u64| host.number(&format!("tcp.{}.{part}", self.name)).map_or(or, whole);
        let most = whole(needed.max(1.0)).next_power_of_two().min(whole(LARGEST));
        format!("{} {} {most}", known("min", 4096), known("default", self.default))
    }
}

fn speed(host: &Snapshot) -> Option<f64> {
    host.number("nic.speed").filter(|speed| *speed > 0.0)
}

/// Bytes of buffer that a rate needs at an RTT.
fn needed(rate_bps: f64, rtt_s: f64) -> f64 {
    (OVERHEAD * rate_bps / 8.0 * rtt_s).min(LARGEST)
}
