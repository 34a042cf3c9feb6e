//! The network interface on the route to the peer.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic",
    about: "the network device on the route to the peer",
    provides: &[
        Key::new("nic.name", Unit::Text),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.hardware", Unit::Text),
        Key::new("nic.mtu", Unit::Bytes),
        Key::new("nic.txqueuelen", Unit::Packets),
        Key::new("nic.up", Unit::Flag),
        Key::new("nic.carrier", Unit::Flag),
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

const SOURCE: &str = "netlink RTM_GETLINK";

/// Drivers of interfaces that a hypervisor emulates.
const VIRTUAL: [&str; 8] = ["virtio_net", "vmxnet3", "hv_netvsc", "vif", "xen_netfront", "ena", "gve", "mana"];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let link = context.link()?;
    sink.fact("nic.name", link.name.as_str(), SOURCE);
    sink.fact("nic.kind", kind(context), SOURCE);
    sink.put("nic.hardware", context.hardware().map(|hardware| hardware.name.clone()), SOURCE);
    sink.fact("nic.mtu", link.mtu, SOURCE);
    let length = link.txqueuelen.ok_or_else(|| Missing::because("the kernel does not say how long the queue is"));
    sink.put("nic.txqueuelen", length, SOURCE);
    sink.fact("nic.up", link.up, SOURCE);
    let carrier = link.carrier.ok_or_else(|| Missing::because("the kernel does not say whether there is a carrier"));
    sink.put("nic.carrier", carrier, SOURCE);
    Ok(())
}

/// `loopback`, the kernel's kind (`veth`, `tun`, `vlan`, `bond`, …), `virtual` under a hypervisor, or `physical`.
fn kind(context: &Context<'_>) -> String {
    let Ok(link) = context.link() else {
        return "unknown".to_owned();
    };
    if link.loopback {
        return "loopback".to_owned();
    }
    if let Some(kind) = &link.kind {
        return kind.clone();
    }
    match context.ethtool().and_then(|ethtool| ethtool.driver.get()) {
        Ok(driver) if VIRTUAL.contains(&driver.name.as_str()) => "virtual".to_owned(),
        Ok(driver) if driver.bus.is_empty() => "unknown".to_owned(),
        Ok(_) => "physical".to_owned(),
        Err(_) => "unknown".to_owned(),
    }
}
