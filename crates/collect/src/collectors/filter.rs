//! The size of the packet filter.

use crate::collector::{Class, Collector, always};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "filter",
    about: "rules of nf_tables in this network namespace",
    provides: &[Key::new("netfilter.rules", Unit::Number)],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        sink.fact("netfilter.rules", context.host.filter_rules()?, "netlink NFT_MSG_GETRULE");
        Ok(())
    },
};
