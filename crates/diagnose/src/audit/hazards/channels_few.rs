//! The card uses fewer queues than it could. Source: ETHTOOL_MSG_CHANNELS_GET.

use crate::audit::rule::{Check, Found, Rule, device, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "channels-few",
    severity: Severity::Info,
    key: "nic.channels.combined",
    needs: &[
        Key::new("nic.channels.combined", Unit::Number),
        Key::new("nic.channels.combined.max", Unit::Number),
        Key::new("cpu.count", Unit::Number),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "Flows share fewer cores on their way in: one core can be full of softirq work while others idle.",
    harmless: "For a single flow, which stays on one queue in any case, and where no core is full.",
    check: Check::Host(|host| {
        let (now, most) = (host.number("nic.channels.combined")?, host.number("nic.channels.combined.max")?);
        let useful = whole(most.min(host.number("cpu.count")?));
        let now = whole(now);
        (now > 0 && now < useful).then(|| {
            Found::new(format!("{now} of {useful} useful channels are in use"))
                .fix(format!("ethtool -L {} combined {useful}", device(host)))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn no_more_than_there_are_cores() {
        let host = |now: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.name", "eth0".into(), Unit::Text),
                    ("nic.channels.combined", Value::Integer(now), Unit::Number),
                    ("nic.channels.combined.max", Value::Integer(63), Unit::Number),
                    ("cpu.count", Value::Integer(8), Unit::Number),
                ],
            )
        };
        assert_eq!(host(1).expect("found").1.as_deref(), Some("ethtool -L eth0 combined 8"));
        assert!(host(8).is_none());
    }
}
