//! One flow of one UDP trial, in the terms that the rules of UDP are written in.

use crate::evidence::cores::{self, CoreShare};
use crate::evidence::ports::{self, PortFlow};
use crate::ledger::{Accounting, ledger};
use narrows_model::Flow;
use narrows_model::diagnosis::ledger::{Ledger, Stage};
use narrows_model::load::udp::record::{UdpEndRecord, UdpReceived, UdpStreamRecord};
use narrows_model::load::udp::{UdpPlan, UdpRate, UdpTrial};
use std::collections::BTreeMap;

/// One end of a UDP flow.
#[derive(Debug, Clone, Default)]
pub struct UdpEnd {
    /// The busiest data thread's share of a core.
    pub thread_share: Option<f64>,
    /// Each core of the host.
    pub cores: Vec<CoreShare>,
    /// By how much the host's counters grew.
    pub counts: BTreeMap<String, u64>,
}

impl UdpEnd {
    fn of(end: &UdpEndRecord, flow: Flow) -> Self {
        let share = |stream: &UdpStreamRecord| -> Option<f64> {
            let (first, last) = (stream.samples.first()?, stream.samples.last()?);
            let span = last.at_us.checked_sub(first.at_us).filter(|&us| us > 0)?;
            // A thread is on one core at a time; the clocks are not read at quite the same instant.
            Some((last.thread_cpu_us?.saturating_sub(first.thread_cpu_us?) as f64 / span as f64).min(1.0))
        };
        let of_flow = end.streams.iter().filter(|stream| stream.flow == flow);
        Self {
            thread_share: of_flow.filter_map(share).reduce(f64::max),
            cores: cores::shares(&end.host, 0),
            counts: end.after.counts_since(&end.before),
        }
    }

    /// The busiest of the data thread and the cores' soft interrupts, and what it is.
    pub fn busiest(&self) -> Option<(f64, &'static str)> {
        let thread = self.thread_share.map(|share| (share, "the data thread"));
        let core = self.cores.iter().map(|core| (core.softirq, "the receive path of one core"));
        core.chain(thread).max_by(|a, b| a.0.total_cmp(&b.0))
    }
}

/// Datagrams that the plan asked of senders that say only what they sent (iperf3), in the time that they took, as far as the plan gave it
/// them: their clocks run on while the test ends. 0 where it asked for as many as possible.
fn asked(plan: &UdpPlan, flow: Flow, sent: &[UdpStreamRecord]) -> u64 {
    let UdpRate::Bps(bps) = plan.rate(flow) else { return 0 };
    let each_bps = bps as f64 / sent.len().max(1) as f64;
    let of = |stream: &UdpStreamRecord| {
        let it = stream.sent.as_ref().filter(|it| it.intended == 0 && !it.counts_calls())?;
        let took_ns = it.active_ns.min(plan.duration_ms.saturating_mul(1_000_000));
        let bytes = each_bps / 8.0 * took_ns as f64 / 1e9;
        Some((bytes / f64::from(stream.datagram_bytes.max(1))) as u64)
    };
    sent.iter().filter_map(of).fold(0, u64::saturating_add)
}

/// One flow of one UDP trial.
#[derive(Debug, Clone)]
pub struct UdpView {
    /// Where its datagrams went.
    pub ledger: Ledger,
    /// What was asked for.
    pub plan: UdpPlan,
    /// How long the sender sent, seconds.
    pub seconds: f64,
    /// How long that took to arrive, seconds: a queue drains after the last departure.
    pub arrival_seconds: f64,
    /// Payload of the largest datagram.
    pub size_bytes: u64,
    /// Payload handed over, bits per second.
    pub offered_bps: f64,
    /// Payload that arrived, each datagram once, bits per second.
    pub goodput_bps: f64,
    /// Share of what the plan asked for that the sender did not even hand over; 0 where it asked for as much as possible.
    pub behind: f64,
    /// Runs of consecutive losses, those in the receiving host included; 0 where none was lost or nobody counts them …
    pub loss_runs: u64,
    /// … and the longest of them, datagrams.
    pub loss_burst_max: u64,
    /// Datagrams that left without a pause between them, at most.
    pub burst_max: u64,
    /// Receive buffer obtained by a stream, bytes of kernel memory.
    pub rcvbuf_bytes: Option<u64>,
    /// Receive buffer that was wanted, in the same bytes.
    pub rcvbuf_requested_bytes: Option<u64>,
    /// Share of the samples that found the receive buffer at least four fifths full.
    pub buffer_full: Option<f64>,
    /// Median, 99th percentile and maximum delay above the minimum, microseconds; `None` where no receiver measured it.
    pub delay_us: Option<[f64; 3]>,
    /// Its streams by their ports.
    pub flows: Vec<PortFlow>,
    pub sender: UdpEnd,
    pub receiver: UdpEnd,
    pub(crate) accounting: Accounting,
}

