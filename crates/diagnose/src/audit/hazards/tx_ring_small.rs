//! The ring of sent packets is below what the card can do. Source: ETHTOOL_MSG_RINGS_GET.

use crate::audit::rule::{Found, Look, Rule, device, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "tx-ring-small",
    severity: Severity::Info,
    key: "nic.ring.tx",
    needs: &[
        Key::new("nic.ring.tx", Unit::Number),
        Key::new("nic.ring.tx.max", Unit::Number),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "Senders stop and wait for the card more often.",
    harmless: "Nearly always: byte queue limits keep the ring short on purpose.",
    look: Look::Host(|host| {
        let (now, most) = (whole(host.number("nic.ring.tx")?), whole(host.number("nic.ring.tx.max")?));
        (now < most).then(|| {
            Found::new(format!("the tx ring has {now} of {most} entries"))
                .mend(format!("ethtool -G {} tx {most}", device(host)))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn below_the_maximum() {
        let host = |now: i64, most: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.name", "eth1".into(), Unit::Text),
                    ("nic.ring.tx", Value::Integer(now), Unit::Number),
                    ("nic.ring.tx.max", Value::Integer(most), Unit::Number),
                ],
            )
        };
        let (says, command, _) = host(256, 4096).expect("found");
        assert_eq!(says, "the tx ring has 256 of 4096 entries");
        assert_eq!(command.as_deref(), Some("ethtool -G eth1 tx 4096"));
        assert!(host(512, 512).is_none());
    }
}
