//! The table of collectors. A new one is one file here and one line in [`table`].

mod cgroup;
mod conntrack;
mod core_settings;
mod cpu;
mod cpu_time;
mod filter;
mod filter_drops;
mod fragments;
mod host;
mod kernel_id;
mod memory;
mod nic;
mod nic_counters;
mod nic_driver;
mod nic_features;
mod nic_interrupts;
mod nic_irq;
mod nic_link;
mod nic_queues;
mod nic_statistics;
mod pcie;
mod protocols;
mod qdisc;
mod route;
mod rps;
mod sockstat;
mod softirq;
mod softnet;
mod taps;
mod tcp_settings;
mod udp_settings;
mod vmstat;

use crate::Collector;

/// All collectors, in the order in which they run.
#[must_use]
pub fn table() -> &'static [Collector] {
    const TABLE: &[Collector] = &[
        host::COLLECTOR,
        kernel_id::COLLECTOR,
        cpu::COLLECTOR,
        memory::COLLECTOR,
        cgroup::COLLECTOR,
        route::COLLECTOR,
        nic::COLLECTOR,
        nic_driver::COLLECTOR,
        nic_link::COLLECTOR,
        nic_queues::COLLECTOR,
        nic_features::COLLECTOR,
        nic_irq::COLLECTOR,
        pcie::COLLECTOR,
        rps::COLLECTOR,
        tcp_settings::COLLECTOR,
        core_settings::COLLECTOR,
        udp_settings::COLLECTOR,
        filter::COLLECTOR,
        taps::COLLECTOR,
        conntrack::COLLECTOR,
        qdisc::COLLECTOR,
        nic_counters::COLLECTOR,
        nic_statistics::COLLECTOR,
        nic_interrupts::COLLECTOR,
        protocols::COLLECTOR,
        softnet::COLLECTOR,
        softirq::COLLECTOR,
        sockstat::COLLECTOR,
        fragments::COLLECTOR,
        filter_drops::COLLECTOR,
        vmstat::COLLECTOR,
        cpu_time::COLLECTOR,
    ];
    TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn ids_are_unique_and_every_collector_says_what_it_provides() {
        let ids: BTreeSet<_> = table().iter().map(|collector| collector.id).collect();
        assert_eq!(ids.len(), table().len());
        for collector in table() {
            assert!(!collector.provides.is_empty() && !collector.about.is_empty(), "{}", collector.id);
        }
    }

    #[test]
    fn a_key_has_one_unit_and_one_collector() {
        let mut owners = BTreeMap::new();
        for collector in table() {
            for key in collector.provides {
                let other = owners.insert(key.name, collector.id);
                assert_eq!(other, None, "{} is also provided by {}", key.name, collector.id);
                let plain = |c: char| c.is_ascii_alphanumeric() || "._*".contains(c);
                assert!(key.name.chars().all(plain), "{}", key.name);
            }
        }
    }
}