impl UdpView {
    /// The view of a flow; `None` where the trial does not have it.
    pub fn of(trial: UdpTrial<'_>, flow: Flow) -> Option<Self> {
        let accounting = Accounting::of(trial, flow)?;
        let (sending, receiving) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
        let of_flow = |end: &'_ UdpEndRecord| -> Vec<UdpStreamRecord> {
            end.streams.iter().filter(|stream| stream.flow == flow).cloned().collect()
        };
        let (sent, got) = (of_flow(sending), of_flow(receiving));
        let ledger = ledger(trial, flow);
        let span = |stream: &UdpStreamRecord, arrived: bool| {
            let other = got.iter().find(|other| arrived && other.id == stream.id);
            trial.plan.rate_seconds(flow, stream.sent.as_ref(), other.and_then(|other| other.received.as_ref()))
        };
        let longest = |arrived| sent.iter().map(|stream| span(stream, arrived)).fold(1e-3, f64::max);
        let (seconds, arrival_seconds) = (longest(false), longest(true));
        let size_bytes = sent.iter().map(|stream| u64::from(stream.datagram_bytes)).max().unwrap_or(0);
        let sum = |of: fn(&UdpStreamRecord) -> Option<u64>, streams: &[UdpStreamRecord]| -> u64 {
            streams.iter().filter_map(of).fold(0, u64::saturating_add)
        };
        let (datagrams, bytes) = (
            sum(|stream| Some(stream.sent.as_ref()?.datagrams), &sent),
            sum(|stream| Some(stream.sent.as_ref()?.bytes), &sent),
        );
        let mean = if datagrams == 0 { size_bytes as f64 } else { bytes as f64 / datagrams as f64 };
        let intended =
            sum(|stream| Some(stream.sent.as_ref()?.intended), &sent).saturating_add(asked(trial.plan, flow, &sent));
        let handed_over = ledger.offered.saturating_add(accounting.uncounted);
        let memories: Vec<_> =
            got.iter().flat_map(|stream| &stream.samples).filter_map(|sample| sample.memory).collect();
        let full = memories.iter().filter(|memory| {
            u64::from(memory.rmem_alloc_bytes) * 5 >= u64::from(memory.rcvbuf_bytes) * 4 && memory.rcvbuf_bytes > 0
        });
        let largest = |of: fn(&UdpReceived) -> u64| {
            got.iter().filter_map(|stream| stream.received.as_ref()).map(of).max().unwrap_or(0)
        };
        Some(Self {
            plan: trial.plan.clone(),
            seconds,
            arrival_seconds,
            size_bytes,
            offered_bps: ledger.offered as f64 * mean * 8.0 / seconds,
            goodput_bps: ledger.delivered as f64 * mean * 8.0 / arrival_seconds,
            behind: if intended == 0 { 0.0 } else { 1.0 - (handed_over as f64 / intended as f64).min(1.0) },
            loss_runs: sum(|stream| Some(stream.received.as_ref()?.loss_bursts), &got),
            loss_burst_max: largest(|got| got.loss_burst_max),
            burst_max: sent.iter().filter_map(|stream| Some(stream.sent.as_ref()?.burst_max)).max().unwrap_or(0),
            rcvbuf_bytes: got.iter().filter_map(|stream| stream.rcvbuf_bytes).min().map(u64::from),
            rcvbuf_requested_bytes: got.iter().filter_map(|stream| stream.rcvbuf_requested_bytes).max().map(u64::from),
            buffer_full: (!memories.is_empty()).then(|| full.count() as f64 / memories.len() as f64),
            delay_us: (largest(|got| got.delay_variation_ns.count) > 0).then(|| {
                [
                    largest(|got| got.delay_variation_ns.p50) as f64 / 1e3,
                    largest(|got| got.delay_variation_ns.p99) as f64 / 1e3,
                    largest(|got| got.delay_variation_ns.max) as f64 / 1e3,
                ]
            }),
            flows: ports::flows(&sent, &got),
            sender: UdpEnd::of(sending, flow),
            receiver: UdpEnd::of(receiving, flow),
            ledger,
            accounting,
        })
    }

    /// Payload per bit of its packets, with the headers of IP and UDP and so many bytes beside them.
    pub fn payload_part(&self, beside_bytes: f64) -> f64 {
        let (size, headers) = (self.size_bytes.max(1) as f64, if self.accounting.ipv6 { 48.0 } else { 28.0 });
        size / (size + headers + beside_bytes)
    }

    /// Datagrams that were handed over and did not arrive.
    pub const fn missing(&self) -> u64 {
        self.ledger.offered.saturating_sub(self.ledger.delivered)
    }

    /// The same as a part of those handed over.
    pub fn loss(&self) -> f64 {
        if self.ledger.offered == 0 { 0.0 } else { self.missing() as f64 / self.ledger.offered as f64 }
    }

    /// Datagrams handed over a second.
    pub fn offered_pps(&self) -> f64 {
        self.ledger.offered as f64 / self.seconds
    }

    /// Datagrams that arrived a second.
    pub fn delivered_pps(&self) -> f64 {
        self.ledger.delivered as f64 / self.arrival_seconds
    }

    pub fn stage(&self, id: &str) -> Option<&Stage> {
        self.ledger.stages.iter().find(|stage| stage.id == id)
    }

    /// What a stage dropped.
    pub fn dropped(&self, id: &str) -> u64 {
        self.stage(id).map_or(0, |stage| stage.dropped)
    }

    /// Datagrams that went onto the path, and those that were lost on it.
    pub fn on_the_path(&self) -> (u64, u64) {
        self.stage("path").map_or((0, 0), |stage| (stage.entered, stage.dropped))
    }

    /// How long a packet of the flow takes at the rate at which they arrive, microseconds.
    pub fn packet_us(&self) -> f64 {
        1e6 / self.delivered_pps().max(1e-6)
    }
}
