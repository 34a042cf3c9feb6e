//! Segments of a fast card end at 64 KiB, though its driver takes larger ones. Source: BIG TCP, Documentation/networking of Linux 6.3
//! (`gso_max_size`, `gro_max_size` and their `_ipv4` forms, ip-link(8)).

use crate::audit::rule::{Check, Found, Rule, device, whole};
use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, bytes};
use narrows_model::{Severity, keys};

/// From this link speed on the cost of each segment counts: at 64 KiB, 190,000 a second.
const FROM_BPS: f64 = 100e9;
/// What segments may have without it.
const USUAL: f64 = 65_536.0;
/// What measurements of its authors use: a segment of 17 fragments of pages has room for its headers.
const LARGE: f64 = 185_000.0;

pub(super) const HAZARD: Rule = Rule {
    id: "big-tcp-off",
    severity: Severity::Info,
    key: keys::NIC_GSO_MAX,
    needs: &[
        keys::NIC_GSO_MAX,
        keys::NIC_GRO_MAX,
        keys::NIC_TSO_MAX,
        keys::NIC_SPEED,
        keys::NIC_NAME,
    ],
    matters: "The kernel's work of a segment is paid three times as often as with segments of 185 kB, on both ends.",
    harmless: "Where no core is full, or where packets are small in any case. Programs that capture packets see the large segments.",
    check: Check::Host(|host| {
        let (now, most) = (host.number(keys::NIC_GSO_MAX)?, host.number(keys::NIC_TSO_MAX)?.min(LARGE));
        let speed = host.number(keys::NIC_SPEED)?;
        let received = host.number(keys::NIC_GRO_MAX).unwrap_or(now);
        (speed >= FROM_BPS && now.min(received) <= USUAL && most > USUAL).then(|| {
            let (most, speed) = (whole(most), nominal(&bps(speed)));
            let sizes = ["gso", "gro", "gso_ipv4", "gro_ipv4"].map(|size| format!("{size}_max_size {most}"));
            Found::new(format!("segments have at most {} on a link of {speed}, the driver takes more", bytes(whole(now.min(received)))))
                .fix(format!("ip link set dev {} {}", device(host), sizes.join(" ")))
                .rows([keys::NIC_GSO_MAX, keys::NIC_GRO_MAX])
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn only_of_fast_cards_whose_driver_takes_more() {
        let host = |speed: i64, now: i64, most: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.name", "eth0".into(), Unit::Text),
                    ("nic.gso_max", Value::Integer(now), Unit::Bytes),
                    ("nic.gro_max", Value::Integer(now), Unit::Bytes),
                    ("nic.tso_max", Value::Integer(most), Unit::Bytes),
                    ("nic.speed", Value::Integer(speed), Unit::BitsPerSecond),
                ],
            )
        };
        let (says, fix, _) = host(100_000_000_000, 65_536, 524_280).expect("found");
        assert_eq!(says, "segments have at most 64 KiB on a link of 100 Gbit/s, the driver takes more");
        let wanted = "ip link set dev eth0 gso_max_size 185000 gro_max_size 185000 gso_ipv4_max_size 185000 gro_ipv4_max_size 185000";
        assert_eq!(fix.as_deref(), Some(wanted));
        assert!(host(25_000_000_000, 65_536, 524_280).is_none());
        assert!(host(100_000_000_000, 185_000, 524_280).is_none());
        assert!(host(100_000_000_000, 65_536, 65_536).is_none());
    }
}
