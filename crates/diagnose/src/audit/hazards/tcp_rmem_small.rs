//! The largest receive buffer is below twice the bandwidth-delay product of the slower link at 40 ms.
//! Source: Documentation/networking/ip-sysctl.rst, tcp_rmem.

use super::buffers::Buffer;
use crate::audit::rule::{Look, Rule};
use narrows_model::{Key, Severity, Unit};

const BUFFER: Buffer = Buffer { name: "rmem", word: "receive", default: 131072 };

pub(super) const HAZARD: Rule = Rule {
    id: "tcp-rmem-small",
    severity: Severity::Notice,
    key: "tcp.rmem.min",
    needs: &[
        Key::new("tcp.rmem.max", Unit::Bytes),
        Key::new("tcp.rmem.min", Unit::Bytes),
        Key::new("tcp.rmem.default", Unit::Bytes),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    matters: "One connection cannot have more in flight than the receiver's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the one that is there.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
    look: Look::Each(|host, peer| BUFFER.small(host, peer)),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::{found, host};
    use narrows_model::{Unit, Value};

    #[test]
    fn too_small_for_the_link_at_40_ms() {
        let host = |most: i64, speed: i64| {
            found(
                &HAZARD,
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
            "receive buffers end early: 256 KiB is enough for the 1 Gbit/s of the link up to an RTT of 1.05 ms"
        );
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"));
        assert!(host(33_554_432, 1_000_000_000).is_none());
        assert!(host(262_144, 0).is_none(), "the speed of a virtual link is not known");
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
        assert!(HAZARD.apply(Some(&near), Some(&far)).is_empty());
        let alone = HAZARD.apply(Some(&near), None);
        assert!(alone[0].says.contains("10 Gbit/s of the link up to an RTT of 8.00 ms"), "{}", alone[0].says);
        let small = HAZARD.apply(Some(&end(262_144, 10_000_000_000)), Some(&far));
        assert!(small[0].says.contains("1 Gbit/s of the slower link"), "{}", small[0].says);
        let tuned = end(102_400_000, 10_000_000_000);
        assert!(HAZARD.apply(Some(&tuned), Some(&tuned)).is_empty());
    }
}
