//! Rings, channels and interrupt coalescing of the NIC.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::Reported;
use narrows_model::{Key, Unit, Value};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-queues",
    about: "rings, channels, interrupt coalescing",
    provides: &[
        Key::new("nic.ring.rx", Unit::Number),
        Key::new("nic.ring.rx.max", Unit::Number),
        Key::new("nic.ring.tx", Unit::Number),
        Key::new("nic.ring.tx.max", Unit::Number),
        Key::new("nic.channels.rx", Unit::Number),
        Key::new("nic.channels.rx.max", Unit::Number),
        Key::new("nic.channels.tx", Unit::Number),
        Key::new("nic.channels.tx.max", Unit::Number),
        Key::new("nic.channels.combined", Unit::Number),
        Key::new("nic.channels.combined.max", Unit::Number),
        Key::new("nic.coalesce.rx_usecs", Unit::Microseconds),
        Key::new("nic.coalesce.rx_frames", Unit::Packets),
        Key::new("nic.coalesce.tx_usecs", Unit::Microseconds),
        Key::new("nic.coalesce.tx_frames", Unit::Packets),
        Key::new("nic.coalesce.adaptive_rx", Unit::Flag),
        Key::new("nic.coalesce.adaptive_tx", Unit::Flag),
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
            ("nic.ring.rx", |rings| rings.rx.into()),
            ("nic.ring.rx.max", |rings| rings.rx_max.into()),
            ("nic.ring.tx", |rings| rings.tx.into()),
            ("nic.ring.tx.max", |rings| rings.tx_max.into()),
        ],
    );
    put(
        sink,
        &ethtool.channels,
        "ioctl ETHTOOL_GCHANNELS",
        &[
            ("nic.channels.rx", |channels| channels.rx.into()),
            ("nic.channels.rx.max", |channels| channels.rx_max.into()),
            ("nic.channels.tx", |channels| channels.tx.into()),
            ("nic.channels.tx.max", |channels| channels.tx_max.into()),
            ("nic.channels.combined", |channels| channels.combined.into()),
            ("nic.channels.combined.max", |channels| channels.combined_max.into()),
        ],
    );
    put(
        sink,
        &ethtool.coalesce,
        "ioctl ETHTOOL_GCOALESCE",
        &[
            ("nic.coalesce.rx_usecs", |coalesce| coalesce.rx_usecs.into()),
            ("nic.coalesce.rx_frames", |coalesce| coalesce.rx_frames.into()),
            ("nic.coalesce.tx_usecs", |coalesce| coalesce.tx_usecs.into()),
            ("nic.coalesce.tx_frames", |coalesce| coalesce.tx_frames.into()),
            ("nic.coalesce.adaptive_rx", |coalesce| coalesce.adaptive_rx.into()),
            ("nic.coalesce.adaptive_tx", |coalesce| coalesce.adaptive_tx.into()),
        ],
    );
    Ok(())
}

/// A key and how to take its value from the answer.
type Member<T> = (&'static str, fn(&T) -> Value);

fn put<T>(sink: &mut Sink<'_>, told: &Reported<T>, source: &str, members: &[Member<T>]) {
    for (key, take) in members {
        sink.put(*key, told.get().map(take), source);
    }
}
