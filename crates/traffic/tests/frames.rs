//! Real frames over a virtual pair inside a network namespace of the test's own: each mode of sending against each of
//! counting; every frame must come, once and in order.
#![allow(clippy::unwrap_used)] // tests may unwrap

use narrows_model::Family;
use narrows_model::frames::{
    Endpoints, FrameFormat, FrameLoad, FrameTrial, GeneratePlan, Mac, ReceiveMode, ReceivePlan, SendMode, Transport,
    Walk,
};
use narrows_sys::netns::{self, Namespaces};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, sysctl};
use narrows_traffic::Stop;
use narrows_traffic::frames::{FrameError, Receiver, generate};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// A namespace with `gen0` wired to `rcv0`.
fn wire() -> Namespaces {
    let prepare = || -> Result<(), narrows_sys::Error> {
        let mut links = Links::open().unwrap();
        let here = netns::network_of_this_thread().unwrap();
        links.add_veth("gen0", "rcv0", here.as_fd()).unwrap();
        for device in ["gen0", "rcv0"] {
            // So that nothing but the test's frames moves.
            let _ = sysctl::write(&format!("net.ipv6.conf.{device}.disable_ipv6"), "1");
            links.set_up(device, true).unwrap();
        }
        Ok(())
    };
    Namespaces::create("frames", prepare).unwrap().0
}

fn plan() -> GeneratePlan {
    let mut links = Links::open().unwrap();
    let mac = |links: &mut Links, device: &str| Mac(links.get(device).unwrap().address.unwrap());
    let side = |address: [u8; 4], ports| Endpoints { addresses: [address.into(); 2], ports };
    GeneratePlan {
        device: "gen0".to_owned(),
        mode: None,
        format: FrameFormat {
            source_mac: mac(&mut links, "gen0"),
            destination_mac: mac(&mut links, "rcv0"),
            vlan: None,
            family: Family::Ipv4,
            transport: Transport::Udp,
            source: side([198, 18, 0, 2], [2000, 2099]),
            destination: side([198, 19, 0, 2], [2000, 2000]),
            walk: Walk::Odometer,
            sizes: vec![64],
            ttl: 64,
        },
        load: FrameLoad::FramesPerSecond(20_000.0),
        burst: 64,
        make_up_ms: 0,
        // The count ends it; a slow machine may take its time.
        duration_ms: 20_000,
        count: Some(4_000),
        workers: 1,
        first_stream: 3,
        stamp_every: 10,
        interval_ms: 50,
    }
}

fn receive_plan() -> ReceivePlan {
    ReceivePlan {
        device: "rcv0".to_owned(),
        mode: None,
        duration_ms: 60_000,
        idle_ms: None,
        per_flow: true,
        gaps: true,
        interval_ms: 50,
    }
}

/// One trial inside the wire's namespace.
fn trial(change: impl FnOnce(&mut GeneratePlan, &mut ReceivePlan) + Send) -> FrameTrial {
    let wire = wire();
    wire.run(|| {
        let (mut plan, mut receive) = (plan(), receive_plan());
        change(&mut plan, &mut receive);
        let mut receiver = Receiver::start(&receive).unwrap();
        let sent = generate(&plan, &Stop::new(), |_| {}).unwrap();
        // What is under way arrives; a frame that never comes is what the assertions then find.
        for _ in 0..500 {
            if receiver.frames().unwrap() >= sent.sent() {
                break;
            }
            clock::sleep(Duration::from_millis(10));
        }
        FrameTrial { sent, got: receiver.finish().unwrap() }
    })
    .unwrap()
}

fn assert_all_came(trial: &FrameTrial, frames: u64) {
    let (sent, got) = (&trial.sent, &trial.got);
    assert_eq!((sent.sent(), got.distinct(), trial.lost()), (frames, frames, 0), "{sent:?} {got:?}");
    let stream = &got.streams[0];
    assert_eq!((stream.stream, stream.duplicates, stream.reordered, stream.highest), (3, 0, 0, frames - 1), "{got:?}");
    assert_eq!(got.foreign, 0, "{got:?}");
}

/// Whether programs can be loaded into the kernel: this one was built with them, and we are root of the machine and not of a
/// user namespace alone. Without it only the packet socket is tested.
fn has_xdp() -> bool {
    let native = ReceivePlan { mode: Some(ReceiveMode::XdpNative), ..receive_plan() };
    match wire().run(|| Receiver::start(&native).map(drop)).unwrap() {
        Ok(()) => true,
        Err(error) => {
            let why = error.to_string();
            assert!(why.contains("it needs root") || why.contains("without the feature xdp"), "{why}");
            false
        }
    }
}

