//! What a record says: rates over any part of a trial, from cumulative samples. Pure: no clock, no IO.

use narrows_model::{CpuTimes, Flow, Limit, TcpEndRecord, TcpInfo, TcpPlan, TcpSample, TcpStreamRecord, Trial};

/// A part of a trial, in microseconds since it began on the end whose record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its first instant.
    pub from_us: u64,
    /// Its last instant.
    pub to_us: u64,
}

impl Window {
    /// Its length in seconds.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn seconds(self) -> f64 {
        self.to_us.saturating_sub(self.from_us) as f64 / 1e6
    }
}

/// One flow over the counted part of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Which flow.
    pub flow: Flow,
    /// The counted part, on the receiving end's clock.
    pub window: Window,
    /// Bytes that the receiving application took.
    pub bytes: f64,
    /// The receiver's bytes over the counted part, in bits per second.
    pub goodput_bps: f64,
    /// Of each stream, by id.
    pub stream_bps: Vec<(u32, f64)>,
    /// Segments that the sender retransmitted.
    pub retrans_segs: Option<u64>,
    /// Bytes that the sender retransmitted.
    pub retrans_bytes: Option<u64>,
    /// Median over the sender's samples of the smoothed round-trip time, in microseconds.
    pub rtt_us: Option<u64>,
    /// The smallest round-trip time that the sender saw, in microseconds.
    pub min_rtt_us: Option<u64>,
    /// CPUs' worth of time that the sending data threads used (1.0: one core full).
    pub sender_threads: Option<f64>,
    /// CPUs' worth of time that the receiving data threads used.
    pub receiver_threads: Option<f64>,
    /// CPUs' worth of time that the sender's whole host was busy.
    pub sender_host: Option<f64>,
    /// CPUs' worth of time that the receiver's whole host was busy.
    pub receiver_host: Option<f64>,
}

/// The counted part of one end's record: what was not omitted, up to the planned end or the last sample of the flow.
/// `None` where nothing is left.
#[must_use]
pub fn counted(plan: &TcpPlan, end: &TcpEndRecord, flow: Flow) -> Option<Window> {
    let last = streams(end, flow).filter_map(|stream| stream.samples.last()).map(|sample| sample.at_us).max()?;
    let to_us = match plan.limit {
        Limit::DurationMs(ms) => last.min(ms.saturating_mul(1000)),
        Limit::BytesPerStream(_) => last,
    };
    let from_us = plan.omit_ms.saturating_mul(1000);
    (from_us < to_us).then_some(Window { from_us, to_us })
}

/// A cumulative figure of a stream at an instant, interpolated between the samples around it; outside of them the nearest
/// one counts. `None` where a sample lacks the figure.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn at(stream: &TcpStreamRecord, at_us: u64, figure: impl Fn(&TcpSample) -> Option<u64>) -> Option<f64> {
    let after = stream.samples.partition_point(|sample| sample.at_us < at_us);
    let Some(right) = stream.samples.get(after) else {
        return figure(stream.samples.last()?).map(|value| value as f64);
    };
    let right_value = figure(right)? as f64;
    let Some(left) = after.checked_sub(1).and_then(|index| stream.samples.get(index)) else {
        return Some(right_value);
    };
    let left_value = figure(left)? as f64;
    // A record from elsewhere may be out of order: then the figure is wrong, but nothing breaks.
    let span = right.at_us.saturating_sub(left.at_us).max(1);
    let share = at_us.saturating_sub(left.at_us) as f64 / span as f64;
    Some(left_value + share * (right_value - left_value))
}

/// How much a cumulative figure of a stream grew over a window.
#[must_use]
pub fn growth(
    stream: &TcpStreamRecord,
    window: Window,
    figure: impl Fn(&TcpSample) -> Option<u64> + Copy,
) -> Option<f64> {
    Some((at(stream, window.to_us, figure)? - at(stream, window.from_us, figure)?).max(0.0))
}

/// Bytes that the application of this end moved for a flow over a window.
#[must_use]
pub fn bytes(end: &TcpEndRecord, flow: Flow, window: Window) -> f64 {
    streams(end, flow).filter_map(|stream| growth(stream, window, |sample| Some(sample.bytes))).sum()
}

/// Bits per second that the application of this end moved for a flow over a window: on the receiving end, the goodput.
#[must_use]
pub fn bps(end: &TcpEndRecord, flow: Flow, window: Window) -> f64 {
    let seconds = window.seconds();
    if seconds > 0.0 { bytes(end, flow, window) * 8.0 / seconds } else { 0.0 }
}

