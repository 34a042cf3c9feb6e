//! TCP remembers what earlier connections to a host met. Source: Documentation/networking/ip-sysctl.rst, tcp_no_metrics_save.

use crate::audit::rule::{Found, Look, Rule, is_off, sysctl};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "metrics-saved",
    severity: Severity::Info,
    key: "tcp.no_metrics_save",
    needs: &[Key::new("tcp.no_metrics_save", Unit::Flag)],
    matters: "A connection begins with the slow-start threshold that an earlier one to the same host ended with: after a bad one the next starts slowly, and repeated measurements depend on each other.",
    harmless: "For anything but measurements, as a rule; `ip tcp_metrics flush` forgets them once.",
    look: Look::Host(|host| {
        is_off(host, "tcp.no_metrics_save").then(|| {
            Found::new("TCP keeps metrics of earlier connections (the default)")
                .mend(sysctl("net.ipv4.tcp_no_metrics_save", 1))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn off_is_found_on_and_unknown_are_not() {
        let (_, command, _) = found(&HAZARD, &[("tcp.no_metrics_save", Value::Integer(0), Unit::Flag)]).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_no_metrics_save=1"));
        assert!(found(&HAZARD, &[("tcp.no_metrics_save", Value::Integer(1), Unit::Flag)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
