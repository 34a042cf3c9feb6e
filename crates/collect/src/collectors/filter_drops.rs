//! Packets dropped by the packet filter, by the counters of its rules. Rules without a counter, chain policies and
//! iptables-legacy are not included: the reason `NETFILTER_DROP` of a drop watch counts those, too.

use crate::collector::{Class, Collector, always};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "filter-drops",
    about: "counters of nf_tables rules that drop packets",
    provides: &[
        keys::FILTER_DROP_RULES,
        keys::FILTER_DROP_RULES_UNCOUNTED,
        keys::FILTER_DROP_PACKETS,
        keys::FILTER_DROP_BYTES,
    ],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        let drops = context.host.filter_drops()?;
        for (key, value) in [
            (keys::FILTER_DROP_RULES, drops.rules),
            (keys::FILTER_DROP_RULES_UNCOUNTED, drops.uncounted),
            (keys::FILTER_DROP_PACKETS, drops.packets),
            (keys::FILTER_DROP_BYTES, drops.bytes),
        ] {
            sink.fact(key, value, "netlink NFT_MSG_GETRULE");
        }
        Ok(())
    },
};
