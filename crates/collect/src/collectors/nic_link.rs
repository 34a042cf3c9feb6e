//! Speed, duplex, autonegotiation and flow control of the link: `ETHTOOL_GLINKSETTINGS`, `ETHTOOL_GPAUSEPARAM`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::Link as Device;
use narrows_model::keys;
use narrows_sys::ethtool::{Duplex, Link};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-link",
    about: "link speed, duplex, autonegotiation, flow control",
    provides: &[
        keys::NIC_SPEED,
        keys::NIC_SPEED_MAX,
        keys::NIC_DUPLEX,
        keys::NIC_AUTONEG,
        keys::NIC_PAUSE_RX,
        keys::NIC_PAUSE_TX,
        keys::NIC_PAUSE_AUTONEG,
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let source = "ioctl ETHTOOL_GPAUSEPARAM";
    let pause = context.ethtool()?.pause.get();
    for (key, value) in [
        (keys::NIC_PAUSE_RX, pause.as_ref().map(|pause| pause.rx)),
        (keys::NIC_PAUSE_TX, pause.as_ref().map(|pause| pause.tx)),
        (keys::NIC_PAUSE_AUTONEG, pause.as_ref().map(|pause| pause.autoneg)),
    ] {
        sink.put(key, value.map_err(Clone::clone), source);
    }
    let source = "ioctl ETHTOOL_GLINKSETTINGS";
    let link = context.ethtool()?.link.get()?;
    let device = context.hardware()?;
    if is_placeholder(device, link) {
        let kind = device.kind.as_deref().unwrap_or_default();
        return Err(Missing::because(format!(
            "a {kind} device has no link; the speed that its driver gives is a placeholder"
        )));
    }
    let silent = |what: &str| Missing::because(format!("the driver gives no {what}"));
    let bps = |mbps: u32| u64::from(mbps) * 1_000_000;
    sink.put(keys::NIC_SPEED, link.speed_mbps.map(bps).ok_or_else(|| silent("speed; the link may be down")), source);
    sink.put(keys::NIC_SPEED_MAX, link.speed_max_mbps().map(bps).ok_or_else(|| silent("supported modes")), source);
    let duplex = link.duplex.map(|duplex| if duplex == Duplex::Full { "full" } else { "half" });
    sink.put(keys::NIC_DUPLEX, duplex.ok_or_else(|| silent("duplex")), source);
    sink.put(keys::NIC_AUTONEG, link.autoneg.ok_or_else(|| silent("state of autonegotiation")), source);
    Ok(())
}

/// Speeds that a software driver invents: veth's constant, and the default of a TUN device, which was 10 Mbit/s before Linux 6.2.
fn is_placeholder(device: &Device, link: &Link) -> bool {
    match device.kind.as_deref() {
        Some("tun") => matches!(link.speed_mbps, Some(10 | 10_000) | None),
        Some("veth" | "dummy" | "ifb") => true,
        _ => device.loopback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_speed_of_a_tun_device_counts_and_its_default_does_not() {
        let tun = Device { kind: Some("tun".into()), ..Device::default() };
        let link = |mbps| Link { speed_mbps: Some(mbps), ..Link::default() };
        assert!(is_placeholder(&tun, &link(10_000)) && is_placeholder(&tun, &link(10)));
        assert!(!is_placeholder(&tun, &link(100)));
        assert!(is_placeholder(&Device { kind: Some("veth".into()), ..Device::default() }, &link(100)));
        assert!(!is_placeholder(&Device::default(), &link(10_000)));
    }
}
