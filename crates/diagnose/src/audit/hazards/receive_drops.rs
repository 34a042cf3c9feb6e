//! Received packets that were dropped since boot: information, no accusation.
//! Source: `struct rtnl_link_stats64`, include/uapi/linux/if_link.h.

use crate::audit::rule::{Found, Look, Rule, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "receive-drops",
    severity: Severity::Info,
    key: "nic.counter.rx_dropped",
    needs: &[Key::new("nic.counter.rx_dropped", Unit::Count), Key::new("nic.counter.rx_packets", Unit::Count)],
    matters: "The host dropped received packets at some time since boot; whether it still does, a diagnosis counts under load.",
    harmless: "The counter also holds packets of protocols and VLANs that nobody asked for, from all the time since boot: on its own it accuses nobody.",
    look: Look::Host(|host| {
        let count = whole(host.number("nic.counter.rx_dropped")?);
        let of = host.number("nic.counter.rx_packets").map_or_else(String::new, |all| format!(" of {}", whole(all)));
        (count > 0).then(|| Found::new(format!("{count}{of} received packets were dropped since boot")))
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
                    ("nic.counter.rx_dropped", Value::Integer(n), Unit::Count),
                    ("nic.counter.rx_packets", Value::Integer(265_555_257), Unit::Count),
                ],
            )
        };
        let (says, command, severity) = host(178_067).expect("found");
        assert_eq!(says, "178067 of 265555257 received packets were dropped since boot");
        assert_eq!((command, severity), (None, Severity::Info));
        assert!(host(0).is_none());
    }
}
