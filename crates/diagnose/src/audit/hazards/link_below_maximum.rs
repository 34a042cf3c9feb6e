//! The link runs slower than the card can.

use crate::audit::rule::{Found, Look, Rule, device};
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "link-below-maximum",
    severity: Severity::Warning,
    key: "nic.speed",
    needs: &[
        Key::new("nic.speed", Unit::BitsPerSecond),
        Key::new("nic.speed.max", Unit::BitsPerSecond),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "A damaged pair in a cable, an old switch port or a fixed setting holds the link to a fraction of its speed.",
    harmless: "Where the other side of the cable can do no more.",
    look: Look::Host(|host| {
        let (now, most) = (host.number("nic.speed")?, host.number("nic.speed.max")?);
        let words = |rate: f64| nominal(&bps(rate));
        (now > 0.0 && now < most).then(|| {
            Found::new(format!("the link runs at {}, the card can do {}", words(now), words(most)))
                .mend(format!("ethtool -s {} autoneg on", device(host)))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn a_gigabit_card_at_100() {
        let host = |now: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.speed", Value::Integer(now), Unit::BitsPerSecond),
                    ("nic.speed.max", Value::Integer(1_000_000_000), Unit::BitsPerSecond),
                ],
            )
        };
        assert_eq!(host(100_000_000).expect("found").0, "the link runs at 100 Mbit/s, the card can do 1 Gbit/s");
        assert!(host(1_000_000_000).is_none());
        assert!(host(0).is_none());
    }
}
