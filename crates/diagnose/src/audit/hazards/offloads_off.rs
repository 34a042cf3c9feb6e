//! Offloads that save most of the CPU time are off. Source: Documentation/networking/segmentation-offloads.rst.

use crate::audit::rule::{Check, Found, Rule, device, is_off};
use narrows_model::{FactKey, Severity, Value, keys};

/// Key, the name of `ethtool -K`.
const OFFLOADS: &[(FactKey, &str)] = &[
    (keys::NIC_FEATURE_TSO, "tso"),
    (keys::NIC_FEATURE_GSO, "gso"),
    (keys::NIC_FEATURE_GRO, "gro"),
    (keys::NIC_FEATURE_TX_CHECKSUM, "tx"),
    (keys::NIC_FEATURE_RX_CHECKSUM, "rx"),
    (keys::NIC_FEATURE_SCATTER_GATHER, "sg"),
];

pub(super) const HAZARD: Rule = Rule {
    id: "offloads-off",
    severity: Severity::Notice,
    key: keys::NIC_FEATURE_TSO,
    needs: &[
        keys::NIC_FEATURE_TSO,
        keys::NIC_FEATURE_GSO,
        keys::NIC_FEATURE_GRO,
        keys::NIC_FEATURE_TX_CHECKSUM,
        keys::NIC_FEATURE_RX_CHECKSUM,
        keys::NIC_FEATURE_SCATTER_GATHER,
        keys::NIC_FEATURE_FIXED_OFF,
        keys::NIC_NAME,
    ],
    matters: "The kernel handles each packet of 1500 bytes by itself instead of 64 KiB at once: several times the CPU time \
              a byte.",
    harmless: "Where no core is near its limit, and on routers that switched LRO or GRO off on purpose.",
    check: Check::Host(|host| {
        // What the card cannot do is not a setting.
        let fixed = |name: &str| match host.get(keys::NIC_FEATURE_FIXED_OFF).map(|fact| &fact.value) {
            Some(Value::List(words)) => words.iter().any(|word| word == name),
            _ => false,
        };
        let off = OFFLOADS.iter().filter(|(key, name)| is_off(host, *key) && !fixed(name));
        let (rows, off): (Vec<FactKey>, Vec<&str>) = off.copied().unzip();
        let switch = off.iter().map(|name| format!("{name} on")).collect::<Vec<_>>().join(" ");
        (!off.is_empty()).then(|| {
            Found::new(format!("offloads are off: {}", off.join(", ")))
                .fix(format!("ethtool -K {} {switch}", device(host)))
                .rows(rows)
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn names_those_that_are_off() {
        let flags = |tso: bool, gro: bool| {
            found(
                &HAZARD,
                &[
                    ("nic.name", "eth2".into(), Unit::Text),
                    ("nic.feature.tso", Value::Flag(tso), Unit::Flag),
                    ("nic.feature.gro", Value::Flag(gro), Unit::Flag),
                ],
            )
        };
        let (says, command, _) = flags(false, false).expect("found");
        assert_eq!(says, "offloads are off: tso, gro");
        assert_eq!(command.as_deref(), Some("ethtool -K eth2 tso on gro on"));
        assert!(flags(true, true).is_none());
    }

    #[test]
    fn what_the_card_cannot_do_is_not_named() {
        let fixed = ["tso", "gso", "sg"].map(str::to_owned).to_vec();
        let host = |gro: bool| {
            found(
                &HAZARD,
                &[
                    ("nic.feature.tso", Value::Flag(false), Unit::Flag),
                    ("nic.feature.gro", Value::Flag(gro), Unit::Flag),
                    ("nic.feature.fixed_off", Value::List(fixed.clone()), Unit::Text),
                ],
            )
        };
        assert_eq!(host(false).expect("found").0, "offloads are off: gro");
        assert!(host(true).is_none());
    }
}
