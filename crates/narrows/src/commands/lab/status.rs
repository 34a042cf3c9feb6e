//! A lab's state as text.

use narrows_model::lab::{HostCounters, Impairment};
use narrows_model::words::units::{bps, bytes, micros, percent};
use narrows_runner::emulated::{DirectionStatus, PortStatus, Status};
use std::fmt::Write as _;
use std::net::IpAddr;

/// A lab with its addresses, paths, faults and counters.
pub(super) fn text(status: &Status) -> String {
    let mut text = format!("lab {} (held by process {})\n", status.name, status.pid);
    for host in &status.hosts {
        let mut name = host.name.as_str();
        if host.ports.is_empty() {
            let _ = writeln!(text, "  {name:<8} {:<8} {}", host.device, joined(&host.addresses));
        }
        for port in &host.ports {
            let _ = writeln!(text, "  {name:<8} {:<8} {}", port.device, joined(&port.addresses));
            let _ = writeln!(text, "           {:<8} {}", "", counts(port));
            name = "";
        }
        let drops =
            host.counters.as_ref().map(|count| dropped_by_host(count, !host.ports.is_empty())).unwrap_or_default();
        if !drops.is_empty() {
            let _ = writeln!(text, "           {drops}");
        }
    }
    for (word, direction) in [("up", &status.up), ("down", &status.down)] {
        let Some(direction) = direction else { continue };
        let _ = writeln!(text, "  {word:<8} {}", path(&direction.impairment));
        let _ = writeln!(text, "           {}", counters(direction));
    }
    for fault in &status.faults {
        let _ = writeln!(text, "  fault    {} at {} ({}): {}", fault.id, fault.at, fault.value, fault.about);
    }
    for agent in &status.agents {
        let _ = writeln!(
            text,
            "  snmp     {} at {}: community {} (2c), or user {} with SHA password {} (3)",
            agent.host, agent.address, agent.name, agent.name, agent.password
        );
    }
    for caution in &status.cautions {
        let _ = writeln!(text, "  caution  {caution}");
    }
    text
}

fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join("  ")
}

/// The counts above 0, in words.
fn happened(counts: &[(u64, &str)]) -> impl Iterator<Item = String> {
    counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"))
}

fn passed(input: u64, output: u64, counts: &[(u64, &str)]) -> String {
    let packets = [format!("{input} packets in"), format!("{output} out")];
    packets.into_iter().chain(happened(counts)).collect::<Vec<_>>().join(", ")
}

fn counts(port: &PortStatus) -> String {
    let drops = [
        (port.rx_dropped, "dropped on receiving"),
        (port.tx_dropped, "dropped by the device on sending"),
        (port.qdisc_drops, "dropped by the queueing discipline"),
    ];
    passed(port.rx_packets, port.tx_packets, &drops)
}

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
    let by_default = path.rate_bps > 0 && path.queue_packets == 0 && path.queue_bytes == 0;
    let packets = if by_default { Impairment::DEFAULT_QUEUE_PACKETS } else { path.queue_packets };
    say(packets > 0, format!("queue {packets} packets"));
    say(path.queue_bytes > 0, format!("queue {}", bytes(path.queue_bytes)));
    say(path.police_bps > 0, format!("policed to {}", bps(path.police_bps as f64)));
    say(path.mtu > 0, format!("MTU {}", path.mtu));
    say(path.corrupt > 0.0, format!("corruption {}", percent(path.corrupt)));
    say(path.codel, "CoDel".to_owned());
    say(
        path.outage_each_us > 0,
        format!("nothing passes for {} of each {}", micros(path.outage_us), micros(path.outage_each_us)),
    );
    say(path.gather_us > 0, format!("batched for {}", micros(path.gather_us)));
    if words.is_empty() { "unlimited".to_owned() } else { words.join(", ") }
}

/// `several`: the host has several ports, each of which shows its own drops.
fn dropped_by_host(count: &HostCounters, several: bool) -> String {
    let drops = [
        (if several { 0 } else { count.rx_dropped }, "dropped by the backlog"),
        (if several { 0 } else { count.tx_dropped }, "dropped by the interface ring"),
        (if several { 0 } else { count.qdisc_drops }, "dropped by the queueing discipline"),
        (count.filter_input_drops.unwrap_or(0), "dropped by the input rule"),
        (count.filter_output_drops.unwrap_or(0), "dropped by the output rule"),
        (count.filter_forward_drops.unwrap_or(0), "dropped by the forward rule"),
    ];
    happened(&drops).collect::<Vec<_>>().join(", ")
}

fn counters(direction: &DirectionStatus) -> String {
    let count = &direction.counters;
    let events = [
        (count.dropped_loss, "lost"),
        (count.dropped_queue, "dropped by the queue"),
        (count.dropped_policer, "dropped by the policer"),
        (count.dropped_mtu, "above the MTU"),
        (count.dropped_device, "refused by the interface"),
        (count.duplicated, "duplicated"),
        (count.reordered, "reordered"),
        (count.corrupted, "corrupted"),
        (count.waiting_packets, "in transit"),
    ];
    passed(count.taken_packets, count.delivered_packets, &events)
}
