//! The two ends use different congestion controls.

use crate::audit::rule::{Found, Look, Rule};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "congestion-control-differs",
    severity: Severity::Info,
    key: "tcp.congestion_control",
    needs: &[Key::new("tcp.congestion_control", Unit::Text)],
    matters: "The sender's one decides: the two directions answer to loss and delay in different ways.",
    harmless: "Where it is on purpose, or only one direction carries data.",
    look: Look::Pair(|client, server| {
        let (a, b) = (client.text("tcp.congestion_control")?, server.text("tcp.congestion_control")?);
        (a != b).then(|| Found::new(format!("the client sends with {a}, the server with {b}")))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::host;
    use narrows_model::Unit;

    #[test]
    fn only_where_they_differ() {
        let with = |name: &str| host(&[("tcp.congestion_control", name.into(), Unit::Text)]);
        assert_eq!(HAZARD.apply(Some(&with("cubic")), Some(&with("bbr"))).len(), 1);
        assert!(HAZARD.apply(Some(&with("cubic")), Some(&with("cubic"))).is_empty());
    }
}
