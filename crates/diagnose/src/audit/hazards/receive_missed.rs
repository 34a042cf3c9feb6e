//! Received packets that were missed since boot: information, no accusation.
//! Source: `struct rtnl_link_stats64`, include/uapi/linux/if_link.h.

use crate::audit::rule::{Found, Look, Rule, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "receive-missed",
    severity: Severity::Info,
    key: "nic.counter.rx_missed_errors",
    needs: &[Key::new("nic.counter.rx_missed_errors", Unit::Count), Key::new("nic.counter.rx_packets", Unit::Count)],
    matters: "The card had no room for received packets at some time since boot: a short ring, or a CPU that was busy elsewhere.",
    harmless: "When the number does not grow under load.",
    look: Look::Host(|host| {
        let count = whole(host.number("nic.counter.rx_missed_errors")?);
        let of = host.number("nic.counter.rx_packets").map_or_else(String::new, |all| format!(" of {}", whole(all)));
        (count > 0).then(|| Found::new(format!("{count}{of} received packets were missed since boot")))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Severity, Unit, Value};

    #[test]
    fn counted_since_boot_is_information() {
        let host = |n: i64| {
            found(
                &HAZARD,
                &[
                    ("nic.counter.rx_missed_errors", Value::Integer(n), Unit::Count),
                    ("nic.counter.rx_packets", Value::Integer(265_555_257), Unit::Count),
                ],
            )
        };
        let (says, command, severity) = host(178_067).expect("found");
        assert_eq!(says, "178067 of 265555257 received packets were missed since boot");
        assert_eq!((command, severity), (None, Severity::Info));
        assert!(host(0).is_none());
    }
}
