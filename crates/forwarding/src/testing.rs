//! What the tests of this crate plan and measure.

use crate::data::{CounterSource, ForwardingPlan, HopPlan, TesterPort, Tests, TrialConditions};
use narrows_model::Family;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{
    Endpoints, FrameFormat, FrameLoad, FrameTrial, GeneratePlan, GenerateRecord, Mac, ReceiveMode, ReceivePlan,
    ReceiveRecord, SendMode, StreamGot, StreamSent, Transport, Walk,
};
use std::net::IpAddr;

/// 10 Gbit/s through `switch`, `router` and `switch2`, in this order; IPv4, 64, 512 and 1518 bytes and the simple IMIX; no tests.
pub(crate) fn plan() -> ForwardingPlan {
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
        traffic: vec![Traffic {
            family: Family::Ipv4,
            transport: Transport::Udp,
            flows: 2_000,
            networks: 1,
            walk: Walk::Odometer,
            sizes: vec![64, 512, 1518],
            mix: vec![64, 64, 64, 64, 64, 64, 64, 570, 570, 570, 570, 1518],
            bidirectional: false,
            modifier: None,
        }],
        hops: ["switch", "router", "switch2"].map(hop).to_vec(),
        tests: Tests::default(),
        conditions: TrialConditions { learning_frames: 0, residue_ms: 200, rest_ms: 100 },
        tables: None,
        lost_dut_wait_ms: 0,
    }
}

/// A trial of one stream in which so many frames left and came; from the first to the last of both it took `elapsed_ns`.
pub(crate) fn frame_trial(sent: u64, received: u64, elapsed_ns: u64) -> FrameTrial {
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
    let plan = GeneratePlan {
        device: "gen0".to_owned(),
        mode: None,
        format,
        load: FrameLoad::Max,
        burst: 1,
        catch_up_us: 0,
        duration_ms: elapsed_ns / 1_000_000,
        count: None,
        workers: 1,
        workers_note: None,
        first_stream: 0,
        stamp_every: 0,
        broadcast_every: 0,
        interval_ms: 100,
    };
    let watch = ReceivePlan {
        device: "rcv0".to_owned(),
        mode: None,
        duration_ms: plan.duration_ms,
        idle_ms: None,
        per_flow: false,
        gaps: false,
        interval_ms: 100,
    };
    FrameTrial {
        sent: GenerateRecord {
            plan,
            mode: SendMode::AfPacket,
            not_better: Vec::new(),
            streams: vec![StreamSent { stream: 0, due: sent, handed: sent }],
            refused: Some(0),
            first_ns: None,
            elapsed_ns,
            intervals: Vec::new(),
            ended: None,
        },
        got: ReceiveRecord {
            plan: watch,
            mode: ReceiveMode::AfPacket,
            not_better: Vec::new(),
            streams: vec![StreamGot { received, ..StreamGot::default() }],
            foreign: 0,
            missed: None,
            bytes: 0,
            began_ns: None,
            first_ns: None,
            elapsed_ns,
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
