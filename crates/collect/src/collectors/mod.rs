//! The table of collectors. A new one is one file here and one line in the table.

use crate::Collector;

mod settings;

/// Declares the modules of the collectors and lists them.
macro_rules! collectors {
    ($($module:ident),* $(,)?) => {
        $(mod $module;)*
        /// All collectors, in the order in which they run.
        pub const COLLECTORS: &[Collector] = &[settings::TCP, settings::CORE, settings::UDP, $($module::COLLECTOR),*];
    };
}

collectors! {
    host,
    kernel_id,
    cpu,
    cpu_throttle,
    memory,
    cgroup,
    route,
    nic,
    layers,
    nic_driver,
    nic_link,
    nic_queues,
    nic_features,
    nic_irq,
    pcie,
    rps,
    filter,
    taps,
    conntrack,
    qdisc,
    nic_counters,
    nic_statistics,
    nic_interrupts,
    protocols,
    softnet,
    softirq,
    sockstat,
    fragments,
    filter_drops,
    vmstat,
    wifi,
    cpu_time,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn ids_are_unique_and_every_collector_says_what_it_provides() {
        let ids: BTreeSet<_> = COLLECTORS.iter().map(|collector| collector.id).collect();
        assert_eq!(ids.len(), COLLECTORS.len());
        for collector in COLLECTORS {
            assert!(!collector.provides.is_empty() && !collector.about.is_empty(), "{}", collector.id);
        }
    }

    #[test]
    fn a_key_has_one_unit_and_one_collector() {
        let mut owners = BTreeMap::new();
        for collector in COLLECTORS {
            for key in collector.provides {
                let other = owners.insert(key.name, collector.id);
                assert_eq!(other, None, "{} is also provided by {}", key.name, collector.id);
                let plain = |c: char| c.is_ascii_alphanumeric() || "._*".contains(c);
                assert!(key.name.chars().all(plain), "{}", key.name);
            }
        }
    }
}
