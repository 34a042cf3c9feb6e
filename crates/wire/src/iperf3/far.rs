//! The record of the far end, which runs iperf3: its results, and between them what this end's kernel saw acknowledged.

use super::{Results, StreamResult, stream_id};
use narrows_model::{
    Flow, LoadPlan, LoadRecord, LoadSample, Place, Progress, StepReceived, StepSent, StreamProgress, TcpEndRecord,
    TcpInfo, TcpSample, TcpStreamRecord, UdpEndRecord, UdpReceived, UdpSample, UdpSent, UdpStreamRecord,
};

/// How the far end moved its data.
const METHOD: &str = "iperf3";

/// The far end's part of this end's progress: what TCP acknowledged of the streams that go there.
pub fn progress(own: &Progress) -> Progress {
    let acknowledged = |stream: &StreamProgress| {
        let sample: &TcpSample = stream.sample.get()?;
        let sample = far_sample(sample).filter(|_| stream.flow == Flow::Up)?;
        Some(StreamProgress { id: stream.id, flow: stream.flow, sample: LoadSample::from(sample) })
    };
    Progress { at_us: own.at_us, streams: own.streams.iter().filter_map(acknowledged).collect() }
}

/// What the far end has received by then, as far as its kernel acknowledged it.
pub(crate) fn far_sample(own: &TcpSample) -> Option<TcpSample> {
    // The SYN is counted as a byte by some kernels.
    let bytes = own.tcp.bytes_acked?.min(own.bytes);
    Some(TcpSample { at_us: own.at_us, bytes, ..TcpSample::default() })
}

/// The far end's record of one of this end's streams, with what it counted.
pub(crate) fn stream(own: &TcpStreamRecord, method: &str, samples: Vec<TcpSample>) -> TcpStreamRecord {
    TcpStreamRecord {
        id: own.id,
        flow: own.flow,
        local: own.remote.clone(),
        remote: own.local.clone(),
        method: method.to_owned(),
        samples,
        ..TcpStreamRecord::default()
    }
}

/// The far end's record. `results`: `None` where the test broke off before them. Sets in this end's own record what it did not count
/// of the far end's datagrams.
pub fn record(plan: &LoadPlan, own: &mut LoadRecord, results: Option<&Results>) -> LoadRecord {
    let omit_us = plan.omitted_ms() * 1000;
    let of = |id: u32| results.and_then(|it| it.streams.iter().find(|stream| stream.id == stream_id(id)));
    let mut record = plan.partial_record(Place::Server, &[], String::new());
    if let (LoadRecord::Tcp(TcpEndRecord { streams, remarks, .. }), LoadRecord::Tcp(own)) = (&mut record, &mut *own) {
        remarks.clear();
        *streams = own.streams.iter().map(|stream| tcp(stream, of(stream.id), omit_us)).collect();
        for stream in streams.iter_mut().filter(|stream| stream.flow == Flow::Down) {
            stream.congestion_control = results.and_then(|it| it.congestion.clone());
        }
    } else if let (LoadRecord::Udp(UdpEndRecord { streams, remarks, .. }), LoadRecord::Udp(own)) =
        (&mut record, &mut *own)
    {
        remarks.clear();
        *streams = own.streams.iter_mut().map(|stream| udp(stream, of(stream.id), omit_us)).collect();
    }
    record
}

/// A receiver of iperf3 stops at the end of the test, whatever is still under way. Datagrams that come this
/// long after the last one was sent are counted as lost by narrows' own receiver, too (`STRAGGLERS_NS` of `traffic`).
const UNDER_WAY_US: u64 = 200_000;

/// Of what was `sent`, how much after the receiver's last one was sent when that may have stopped counting: in the time by which the
/// sender's exceeds its own, and what was under way.
fn uncounted((sent, sender_us): (u64, u64), (next_sequence, receiver_us): (u64, u64)) -> u64 {
    let open_us = sender_us.saturating_sub(receiver_us).saturating_add(UNDER_WAY_US);
    let open = (u128::from(sent) * u128::from(open_us)).div_ceil(u128::from(sender_us.max(1)));
    sent.saturating_sub(next_sequence).min(u64::try_from(open).unwrap_or(u64::MAX))
}

