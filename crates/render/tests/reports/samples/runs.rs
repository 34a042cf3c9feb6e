//! Hand-made records of measurements.

use narrows_model::run::{Purpose, Run, RunPlan};
use narrows_model::*;

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
            TcpSample {
                at_us: ms * 1000 + 137,
                bytes,
                calls: ms,
                thread_cpu_us: Some(ms * 200),
                thread_wait_us: None,
                tcp,
                ..TcpSample::default()
            }
        })
        .collect();
    let address = |place: Place| match place {
        Place::Client => "[2001:db8:1234:5678:9abc:def0:1234:5678]:51234".to_owned(),
        _ => "[2001:db8::5]:5220".to_owned(),
    };
    let other = if at == Place::Client { Place::Server } else { Place::Client };
    TcpStreamRecord {
        id,
        flow,
        local: address(at),
        remote: address(other),
        congestion_control: Some("cubic".into()),
        mss_bytes: Some(1448),
        buffer_lock: None,
        sndbuf_bytes: Some(87_040),
        rcvbuf_bytes: Some(131_072),
        method: if sends { "sendfile" } else { "discard" }.into(),
        samples,
    }
}

fn end(at: Place, plan: &TcpPlan, seconds: u64, bytes_s: u64) -> TcpEndRecord {
    let core = |cpu, s: u64, softirq: u64| CpuTimes {
        cpu,
        user_us: s * 10_000,
        system_us: s * 200_000,
        irq_us: 0,
        softirq_us: s * softirq,
        steal_us: 0,
        idle_us: s * (790_000 - softirq),
    };
    TcpEndRecord {
        place: at,
        streams: plan
            .flows()
            .iter()
            .flat_map(|flow| (0..plan.streams).map(|id| stream(id, *flow, at, seconds, bytes_s)))
            .collect(),
        host: (0..=seconds)
            .map(|s| HostSample { at_us: s * 1_000_000 + 150, cpus: vec![core(0, s, 10_000), core(1, s, 300_000)] })
            .collect(),
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks: vec![],
    }
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
