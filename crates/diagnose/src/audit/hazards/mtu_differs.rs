//! The two ends have different MTUs.

use crate::audit::rule::{Found, Look, Rule, whole};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "mtu-differs",
    severity: Severity::Notice,
    key: "nic.mtu",
    needs: &[Key::new("nic.mtu", Unit::Bytes)],
    matters: "On one segment the larger packets are lost without a word. Across routers TCP agrees on the smaller one, but \
              datagrams are cut in pieces or need ICMP, which a filter may drop.",
    harmless: "Across routers, for TCP, where ICMP passes.",
    look: Look::Pair(|client, server| {
        let (a, b) = (whole(client.number("nic.mtu")?), whole(server.number("nic.mtu")?));
        (a != b).then(|| Found::new(format!("the MTU is {a} B on the client and {b} B on the server")))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::host;
    use narrows_model::{Unit, Value};

    #[test]
    fn only_where_both_are_known_and_differ() {
        let with = |mtu: i64| host(&[("nic.mtu", Value::Integer(mtu), Unit::Bytes)]);
        let found = HAZARD.apply(Some(&with(1500)), Some(&with(9000)));
        assert_eq!(found[0].says, "the MTU is 1500 B on the client and 9000 B on the server");
        assert!(HAZARD.apply(Some(&with(1500)), Some(&with(1500))).is_empty());
        assert!(HAZARD.apply(Some(&with(1500)), Some(&host(&[]))).is_empty());
    }
}
