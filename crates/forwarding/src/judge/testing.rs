//! The way through a switch, a router and a switch again, and trials on it.

use crate::data::{CounterSource, ForwardingPlan, ForwardingTrial, HopPlan, Test, TesterPort, Tests, TrialConditions};
use narrows_model::Family;
use narrows_model::host::hop::{DropCount, HopCount};
use narrows_model::load::frame_traffic::{Modifier, Traffic};
use narrows_model::load::frames::{
    Endpoints, FrameFormat, FrameLoad, FrameTrial, GeneratePlan, GenerateRecord, Mac, ReceiveMode, ReceivePlan,
    ReceiveRecord, SendMode, StreamGot, StreamSent, Transport, Walk,
};
use std::net::IpAddr;

/// Frames that one direction of a trial sent and received.
fn frames(sent: u64, received: u64) -> FrameTrial {
    let side = |net| Endpoints::one(IpAddr::from([198, net, 0, 2]), [2000, 2000]);
    let format = FrameFormat {
        source_mac: Mac::default(),
        destination_mac: Mac::default(),
        vlan: None,
        family: Family::Ipv4,
        transport: Transport::Udp,
        source: side(18),
        destination: side(19),
        walk: Walk::Odometer,
        sizes: vec![64],
        ttl: 64,
    };
    FrameTrial {
        sent: GenerateRecord {
            plan: GeneratePlan {
                device: "gen0".to_owned(),
                mode: None,
                format,
                load: FrameLoad::Max,
                burst: 1,
                catch_up_us: 0,
                duration_ms: 1_000,
                count: None,
                workers: 1,
                workers_note: None,
                first_stream: 0,
                stamp_every: 0,
                broadcast_every: 0,
                interval_ms: 100,
            },
            mode: SendMode::AfPacket,
            not_better: Vec::new(),
            streams: vec![StreamSent { stream: 0, due: sent, handed: sent }],
            refused: None,
            first_ns: None,
            elapsed_ns: 1_000_000_000,
            intervals: Vec::new(),
            ended: None,
        },
        got: ReceiveRecord {
            plan: ReceivePlan {
                device: "rcv0".to_owned(),
                mode: None,
                duration_ms: 1_000,
                idle_ms: None,
                per_flow: false,
                gaps: false,
                interval_ms: 100,
            },
            mode: ReceiveMode::AfPacket,
            not_better: Vec::new(),
            streams: vec![StreamGot { received, ..StreamGot::default() }],
            foreign: 0,
            missed: None,
            bytes: 0,
            began_ns: None,
            first_ns: None,
            elapsed_ns: 1_000_000_000,
            intervals: Vec::new(),
            latency_ns: None,
            stamp_clock: None,
            gaps_ns: None,
            flows: Vec::new(),
            flows_left_out: 0,
            flows_silent: None,
            ended: None,
        },
    }
}

/// `switch`, `router` and `switch2`, in this order.
pub(super) fn plan() -> ForwardingPlan {
    let port = |device: &str, net| TesterPort {
        device: device.to_owned(),
        address: IpAddr::from([198, net, 0, 2]),
        gateway: IpAddr::from([198, net, 0, 1]),
        second: None,
        host: None,
        token_file: None,
    };
    let hop = |name: &str| HopPlan {
        name: name.to_owned(),
        source: CounterSource::Namespace { name: name.to_owned() },
        input: "in0".to_owned(),
        output: "out0".to_owned(),
        under_test: name == "router",
    };
    ForwardingPlan {
        name: "router".to_owned(),
        generator: port("gen0", 18),
        receiver: port("rcv0", 19),
        link_bps: 10_000_000_000,
        max_load_pps: None,
        traffic: Vec::new(),
        hops: ["switch", "router", "switch2"].map(hop).to_vec(),
        tests: Tests::default(),
        conditions: TrialConditions { learning_frames: 0, residue_ms: 0, rest_ms: 0 },
        tables: None,
        lost_dut_wait_ms: 0,
    }
}

/// Frames of 64 bytes with a modifier or without one.
pub(super) fn traffic(modifier: Option<Modifier>) -> Traffic {
    Traffic {
        family: Family::Ipv4,
        transport: Transport::Udp,
        flows: 1,
        networks: 1,
        walk: Walk::Odometer,
        sizes: vec![64],
        mix: Vec::new(),
        bidirectional: false,
        modifier,
    }
}

/// A hop that counted so many frames in and out.
pub(super) fn hop(name: &str, input: u64, output: u64) -> HopCount {
    HopCount {
        hop: name.to_owned(),
        input: Some(input),
        output: Some(output),
        drops: Vec::new(),
        uncertainty: 0,
        source: "test".to_owned(),
        silent: None,
        anomaly: None,
    }
}

/// The same with drops by reason.
pub(super) fn dropping(name: &str, input: u64, output: u64, drops: &[(&str, u64)]) -> HopCount {
    let drop = |(reason, frames): &(&str, u64)| DropCount { reason: (*reason).to_owned(), frames: *frames };
    HopCount { drops: drops.iter().map(drop).collect(), ..hop(name, input, output) }
}

/// The same with an error of its own.
pub(super) fn blurred(of: HopCount, uncertainty: u64) -> HopCount {
    HopCount { uncertainty, ..of }
}

/// A hop that gave no counters.
pub(super) fn silent(name: &str, why: &str) -> HopCount {
    HopCount { input: None, output: None, silent: Some(why.to_owned()), ..hop(name, 0, 0) }
}

pub(super) fn trial(sent: u64, received: u64, hops: Vec<HopCount>) -> ForwardingTrial {
    ForwardingTrial {
        test: Test::Throughput,
        traffic: 0,
        size: Some(64),
        repetition: 0,
        at_ms: 0,
        directions: vec![frames(sent, received)],
        hops,
        modifier: None,
        devices: Vec::new(),
        incomplete: None,
    }
}

/// A trial forth and back.
pub(super) fn both_ways(forth: [u64; 2], back: [u64; 2], hops: Vec<HopCount>) -> ForwardingTrial {
    let mut both = trial(forth[0], forth[1], hops);
    both.directions.push(frames(back[0], back[1]));
    both
}
