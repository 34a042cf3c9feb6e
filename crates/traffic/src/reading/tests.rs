//! What the readings make of records, on records made by hand.

use super::*;
use narrows_model::{HostSample, Place, Snapshot};

/// A record of one stream up whose bytes grow evenly from 0, with samples at these instants (ms).
fn end(place: Place, instants_ms: &[u64], bytes_per_ms: u64) -> TcpEndRecord {
    let sample = |&ms: &u64| TcpSample {
        at_us: ms * 1000,
        bytes: ms * bytes_per_ms,
        thread_cpu_us: Some(ms * 250),
        tcp: TcpInfo {
            rtt_us: Some(35_000 + ms),
            min_rtt_us: Some(35_000),
            total_retrans: Some(ms / 100),
            ..TcpInfo::default()
        },
        ..TcpSample::default()
    };
    let stream = TcpStreamRecord {
        id: 0,
        flow: Flow::Up,
        local: String::new(),
        remote: String::new(),
        congestion_control: None,
        mss_bytes: None,
        buffer_lock: None,
        sndbuf_bytes: None,
        rcvbuf_bytes: None,
        method: String::new(),
        samples: instants_ms.iter().map(sample).collect(),
    };
    let cpus = |&ms: &u64| HostSample {
        at_us: ms * 1000,
        cpus: vec![CpuTimes { cpu: 0, system_us: ms * 400, idle_us: ms * 600, ..CpuTimes::default() }],
    };
    TcpEndRecord {
        place,
        streams: vec![stream],
        host: instants_ms.iter().map(cpus).collect(),
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks: Vec::new(),
    }
}

fn trial() -> Trial {
    Trial {
        plan: TcpPlan { limit: Limit::DurationMs(1000), omit_ms: 250, ..TcpPlan::default() },
        client: end(Place::Client, &[0, 100, 300, 600, 1000, 1010], 200),
        // The queue of the path drains after the sender's end.
        server: end(Place::Server, &[0, 150, 450, 1000, 1100], 100),
        elapsed_us: 1_000_000,
    }
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < expected.abs() * 1e-9 + 1e-9, "{value} is not {expected}");
}

#[test]
fn a_summary_counts_the_receivers_bytes_after_the_omitted_part() {
    let summary = summary(&trial(), Flow::Up).unwrap();
    assert_eq!(summary.window, Window { from_us: 250_000, to_us: 1_000_000 });
    near(summary.bytes, 75_000.0);
    near(summary.goodput_bps, 800_000.0);
    assert_eq!(summary.stream_bps.len(), 1);
    // Retransmissions and round-trip times are the sender's.
    assert_eq!(summary.retrans_segs, Some(8));
    assert_eq!(summary.retrans_bytes, None);
    assert_eq!(summary.rtt_us, Some(35_600));
    assert_eq!(summary.min_rtt_us, Some(35_000));
    near(summary.sender_threads.unwrap(), 0.25);
    near(summary.receiver_host.unwrap(), 0.4);
    assert_eq!(super::summary(&trial(), Flow::Down), None);
}

#[test]
fn bytes_between_samples_are_interpolated_and_outside_they_stand() {
    let end = end(Place::Server, &[100, 200, 400], 10);
    let bytes = |at_us| at(&end.streams[0], at_us, |sample| Some(sample.bytes)).unwrap();
    near(bytes(150_000), 1500.0);
    near(bytes(200_000), 2000.0);
    near(bytes(300_000), 3000.0);
    near(bytes(0), 1000.0);
    near(bytes(9_000_000), 4000.0);
}

#[test]
fn a_missing_counter_is_missing_and_not_zero() {
    let trial = trial();
    let window = Window { from_us: 0, to_us: 1_000_000 };
    assert_eq!(counted_by_tcp(&trial.client, Flow::Up, window, |tcp| tcp.dsack_dups), None);
    assert_eq!(counted_by_tcp(&trial.client, Flow::Down, window, |tcp| tcp.total_retrans), None);
    assert_eq!(thread_load(&trial.client, Flow::Down, window), None);
}

#[test]
fn intervals_end_at_their_multiples() {
    let windows = intervals(Window { from_us: 250_000, to_us: 2_100_000 }, 1_000_000);
    let pairs: Vec<_> = windows.iter().map(|window| (window.from_us, window.to_us)).collect();
    assert_eq!(pairs, [(250_000, 1_000_000), (1_000_000, 2_000_000), (2_000_000, 2_100_000)]);
    assert!(intervals(Window { from_us: 5, to_us: 5 }, 1).is_empty());
}

#[test]
fn a_trial_that_was_all_omitted_has_no_counted_part() {
    let mut trial = trial();
    trial.server = end(Place::Server, &[0, 200], 100);
    assert_eq!(summary(&trial, Flow::Up), None);
    trial.server.streams.clear();
    assert_eq!(summary(&trial, Flow::Up), None);
}
