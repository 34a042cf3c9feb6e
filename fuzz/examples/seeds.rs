//! Writes the seeds of the corpora that are made of encoded messages: one valid input of each kind. Run it when a format changes.

use narrows_model::load::frames::{FrameFormat, GeneratePlan, ReceivePlan};
use narrows_model::{Flow, LoadPlan, Place, ProfilePlan, RrPlan, Setting, TcpPlan, UdpPlan};
use narrows_wire::api::{self, Event, Reason, frames};
use narrows_wire::frame::{Flows, Signature, Template};
use narrows_wire::{Answer, DataHello, Key, Wanted, pack, probe, profile, rr};
use serde::Serialize;
use std::path::Path;

/// A message after the byte that selects its parser.
fn json(kind: u8, value: &impl Serialize) -> Vec<u8> {
    [vec![kind], serde_json::to_vec(value).expect("plain data")].concat()
}

fn put(target: &str, name: &str, bytes: &[u8]) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join(name), bytes).expect("a file");
}

fn generate() -> GeneratePlan {
    serde_json::from_str(GENERATE).expect("a plan")
}

fn main() {
    let key = Key([7; 32]);
    let setting = Setting::Sysctl { key: "net.ipv4.tcp_sack".into(), value: "1".into() };
    put("api", "change", &json(2, &api::ChangeRequest { setting }));
    put("api", "inventory", &json(1, &api::InventoryRequest { peer: Some("192.0.2.1".into()) }));
    put("api", "begin", &json(4, &api::BeginRequest { cookies: [(0, u64::MAX)].into() }));
    let refusal = api::Refusal { reason: Reason::Busy, message: "busy".into(), version: "0.1.0".into(), protocol: 4 };
    put("api", "refusal", &json(3, &refusal));
    let plans: [LoadPlan; 4] =
        [TcpPlan::default().into(), UdpPlan::default().into(), RrPlan::default().into(), ProfilePlan::default().into()];
    for plan in plans {
        put("api", &format!("trial-{}", plan.kind().to_lowercase()), &json(5, &api::TrialRequest { plan }));
    }
    let record = TcpPlan::default();
    let record = LoadPlan::from(record).partial_record(Place::Server, &[], "lost".into());
    let events = [
        Event::Queued { position: 1, why: "busy".into() },
        Event::Admitted { session: "00".into() },
        Event::Beat,
        Event::Finished { trial: 1, record: Box::new(record) },
        Event::Ended { why: "done".into() },
    ];
    for (nth, event) in events.iter().enumerate() {
        put("api", &format!("event-{nth}"), &json(6, event));
    }
    put("api", "key", format!("\x07{}", api::key_to_hex(&key)).as_bytes());
    put("api", "token", format!("\x07narrows1.{}.{}", "A".repeat(43), "A".repeat(32)).as_bytes());

    for (name, wanted) in [
        ("stream", Wanted::Stream { id: 3, flow: Flow::Down }),
        ("transaction", Wanted::Transaction { id: 1 }),
        ("probe", Wanted::Probe),
    ] {
        put("connection", name, &DataHello { key, wanted }.encode());
    }
    put("connection", "ok", &Answer::Ok.encode());
    put("connection", "no", &Answer::No("busy".into()).encode());
    put("connection", "request", &rr::Header { role: rr::Role::Request, stream: 1, sequence: 2 }.encode());
    put("connection", "tls", &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
    put("connection", "http", b"GET / HTTP/1.1\r\nhost: x\r\n\r\n");

    let hello = probe::Hello { key: Key([0; 32]), stream: 1, flow: Flow::Up, attempt: 1, time_ns: 1 };
    put("probe", "hello", &hello.encode(probe::HELLO_FILLED_BYTES));
    put("probe", "ok", &hello.ok(256, 1472, 99));
    put("probe", "no", &hello.no(256, "busy"));
    put("probe", "go", &probe::go(1, 200));
    put("probe", "data", &profile::data(1, 2, 3).alone());
    put("probe", "note", &profile::encode(&profile::Note::Echo { n: 1, arrived_ns: 2 }, &Key([0; 32]), 3));

    let plan = generate();
    let receive: ReceivePlan = serde_json::from_str(RECEIVE).expect("a plan");
    put("frames_orders", "generate", &json(0, &frames::FramesOrder::Generate { plans: vec![plan.clone()] }));
    put("frames_orders", "receive", &json(0, &frames::FramesOrder::Receive { plan: receive, watched: true }));
    put(
        "frames_orders",
        "links",
        &json(1, &frames::LinksRequest { input: "eth1".into(), output: "eth2".into(), state: true }),
    );
    put("frames_orders", "wait", &json(4, &frames::FramesWait { least: 1, within_ms: 2 }));
    put("frames_orders", "missing", &json(5, &frames::LinksAnswer::Missing { why: "gone".into() }));

    for size in [64, 128] {
        let format = FrameFormat { sizes: vec![size], ..plan.format.clone() };
        let flow = Flows::of(&format).nth(0);
        let signature = Signature { stream: 1, clock: 2, sequence: 3, time: 4 };
        put("frame", &format!("udp-{size}"), &Template::build(&format, size).frame(&flow, &signature));
    }
    let mut packer = pack::Packer::default();
    put("pack", "events", &packer.pack(b"{\"event\":\"beat\"}\n{\"event\":\"beat\"}\n"));
    put("pack", "zeros", &pack::Packer::default().finish(&[0; 40_000]));
}

const GENERATE: &str = r#"{"device":"eth1","mode":null,"format":{"source_mac":"02:00:00:00:00:01","destination_mac":"02:00:00:00:00:02",
"vlan":null,"family":"ipv4","transport":"udp","source":{"addresses":["198.18.0.2","198.18.0.2"],"ports":[2000,2009]},
"destination":{"addresses":["198.19.0.2","198.19.0.2"],"ports":[2000,2009]},"walk":"odometer","sizes":[64],"ttl":64},
"load":{"frames_per_second":1000.0},"burst":64,"catch_up_us":0,"duration_ms":1000,"count":null,"workers":1,"workers_note":null,
"first_stream":0,"stamp_every":1,"broadcast_every":0,"interval_ms":100}"#;
const RECEIVE: &str = r#"{"device":"eth1","mode":null,"duration_ms":1000,"idle_ms":null,"per_flow":false,"gaps":false,"interval_ms":100}"#;
