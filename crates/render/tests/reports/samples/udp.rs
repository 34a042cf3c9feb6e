//! Hand-made records of UDP measurements.

use super::runs::{addresses, record};
use narrows_model::run::report::RunView;
use narrows_model::*;

/// Values of a distribution in one bucket each, smallest first.
pub(crate) fn distribution(values: &[(u64, u64)]) -> Distribution {
    let count: u64 = values.iter().map(|(_, n)| n).sum();
    let at = |share: f64| {
        let mut sum = 0;
        let found = values.iter().find(|(_, n)| {
            sum += n;
            sum as f64 >= share * count as f64
        });
        found.map_or(0, |(value, _)| *value)
    };
    let mean = values.iter().map(|(value, n)| (value * n) as f64).sum::<f64>() / count as f64;
    Distribution {
        count,
        min: values[0].0,
        mean,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: values[values.len() - 1].0,
        buckets: values.iter().map(|(value, n)| [*value, *n]).collect(),
    }
}

/// What goes wrong in each second of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    pub(crate) lost_s: u64,
    pub(crate) unsent_s: u64,
    pub(crate) reordered_s: u64,
}

/// Datagrams that leave back to back.
const BURST: u64 = 10;
const SIZE: u64 = 1448;

fn stream(id: u32, flow: Flow, at: Place, seconds: u64, pps: u64, trouble: Trouble) -> UdpStreamRecord {
    let sends = flow.sender() == at;
    let sent = pps * seconds - trouble.unsent_s * seconds;
    let distinct = sent - trouble.lost_s * seconds;
    let samples = (0..=seconds)
        .map(|s| {
            let datagrams =
                if sends { s * (pps - trouble.unsent_s) } else { s * (pps - trouble.unsent_s - trouble.lost_s) };
            UdpSample {
                at_us: s * 1_000_000 + if sends { 0 } else { 180 },
                datagrams,
                bytes: datagrams * SIZE,
                calls: datagrams / 10,
                errors: if sends { s * trouble.unsent_s.min(1) } else { 0 },
                unsent: if sends { s * trouble.unsent_s } else { 0 },
                lost: if sends { 0 } else { s * trouble.lost_s },
                reordered: if sends { 0 } else { s * trouble.reordered_s },
                jitter_ns: if sends { 0.0 } else { 14_800.0 },
                socket_drops: (!sends).then_some(s * trouble.lost_s),
                thread_cpu_us: Some(s * 410_000),
                ..UdpSample::default()
            }
        })
        .collect();
    let [local, remote] = addresses(at, "10.0.10.11:51234", "10.0.10.10:5220");
    let last_burst = sent.saturating_sub(1) % BURST + 1;
    let active_ns = seconds * 1_000_000_000 * sent.saturating_sub(last_burst) / sent.max(1);
    UdpStreamRecord {
        id,
        flow,
        local,
        remote,
        datagram_bytes: 1448,
        path_mtu_bytes: Some(1476),
        sndbuf_bytes: Some(425_984),
        rcvbuf_bytes: Some(425_984),
        rcvbuf_requested_bytes: (!sends).then_some(8 << 20),
        method: if sends { "sendmmsg+segment" } else { "recvmmsg+gro" }.into(),
        sent: sends.then(|| UdpSent {
            intended: pps * seconds,
            datagrams: sent,
            bytes: sent * SIZE,
            calls: sent / 10,
            errors: trouble.unsent_s.min(1) * seconds,
            unsent: Unsent { no_buffers: trouble.unsent_s * seconds, ..Unsent::default() },
            skipped: 0,
            active_ns,
            gaps_ns: distribution(&[(0, sent * 9 / 10), (11_600, sent / 20), (116_000, sent / 20)]),
            burst_max: BURST,
        }),
        received: (!sends).then(|| UdpReceived {
            datagrams: distinct,
            bytes: distinct * SIZE,
            calls: distinct / 12,
            distinct,
            lost: trouble.lost_s * seconds,
            reordered: trouble.reordered_s * seconds,
            reorder_extent_max: trouble.reordered_s * 7,
            loss_bursts: trouble.lost_s.min(1) * seconds,
            loss_burst_max: trouble.lost_s,
            socket_drops: Some(trouble.lost_s * seconds),
            next_sequence: sent,
            jitter_ns: 14_800.0,
            active_ns,
            stamps: "kernel".into(),
            gaps_ns: distribution(&[(1_000, distinct * 9 / 10), (110_000, distinct / 10)]),
            delay_variation_ns: distribution(&[(12_000, distinct.saturating_sub(800)), (80_000, 700), (410_000, 100)]),
            min_clock_difference_ns: Some(-81_000),
            ..UdpReceived::default()
        }),
        samples,
    }
}

fn end(at: Place, plan: &UdpPlan, seconds: u64, pps: u64, trouble: Trouble) -> UdpEndRecord {
    let of = |flow| (0..plan.streams).map(move |id| stream(id, flow, at, seconds, pps, trouble));
    record(at, plan.flows().iter().copied().flat_map(of).collect(), seconds, [130_000, 420_000])
}

/// A trial of that plan over some seconds, each stream with so many datagrams per second.
pub(crate) fn trial(plan: UdpPlan, seconds: u64, pps: u64, trouble: Trouble) -> Trial {
    let [client, server] = [Place::Client, Place::Server].map(|place| end(place, &plan, seconds, pps, trouble));
    Trial::new(plan, client, server, seconds * 1_000_000)
}

/// The run of such a trial.
pub(crate) fn run_view() -> RunView {
    RunView {
        id: "20070919-201444-0000002a".into(),
        made_by: "narrows 0.1.0".into(),
        started_unix_us: 1_190_232_884_000_000,
        elapsed_s: 4.4,
        target: Target { asked: "umfs05".into(), address: "10.0.10.10:5220".into(), family: Family::Ipv4 },
        ending: Ending::Complete,
        idle_rtt_us: Some(180),
        server_limit_bps: None,
    }
}
