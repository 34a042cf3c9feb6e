//! The interfaces below the one on the route to the peer: tunnels and their underlay, bridges, bonds, VLANs, veth pairs.

use super::nic::kind_of;
use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::{Ethtool, Link};
use narrows_model::{FactKey, Value, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "layers",
    about: "virtual devices and what is below them: MTU, speed, offloads, drops",
    provides: &[
        keys::LAYERS,
        keys::LAYER_NAME,
        keys::LAYER_KIND,
        keys::LAYER_MTU,
        keys::LAYER_OVERHEAD,
        keys::LAYER_REMOTE,
        keys::LAYER_SPEED,
        keys::LAYER_OFF,
        keys::LAYER_TX_DROPPED,
        keys::LAYER_RX_DROPPED,
        keys::LAYER_QDISC_DROPS,
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

/// As `ethtool -K` says them: checksums, receive offload, and the segmentation of what a tunnel encapsulated.
const OFFLOADS: [&str; 6] =
    ["tx", "rx", "gro", "tx-udp_tnl-segmentation", "tx-gre-segmentation", "tx-ipxip4-segmentation"];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    const SOURCE: &str = "netlink RTM_GETLINK";
    let (links, hidden) = context.layers()?;
    // A single interface is described by the facts `nic.*`.
    let several = links.len() > 1 || hidden.is_some();
    if !several {
        sink.fact(keys::LAYERS, context.link()?.name.as_str(), SOURCE);
        return Ok(());
    }
    let mut shown = Vec::new();
    for (number, link) in links.iter().enumerate() {
        let of = |key: FactKey| key.name.replace('*', &number.to_string());
        let driver = context.host.ethtool(&link.name);
        let kind = kind_of(link, driver.as_ref().ok());
        shown.push(format!("{} ({kind}, MTU {})", link.name, link.mtu));
        sink.fact(of(keys::LAYER_NAME), link.name.as_str(), SOURCE);
        sink.fact(of(keys::LAYER_KIND), kind, SOURCE);
        sink.fact(of(keys::LAYER_MTU), link.mtu, SOURCE);
        if let Some(tunnel) = &link.tunnel {
            sink.fact(of(keys::LAYER_OVERHEAD), tunnel.overhead_bytes, "netlink IFLA_INFO_DATA");
            if let Some(remote) = tunnel.remote {
                sink.fact(of(keys::LAYER_REMOTE), remote.to_string(), "netlink IFLA_INFO_DATA, RTM_GETNEIGH");
            }
        }
        for (key, name) in [(keys::LAYER_TX_DROPPED, "tx_dropped"), (keys::LAYER_RX_DROPPED, "rx_dropped")] {
            if let Some(count) = link.counters.get(name) {
                sink.fact(of(key), *count, "netlink IFLA_STATS64");
            }
        }
        let drops = context.host.qdiscs(&link.name).ok().and_then(|tree| tree.root()?.drops);
        if let Some(drops) = drops {
            sink.fact(of(keys::LAYER_QDISC_DROPS), drops, "netlink RTM_GETQDISC");
        }
        if let Ok(driver) = &driver {
            sink.put(of(keys::LAYER_OFF), off(driver).map(Value::List), "ioctl ETHTOOL_GFEATURES");
            if let Some(bps) = speed(link, driver) {
                sink.fact(of(keys::LAYER_SPEED), bps, "ioctl ETHTOOL_GLINKSETTINGS");
            }
        }
    }
    sink.fact(keys::LAYERS, shown.join(" > "), SOURCE);
    if let Some(why) = hidden {
        sink.absent(format!("layer.name.{}", links.len()), why);
    }
    Ok(())
}

/// Only hardware has a speed that something enforces.
fn speed(link: &Link, driver: &Ethtool) -> Option<u64> {
    let hardware = link.kind.is_none() && !link.loopback;
    let mbps = driver.link.get().ok().filter(|_| hardware)?.speed_mbps?;
    Some(u64::from(mbps) * 1_000_000)
}

/// The offloads that are off and can be switched on.
fn off(driver: &Ethtool) -> Result<Vec<String>, Missing> {
    let features = driver.features.get()?;
    let is_off = |word: &&&str| {
        let mut group = features.iter().filter(|feature| feature.is_meant_by(word)).peekable();
        group.peek().is_some() && group.clone().all(|it| !it.active) && group.any(|it| it.changeable)
    };
    Ok(OFFLOADS.iter().filter(is_off).map(|word| (*word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Reported;
    use narrows_sys::ethtool::Feature;

    #[test]
    fn an_offload_is_off_if_it_could_be_on() {
        let feature = |name: &str, active: bool, changeable: bool| Feature {
            name: name.to_owned(),
            active,
            changeable,
            requested: active,
        };
        let features = vec![
            feature("tx-checksum-ip-generic", false, true),
            feature("rx-checksum", false, false),
            feature("rx-gro", true, true),
            feature("tx-udp_tnl-segmentation", false, true),
        ];
        let driver = Ethtool { features: Reported::Known(features), ..Ethtool::default() };
        assert_eq!(off(&driver).expect("known"), ["tx", "tx-udp_tnl-segmentation"]);
    }
}