/// This end waits no longer for the results: a test that lasted longer than here by more than this is none.
const LATE_US: u64 = 10_000_000;

/// When the counted part began, by this end's clock, and ended: it lasted as long as the far end says, where it says so.
fn counted<S>(samples: &[S], at_us: impl Fn(&S) -> u64, omit_us: u64, result: Option<&StreamResult>) -> [u64; 2] {
    let from = samples.iter().map(&at_us).find(|at| *at >= omit_us && omit_us > 0).unwrap_or(0);
    let here = samples.last().map_or(0, at_us).max(from);
    let there = result.map_or(0, |it| far_us(it.seconds)).saturating_add(from);
    [from, if there > from && there <= here.saturating_add(LATE_US) { there } else { here }]
}

fn far_us((from_s, to_s): (f64, f64)) -> u64 {
    ((to_s - from_s) * 1e6).round() as u64
}

fn tcp(own: &TcpStreamRecord, result: Option<&StreamResult>, omit_us: u64) -> TcpStreamRecord {
    let [from_us, to_us] = counted(&own.samples, |sample| sample.at_us, omit_us, result);
    let sample = |at_us, bytes, retransmitted| TcpSample {
        at_us,
        bytes,
        tcp: TcpInfo { total_retrans: retransmitted, ..TcpInfo::default() },
        ..TcpSample::default()
    };
    let mut samples: Vec<TcpSample> = match own.flow {
        Flow::Up => own.samples.iter().filter(|sample| sample.at_us < to_us).filter_map(far_sample).collect(),
        Flow::Down => Vec::new(),
    };
    if let Some(result) = result {
        // Only the end of a sender's retransmissions is known.
        let retransmitted = result.retransmits.filter(|_| own.flow == Flow::Down);
        if own.flow == Flow::Down || samples.is_empty() {
            samples = vec![sample(0, 0, retransmitted.map(|_| 0)), sample(from_us, 0, retransmitted.map(|_| 0))];
            samples.dedup_by_key(|sample| sample.at_us);
        }
        let before = samples.iter().find(|sample| sample.at_us >= from_us).map_or(0, |sample| sample.bytes);
        let end = before + result.bytes;
        samples.iter_mut().for_each(|sample| sample.bytes = sample.bytes.min(end));
        samples.push(sample(to_us, end, retransmitted));
    }
    stream(own, METHOD, samples)
}

fn udp(own: &mut UdpStreamRecord, result: Option<&StreamResult>, omit_us: u64) -> UdpStreamRecord {
    let mut far = UdpStreamRecord {
        id: own.id,
        flow: own.flow,
        local: own.remote.clone(),
        remote: own.local.clone(),
        datagram_bytes: own.datagram_bytes,
        method: METHOD.to_owned(),
        ..UdpStreamRecord::default()
    };
    let Some(result) = result else { return far };
    let [from_us, to_us] = counted(&own.samples, |sample| sample.at_us, omit_us, Some(result));
    let (omitted_lost, omitted) = result.omitted.unwrap_or_default();
    let per_datagram = u64::from(own.datagram_bytes);
    let sends = own.flow == Flow::Down;
    let arrived = |packets: u64, lost: u64| if sends { packets } else { packets.saturating_sub(lost) };
    let before = arrived(omitted, omitted_lost);
    let sample =
        |at_us, datagrams: u64, bytes, lost| UdpSample { at_us, datagrams, bytes, lost, ..UdpSample::default() };
    far.samples.push(sample(0, 0, 0, 0));
    if from_us > 0 {
        far.samples.push(sample(from_us, before, before * per_datagram, omitted_lost));
    }
    let (datagrams, bytes) = (arrived(result.packets, result.lost), before * per_datagram + result.bytes);
    far.samples.push(UdpSample { jitter_ns: result.jitter_s * 1e9, ..sample(to_us, datagrams, bytes, result.lost) });
    let active_ns = to_us.saturating_mul(1000);
    let here_us = own.samples.last().map_or(0, |sample| sample.at_us);
    if sends {
        if let Some(received) = &mut own.received {
            received.uncounted = uncounted((datagrams, to_us), (received.next_sequence, here_us));
        }
        far.sent = Some(UdpSent { datagrams, bytes, active_ns, burst_max: 1, ..UdpSent::default() });
    } else {
        far.received = Some(UdpReceived {
            datagrams,
            bytes,
            distinct: datagrams,
            lost: result.lost,
            uncounted: own.sent.as_ref().map_or(0, |it| uncounted((it.datagrams, here_us), (result.packets, to_us))),
            next_sequence: result.packets,
            jitter_ns: result.jitter_s * 1e9,
            active_ns,
            stamps: "user".to_owned(),
            ..UdpReceived::default()
        });
    }
    far
}

