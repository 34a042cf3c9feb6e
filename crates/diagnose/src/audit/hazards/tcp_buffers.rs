//! The largest receive or send buffer is too small for the slower link at 40 ms.
//! Source: Documentation/networking/ip-sysctl.rst, tcp_rmem and tcp_wmem.

use crate::audit::rule::{Check, Found, Rule, whole};
use narrows_model::host::buffers::{self, TcpBuffer};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Severity, Snapshot, keys};

/// The RTT below which a small buffer is reported. The audit measures no path; this is one across a continent: hosts tuned
/// for such a path held 41 ms of 10 Gbit/s, and 80 ms of 1 Gbit/s.
const USUAL_RTT_S: f64 = 0.04;
/// The RTT that the suggested buffer suffices for: across an ocean.
const AMPLE_RTT_S: f64 = 0.1;
/// The kernel's limits are signed 32-bit numbers.
const MAX_BYTES: f64 = 2_147_483_647.0;

pub(super) const RECEIVE: Rule = Rule {
    id: "tcp-rmem-small",
    severity: Severity::Notice,
    key: keys::TCP_RMEM_MIN,
    needs: &[keys::TCP_RMEM_MAX, keys::TCP_RMEM_MIN, keys::TCP_RMEM_DEFAULT, keys::NIC_SPEED],
    check: Check::Each(|host, peer| small(&buffers::RECEIVE, "receive", host, peer)),
    matters: "One connection cannot have more in flight than the receiver's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the real one.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
};

pub(super) const SEND: Rule = Rule {
    id: "tcp-wmem-small",
    severity: Severity::Notice,
    key: keys::TCP_WMEM_MIN,
    needs: &[keys::TCP_WMEM_MAX, keys::TCP_WMEM_MIN, keys::TCP_WMEM_DEFAULT, keys::NIC_SPEED],
    check: Check::Each(|host, peer| small(&buffers::SEND, "send", host, peer)),
    matters: "One connection cannot have more in flight than the sender's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the real one.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
};

/// The finding where the largest buffer is too small for the rate that it meets: that of the link or, where the other
/// end is known, of the slower one.
fn small(buffer: &TcpBuffer, word: &str, host: &Snapshot, peer: Option<&Snapshot>) -> Option<Found> {
    let max = buffer.max(host)?;
    let own = speed(host)?;
    let rate = peer.and_then(speed).map_or(own, |other| own.min(other));
    let needed = |rtt_s: f64| buffer.holds(rate, rtt_s).min(MAX_BYTES);
    if max >= needed(USUAL_RTT_S) {
        return None;
    }
    let says = format!(
        "{word} buffers are small: {} is enough for the {} of the {} only up to an RTT of {}",
        bytes(whole(max)),
        narrows_model::words::show::nominal(&bps(rate)),
        if rate < own { "slower link" } else { "link" },
        micros(whole(max / buffer.holds(rate, 1.0) * 1e6))
    );
    let enough = whole(needed(AMPLE_RTT_S).max(1.0)).next_power_of_two().min(whole(MAX_BYTES));
    let fix = buffer.setting(Some(host), enough).to_string();
    Some(Found::new(says).fix(fix).rows([buffer.words[2], keys::NIC_SPEED]))
}

fn speed(host: &Snapshot) -> Option<f64> {
    host.number(keys::NIC_SPEED).filter(|speed| *speed > 0.0)
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
        // 1 Gbit/s for 100 ms are 12.5 MB, with a half for what waits to be written 19 MB, the next power of two 32 MiB.
        let (says, command, _) = host(262_144, 1_000_000_000).expect("found");
        assert_eq!(
            says,
            "send buffers are small: 256 KiB is enough for the 1 Gbit/s of the link only up to an RTT of 1.40 ms"
        );
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_wmem='4096 16384 33554432'"));
        assert!(host(33_554_432, 1_000_000_000).is_none());
        assert!(host(262_144, 0).is_none(), "the speed of a virtual link is unknown");
        // 400 Gbit/s would need more than the kernel can be told.
        assert!(host(2_147_483_647, 400_000_000_000).is_none());
    }
}
