//! The kernel's counters of the device on the route: `struct rtnl_link_stats64`.

use crate::Missing;
use crate::collector::{Class, Collector, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-counters",
    about: "packets, bytes, drops and errors of the device",
    provides: &[keys::NIC_COUNTER],
    class: Class::Both,
    can_run: with_device,
    collect: |context, sink| {
        let link = context.link()?;
        if link.counters.is_empty() {
            return Err(Missing::because("the kernel gives no counters of the device"));
        }
        for (name, value) in &link.counters {
            sink.fact(format!("nic.counter.{name}"), *value, "netlink IFLA_STATS64");
        }
        Ok(())
    },
};
