//! The ring of received packets is below what the card can do. Source: ETHTOOL_MSG_RINGS_GET.

use crate::audit::rule::{Found, Look, Rule, device, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "rx-ring-small",
    severity: Severity::Notice,
    key: "nic.ring.rx",
    needs: &[
        Key::new("nic.ring.rx", Unit::Number),
        Key::new("nic.ring.rx.max", Unit::Number),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "A burst that arrives while the CPU is busy elsewhere overruns a short ring and is lost before the kernel sees it (rx_missed, rx_fifo).",
    harmless: "Where the card counts no missed packets; a longer ring also means more delay when it is full.",
    look: Look::Host(|host| {
        let (now, most) = (whole(host.number("nic.ring.rx")?), whole(host.number("nic.ring.rx.max")?));
        (now < most).then(|| {
            Found::new(format!("the rx ring has {now} of {most} entries"))
                .mend(format!("ethtool -G {} rx {most}", device(host)))
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
                    ("nic.ring.rx", Value::Integer(now), Unit::Number),
                    ("nic.ring.rx.max", Value::Integer(most), Unit::Number),
                ],
            )
        };
        let (says, command, _) = host(256, 4096).expect("found");
        assert_eq!(says, "the rx ring has 256 of 4096 entries");
        assert_eq!(command.as_deref(), Some("ethtool -G eth1 rx 4096"));
        assert!(host(512, 512).is_none());
    }
}