/// The windows between the multiples of an interval, the last one as short as it has to be.
#[must_use]
pub fn intervals(window: Window, interval_us: u64) -> Vec<Window> {
    let step = interval_us.max(1);
    let mut list = Vec::new();
    let mut from_us = window.from_us;
    while from_us < window.to_us {
        let to_us = ((from_us / step + 1).saturating_mul(step)).min(window.to_us);
        list.push(Window { from_us, to_us });
        from_us = to_us;
    }
    list
}

/// The growth of a counter of `TCP_INFO` over a window, over all streams of a flow; `None` where the kernel did not count.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn counted_by_tcp(
    end: &TcpEndRecord,
    flow: Flow,
    window: Window,
    field: impl Fn(&TcpInfo) -> Option<u64> + Copy,
) -> Option<u64> {
    let mut sum = None;
    for stream in streams(end, flow) {
        *sum.get_or_insert(0.0) += growth(stream, window, |sample| field(&sample.tcp))?;
    }
    sum.map(|sum: f64| sum.round() as u64)
}

/// CPUs' worth of time of a flow's data threads on this end over a window.
#[must_use]
pub fn thread_load(end: &TcpEndRecord, flow: Flow, window: Window) -> Option<f64> {
    let mut sum = None;
    for stream in streams(end, flow) {
        *sum.get_or_insert(0.0) += growth(stream, window, |sample| sample.thread_cpu_us)?;
    }
    let seconds = window.seconds();
    sum.filter(|_| seconds > 0.0).map(|us: f64| us / 1e6 / seconds)
}

/// The CPUs of this end's host over a window: between the samples nearest to its ends.
#[must_use]
pub fn host_times(end: &TcpEndRecord, window: Window) -> Option<Vec<CpuTimes>> {
    let nearest = |at_us: u64| end.host.iter().min_by_key(|sample| sample.at_us.abs_diff(at_us));
    let (from, to) = (nearest(window.from_us)?, nearest(window.to_us)?);
    if from.at_us >= to.at_us {
        return None;
    }
    let since = |cpu: &CpuTimes| from.cpus.iter().find(|earlier| earlier.cpu == cpu.cpu).map(|at| cpu.since(at));
    Some(to.cpus.iter().filter_map(since).collect()).filter(|cpus: &Vec<_>| !cpus.is_empty())
}

/// CPUs' worth of time that this end's host was busy over a window, whatever with.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn host_load(end: &TcpEndRecord, window: Window) -> Option<f64> {
    let share = |cpu: CpuTimes| match cpu.total_us() {
        0 => 0.0,
        total => cpu.busy_us() as f64 / total as f64,
    };
    Some(host_times(end, window)?.into_iter().map(share).sum())
}

/// One flow of a trial in figures. `None` where the receiving end has no counted part.
#[must_use]
pub fn summary(trial: &Trial, flow: Flow) -> Option<Summary> {
    let (sender, receiver) = (trial.end(flow.sender())?, trial.end(flow.receiver())?);
    let window = counted(&trial.plan, receiver, flow)?;
    let sent = counted(&trial.plan, sender, flow).unwrap_or(window);
    let per_stream = |stream: &TcpStreamRecord| {
        let grown = growth(stream, window, |sample| Some(sample.bytes)).unwrap_or(0.0);
        (stream.id, grown * 8.0 / window.seconds())
    };
    let within = |sample: &&TcpSample| (sent.from_us..=sent.to_us).contains(&sample.at_us);
    let samples = || streams(sender, flow).flat_map(|stream| stream.samples.iter()).filter(within);
    let mut rtts: Vec<u64> = samples().filter_map(|sample| sample.tcp.rtt_us).filter(|&rtt| rtt > 0).collect();
    rtts.sort_unstable();
    Some(Summary {
        flow,
        window,
        bytes: bytes(receiver, flow, window),
        goodput_bps: bps(receiver, flow, window),
        stream_bps: streams(receiver, flow).map(per_stream).collect(),
        retrans_segs: counted_by_tcp(sender, flow, sent, |tcp| tcp.total_retrans),
        retrans_bytes: counted_by_tcp(sender, flow, sent, |tcp| tcp.bytes_retrans),
        rtt_us: rtts.get(rtts.len() / 2).copied(),
        min_rtt_us: samples().filter_map(|sample| sample.tcp.min_rtt_us).min(),
        sender_threads: thread_load(sender, flow, sent),
        receiver_threads: thread_load(receiver, flow, window),
        sender_host: host_load(sender, sent),
        receiver_host: host_load(receiver, window),
    })
}

fn streams(end: &TcpEndRecord, flow: Flow) -> impl Iterator<Item = &TcpStreamRecord> {
    end.streams.iter().filter(move |stream| stream.flow == flow)
}

#[cfg(test)]
mod tests;
