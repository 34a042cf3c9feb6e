//! A queueing discipline limits the rate of what the host sends.

use crate::audit::rule::{Found, Look, Rule, device};
use narrows_model::words::show::nominal;
use narrows_model::words::units::bps;
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "qdisc-shapes",
    severity: Severity::Notice,
    key: "qdisc.rate",
    needs: &[
        Key::new("qdisc.rate", Unit::BitsPerSecond),
        Key::new("qdisc.root.kind", Unit::Text),
        Key::new("nic.name", Unit::Text),
    ],
    matters: "Nothing leaves the host faster than this, whatever the link could carry.",
    harmless: "Where it is on purpose, for instance a little below a slower link behind the host.",
    look: Look::Host(|host| {
        let rate = host.number("qdisc.rate").filter(|rate| *rate > 0.0)?;
        let kind = host.text("qdisc.root.kind").unwrap_or("a queueing discipline");
        let says = format!("{kind} on {} limits sending to {}", device(host), nominal(&bps(rate)));
        Some(Found::new(says).mend(format!("tc -s qdisc show dev {}", device(host))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn a_token_bucket() {
        let facts = [
            ("nic.name", "eth0".into(), Unit::Text),
            ("qdisc.root.kind", "tbf".into(), Unit::Text),
            ("qdisc.rate", Value::Integer(100_000_000), Unit::BitsPerSecond),
        ];
        assert_eq!(found(&HAZARD, &facts).expect("found").0, "tbf on eth0 limits sending to 100 Mbit/s");
        assert!(found(&HAZARD, &facts[..2]).is_none());
    }
}
