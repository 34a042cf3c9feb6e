//! The IOMMU takes back each buffer of a fast card at once. Source: Documentation/admin-guide/kernel-parameters.txt (`iommu.strict`,
//! `iommu.passthrough`), Documentation/ABI/testing/sysfs-kernel-iommu_groups.

use crate::audit::rule::{Check, Found, Rule};
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;
use narrows_model::{Severity, keys};

/// From this link speed on there are a million buffers a second and more to map.
const FROM_BPS: f64 = 25e9;
/// A domain whose mappings are invalidated at once; `DMA-FQ` gathers them, `identity` maps nothing.
const STRICT: &str = "DMA";

pub(super) const HAZARD: Rule = Rule {
    id: "iommu-strict",
    severity: Severity::Info,
    key: keys::NIC_IOMMU,
    needs: &[keys::NIC_IOMMU, keys::NIC_SPEED],
    matters: "Each buffer that the card wrote to or read from is unmapped at once, and the core waits for that: boot with iommu.strict=0, or with \
              iommu.passthrough=1 where all devices are trusted.",
    harmless: "Where no core is full, where the driver keeps its pages mapped, and where devices are not trusted: this protects memory from them.",
    check: Check::Host(|host| {
        let speed = host.number(keys::NIC_SPEED)?;
        (host.text(keys::NIC_IOMMU)? == STRICT && speed >= FROM_BPS).then(|| {
            Found::new(format!("the IOMMU unmaps each buffer at once (strict), on a link of {}", nominal(&bps(speed))))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn only_the_strict_mode_of_fast_cards() {
        let host = |mode: &str, speed: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.iommu", mode.into(), Unit::Text),
                    ("nic.speed", Value::Integer(speed), Unit::BitsPerSecond),
                ],
            )
        };
        let (says, _, _) = host("DMA", 25_000_000_000).expect("found");
        assert_eq!(says, "the IOMMU unmaps each buffer at once (strict), on a link of 25 Gbit/s");
        for (mode, speed) in [("DMA-FQ", 25_000_000_000), ("identity", 25_000_000_000), ("DMA", 10_000_000_000)] {
            assert!(host(mode, speed).is_none(), "{mode} {speed}");
        }
    }
}
