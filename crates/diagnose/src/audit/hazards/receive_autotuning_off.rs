//! Receive buffers that the kernel does not tune. Source: Documentation/networking/ip-sysctl.rst, tcp_moderate_rcvbuf.

use crate::audit::rule::{Found, Look, Rule, is_off, sysctl};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "receive-autotuning-off",
    severity: Severity::Warning,
    key: "tcp.moderate_rcvbuf",
    needs: &[Key::new("tcp.moderate_rcvbuf", Unit::Flag)],
    matters: "Receive buffers stay at the default of tcp_rmem, whatever its maximum says: the window is too small on any long path.",
    harmless: "For programs that set SO_RCVBUF themselves, and on paths of a millisecond or less.",
    look: Look::Host(|host| {
        is_off(host, "tcp.moderate_rcvbuf").then(|| {
            Found::new("receive buffers are not tuned by the kernel").mend(sysctl("net.ipv4.tcp_moderate_rcvbuf", 1))
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
        let (_, command, _) = found(&HAZARD, &[("tcp.moderate_rcvbuf", Value::Integer(0), Unit::Flag)]).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_moderate_rcvbuf=1"));
        assert!(found(&HAZARD, &[("tcp.moderate_rcvbuf", Value::Integer(1), Unit::Flag)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
