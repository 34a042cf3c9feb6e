//! The packets of a tunnel, bridge or VLAN do not fit the device below it. Source: RFC 4459 section 3; kernel
//! `net/ipv4/ip_tunnel_core.c`, `skb_tunnel_check_pmtu`; `net/bridge/br_forward.c`.

use crate::audit::rule::{Check, Found, Rule};
use crate::layers::too_large;
use narrows_model::{Setting, Severity, keys};

pub(super) const HAZARD: Rule = Rule {
    id: "layer-mtu",
    severity: Severity::Notice,
    key: keys::LAYERS,
    needs: &[
        keys::LAYERS,
        keys::LAYER_NAME,
        keys::LAYER_KIND,
        keys::LAYER_MTU,
        keys::LAYER_OVERHEAD,
    ],
    matters: "Full-size packets are fragmented below the tunnel, at the cost of CPU time and of twice the loss, or are dropped: \
              a bridge drops them without an ICMP message.",
    harmless: "Where the kernel tells each connection the smaller path MTU before the first full-size packet is lost.",
    check: Check::Host(|host| {
        let found = too_large(host)?;
        let mtu = Setting::Mtu { device: found.device, mtu: found.fits };
        Some(Found::new(found.says).fix(mtu.to_string()))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::layers::tests::stack;
    use narrows_model::Snapshot;

    #[test]
    fn a_tunnel_over_an_ordinary_link_is_named_with_the_mtu_that_fits() {
        let host = |mtu: i64| {
            let facts = stack(&[("vx0", "vxlan", mtu, 50), ("eth0", "physical", 1500, 0)]);
            HAZARD.apply(Some(&Snapshot { facts, ..Snapshot::default() }), None).pop()
        };
        let hazard = host(1500).expect("a hazard");
        assert!(hazard.says.starts_with("vx0 (vxlan) has an MTU of 1500 and its tunnel adds 50 bytes"), "{}", hazard.says);
        assert_eq!(hazard.command.as_deref(), Some("ip link set dev vx0 mtu 1450"));
        assert_eq!(host(1450), None);
    }
}
