//! The largest send buffer is below twice the bandwidth-delay product of the slower link at 40 ms.
//! Source: Documentation/networking/ip-sysctl.rst, tcp_wmem.

use super::buffers::Buffer;
use crate::audit::rule::{Look, Rule};
use narrows_model::{Key, Severity, Unit};

const BUFFER: Buffer = Buffer { name: "wmem", word: "send", default: 16384 };

pub(super) const HAZARD: Rule = Rule {
    id: "tcp-wmem-small",
    severity: Severity::Notice,
    key: "tcp.wmem.min",
    needs: &[
        Key::new("tcp.wmem.max", Unit::Bytes),
        Key::new("tcp.wmem.min", Unit::Bytes),
        Key::new("tcp.wmem.default", Unit::Bytes),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    matters: "One connection cannot have more in flight than the sender's buffer holds: on a longer path it stays below \
              the link's rate. A path of 40 ms is assumed; `narrows diagnose` uses the one that is there.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
    look: Look::Each(|host, peer| BUFFER.small(host, peer)),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn too_small_for_the_link_at_40_ms() {
        let host = |most: i64, speed: i64| {
            found(
                &HAZARD,
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
            "send buffers end early: 256 KiB is enough for the 1 Gbit/s of the link up to an RTT of 1.05 ms"
        );
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_wmem='4096 16384 33554432'"));
        assert!(host(33_554_432, 1_000_000_000).is_none());
        assert!(host(262_144, 0).is_none(), "the speed of a virtual link is not known");
        // 400 Gbit/s would need more than the kernel can be told.
        assert!(host(2_147_483_647, 400_000_000_000).is_none());
    }
}
