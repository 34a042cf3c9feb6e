//! What this end saw of a test, in the words of iperf3's results.

use super::{Results, StreamResult, stream_id};
use narrows_model::{CpuTimes, HostSample, LoadRecord, TcpEndRecord, TcpStreamRecord, UdpEndRecord, UdpStreamRecord};

/// The results of this end. `omit_us`: what is not counted. `end_us`: when the last data moved, where that is known better than by
/// the last sample.
pub fn results(record: &LoadRecord, omit_us: u64, end_us: Option<u64>) -> Results {
    let mut results = Results { cpu: cpu(record.end().host()), ..Results::default() };
    if let Some(TcpEndRecord { place, streams, .. }) = record.get() {
        let sends = streams.iter().any(|stream| stream.flow.sender() == *place);
        results.has_retransmits = sends.then_some(true);
        results.congestion = streams.first().and_then(|stream| stream.congestion_control.clone());
        let of = |stream: &TcpStreamRecord| tcp(stream, stream.flow.sender() == *place, omit_us, end_us);
        results.streams = streams.iter().map(of).collect();
    } else if let Some(UdpEndRecord { streams, .. }) = record.get() {
        results.streams = streams.iter().map(|stream| udp(stream, omit_us, end_us)).collect();
    }
    results
}

fn seconds(from_us: u64, to_us: u64) -> (f64, f64) {
    (0.0, to_us.saturating_sub(from_us) as f64 / 1e6)
}

fn tcp(stream: &TcpStreamRecord, sends: bool, omit_us: u64, end_us: Option<u64>) -> StreamResult {
    let samples = &stream.samples;
    let first = samples.iter().find(|sample| sample.at_us >= omit_us && omit_us > 0).or(samples.first());
    let (Some(first), Some(last)) = (first, samples.last()) else { return StreamResult::default() };
    // The socket of an ended stream may be gone, and its counters with it.
    let retransmits = samples.iter().rev().find_map(|sample| sample.tcp.total_retrans);
    let retransmits = retransmits.map(|all| all.saturating_sub(first.tcp.total_retrans.unwrap_or(0)));
    StreamResult {
        id: stream_id(stream.id),
        bytes: last.bytes - first.bytes.min(last.bytes),
        retransmits: retransmits.filter(|_| sends),
        seconds: seconds(first.at_us, end_us.unwrap_or(last.at_us).min(last.at_us)),
        ..StreamResult::default()
    }
}

fn udp(stream: &UdpStreamRecord, omit_us: u64, end_us: Option<u64>) -> StreamResult {
    let samples = &stream.samples;
    let first = samples.iter().find(|sample| sample.at_us >= omit_us && omit_us > 0).or(samples.first());
    let (Some(first), Some(last)) = (first, samples.last()) else { return StreamResult::default() };
    let numbers = |datagrams: u64, lost: u64, duplicates: u64| datagrams.saturating_sub(duplicates) + lost;
    let received = stream.received.as_ref();
    StreamResult {
        id: stream_id(stream.id),
        bytes: last.bytes - first.bytes.min(last.bytes),
        retransmits: None,
        jitter_s: received.map_or(0.0, |it| it.jitter_ns / 1e9),
        lost: received.map_or(0, |it| it.lost),
        packets: received.map_or(last.datagrams, |it| numbers(it.datagrams, it.lost, it.duplicates)),
        omitted: Some(match omit_us {
            0 => (0, 0),
            _ => (first.lost, numbers(first.datagrams, first.lost, first.duplicates)),
        }),
        seconds: seconds(first.at_us, end_us.unwrap_or(last.at_us).min(last.at_us)),
    }
}

/// CPU time of the whole host in percent of one CPU: in all, user, system. iperf3 has that of its process, which leaves out what
/// interrupts cost.
fn cpu(host: &[HostSample]) -> [f64; 3] {
    let (Some(first), Some(last)) = (host.first(), host.last()) else { return [0.0; 3] };
    let share = |of: fn(&CpuTimes) -> u64| {
        let sum = |sample: &HostSample| sample.cpus.iter().map(of).sum::<u64>();
        sum(last).saturating_sub(sum(first)) as f64 / last.at_us.saturating_sub(first.at_us).max(1) as f64 * 100.0
    };
    let (user, busy) = (share(|cpu| cpu.user_us), share(CpuTimes::busy_us));
    [busy, user, (busy - user).max(0.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Flow, LoadPlan, Place, Snapshot, TcpPlan, TcpSample};

    #[test]
    fn the_omitted_part_is_not_counted() {
        let sample = |at_us, bytes| TcpSample { at_us, bytes, ..TcpSample::default() };
        let samples = vec![sample(0, 0), sample(1_000_000, 100), sample(3_000_000, 700)];
        let stream = TcpStreamRecord { id: 1, flow: Flow::Up, samples, ..TcpStreamRecord::default() };
        assert_eq!(LoadPlan::from(TcpPlan::default()).streams().len(), 1);
        let record = TcpEndRecord {
            place: Place::Server,
            streams: vec![stream],
            host: Vec::new(),
            before: Snapshot::default(),
            after: Snapshot::default(),
            remarks: Vec::new(),
        };
        let of = |omit_us| results(&record.clone().into(), omit_us, None).streams[0].clone();
        assert_eq!((of(0).bytes, of(0).seconds.1, of(0).id), (700, 3.0, 3));
        assert_eq!((of(1_000_000).bytes, of(1_000_000).seconds.1, of(0).retransmits), (600, 2.0, None));
    }
}
