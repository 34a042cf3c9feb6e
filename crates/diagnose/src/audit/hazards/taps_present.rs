//! Someone captures packets on the host. Source: /proc/net/packet, one line a socket; packet(7).

use crate::audit::rule::{Check, Found, Rule, whole};
use narrows_model::{Severity, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "taps-present",
    severity: Severity::Notice,
    key: keys::TAPS_COUNT,
    needs: &[keys::TAPS_COUNT],
    matters: "Each packet is cloned for each tap and passes its filter: at high packet rates that takes a good part of a core.",
    harmless: "Where the tap's filter takes a single protocol, as DHCP and LLDP daemons do.",
    check: Check::Host(|host| {
        let count = whole(host.number(keys::TAPS_COUNT)?);
        let verb = if count == 1 { "packet tap listens" } else { "packet taps listen" };
        (count > 0).then(|| Found::new(format!("{count} {verb}")).fix("ss -0pn"))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn none_is_nothing() {
        let host = |n: i64| found(&HAZARD, &[("taps.count", Value::Integer(n), Unit::Number)]);
        assert_eq!(host(1).expect("found").0, "1 packet tap listens");
        assert!(host(0).is_none());
    }
}
