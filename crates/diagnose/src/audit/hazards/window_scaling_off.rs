//! Window scaling off: no window above 64 KiB. Source: RFC 7323 section 2.

use crate::audit::rule::{Found, Look, Rule, is_off, sysctl};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "window-scaling-off",
    severity: Severity::Warning,
    key: "tcp.window_scaling",
    needs: &[Key::new("tcp.window_scaling", Unit::Flag)],
    matters: "No TCP window of this host's connections can exceed 64 KiB: 15 Mbit/s at 35 ms, 5.2 Mbit/s at 100 ms.",
    harmless: "On paths of less than half a millisecond, where 64 KiB are enough for 1 Gbit/s.",
    look: Look::Host(|host| {
        is_off(host, "tcp.window_scaling")
            .then(|| Found::new("TCP window scaling is off").mend(sysctl("net.ipv4.tcp_window_scaling", 1)))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn off_is_found_on_and_unknown_are_not() {
        let (_, command, _) = found(&HAZARD, &[("tcp.window_scaling", Value::Flag(false), Unit::Flag)]).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_window_scaling=1"));
        assert!(found(&HAZARD, &[("tcp.window_scaling", Value::Flag(true), Unit::Flag)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
