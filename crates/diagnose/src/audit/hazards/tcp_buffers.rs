//! The largest receive or send buffer is below twice the bandwidth-delay product of the slower link at 40 ms.
//! Source: Documentation/networking/ip-sysctl.rst, tcp_rmem and tcp_wmem.

use crate::audit::rule::{Check, Found, Rule, sysctl_words, whole};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{FactKey, Severity, Snapshot, keys};

/// The RTT below which a small buffer is reported. The audit measures no path; this is one across a continent: hosts tuned
/// for such a path held 41 ms of 10 Gbit/s, and 80 ms of 1 Gbit/s.
const USUAL_RTT_S: f64 = 0.04;
/// The RTT that the suggested buffer suffices for: across an ocean.
const AMPLE_RTT_S: f64 = 0.1;
/// Buffer memory per byte in flight: the kernel's own bookkeeping takes up to half of a buffer.
const OVERHEAD: f64 = 2.0;
/// The kernel's limits are signed 32-bit numbers.
const MAX_BYTES: f64 = 2_147_483_647.0;

pub(super) const RECEIVE: Rule = Rule {
    id: "tcp-rmem-small",
    severity: Severity::Notice,
    key: keys::TCP_RMEM_MIN,
    needs: &[keys::TCP_RMEM_MAX, keys::TCP_RMEM_MIN, keys::TCP_RMEM_DEFAULT, keys::NIC_SPEED],
    check: Check::Each(|host, peer| RMEM.small(host, peer)),
    matters: "One connection cannot have more in flight than the receiver's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the real one.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
};

pub(super) const SEND: Rule = Rule {
    id: "tcp-wmem-small",
    severity: Severity::Notice,
    key: keys::TCP_WMEM_MIN,
    needs: &[keys::TCP_WMEM_MAX, keys::TCP_WMEM_MIN, keys::TCP_WMEM_DEFAULT, keys::NIC_SPEED],
    check: Check::Each(|host, peer| WMEM.small(host, peer)),
    matters: "One connection cannot have more in flight than the sender's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the real one.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
};

const RMEM: Buffer = Buffer { name: "rmem", word: "receive", key: keys::TCP_RMEM_MAX, default: 131072 };
const WMEM: Buffer = Buffer { name: "wmem", word: "send", key: keys::TCP_WMEM_MAX, default: 16384 };

/// `tcp_rmem` or `tcp_wmem`.
struct Buffer {
    /// `rmem` or `wmem`, as in the keys and the kernel parameter.
    name: &'static str,
    /// `receive` or `send`.
    word: &'static str,
    /// Its maximum.
    key: FactKey,
    /// The kernel's default size, where the host's is not known.
    default: u64,
}

impl Buffer {
    /// The finding where the largest buffer is too small for the rate that it meets: that of the link or, where the other
    /// end is known, of the slower one.
    fn small(&self, host: &Snapshot, peer: Option<&Snapshot>) -> Option<Found> {
        let max = host.number(self.key)?;
        let own = speed(host)?;
        let rate = peer.and_then(speed).map_or(own, |other| own.min(other));
        if max >= needed(rate, USUAL_RTT_S) {
            return None;
        }
        let rtt_us = whole(max / OVERHEAD * 8.0 / rate * 1e6);
        let says = format!(
            "{} buffers are small: {} is enough for the {} of the {} only up to an RTT of {}",
            self.word,
            bytes(whole(max)),
            narrows_model::words::show::nominal(&bps(rate)),
            if rate < own { "slower link" } else { "link" },
            micros(rtt_us)
        );
        let key = format!("net.ipv4.tcp_{}", self.name);
        let fix = sysctl_words(&key, self.triple(host, needed(rate, AMPLE_RTT_S)));
        Some(Found::new(says).fix(fix).rows([self.key, keys::NIC_SPEED]))
    }

