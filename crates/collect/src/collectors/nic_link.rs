//! Speed, duplex, autonegotiation and flow control of the link: `ETHTOOL_GLINKSETTINGS`, `ETHTOOL_GPAUSEPARAM`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::Link as Device;
use narrows_model::{Key, Unit};
use narrows_sys::ethtool::{Duplex, Link};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-link",
    about: "link speed, duplex, autonegotiation, flow control",
    provides: &[
        Key::new("nic.speed", Unit::BitsPerSecond),
        Key::new("nic.speed.max", Unit::BitsPerSecond),
        Key::new("nic.duplex", Unit::Text),
        Key::new("nic.autoneg", Unit::Flag),
        Key::new("nic.pause.rx", Unit::Flag),
        Key::new("nic.pause.tx", Unit::Flag),
        Key::new("nic.pause.autoneg", Unit::Flag),
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let source = "ioctl ETHTOOL_GPAUSEPARAM";
    let pause = context.ethtool()?.pause.get();
    for (key, value) in [
        ("nic.pause.rx", pause.as_ref().map(|pause| pause.rx)),
        ("nic.pause.tx", pause.as_ref().map(|pause| pause.tx)),
        ("nic.pause.autoneg", pause.as_ref().map(|pause| pause.autoneg)),
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
    sink.put("nic.speed", link.speed_mbps.map(bps).ok_or_else(|| silent("speed; the link may be down")), source);
    sink.put("nic.speed.max", link.speed_max_mbps().map(bps).ok_or_else(|| silent("supported modes")), source);
    let duplex = link.duplex.map(|duplex| if duplex == Duplex::Full { "full" } else { "half" });
    sink.put("nic.duplex", duplex.ok_or_else(|| silent("duplex")), source);
    sink.put("nic.autoneg", link.autoneg.ok_or_else(|| silent("state of autonegotiation")), source);
    Ok(())
}

/// Speeds that a software driver invents: veth's constant, and the default of a TUN device.
fn is_placeholder(device: &Device, link: &Link) -> bool {
    match device.kind.as_deref() {
        Some("tun") => matches!(link.speed_mbps, Some(10_000) | None),
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
        assert!(is_placeholder(&tun, &link(10_000)));
        assert!(!is_placeholder(&tun, &link(100)));
        assert!(is_placeholder(&Device { kind: Some("veth".into()), ..Device::default() }, &link(100)));
        assert!(!is_placeholder(&Device::default(), &link(10_000)));
    }
}
