//! The table of tracked connections is nearly full. Source: Documentation/networking/nf_conntrack-sysctl.rst.

use crate::audit::rule::{Check, Found, Rule, sysctl, whole};
use narrows_model::{Severity, keys};

/// From this share on a burst of new connections can fill it.
const NEARLY: f64 = 0.8;

pub(super) const HAZARD: Rule = Rule {
    id: "conntrack-nearly-full",
    severity: Severity::Warning,
    key: keys::CONNTRACK_COUNT,
    needs: &[keys::CONNTRACK_COUNT, keys::CONNTRACK_MAX],
    matters: "Once it is full, packets of new connections are dropped, established ones go on: the host seems to hang for \
              some users only.",
    harmless: "Never for long.",
    check: Check::Host(|host| {
        let (count, most) = (host.number(keys::CONNTRACK_COUNT)?, host.number(keys::CONNTRACK_MAX)?);
        (most > 0.0 && count >= NEARLY * most).then(|| {
            Found::new(format!("{} of {} connections are tracked", whole(count), whole(most)))
                .fix(sysctl("net.netfilter.nf_conntrack_max", whole(most).saturating_mul(2)))
        })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn from_four_fifths_on() {
        let host = |count: i64, most: i64| {
            found(
                &HAZARD,
                &[
                    ("conntrack.count", Value::Integer(count), Unit::Number),
                    ("conntrack.max", Value::Integer(most), Unit::Number),
                ],
            )
        };
        let (_, command, _) = host(65_000, 65_536).expect("found");
        assert_eq!(command.as_deref(), Some("sysctl -w net.netfilter.nf_conntrack_max=131072"));
        assert!(host(100, 65_536).is_none());
        assert!(host(0, 0).is_none());
    }
}
