//! The card uses fewer queues than it could. Source: ETHTOOL_MSG_CHANNELS_GET.

use crate::audit::rule::{Check, Found, Rule, device, whole};
use narrows_model::{Severity, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "channels-few",
    severity: Severity::Info,
    key: keys::NIC_CHANNELS_COMBINED,
    needs: &[
        keys::NIC_CHANNELS_COMBINED,
        keys::NIC_CHANNELS_COMBINED_MAX,
        keys::CPU_COUNT,
        keys::NIC_NAME,
    ],
    matters: "Flows share fewer cores on their way in: one core can be full of softirq work while others are idle.",
    harmless: "For a single flow, which stays on one queue in any case, and where no core is full.",
    check: Check::Host(|host| {
        let (now, most) = (host.number(keys::NIC_CHANNELS_COMBINED)?, host.number(keys::NIC_CHANNELS_COMBINED_MAX)?);
        let useful = whole(most.min(host.number(keys::CPU_COUNT)?));
        let now = whole(now);
        (now > 0 && now < useful).then(|| {
            Found::new(format!("{now} of {useful} useful channels are in use"))
                .fix(format!("ethtool -L {} combined {useful}", device(host)))
                .rows([keys::NIC_CHANNELS_COMBINED, keys::CPU_COUNT])
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
