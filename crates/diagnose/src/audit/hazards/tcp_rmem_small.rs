//! The largest receive buffer is below twice the bandwidth-delay product of the link at 100 ms.
//! Source: Documentation/networking/ip-sysctl.rst, tcp_rmem.

use super::buffers::{enough, needed, triple};
use crate::audit::rule::{Found, Look, Rule, sysctl_words};
use narrows_model::{Key, Severity, Unit};

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
              the link's rate. A path of 100 ms is assumed; `narrows diagnose` uses the one that is there.",
    harmless: "On shorter paths, below the link's rate, and with several connections at once.",
    look: Look::Host(|host| {
        let most = host.number("tcp.rmem.max")?;
        let needed = needed(host)?;
        let says = format!("receive buffers end early: {}", enough(host, most)?);
        (most < needed)
            .then(|| Found::new(says).mend(sysctl_words("net.ipv4.tcp_rmem", triple(host, "rmem", 131072, needed))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn too_small_for_the_link_at_100_ms() {
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
}
