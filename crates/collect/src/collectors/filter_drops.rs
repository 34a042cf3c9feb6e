//! Packets dropped by the packet filter, by the counters of its rules. Rules without a counter, chain policies and
//! iptables-legacy are not included: the reason `NETFILTER_DROP` of a drop watch counts those, too.

use crate::collector::{Class, Collector, always};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "filter-drops",
    about: "what the counters of nf_tables rules that drop packets say",
    provides: &[
        Key::new("filter.drop.rules", Unit::Number),
        Key::new("filter.drop.rules.uncounted", Unit::Number),
        Key::new("filter.drop.packets", Unit::Count),
        Key::new("filter.drop.bytes", Unit::Count),
    ],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        let drops = context.host.filter_drops()?;
        for (key, value) in [
            ("filter.drop.rules", drops.rules),
            ("filter.drop.rules.uncounted", drops.uncounted),
            ("filter.drop.packets", drops.packets),
            ("filter.drop.bytes", drops.bytes),
        ] {
            sink.fact(key, value, "netlink NFT_MSG_GETRULE");
        }
        Ok(())
    },
};
