//! The path carries smaller packets than the interface. Source: RFC 1191, RFC 8201; RFC 4821 for the probing.

use crate::audit::rule::{Check, Found, Rule, is_off, sysctl, whole};
use narrows_model::{Severity, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "path-mtu-below-interface",
    severity: Severity::Info,
    key: keys::PATH_MTU,
    needs: &[
        keys::PATH_MTU,
        keys::NIC_MTU,
        keys::TCP_MTU_PROBING,
    ],
    matters: "Each connection learns it from ICMP messages; where a filter drops them, full-size segments vanish and the \
              connection stalls after its first bytes.",
    harmless: "Where ICMP passes, or with TCP's own MTU probing (tcp_mtu_probing).",
    check: Check::Host(|host| {
        let (path, nic) = (whole(host.number(keys::PATH_MTU)?), whole(host.number(keys::NIC_MTU)?));
        let says = (path < nic).then(|| format!("the path carries {path} B, the interface {nic} B"))?;
        let found = Found::new(says).rows([keys::PATH_MTU, keys::NIC_MTU]);
        Some(if is_off(host, keys::TCP_MTU_PROBING) { found.fix(sysctl("net.ipv4.tcp_mtu_probing", 1)) } else { found })
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn a_jumbo_host_behind_an_ordinary_path() {
        let host = |path: i64, probing: i64| {
            found(
                &HAZARD,
                &[
                    ("path.mtu", Value::Integer(path), Unit::Bytes),
                    ("nic.mtu", Value::Integer(9000), Unit::Bytes),
                    ("tcp.mtu_probing", Value::Integer(probing), Unit::Number),
                ],
            )
        };
        let (says, command, _) = host(1500, 0).expect("found");
        assert_eq!(says, "the path carries 1500 B, the interface 9000 B");
        assert_eq!(command.as_deref(), Some("sysctl -w net.ipv4.tcp_mtu_probing=1"));
        assert_eq!(host(1500, 1).expect("found").1, None);
        assert!(host(9000, 0).is_none());
    }
}
