//! The card sits on a narrower or slower bus than it is made for. Source: PCI Express Base Specification, Link Status and
//! Link Capabilities, as /sys/bus/pci shows them.

use crate::audit::rule::{Check, Found, Rule};
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;
use narrows_model::{Severity, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "pcie-narrow",
    severity: Severity::Info,
    key: keys::PCIE_BANDWIDTH,
    needs: &[
        keys::PCIE_BANDWIDTH,
        keys::PCIE_BANDWIDTH_MAX,
        keys::NIC_SPEED,
    ],
    matters: "Every byte crosses the bus: where it carries less than the link, it limits both directions. Use another \
              slot; sometimes a firmware setting (bifurcation, generation) helps.",
    harmless: "Where the bus still carries clearly more than the link's speed.",
    check: Check::Host(|host| {
        let (now, most) = (host.number(keys::PCIE_BANDWIDTH)?, host.number(keys::PCIE_BANDWIDTH_MAX)?);
        if now >= most * 0.99 {
            return None;
        }
        let words = |rate: f64| nominal(&bps(rate));
        let found = Found::new(format!("the bus carries {}, the card could use {}", words(now), words(most)));
        // Headers of the bus's own packets take about a sixth of small transfers.
        match host.number(keys::NIC_SPEED) {
            Some(link) if now < link * 1.2 => {
                let says = format!("{}; the link has {}", found.says, words(link));
                let rows = [keys::PCIE_BANDWIDTH, keys::NIC_SPEED];
                Some(Found::new(says).severity(Severity::Warning).rows(rows))
            }
            _ => Some(found),
        }
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Severity, Unit, Value};

    #[test]
    fn an_eight_lane_card_in_a_four_lane_slot() {
        let host = |now: i64, most: i64, link: i64| {
            found(
                &HAZARD,
                &[
                    ("pcie.bandwidth", Value::Integer(now), Unit::BitsPerSecond),
                    ("pcie.bandwidth.max", Value::Integer(most), Unit::BitsPerSecond),
                    ("nic.speed", Value::Integer(link), Unit::BitsPerSecond),
                ],
            )
        };
        let (says, _, severity) = host(8_000_000_000, 16_000_000_000, 10_000_000_000).expect("found");
        assert_eq!(says, "the bus carries 8 Gbit/s, the card could use 16 Gbit/s; the link has 10 Gbit/s");
        assert_eq!(severity, Severity::Warning);
        let (_, _, severity) = host(8_000_000_000, 16_000_000_000, 1_000_000_000).expect("found");
        assert_eq!(severity, Severity::Info);
        assert!(host(16_000_000_000, 16_000_000_000, 10_000_000_000).is_none());
    }
}
