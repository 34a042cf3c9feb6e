//! TCP timestamps off. Source: RFC 7323 sections 4 and 5.

use crate::audit::rule::{Found, Look, Rule, is_off, sysctl};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "timestamps-off",
    severity: Severity::Notice,
    key: "tcp.timestamps",
    needs: &[Key::new("tcp.timestamps", Unit::Flag)],
    matters: "Round-trip times are measured more coarsely, and above some Gbit/s an old segment can pass for a new one when sequence numbers wrap (PAWS).",
    harmless: "Below some Gbit/s; it even saves 12 bytes in each segment.",
    look: Look::Host(|host| {
        is_off(host, "tcp.timestamps")
            .then(|| Found::new("TCP timestamps are off").mend(sysctl("net.ipv4.tcp_timestamps", 1)))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn off_is_found_on_and_unknown_are_not() {
        let (_, command, _) = found(&HAZARD, &[("tcp.timestamps", Value::Integer(0), Unit::Flag)]).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_timestamps=1"));
        assert!(found(&HAZARD, &[("tcp.timestamps", Value::Integer(1), Unit::Flag)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
