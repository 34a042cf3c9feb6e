//! The network interface on the route to the peer.

use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::{Ethtool, Link};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic",
    about: "the network device on the route to the peer",
    provides: &[
        keys::NIC_NAME,
        keys::NIC_KIND,
        keys::NIC_BOND_MODE,
        keys::NIC_HARDWARE,
        keys::NIC_MTU,
        keys::NIC_TXQUEUELEN,
        keys::NIC_GSO_MAX,
        keys::NIC_GRO_MAX,
        keys::NIC_TSO_MAX,
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
    let path = format!("/proc/net/bonding/{}", link.name);
    let mode = if link.kind.as_deref() == Some("bond") {
        context.host.read(&path).and_then(|text| bond_mode(&path, &text))
    } else {
        Err(Missing::because(format!("{} is no bond", link.name)))
    };
    sink.put(keys::NIC_BOND_MODE, mode, path);
    sink.put(keys::NIC_HARDWARE, context.hardware().map(|hardware| hardware.name.clone()), SOURCE);
    sink.fact(keys::NIC_MTU, link.mtu, SOURCE);
    let length = link.txqueuelen.ok_or_else(|| Missing::because("the kernel does not say how long the queue is"));
    sink.put(keys::NIC_TXQUEUELEN, length, SOURCE);
    for (key, bytes) in
        [(keys::NIC_GSO_MAX, link.gso_max), (keys::NIC_GRO_MAX, link.gro_max), (keys::NIC_TSO_MAX, link.tso_max)]
    {
        let bytes = bytes.ok_or_else(|| Missing::because("kernels before Linux 5.19 do not say how large segments may be"));
        sink.put(key, bytes, SOURCE);
    }
    sink.fact(keys::NIC_UP, link.up, SOURCE);
    let carrier = link.carrier.ok_or_else(|| Missing::because("the kernel does not say whether there is a carrier"));
    sink.put(keys::NIC_CARRIER, carrier, SOURCE);
    Ok(())
}

fn kind(context: &Context<'_>) -> String {
    match context.link() {
        // Only hardware needs its driver's word, and nothing is below it.
        Ok(link) => kind_of(link, context.ethtool().ok()),
        Err(_) => "unknown".to_owned(),
    }
}

/// `loopback`, the kernel's kind (`veth`, `tun`, `vlan`, `bond`, …), `virtual` under a hypervisor, or `physical`.
pub(super) fn kind_of(link: &Link, ethtool: Option<&Ethtool>) -> String {
    if link.loopback {
        return "loopback".to_owned();
    }
    if let Some(kind) = &link.kind {
        return kind.clone();
    }
    let kind = match ethtool.map(|ethtool| ethtool.driver.get()) {
        Some(Ok(driver)) if VIRTUAL.contains(&driver.name.as_str()) => "virtual",
        Some(Ok(driver)) if !driver.bus.is_empty() => "physical",
        _ => "unknown",
    };
    kind.to_owned()
}

/// The mode as the kernel words it: `load balancing (round-robin)`. Source: kernel `drivers/net/bonding/bond_procfs.c`,
/// `bond_info_show_master`.
fn bond_mode(path: &str, text: &str) -> Result<String, Missing> {
    const LONGEST: usize = 64;
    let mode = parse::lines(text).find_map(|(_, line)| line.strip_prefix("Bonding Mode:"));
    let mode = mode.map(|mode| mode.trim().chars().take(LONGEST).collect::<String>()).filter(|mode| !mode.is_empty());
    mode.ok_or_else(|| Missing::because(format!("{path} names no mode")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_a_bond_is_found() {
        let text = "Ethernet Channel Bonding Driver: v6.1.0-18-amd64\n\nBonding Mode: load balancing (round-robin)\nMII Status: up\n";
        assert_eq!(bond_mode("bond0", text), Ok("load balancing (round-robin)".to_owned()));
        assert!(bond_mode("bond0", "MII Status: up\n").expect_err("none").to_string().contains("bond0 names no mode"));
        assert!(bond_mode("bond0", "Bonding Mode:\n").is_err());
    }
}
