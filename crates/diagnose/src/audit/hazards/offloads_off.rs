//! Offloads that save most of the CPU time are off. Source: Documentation/networking/segmentation-offloads.rst.

use crate::audit::rule::{Check, Found, Rule, device, is_off};
use narrows_model::{Key, Severity, Unit, Value};

/// Key, the name of `ethtool -K`.
const OFFLOADS: &[(&str, &str)] = &[
    ("nic.feature.tso", "tso"),
    ("nic.feature.gso", "gso"),
    ("nic.feature.gro", "gro"),
    ("nic.feature.tx_checksum", "tx"),
    ("nic.feature.rx_checksum", "rx"),
    ("nic.feature.scatter_gather", "sg"),
];

pub(super) const HAZARD: Rule = Rule {
    id: "offloads-off",
    severity: Severity::Notice,
    key: "nic.feature.tso",
    needs: &[
        Key::new("nic.feature.tso", Unit::Flag),
        Key::new("nic.feature.gso", Unit::Flag),
        Key::new("nic.feature.gro", Unit::Flag),
        Key::new("nic.feature.tx_checksum", Unit::Flag),
        Key::new("nic.feature.rx_checksum", Unit::Flag),
        Key::new("nic.feature.scatter_gather", Unit::Flag),
        Key::new("nic.feature.fixed_off", Unit::Text),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "The kernel handles each packet of 1500 bytes by itself instead of 64 KiB at once: several times the CPU time \
              a byte.",
    harmless: "Where no core is near its limit, and on routers that switched LRO or GRO off on purpose.",
    check: Check::Host(|host| {
        // What the card cannot do is no setting of anyone.
        let fixed = |name: &str| match host.get("nic.feature.fixed_off").map(|fact| &fact.value) {
            Some(Value::List(words)) => words.iter().any(|word| word == name),
            _ => false,
        };
        let off = OFFLOADS.iter().filter(|(key, name)| is_off(host, key) && !fixed(name));
        let off: Vec<&str> = off.map(|(_, name)| *name).collect();
        let switch = off.iter().map(|name| format!("{name} on")).collect::<Vec<_>>().join(" ");
        (!off.is_empty()).then(|| {
            Found::new(format!("offloads are off: {}", off.join(", ")))
                .fix(format!("ethtool -K {} {switch}", device(host)))
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
