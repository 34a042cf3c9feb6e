//! Offload features of the device on the route: `ETHTOOL_GFEATURES`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-features",
    about: "offloads: segmentation, receive offload, checksums",
    provides: &[
        Key::new("nic.feature.tso", Unit::Flag),
        Key::new("nic.feature.gso", Unit::Flag),
        Key::new("nic.feature.gro", Unit::Flag),
        Key::new("nic.feature.lro", Unit::Flag),
        Key::new("nic.feature.tx_checksum", Unit::Flag),
        Key::new("nic.feature.rx_checksum", Unit::Flag),
        Key::new("nic.feature.scatter_gather", Unit::Flag),
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

/// The last part of the key and the word of `ethtool -K`.
const FEATURES: [(&str, &str); 7] = [
    ("nic.feature.tso", "tso"),
    ("nic.feature.gso", "gso"),
    ("nic.feature.gro", "gro"),
    ("nic.feature.lro", "lro"),
    ("nic.feature.tx_checksum", "tx"),
    ("nic.feature.rx_checksum", "rx"),
    ("nic.feature.scatter_gather", "sg"),
];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let link = context.link()?;
    let own; // a VLAN has features of its own
    let ethtool = if context.hardware()?.name == link.name {
        context.ethtool()?
    } else {
        own = context.host.ethtool(&link.name)?;
        &own
    };
    let features = ethtool.features.get()?;
    for (key, word) in FEATURES {
        let group = features.iter().filter(|feature| feature.is_meant_by(word)).map(|feature| feature.active);
        let on = group.reduce(|any, on| any || on);
        let why = || Missing::because(format!("the device knows no feature of the group `{word}`"));
        sink.put(key, on.ok_or_else(why), "ioctl ETHTOOL_GFEATURES");
    }
    Ok(())
}