    /// The three numbers with a maximum that is enough, rounded up to a power of two.
    fn triple(&self, host: &Snapshot, needed: f64) -> String {
        let known = |part: &str, or: u64| host.number(format!("tcp.{}.{part}", self.name)).map_or(or, whole);
        let max = whole(needed.max(1.0)).next_power_of_two().min(whole(MAX_BYTES));
        format!("{} {} {max}", known("min", 4096), known("default", self.default))
    }
}

fn speed(host: &Snapshot) -> Option<f64> {
    host.number(keys::NIC_SPEED).filter(|speed| *speed > 0.0)
}

/// Bytes of buffer that a rate needs at an RTT.
fn needed(rate_bps: f64, rtt_s: f64) -> f64 {
    (OVERHEAD * rate_bps / 8.0 * rtt_s).min(MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{RECEIVE, SEND};
    use crate::audit::rule::tests::{found, host};
    use narrows_model::{Unit, Value};

    #[test]
    fn too_small_for_the_link_at_40_ms() {
        let host = |most: i64, speed: i64| {
            found(
                &RECEIVE,
                &[
                    ("tcp.rmem.max", Value::Integer(most), Unit::Bytes),
                    ("nic.speed", Value::Integer(speed), Unit::BitsPerSecond),
                ],
            )
        };
        // 1 Gbit/s for 100 ms are 12.5 MB, twice that 25 MB, the next power of two 32 MiB.
        let (says, command, _) = host(262_144, 1_000_000_000).expect("found");
        assert_eq!(
            says,
            "receive buffers are small: 256 KiB is enough for the 1 Gbit/s of the link only up to an RTT of 1.05 ms"
        );
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"));
        assert!(host(33_554_432, 1_000_000_000).is_none());
        assert!(host(262_144, 0).is_none(), "the speed of a virtual link is unknown");
        // 400 Gbit/s would need more than the kernel can be told.
        assert!(host(2_147_483_647, 400_000_000_000).is_none());
    }

    #[test]
    fn the_slower_link_of_the_two_counts_and_hosts_tuned_for_their_path_are_healthy() {
        let end = |most: i64, speed: i64| {
            host(&[
                ("tcp.rmem.max", Value::Integer(most), Unit::Bytes),
                ("nic.speed", Value::Integer(speed), Unit::BitsPerSecond),
            ])
        };
        let (near, far) = (end(20_000_000, 10_000_000_000), end(20_000_000, 1_000_000_000));
        assert!(RECEIVE.apply(Some(&near), Some(&far)).is_empty());
        let alone = RECEIVE.apply(Some(&near), None);
        assert!(alone[0].says.contains("10 Gbit/s of the link only up to an RTT of 8.00 ms"), "{}", alone[0].says);
        let small = RECEIVE.apply(Some(&end(262_144, 10_000_000_000)), Some(&far));
        assert!(small[0].says.contains("1 Gbit/s of the slower link"), "{}", small[0].says);
        let tuned = end(102_400_000, 10_000_000_000);
        assert!(RECEIVE.apply(Some(&tuned), Some(&tuned)).is_empty());
    }

    #[test]
    fn the_same_of_the_send_buffer() {
        let host = |most: i64, speed: i64| {
            found(
                &SEND,
                &[
                    ("tcp.wmem.max", Value::Integer(most), Unit::Bytes),
                    ("nic.speed", Value::Integer(speed), Unit::BitsPerSecond),
                ],
            )
        };
        // 1 Gbit/s for 100 ms are 12.5 MB, twice that 25 MB, the next power of two 32 MiB.
        let (says, command, _) = host(262_144, 1_000_000_000).expect("found");
        assert_eq!(
            says,
            "send buffers are small: 256 KiB is enough for the 1 Gbit/s of the link only up to an RTT of 1.05 ms"
        );
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_wmem='4096 16384 33554432'"));
        assert!(host(33_554_432, 1_000_000_000).is_none());
        assert!(host(262_144, 0).is_none(), "the speed of a virtual link is unknown");
        // 400 Gbit/s would need more than the kernel can be told.
        assert!(host(2_147_483_647, 400_000_000_000).is_none());
    }
}
