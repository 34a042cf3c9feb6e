//! Selective acknowledgements off: several losses in one window take one round trip each. Source: RFC 2018.

use crate::audit::rule::{Found, Look, Rule, is_off, sysctl};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "sack-off",
    severity: Severity::Warning,
    key: "tcp.sack",
    needs: &[Key::new("tcp.sack", Unit::Flag)],
    matters: "After a loss the sender cannot tell what arrived: it repairs one segment a round trip, or waits for a timeout.",
    harmless: "On a path without any loss.",
    look: Look::Host(|host| {
        is_off(host, "tcp.sack")
            .then(|| Found::new("TCP selective acknowledgements are off").mend(sysctl("net.ipv4.tcp_sack", 1)))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn off_is_found_on_and_unknown_are_not() {
        let (_, command, _) = found(&HAZARD, &[("tcp.sack", Value::Integer(0), Unit::Flag)]).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_sack=1"));
        assert!(found(&HAZARD, &[("tcp.sack", Value::Integer(1), Unit::Flag)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
