//! Hand-made records of frames.

use narrows_model::load::frames::*;
use narrows_model::{Distribution, Family};
use std::net::IpAddr;

pub(crate) fn format(size: u32) -> FrameFormat {
    let side = |net, last| Endpoints {
        addresses: [IpAddr::from([198, net, 0, 1]), IpAddr::from([198, net, 0, last])],
        ports: [2000, 2000],
        stride_bits: 0,
    };
    FrameFormat {
        source_mac: Mac([2, 0, 0, 0, 0, 1]),
        destination_mac: Mac([0xa0, 0x36, 0x9f, 0x1e, 0x28, 0x14]),
        vlan: None,
        family: Family::Ipv4,
        transport: Transport::Udp,
        source: side(18, 20),
        destination: side(19, 100),
        walk: Walk::Odometer,
        sizes: vec![size],
        ttl: 64,
    }
}

pub(crate) fn generate_plan(load: FrameLoad, size: u32) -> GeneratePlan {
    GeneratePlan {
        device: "t0".into(),
        mode: None,
        format: format(size),
        load,
        burst: 64,
        catch_up_us: 0,
        duration_ms: 10_000,
        count: None,
        workers: 2,
        workers_note: None,
        first_stream: 0,
        stamp_every: 1000,
        broadcast_every: 0,
        interval_ms: 1000,
    }
}

pub(crate) fn receive_plan() -> ReceivePlan {
    ReceivePlan {
        device: "t1".into(),
        mode: None,
        duration_ms: 12_000,
        idle_ms: Some(2_000),
        per_flow: true,
        gaps: true,
        interval_ms: 1000,
    }
}

/// Times around a value in ns.
pub(crate) fn times(p50: u64, count: u64) -> Distribution {
    let mean = p50 as f64 * 1.08;
    let (min, p90, p99, p99_9, p99_99, max) = (p50 * 7 / 10, p50 * 12 / 10, p50 * 2, p50 * 5, p50 * 9, p50 * 24);
    let buckets = vec![[p50, count / 2], [p90, count * 4 / 10], [max, count / 10]];
    Distribution { count, min, mean, p50, p90, p99, p99_9, p99_99, max, buckets }
}

/// Both ends of a trial of that many frames a second, of which so many were lost.
pub(crate) fn trial(pps: u64, size: u32, seconds: u64, lost: u64) -> FrameTrial {
    let all = pps * seconds;
    let half = all / 2;
    let streams = [(0, half), (1, all - half)].map(|(stream, due)| StreamSent { stream, due, handed: due });
    let got = |stream, received| StreamGot { stream, received, highest: half - 1, ..StreamGot::default() };
    let looks = |each: u64| {
        (1..=seconds).map(move |s| FrameInterval { at_us: s * 1_000_000, frames: each * s, ..FrameInterval::default() })
    };
    let wire_bytes = |frames| frames * u64::from(size + OVERHEAD_BYTES);
    let sent_so_far = |frames| SentSoFar { due: frames, skipped: 0, refused: Some(0), wire_bytes: wire_bytes(frames) };
    let got_so_far = |s, frames| GotSoFar { numbers: pps * s, bytes: frames * u64::from(size), ..GotSoFar::default() };
    let plan =
        GeneratePlan { duration_ms: seconds * 1000, ..generate_plan(FrameLoad::FramesPerSecond(pps as f64), size) };
    FrameTrial {
        sent: GenerateRecord {
            plan,
            mode: SendMode::LiveFrames,
            not_better: vec![],
            streams: streams.into(),
            refused: Some(0),
            first_ns: None,
            elapsed_ns: seconds * 1_000_000_000,
            intervals: looks(pps).map(|it| FrameInterval { sent: Some(sent_so_far(it.frames)), ..it }).collect(),
            ended: None,
        },
        got: ReceiveRecord {
            plan: receive_plan(),
            mode: ReceiveMode::XdpNative,
            not_better: vec![],
            streams: vec![got(0, half - lost / 2), got(1, all - half - lost.div_ceil(2))],
            foreign: 3,
            missed: None,
            bytes: (all - lost) * u64::from(size),
            began_ns: None,
            first_ns: None,
            elapsed_ns: seconds * 1_000_000_000 + 180,
            intervals: looks(pps - lost / seconds)
                .map(|it| FrameInterval { got: Some(got_so_far(it.at_us / 1_000_000, it.frames)), ..it })
                .collect(),
            latency_ns: Some(times(8_400, all / 1000)),
            stamp_clock: Some(StampClock { bound_ns: Some(84), of_others: 0 }),
            gaps_ns: Some(times(1_000_000_000 / pps, 4096)),
            flows: (1..=14)
                .map(|n| FlowGot {
                    source: format!("198.18.0.{n}:2000"),
                    destination: "198.19.0.1:2000".into(),
                    received: (all / 2000).saturating_sub(n),
                    lost: Some(if n == 3 { lost } else { 0 }),
                    ..FlowGot::default()
                })
                .collect(),
            flows_left_out: 0,
            flows_silent: Some(0),
            ended: None,
        },
    }
}
