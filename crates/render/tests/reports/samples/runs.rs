//! Hand-made records of measurements.

use narrows_model::load::kind::StreamsRecord;
use narrows_model::run::{Purpose, Run, RunPlan};
use narrows_model::*;

/// The addresses of this end and of the other.
pub(crate) fn addresses(at: Place, client: &str, server: &str) -> [String; 2] {
    let [near, far] = if at == Place::Client { [client, server] } else { [server, client] };
    [near.to_owned(), far.to_owned()]
}

/// What one end saw of streams on a host whose two cores work so much each second; the second core takes the interrupts.
pub(crate) fn record<S>(place: Place, streams: Vec<S>, seconds: u64, [user, system]: [u64; 2]) -> StreamsRecord<S> {
    let core = |cpu, s: u64, softirq: u64| CpuTimes {
        cpu,
        user_us: s * user,
        system_us: s * system,
        softirq_us: s * softirq,
        idle_us: s * (1_000_000 - user - system - softirq),
        ..CpuTimes::default()
    };
    let host = (0..=seconds)
        .map(|s| HostSample { at_us: s * 1_000_000 + 150, cpus: vec![core(0, s, 10_000), core(1, s, 300_000)] })
        .collect();
    let (before, after) = (Snapshot::default(), Snapshot::default());
    StreamsRecord { place, streams, host, before, after, remarks: vec![] }
}

/// A stream as one end saw it: a sample at the start, early ones, then each second until `seconds`, at `bytes_s`.
fn stream(id: u32, flow: Flow, at: Place, seconds: u64, bytes_s: u64) -> TcpStreamRecord {
    let sends = flow.sender() == at;
    let times = [0, 10, 20, 40, 80].into_iter().chain((1..=seconds).map(|s| s * 1000));
    let samples = times
        .map(|ms| {
            let bytes = bytes_s * ms / 1000;
            let tcp = TcpInfo {
                snd_mss_bytes: Some(1448),
                snd_cwnd: Some(10 + ms / 4),
                rtt_us: Some(35_000 + ms),
                min_rtt_us: Some(34_900),
                total_retrans: sends.then_some(ms / 1500),
                bytes_acked: sends.then(|| bytes.saturating_sub(1_000)),
                ..TcpInfo::default()
            };
            // A sender is ahead of the receiver by what is under way.
            let bytes = if sends { bytes + 400_000 } else { bytes };
            let at_us = ms * 1000 + 137;
            TcpSample { at_us, bytes, calls: ms, thread_cpu_us: Some(ms * 200), tcp, ..TcpSample::default() }
        })
        .collect();
    let [local, remote] = addresses(at, "[2001:db8:1234:5678:9abc:def0:1234:5678]:51234", "[2001:db8::5]:5220");
    TcpStreamRecord {
        id,
        flow,
        local,
        remote,
        congestion_control: Some("cubic".into()),
        mss_bytes: Some(1448),
        buffer_lock: None,
        sndbuf_bytes: Some(87_040),
        rcvbuf_bytes: Some(131_072),
        method: if sends { "splice" } else { "discard" }.into(),
        samples,
        subflows: Vec::new(),
    }
}

fn end(at: Place, plan: &TcpPlan, seconds: u64, bytes_s: u64) -> TcpEndRecord {
    let of = |flow| (0..plan.streams).map(move |id| stream(id, flow, at, seconds, bytes_s));
    record(at, plan.flows().iter().copied().flat_map(of).collect(), seconds, [10_000, 200_000])
}

/// A run of that plan over some seconds at these bytes per second and stream.
pub(crate) fn run(plan: TcpPlan, seconds: u64, bytes_s: u64) -> Run {
    let [client, server] = [Place::Client, Place::Server].map(|place| end(place, &plan, seconds, bytes_s));
    let trial = Trial::new(plan.clone(), client, server, seconds * 1_000_000);
    Run {
        format: Run::FORMAT,
        id: "20070919-201444-0000002a".into(),
        made_by: "narrows 0.1.0".into(),
        started_unix_us: 1_190_232_884_000_000,
        elapsed_us: seconds * 1_000_000 + 400_000,
        plan: RunPlan::Measure(plan.into()),
        target: Target { asked: "umfs05".into(), address: "[2001:db8::5]:5220".into(), family: Family::Ipv6 },
        client: Snapshot::default(),
        server: Snapshot::default(),
        idle_rtt_us: vec![34_851],
        trials: vec![TrialRecord { purpose: Purpose::Measure, at_us: 0, trial }],
        search: None,
        sweep: None,
        path: None,
        attempts: vec![],
        ending: Ending::Complete,
    }
}