#[test]
fn every_frame_of_the_best_mode_comes_once_and_in_order() {
    let trial = trial(|_, _| {});
    assert_all_came(&trial, 4_000);
    let (sent, got) = (&trial.sent, &trial.got);
    if has_xdp() {
        // The receiver's program is what lets a virtual pair take live frames.
        assert_eq!((sent.mode, got.mode), (SendMode::LiveFrames, ReceiveMode::XdpNative), "{:?}", sent.not_better);
    }
    assert_eq!(got.bytes, 4_000 * 64);
    assert_eq!(got.flows.len(), 100);
    assert!(
        got.flows.iter().all(|flow| flow.received == 40 && flow.destination == "198.19.0.2:2000"),
        "{:?}",
        got.flows
    );
    assert_eq!(got.latency_ns.as_ref().unwrap().count, 400);
    assert!(got.gaps_ns.as_ref().unwrap().count > 100);
}

#[test]
fn each_mode_of_sending_reaches_each_of_counting() {
    let xdp = has_xdp();
    for send in [SendMode::AfXdp, SendMode::AfPacket] {
        for receive in [ReceiveMode::XdpNative, ReceiveMode::XdpGeneric, ReceiveMode::AfPacket] {
            // AF_XDP takes more locked memory than an ordinary user has.
            if !xdp && (send, receive) != (SendMode::AfPacket, ReceiveMode::AfPacket) {
                continue;
            }
            let trial = trial(|plan, counting| {
                plan.mode = Some(send);
                counting.mode = Some(receive);
            });
            assert_eq!((trial.sent.mode, trial.got.mode), (send, receive));
            assert_all_came(&trial, 4_000);
            assert_eq!(trial.got.flows.len(), 100, "{send:?} {receive:?}");
        }
    }
}

#[test]
fn sizes_take_turns_in_both_families_and_with_a_tag() {
    let range = |address: &str| Endpoints { addresses: [address.parse().unwrap(); 2], ports: [2000, 2009] };
    for (family, vlan, transport) in [
        (Family::Ipv4, Some(7), Transport::Udp),
        (Family::Ipv6, None, Transport::Udp),
        (Family::Ipv6, None, Transport::TcpSyn),
    ] {
        let trial = trial(|plan, _| {
            plan.format.family = family;
            plan.format.vlan = vlan;
            plan.format.transport = transport;
            plan.format.walk = Walk::Random { seed: 5 };
            plan.format.sizes = vec![100, 128, 1000];
            if family == Family::Ipv6 {
                plan.format.source = range("2001:2:0:1::2");
                plan.format.destination = range("2001:2:0:2::2");
            }
            plan.count = Some(3_000);
        });
        assert_all_came(&trial, 3_000);
        // The kernel takes a tag off before a packet socket sees the frame.
        let untagged = if vlan.is_some() && trial.got.mode == ReceiveMode::AfPacket { 4 * 3_000 } else { 0 };
        assert_eq!(trial.got.bytes, 1_000 * (100 + 128 + 1000) - untagged, "{family:?} {vlan:?}");
        assert!(trial.got.flows.len() > 9, "{:?}", trial.got.flows);
    }
}

#[test]
fn what_cannot_be_sent_is_said() {
    let wire = wire();
    wire.run(|| {
        let refused = |change: fn(&mut GeneratePlan)| {
            let mut plan = plan();
            change(&mut plan);
            generate(&plan, &Stop::new(), |_| {}).unwrap_err().to_string()
        };
        assert!(refused(|plan| plan.device = "none0".to_owned()).contains("cannot use device none0"));
        assert!(
            refused(|plan| plan.format.sizes = vec![1519]).contains("MTU of 1500 carries frames of at most 1518 bytes")
        );
        assert!(refused(|plan| plan.format.sizes = vec![60]).contains("takes 64 bytes"));
        if has_xdp() {
            // No program and no GRO at the other end: a virtual pair takes no live frames.
            let why = refused(|plan| plan.mode = Some(SendMode::LiveFrames));
            assert!(why.contains("ndo_xdp_xmit"), "{why}");
        }
        let mut links = Links::open().unwrap();
        links.set_up("gen0", false).unwrap();
        assert!(refused(|_| {}).contains("it is down"));
    })
    .unwrap();
}

#[test]
fn a_stop_keeps_what_was_sent() {
    let wire = wire();
    wire.run(|| {
        let receiver = Receiver::start(&receive_plan()).unwrap();
        let (stop, plan) = (Stop::new(), GeneratePlan { count: None, ..plan() });
        let raised = stop.clone();
        let record: Result<_, FrameError> = generate(&plan, &stop, |seen| {
            if seen.frames > 0 {
                raised.stop();
            }
        });
        let record = record.unwrap();
        assert_eq!(record.ended.as_deref(), Some("it was stopped"));
        assert!(record.sent() > 0 && record.sent() < 400_000, "{record:?}");
        let got = receiver.finish().unwrap();
        assert!(got.distinct() <= record.sent(), "{} of {}", got.distinct(), record.sent());
    })
    .unwrap();
}
