//! The size of the packet filter.

use crate::collector::{Class, Collector, always};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "filter",
    about: "rules of nf_tables in this network namespace that each packet may meet",
    provides: &[keys::NETFILTER_RULES],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        sink.fact(keys::NETFILTER_RULES, context.host.filter_rules()?, "netlink NFT_MSG_GETRULE");
        Ok(())
    },
};
