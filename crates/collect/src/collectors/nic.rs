//! The network interface on the route to the peer.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic",
    about: "the network device on the route to the peer",
    provides: &[
        keys::NIC_NAME,
        keys::NIC_KIND,
        keys::NIC_HARDWARE,
        keys::NIC_MTU,
        keys::NIC_TXQUEUELEN,
        keys::NIC_UP,
        keys::NIC_CARRIER,
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
    sink.fact(keys::NIC_NAME, link.name.as_str(), SOURCE);
    sink.fact(keys::NIC_KIND, kind(context), SOURCE);
    sink.put(keys::NIC_HARDWARE, context.hardware().map(|hardware| hardware.name.clone()), SOURCE);
    sink.fact(keys::NIC_MTU, link.mtu, SOURCE);
    let length = link.txqueuelen.ok_or_else(|| Missing::because("the kernel does not say how long the queue is"));
    sink.put(keys::NIC_TXQUEUELEN, length, SOURCE);
    sink.fact(keys::NIC_UP, link.up, SOURCE);
    let carrier = link.carrier.ok_or_else(|| Missing::because("the kernel does not say whether there is a carrier"));
    sink.put(keys::NIC_CARRIER, carrier, SOURCE);
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
