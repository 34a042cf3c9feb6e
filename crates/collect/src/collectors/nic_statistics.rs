//! The driver's own counters: `ETHTOOL_GSTATS`. Their names are the driver's.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-statistics",
    about: "the driver's own counters",
    provides: &[keys::NIC_STAT],
    class: Class::Both,
    can_run: with_device,
    collect,
};

/// Above this number a driver has counters per queue, thousands in all: only those of the whole interface are kept.
const ALL_UP_TO: usize = 256;

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let statistics = context.host.statistics(&context.hardware()?.name)?;
    if statistics.is_empty() {
        return Err(Missing::because("the driver has no counters of its own"));
    }
    let all = statistics.len() <= ALL_UP_TO;
    let mut left_out = 0;
    for (name, value) in &statistics {
        if all || !is_of_a_queue(name) {
            sink.fact(format!("nic.stat.{}", name.replace(' ', "_")), *value, "ioctl ETHTOOL_GSTATS");
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        let why = format!("{left_out} counters of single queues are left out: the driver has {}", statistics.len());
        sink.absent("nic.stat.<queue>", &Missing::because(why));
    }
    Ok(())
}

/// `rx_queue_0_packets`, `rx12_bytes`, `tx-3.drops`, `ch7_events`, `[5]: rx_bytes`; but not `rx_64_bytes_phy`.
fn is_of_a_queue(name: &str) -> bool {
    let begins_with_digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let after_queue = name.split_once("queue").map(|(_, rest)| rest.trim_start_matches(['_', '-']));
    let after_start = ["rxq", "txq", "rx", "tx", "ch", "q"].iter().find_map(|start| name.strip_prefix(start));
    name.starts_with('[')
        || after_queue.is_some_and(begins_with_digit)
        || after_start.is_some_and(|rest| begins_with_digit(rest.trim_start_matches('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_counters_are_distinguished_from_interface_counters() {
        for name in ["rx_queue_0_packets", "rx12_bytes", "tx-3.drops", "ch7_events", "[5]: rx_bytes", "queue_1_tx_cnt"]
        {
            assert!(is_of_a_queue(name), "{name}");
        }
        for name in
            ["rx_packets", "rx_64_bytes_phy", "rx_missed_errors", "tx_pause_ctrl_phy", "outbound_pci_stalled_rd"]
        {
            assert!(!is_of_a_queue(name), "{name}");
        }
    }
}