/// What is known of a step of a path profile that went to the far end: how many datagrams it counted, and that its answer to the end of the
/// test, which left this end right behind the last datagram, took `answered_ns`; `least_ns`: what that takes on the idle path.
pub fn step(sent: StepSent, arrived: u32, answered_ns: u64, least_ns: u64) -> StepReceived {
    let arrived = arrived.min(sent.datagrams);
    let missing = sent.datagrams - arrived;
    let delay_ns = i64::try_from(answered_ns).unwrap_or(i64::MAX);
    StepReceived {
        datagrams: arrived,
        // The last one arrived as late as the queue was long.
        span_ns: sent.span_ns + answered_ns.saturating_sub(least_ns),
        gaps: missing,
        first_missing: (missing > 0).then_some(0),
        min_delay_ns: delay_ns,
        delays_ns: [delay_ns; 3],
        ..StepReceived::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Load as _, TcpPlan, UdpPlan};

    #[test]
    fn a_step_by_totals_lasts_until_its_queue_is_empty() {
        let sent = StepSent { datagrams: 100, span_ns: 99_000_000, late_ns: 0 };
        let found = step(sent, 90, 15_000_000, 5_000_000);
        assert_eq!((found.datagrams, found.span_ns, found.gaps, found.first_missing), (90, 109_000_000, 10, Some(0)));
        assert_eq!((found.min_delay_ns, found.delays_ns, found.parts.len()), (15_000_000, [15_000_000; 3], 0));
        // More than was sent cannot have arrived; an answer sooner than on the idle path shows no queue.
        let found = step(sent, 101, 4_000_000, 5_000_000);
        assert_eq!((found.datagrams, found.span_ns, found.first_missing), (100, 99_000_000, None));
    }

    #[test]
    fn the_far_end_received_what_it_says_and_before_that_what_it_acknowledged() {
        let sample = |at_us, bytes, acked| TcpSample {
            at_us,
            bytes,
            tcp: TcpInfo { bytes_acked: Some(acked), ..TcpInfo::default() },
            ..TcpSample::default()
        };
        let samples = vec![sample(0, 0, 1), sample(1_000_000, 150, 100), sample(2_000_000, 260, 250)];
        let stream = TcpStreamRecord { samples, ..TcpStreamRecord::default() };
        let mut own = LoadPlan::from(TcpPlan::default()).partial_record(Place::Client, &[], String::new());
        if let LoadRecord::Tcp(own) = &mut own {
            own.streams.push(stream);
        }
        let result = StreamResult { id: 1, bytes: 240, ..StreamResult::default() };
        let results = Results { streams: vec![result], ..Results::default() };
        let mut bytes = |omit_ms, results| {
            let plan = LoadPlan::from(TcpPlan { omit_ms, ..TcpPlan::default() });
            let far = record(&plan, &mut own, results);
            let far: &TcpEndRecord = far.get().expect("TCP");
            far.streams[0].samples.iter().map(|sample| sample.bytes).collect::<Vec<_>>()
        };
        assert_eq!(bytes(0, Some(&results)), [0, 100, 240]);
        assert_eq!(bytes(1000, Some(&results)), [0, 100, 340]);
        assert_eq!(bytes(0, None), [0, 100]);
    }

    #[test]
    fn the_far_end_lasted_as_long_as_it_says() {
        let plan = LoadPlan::from(TcpPlan::default());
        let udp = LoadPlan::from(UdpPlan::default());
        let flows = [Flow::Up, Flow::Down];
        let ends = |flow, seconds| {
            let result = StreamResult { id: 1, bytes: 36_000_000, packets: 9, seconds, ..StreamResult::default() };
            let results = Results { streams: vec![result], ..Results::default() };
            let samples = [0, 1_000_000, 3_000_000];
            let own = TcpEndRecord {
                streams: vec![TcpStreamRecord {
                    flow,
                    samples: samples.map(|at_us| TcpSample { at_us, bytes: at_us, ..TcpSample::default() }).into(),
                    ..TcpStreamRecord::default()
                }],
                ..TcpPlan::partial_record(Place::Client, Vec::new(), String::new())
            };
            let far = record(&plan, &mut own.into(), Some(&results));
            let tcp = far.get::<TcpEndRecord>().expect("TCP").streams[0].samples.last().expect("an end").at_us;
            let own = UdpEndRecord {
                streams: vec![UdpStreamRecord {
                    flow,
                    samples: samples.map(|at_us| UdpSample { at_us, ..UdpSample::default() }).into(),
                    ..UdpStreamRecord::default()
                }],
                ..UdpPlan::partial_record(Place::Client, Vec::new(), String::new())
            };
            let far = record(&udp, &mut own.into(), Some(&results));
            let stream = &far.get::<UdpEndRecord>().expect("UDP").streams[0];
            let active =
                stream.sent.as_ref().map(|it| it.active_ns).or(stream.received.as_ref().map(|it| it.active_ns));
            assert_eq!(active, Some(stream.samples.last().expect("an end").at_us * 1000));
            assert_eq!(stream.samples.last().expect("an end").at_us, tcp);
            tcp
        };
        for flow in flows {
            assert_eq!(ends(flow, (0.0, 3.020_5)), 3_020_500);
            assert_eq!(ends(flow, (1.5, 4.3)), 2_800_000);
            // Nothing is said, or nothing that can be.
            for unknown in [(0.0, 0.0), (4.0, 1.0), (0.0, 1e9), (0.0, f64::MAX)] {
                assert_eq!(ends(flow, unknown), 3_000_000);
            }
        }
    }

    #[test]
    fn what_a_receiver_did_not_count_any_more_is_not_lost() {
        // 8,561 datagrams in 2.013 s; this end counted 2 s, and all that came.
        assert_eq!(uncounted((8561, 2_013_000), (8505, 2_000_000)), 56);
        // The last second did not arrive: what was sent while this end surely listened is lost.
        let tail = uncounted((8561, 2_013_000), (4250, 2_000_000));
        assert!((905..=907).contains(&tail), "{tail}");
        assert_eq!(uncounted((0, 0), (0, 0)), 0);
        assert_eq!(uncounted((5, 0), (9, 0)), 0);
        // Both directions of a trial.
        let plan = LoadPlan::from(UdpPlan::default());
        let of = |flow, packets| {
            let result = StreamResult { id: 1, packets, lost: 3, seconds: (0.0, 2.013), ..StreamResult::default() };
            let results = Results { streams: vec![result], ..Results::default() };
            let received = UdpReceived { distinct: 97, lost: 3, next_sequence: 100, ..UdpReceived::default() };
            let sent = UdpSent { datagrams: 102, ..UdpSent::default() };
            let own = UdpEndRecord {
                streams: vec![UdpStreamRecord {
                    flow,
                    samples: [0, 2_000_000].map(|at_us| UdpSample { at_us, ..UdpSample::default() }).into(),
                    sent: (flow == Flow::Up).then_some(sent),
                    received: (flow == Flow::Down).then_some(received),
                    ..UdpStreamRecord::default()
                }],
                ..UdpPlan::partial_record(Place::Client, Vec::new(), String::new())
            };
            let mut own = LoadRecord::from(own);
            let far = record(&plan, &mut own, Some(&results));
            let received = |record: &LoadRecord| {
                let streams = &record.get::<UdpEndRecord>().expect("UDP").streams;
                streams[0].received.as_ref().map(|it| it.uncounted)
            };
            received(&own).or(received(&far))
        };
        assert_eq!((of(Flow::Down, 102), of(Flow::Up, 100)), (Some(2), Some(2)));
    }
}
