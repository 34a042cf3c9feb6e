//! Offload features of the device on the route: `ETHTOOL_GFEATURES`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::{FactKey, Value, keys};
use narrows_sys::ethtool::Feature;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-features",
    about: "offloads: segmentation, receive offload, checksums",
    provides: &[
        keys::NIC_FEATURE_TSO,
        keys::NIC_FEATURE_GSO,
        keys::NIC_FEATURE_GRO,
        keys::NIC_FEATURE_LRO,
        keys::NIC_FEATURE_TX_CHECKSUM,
        keys::NIC_FEATURE_RX_CHECKSUM,
        keys::NIC_FEATURE_SCATTER_GATHER,
        keys::NIC_FEATURE_FIXED_OFF,
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

/// The last part of the key and the word of `ethtool -K`.
const FEATURES: [(FactKey, &str); 7] = [
    (keys::NIC_FEATURE_TSO, "tso"),
    (keys::NIC_FEATURE_GSO, "gso"),
    (keys::NIC_FEATURE_GRO, "gro"),
    (keys::NIC_FEATURE_LRO, "lro"),
    (keys::NIC_FEATURE_TX_CHECKSUM, "tx"),
    (keys::NIC_FEATURE_RX_CHECKSUM, "rx"),
    (keys::NIC_FEATURE_SCATTER_GATHER, "sg"),
];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let link = context.link()?;
    let own; // a VLAN has its own features
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
    sink.fact(keys::NIC_FEATURE_FIXED_OFF, Value::List(fixed_off(features)), "ioctl ETHTOOL_GFEATURES");
    Ok(())
}

/// The names of features that are off and cannot be switched on: the driver lacks the feature, or one that it depends
/// on. Segmentation needs scatter-gather (`netdev_fix_features` in net/core/dev.c).
fn fixed_off(features: &[Feature]) -> Vec<String> {
    let fixed = |word: &str| {
        let mut group = features.iter().filter(|feature| feature.is_meant_by(word)).peekable();
        group.peek().is_some() && group.all(|feature| !feature.active && !feature.changeable)
    };
    let without_gather = fixed("sg");
    let is_off = |word: &str| fixed(word) || without_gather && matches!(word, "tso" | "gso");
    FEATURES.iter().map(|(_, word)| *word).filter(|word| is_off(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feature(name: &str, active: bool, changeable: bool) -> Feature {
        Feature { name: name.to_owned(), active, changeable, requested: active }
    }

    #[test]
    fn only_features_that_cannot_be_enabled_are_fixed() {
        let able = [
            feature("tx-scatter-gather", false, true),
            feature("tx-tcp-segmentation", false, true),
            feature("tx-tcp6-segmentation", false, false),
            feature("rx-checksum", true, false),
        ];
        assert!(fixed_off(&able).is_empty());
        let unable = [
            feature("tx-scatter-gather", false, false),
            feature("tx-generic-segmentation", false, true),
            feature("rx-checksum", false, false),
            feature("rx-gro", false, true),
        ];
        assert_eq!(fixed_off(&unable), ["tso", "gso", "rx", "sg"]);
    }
}
