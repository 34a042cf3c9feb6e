//! The link runs at half duplex. Source: IEEE 802.3 clause 28 (a fixed full-duplex peer is detected as half).

use crate::audit::rule::{Found, Look, Rule, device};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "half-duplex",
    severity: Severity::Warning,
    key: "nic.duplex",
    needs: &[Key::new("nic.duplex", Unit::Text), Key::new("nic.name", Unit::Text)],
    matters: "Either the other side is fixed to full duplex, and frames collide late under load, or the link shares its \
              rate between both directions.",
    harmless: "On a hub, or a radio that only reports itself so.",
    look: Look::Host(|host| {
        let half = host.text("nic.duplex")?.eq_ignore_ascii_case("half");
        half.then(|| Found::new("the link runs at half duplex").mend(format!("ethtool -s {} autoneg on", device(host))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::Unit;

    #[test]
    fn half_only() {
        assert!(found(&HAZARD, &[("nic.duplex", "half".into(), Unit::Text)]).is_some());
        assert!(found(&HAZARD, &[("nic.duplex", "full".into(), Unit::Text)]).is_none());
        assert!(found(&HAZARD, &[("nic.duplex", "unknown".into(), Unit::Text)]).is_none());
    }
}
