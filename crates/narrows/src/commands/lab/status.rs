//! A lab's state as text.

use narrows_model::lab::{HostCounters, Impairment};
use narrows_model::units::{bps, bytes, micros, percent};
use narrows_runner::emulated::{DirectionStatus, Status};
use std::fmt::Write as _;

/// What a lab is and what it did.
pub(super) fn text(status: &Status) -> String {
    let mut text = format!("lab {} (held by process {})\n", status.name, status.pid);
    for host in &status.hosts {
        let addresses: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  {:<8} {:<8} {}", host.name, host.device, addresses.join("  "));
        let drops = host.counters.as_ref().map(dropped_by_host).unwrap_or_default();
        if !drops.is_empty() {
            let _ = writeln!(text, "           {drops}");
        }
    }
    for (word, direction) in [("up", &status.up), ("down", &status.down)] {
        let _ = writeln!(text, "  {word:<8} {}", path(&direction.impairment));
        let _ = writeln!(text, "           {}", counters(direction));
    }
    for fault in &status.faults {
        let _ = writeln!(text, "  fault    {} at {} ({}): {}", fault.id, fault.at, fault.value, fault.about);
    }
    for caution in &status.cautions {
        let _ = writeln!(text, "  caution  {caution}");
    }
    text
}

#[allow(clippy::cast_precision_loss)]
fn path(path: &Impairment) -> String {
    let mut words = Vec::new();
    let mut say = |there: bool, words_of: String| {
        if there {
            words.push(words_of);
        }
    };
    say(path.rate_bps > 0, format!("rate {}", bps(path.rate_bps as f64)));
    say(path.burst_bytes > 0, format!("after a burst of {}", bytes(path.burst_bytes)));
    say(path.delay_us > 0, format!("delay {}", micros(path.delay_us)));
    say(path.jitter_us > 0, format!("jitter {}", micros(path.jitter_us)));
    say(path.loss > 0.0, format!("loss {}", percent(path.loss)));
    say(path.burst_loss > 0.0, format!("burst loss {}", percent(path.burst_loss)));
    say(path.reorder > 0.0, format!("reordering {}", percent(path.reorder)));
    say(path.duplicate > 0.0, format!("duplication {}", percent(path.duplicate)));
    say(path.queue_packets > 0, format!("queue {} packets", path.queue_packets));
    say(path.queue_bytes > 0, format!("queue {}", bytes(path.queue_bytes)));
    say(path.police_bps > 0, format!("policed to {}", bps(path.police_bps as f64)));
    say(path.mtu > 0, format!("MTU {}", path.mtu));
    say(path.corrupt > 0.0, format!("corruption {}", percent(path.corrupt)));
    say(path.gather_us > 0, format!("gathered for {}", micros(path.gather_us)));
    if words.is_empty() { "as it comes".to_owned() } else { words.join(", ") }
}

fn dropped_by_host(count: &HostCounters) -> String {
    let drops = [
        (count.rx_dropped, "dropped by the backlog"),
        (count.tx_dropped, "dropped by the device's ring"),
        (count.qdisc_drops, "dropped by the queueing discipline"),
        (count.filter_input_drops.unwrap_or(0), "dropped by the rule for what comes in"),
        (count.filter_output_drops.unwrap_or(0), "dropped by the rule for what goes out"),
    ];
    let words = drops.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    words.collect::<Vec<_>>().join(", ")
}

fn counters(direction: &DirectionStatus) -> String {
    let count = &direction.counters;
    let mut words = vec![format!("{} packets in", count.taken_packets), format!("{} out", count.delivered_packets)];
    for (n, what) in [
        (count.dropped_loss, "lost"),
        (count.dropped_queue, "dropped by the queue"),
        (count.dropped_policer, "dropped by the policer"),
        (count.dropped_mtu, "too big"),
        (count.dropped_device, "refused by the device"),
        (count.duplicated, "duplicated"),
        (count.reordered, "reordered"),
        (count.corrupted, "corrupted"),
        (count.waiting_packets, "under way"),
    ] {
        if n > 0 {
            words.push(format!("{n} {what}"));
        }
    }
    words.join(", ")
}
