//! Autonegotiation is off. Source: IEEE 802.3 clause 28.

use crate::audit::rule::{Check, Found, Rule, device, is_off};
use narrows_model::{Severity, keys};

/// Interfaces with no cable to negotiate over.
const WITHOUT_CABLE: &[&str] =
    &["veth", "tun", "tap", "bridge", "bond", "vlan", "loopback", "dummy", "virtio_net", "wireguard"];

pub(super) const HAZARD: Rule = Rule {
    id: "autonegotiation-off",
    severity: Severity::Notice,
    key: keys::NIC_AUTONEG,
    needs: &[
        keys::NIC_AUTONEG,
        keys::NIC_KIND,
        keys::NIC_DRIVER,
        keys::NIC_SPEED,
        keys::NIC_NAME,
    ],
    matters: "A peer that negotiates assumes half duplex if this side does not; 1000BASE-T requires autonegotiation.",
    harmless: "If both sides are set to the same fixed mode, as is usual from 10 Gbit/s on over fibre, and on virtual interfaces.",
    check: Check::Host(|host| {
        let virtual_one = |key| host.text(key).is_some_and(|word| WITHOUT_CABLE.contains(&word));
        let fast = host.number(keys::NIC_SPEED).is_some_and(|speed| speed >= 10e9);
        (is_off(host, keys::NIC_AUTONEG) && !virtual_one(keys::NIC_KIND) && !virtual_one(keys::NIC_DRIVER) && !fast)
            .then(|| Found::new("autonegotiation is off").fix(format!("ethtool -s {} autoneg on", device(host))))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::{Unit, Value};

    #[test]
    fn on_a_copper_port_and_not_on_a_virtual_or_fast_one() {
        let off = ("nic.autoneg", Value::Flag(false), Unit::Flag);
        assert!(found(&HAZARD, &[off.clone(), ("nic.driver", "e1000e".into(), Unit::Text)]).is_some());
        assert!(found(&HAZARD, &[off.clone(), ("nic.kind", "veth".into(), Unit::Text)]).is_none());
        assert!(found(&HAZARD, &[off.clone(), ("nic.driver", "virtio_net".into(), Unit::Text)]).is_none());
        let fast = ("nic.speed", Value::Integer(10_000_000_000), Unit::BitsPerSecond);
        assert!(found(&HAZARD, &[off, fast]).is_none());
    }
}
