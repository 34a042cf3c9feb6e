//! Rings, channels and interrupt coalescing of the NIC.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::Reported;
use narrows_model::{FactKey, Value, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-queues",
    about: "rings, channels, interrupt coalescing",
    provides: &[
        keys::NIC_RING_RX,
        keys::NIC_RING_RX_MAX,
        keys::NIC_RING_TX,
        keys::NIC_RING_TX_MAX,
        keys::NIC_CHANNELS_RX,
        keys::NIC_CHANNELS_RX_MAX,
        keys::NIC_CHANNELS_TX,
        keys::NIC_CHANNELS_TX_MAX,
        keys::NIC_CHANNELS_COMBINED,
        keys::NIC_CHANNELS_COMBINED_MAX,
        keys::NIC_COALESCE_RX_USECS,
        keys::NIC_COALESCE_RX_FRAMES,
        keys::NIC_COALESCE_TX_USECS,
        keys::NIC_COALESCE_TX_FRAMES,
        keys::NIC_COALESCE_ADAPTIVE_RX,
        keys::NIC_COALESCE_ADAPTIVE_TX,
    ],
    class: Class::Inventory,
    can_run: with_device,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let ethtool = context.ethtool()?;
    put(
        sink,
        &ethtool.rings,
        "ioctl ETHTOOL_GRINGPARAM",
        &[
            (keys::NIC_RING_RX, |rings| rings.rx.into()),
            (keys::NIC_RING_RX_MAX, |rings| rings.rx_max.into()),
            (keys::NIC_RING_TX, |rings| rings.tx.into()),
            (keys::NIC_RING_TX_MAX, |rings| rings.tx_max.into()),
        ],
    );
    put(
        sink,
        &ethtool.channels,
        "ioctl ETHTOOL_GCHANNELS",
        &[
            (keys::NIC_CHANNELS_RX, |channels| channels.rx.into()),
            (keys::NIC_CHANNELS_RX_MAX, |channels| channels.rx_max.into()),
            (keys::NIC_CHANNELS_TX, |channels| channels.tx.into()),
            (keys::NIC_CHANNELS_TX_MAX, |channels| channels.tx_max.into()),
            (keys::NIC_CHANNELS_COMBINED, |channels| channels.combined.into()),
            (keys::NIC_CHANNELS_COMBINED_MAX, |channels| channels.combined_max.into()),
        ],
    );
    put(
        sink,
        &ethtool.coalesce,
        "ioctl ETHTOOL_GCOALESCE",
        &[
            (keys::NIC_COALESCE_RX_USECS, |coalesce| coalesce.rx_usecs.into()),
            (keys::NIC_COALESCE_RX_FRAMES, |coalesce| coalesce.rx_frames.into()),
            (keys::NIC_COALESCE_TX_USECS, |coalesce| coalesce.tx_usecs.into()),
            (keys::NIC_COALESCE_TX_FRAMES, |coalesce| coalesce.tx_frames.into()),
            (keys::NIC_COALESCE_ADAPTIVE_RX, |coalesce| coalesce.adaptive_rx.into()),
            (keys::NIC_COALESCE_ADAPTIVE_TX, |coalesce| coalesce.adaptive_tx.into()),
        ],
    );
    Ok(())
}

/// A key and how to take its value from the answer.
type Member<T> = (FactKey, fn(&T) -> Value);

fn put<T>(sink: &mut Sink<'_>, told: &Reported<T>, source: &str, members: &[Member<T>]) {
    for (key, take) in members {
        sink.put(*key, told.get().map(take), source);
    }
}
