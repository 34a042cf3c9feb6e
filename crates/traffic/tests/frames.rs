//! Real frames over a virtual pair inside a network namespace of the test's own: each mode of sending against each of
//! counting; every frame must come, once and in order.
#![allow(clippy::unwrap_used)] // tests may unwrap

use narrows_model::Family;
use narrows_model::frames::{
    BROADCAST_STREAM, Endpoints, FlowGot, FrameFormat, FrameLoad, FrameTrial, GeneratePlan, Mac, OVERHEAD_BYTES,
    ReceiveMode, ReceivePlan, SendMode, Transport, Walk,
};
use narrows_sys::ethtool::Device;
use narrows_sys::netns::{self, Namespaces};
use narrows_sys::packet_io::{PacketReader, PacketSender};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, sysctl};
use narrows_traffic::Stop;
use narrows_traffic::frames::{FrameError, Receiver, generate};
use narrows_wire::frame::{Flows, Seen, Signature, Template, checksum};
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
    let side = |address: [u8; 4], ports| Endpoints::one(address.into(), ports);
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
        broadcast_every: 0,
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
    let range = |address: &str| Endpoints::one(address.parse().unwrap(), [2000, 2009]);
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
                plan.format.source = range("2001:2:0:100::2");
                plan.format.destination = range("2001:2:0:200::2");
            }
            plan.count = Some(3_000);
        });
        assert_all_came(&trial, 3_000);
        assert_eq!(trial.got.bytes, 1_000 * (100 + 128 + 1000), "{family:?} {vlan:?}");
        assert!(trial.got.flows.len() > 9, "{:?}", trial.got.flows);
    }
}

/// The kernel takes a tag off before a packet socket sees the frame, and says so beside it.
#[test]
fn a_tag_counts_in_every_mode_of_counting() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        for (vlan, size) in [(None, 64), (Some(0), 66), (Some(4095), 1522)] {
            let trial = trial(|plan, counting| {
                (plan.mode, counting.mode) = (Some(SendMode::AfPacket), Some(mode));
                (plan.format.vlan, plan.format.sizes, plan.count) = (vlan, vec![size], Some(100));
            });
            assert_all_came(&trial, 100);
            assert_eq!(trial.got.bytes, 100 * u64::from(size), "{mode:?} {vlan:?}");
        }
    }
}

/// Looks at both ends: what is told of each interval adds up to what is told of the whole.
#[test]
fn looks_add_up_to_the_whole() {
    let xdp = has_xdp();
    for (send, receive) in [
        (SendMode::LiveFrames, ReceiveMode::XdpNative),
        (SendMode::AfXdp, ReceiveMode::XdpGeneric),
        (SendMode::AfPacket, ReceiveMode::AfPacket),
    ] {
        if !xdp && send != SendMode::AfPacket {
            continue;
        }
        // A virtual pair has one queue for AF_XDP.
        let workers = if send == SendMode::AfXdp { 1 } else { 2 };
        let wire = wire();
        let (sent, got, told) = wire
            .run(|| {
                let plan = GeneratePlan {
                    mode: Some(send),
                    workers,
                    format: FrameFormat { sizes: vec![64, 128, 200], ..plan().format },
                    ..plan()
                };
                let receive =
                    ReceivePlan { mode: Some(receive), idle_ms: Some(300), duration_ms: 30_000, ..receive_plan() };
                let mut receiver = Receiver::start(&receive).unwrap();
                let (mut told, mut seen) = (Vec::new(), Vec::new());
                let sent = generate(&plan, &Stop::new(), |look| told.push(look)).unwrap();
                receiver.wait(&Stop::new(), |look| seen.push(look)).unwrap();
                let got = receiver.finish().unwrap();
                assert_eq!(seen, got.intervals);
                (sent, got, told)
            })
            .unwrap();
        assert_eq!(told, sent.intervals, "{send:?}: each look is told as it is made");
        let last = sent.intervals.last().unwrap();
        let so_far = last.sent.unwrap();
        assert_eq!((last.frames, so_far.due, last.unsent()), (4_000, sent.due(), Some(sent.unsent())), "{send:?}");
        // Each worker begins with the first size: 2,000 are 666 turns and two more frames, 4,000 are 1,333 turns and one more.
        let turn = 64 + 128 + 200 + 3 * OVERHEAD_BYTES;
        let two = 2 * (666 * turn + 64 + 128 + 2 * OVERHEAD_BYTES);
        let one = 1_333 * turn + 64 + OVERHEAD_BYTES;
        assert_eq!(so_far.wire_bytes, u64::from(if workers == 2 { two } else { one }), "{send:?}");
        assert_eq!(so_far.refused, sent.refused);
        let end = got.intervals.last().unwrap();
        assert_eq!((end.frames, end.lost(), got.lost()), (4_000, Some(0), 0), "{receive:?}: {got:?}");
        assert_eq!(end.got.unwrap().bytes, got.bytes);
        for looks in [&sent.intervals, &got.intervals] {
            assert!(looks.windows(2).all(|pair| pair[0].at_us < pair[1].at_us && pair[0].frames <= pair[1].frames));
        }
        assert!(got.intervals.iter().all(|look| look.lost() == Some(0)), "{receive:?}: none was lost: {got:?}");
        assert_eq!(got.stamp_clock.unwrap().of_others, 0);
        assert!(got.latency_ns.is_some(), "{receive:?}");
    }
}

/// Frames that are not in turn, twice there and missing, by flow: through both kinds of counters.
#[test]
fn each_flow_has_its_own_losses() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        let wire = wire();
        let got = wire
            .run(|| {
                let receive = ReceivePlan { mode: Some(mode), ..receive_plan() };
                let mut receiver = Receiver::start(&receive).unwrap();
                let format = FrameFormat { source: ports(2000, 2009), ..plan().format };
                let (template, flows) = (Template::build(&format, 64), Flows::of(&format));
                let mut numbers: Vec<u64> = (0..400)
                    .filter(|n| ![7, 107, 207].contains(n) && n % 10 != 4)
                    .flat_map(|n| if n == 55 { vec![n, n] } else { vec![n] })
                    .collect();
                // 93 comes after 103, the next of its flow.
                let (early, late) = (place(&numbers, 93), place(&numbers, 103));
                numbers.swap(early, late);
                let sender = PacketSender::open(Links::open().unwrap().get("gen0").unwrap().index).unwrap();
                for number in &numbers {
                    let signature = Signature { stream: 63, clock: 0, sequence: *number, time: number % 2 };
                    let frame = template.frame(&flows.nth(number % 10), &signature);
                    while sender.send(std::iter::once(&frame[..])).unwrap().taken == 0 {}
                }
                while receiver.frames().unwrap() < numbers.len() as u64 {
                    clock::sleep(Duration::from_millis(1));
                }
                receiver.finish().unwrap()
            })
            .unwrap();
        let stream = got.streams[0];
        assert_eq!((got.streams.len(), stream.stream, stream.received), (1, 63, 400 - 3 - 40 + 1), "{mode:?}");
        assert_eq!((stream.duplicates, stream.highest, stream.lost()), (1, 399, 43), "{mode:?}");
        let port = |flow: &FlowGot| flow.source.rsplit_once(':').unwrap().1.parse::<u64>().unwrap() - 2000;
        let mut flows: Vec<_> =
            got.flows.iter().map(|it| (port(it), it.received, it.duplicates, it.reordered, it.lost)).collect();
        flows.sort_unstable();
        let whole = |flow| (flow, 40, 0, 0, Some(0));
        assert_eq!(
            flows,
            [
                whole(0),
                whole(1),
                whole(2),
                (3, 40, 0, 1, Some(0)),
                (5, 41, 1, 0, Some(0)),
                whole(6),
                (7, 37, 0, 0, Some(3)),
                whole(8),
                whole(9)
            ],
            "{mode:?}"
        );
        assert_eq!((got.flows_silent, got.flows_left_out), (Some(1), 0), "{mode:?}");
        // Clock 0 is nobody's.
        assert!(got.latency_ns.is_none(), "{mode:?}");
        assert!(got.stamp_clock.unwrap().of_others > 100, "{mode:?}: {:?}", got.stamp_clock);
    }
}

fn place(numbers: &[u64], number: u64) -> usize {
    numbers.iter().position(|it| *it == number).unwrap()
}

fn ports(first: u16, last: u16) -> Endpoints {
    Endpoints::one([198, 18, 0, 2].into(), [first, last])
}

#[test]
fn networks_are_visited_one_address_of_each() {
    let live = has_xdp();
    for (family, source, first, last) in [
        (Family::Ipv4, "198.18.0.2", "198.19.0.2", "198.19.255.2"),
        (Family::Ipv6, "2001:2:0:100::2", "2001:2:0:200::2", "2001:2:0:2ff::2"),
    ] {
        for (mode, walk) in [
            (None, Walk::Odometer),
            (None, Walk::Random { seed: 3 }),
            (Some(SendMode::AfPacket), Walk::Random { seed: 3 }),
        ] {
            let trial = trial(|plan, _| {
                plan.mode = mode;
                plan.format.family = family;
                plan.format.walk = walk;
                plan.format.sizes = vec![100];
                plan.format.source = Endpoints::one(source.parse().unwrap(), [2000, 2000]);
                plan.format.destination = Endpoints::networks(first.parse().unwrap(), 256, [2000, 2000]).unwrap();
            });
            assert_all_came(&trial, 4_000);
            if live && mode.is_none() {
                assert_eq!(trial.sent.mode, SendMode::LiveFrames, "{:?}", trial.sent.not_better);
            }
            let mut seen: Vec<std::net::SocketAddr> =
                trial.got.flows.iter().map(|flow| flow.destination.parse().unwrap()).collect();
            seen.sort_unstable();
            assert_eq!(seen.len(), 256, "{family:?} {walk:?}");
            let ends = [first, last].map(|address| std::net::SocketAddr::new(address.parse().unwrap(), 2000));
            assert_eq!([seen[0], seen[255]], ends);
            if walk == Walk::Odometer {
                assert!(trial.got.flows.iter().all(|flow| (15..=16).contains(&flow.received)));
            }
        }
    }
}

#[test]
fn every_tenth_frame_goes_to_all_stations_in_each_mode() {
    let xdp = has_xdp();
    for (send, family, transport) in [
        (SendMode::LiveFrames, Family::Ipv4, Transport::Udp),
        (SendMode::LiveFrames, Family::Ipv6, Transport::TcpSyn),
        (SendMode::AfXdp, Family::Ipv4, Transport::Udp),
        (SendMode::AfPacket, Family::Ipv4, Transport::Udp),
    ] {
        if !xdp && send != SendMode::AfPacket {
            continue;
        }
        let trial = trial(|plan, _| {
            plan.mode = Some(send);
            plan.broadcast_every = 10;
            plan.format.family = family;
            plan.format.transport = transport;
            if family == Family::Ipv6 {
                let side = |address: &str| Endpoints {
                    addresses: [address.parse().unwrap(); 2],
                    ports: [2000, 2009],
                    stride_bits: 0,
                };
                plan.format.source = side("2001:2:0:1::2");
                plan.format.destination = side("2001:2:0:2::2");
                plan.format.sizes = vec![128];
            }
        });
        let (sent, got) = (&trial.sent, &trial.got);
        let handed: Vec<_> = sent.streams.iter().map(|it| (it.stream, it.handed)).collect();
        assert_eq!(handed, [(3, 3_600), (BROADCAST_STREAM, 400)], "{send:?}");
        let mut came: Vec<_> = got.streams.iter().map(|it| (it.stream, it.received, it.reordered)).collect();
        came.sort_unstable();
        assert_eq!(came, [(3, 3_600, 0), (BROADCAST_STREAM, 400, 0)], "{send:?}: {got:?}");
        assert_eq!(got.foreign, 0, "{send:?}");
    }
}

/// Whether the UDP checksum of an IPv4 frame verifies, from its bytes alone.
fn verifies(frame: &[u8]) -> bool {
    let segment = &frame[34..14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]))];
    let pseudo = checksum::partial(&frame[26..34]) + 17 + u32::try_from(segment.len()).unwrap();
    checksum::fold(pseudo + checksum::partial(segment)) == 0xffff
}

#[test]
fn frames_to_all_stations_have_the_address_of_all_and_right_checksums() {
    let xdp = has_xdp();
    for mode in [SendMode::LiveFrames, SendMode::AfPacket] {
        if mode == SendMode::LiveFrames && !xdp {
            continue;
        }
        wire()
            .run(|| {
                // With it a virtual pair takes live frames, and hands them to its packet sockets.
                Device::open("rcv0").unwrap().set_feature("gro", true).unwrap();
                let index = Links::open().unwrap().get("rcv0").unwrap().index;
                let mut reader = PacketReader::open(index).unwrap();
                let plan = GeneratePlan { mode: Some(mode), broadcast_every: 4, count: Some(40), ..plan() };
                let sent = generate(&plan, &Stop::new(), |_| {}).unwrap();
                assert_eq!(sent.sent(), 40, "{mode:?}");
                let (mut to_all, mut others) = (Vec::new(), 0);
                for _ in 0..100 {
                    let each = |frame: &[u8], _| {
                        let Some(Seen { signature, .. }) = Seen::parse(frame) else { return };
                        assert!(verifies(frame), "{mode:?}: {frame:?}");
                        if frame[..6] == [0xff; 6] {
                            assert_eq!(signature.stream, BROADCAST_STREAM, "{mode:?}");
                            to_all.push(signature.sequence);
                        } else {
                            assert_eq!(signature.stream, 3, "{mode:?}");
                            others += 1;
                        }
                    };
                    reader.receive(Duration::from_millis(50), each).unwrap();
                    if to_all.len() + others == 40 {
                        break;
                    }
                }
                assert_eq!(others, 30, "{mode:?}");
                assert_eq!(to_all, (0..10).collect::<Vec<u64>>(), "{mode:?}: numbers of their own");
            })
            .unwrap();
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

/// A program in the kernel sends on without the device that its frames go to, and nothing says so: it is looked after.
#[test]
fn a_device_that_goes_ends_both_ends() {
    let mut modes = vec![(SendMode::AfPacket, ReceiveMode::AfPacket)];
    if has_xdp() {
        modes.push((SendMode::LiveFrames, ReceiveMode::XdpNative));
        modes.push((SendMode::AfXdp, ReceiveMode::XdpGeneric));
    }
    for (send, receive) in modes {
        for (gone, word) in [(true, "device gen0 is gone"), (false, "device gen0 was set down")] {
            let wire = wire();
            let (sent, got) = wire
                .run(|| {
                    let watch = ReceivePlan { mode: Some(receive), ..receive_plan() };
                    let mut receiver = Receiver::start(&watch).unwrap();
                    let plan = GeneratePlan { mode: Some(send), count: None, ..plan() };
                    // By another: a device is not gone before its last user lets go of it.
                    let sent = std::thread::scope(|scope| {
                        let mut cut = None;
                        let sent = generate(&plan, &Stop::new(), |look| {
                            if look.frames > 0 && cut.is_none() {
                                let mut links = Links::open().unwrap();
                                cut = Some(scope.spawn(move || match gone {
                                    true => links.delete("gen0").unwrap(),
                                    false => links.set_up("gen0", false).unwrap(),
                                }));
                            }
                        });
                        cut.unwrap().join().unwrap();
                        sent.unwrap()
                    });
                    if gone {
                        receiver.wait(&Stop::new(), |_| {}).unwrap();
                    }
                    (sent, receiver.finish().unwrap())
                })
                .unwrap();
            let why = sent.ended.as_deref().unwrap();
            // On its way to be gone it is down.
            assert!(why.starts_with(word) || why.contains("was set down"), "{send:?}: {why}");
            assert!(sent.due() < 400_000, "{send:?}: it did not end early");
            assert!(got.distinct() > 0, "{receive:?}: what came before is kept");
            assert_eq!(got.ended.as_deref(), gone.then_some("device rcv0 is gone"), "{receive:?}");
        }
    }
}

#[test]
fn a_generator_that_runs_again_is_noticed() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        let wire = wire();
        let got = wire
            .run(|| {
                let mut receiver = Receiver::start(&ReceivePlan { mode: Some(mode), ..receive_plan() }).unwrap();
                let plan = GeneratePlan { mode: Some(SendMode::AfPacket), count: Some(50), ..plan() };
                for run in 1..=3 {
                    generate(&plan, &Stop::new(), |_| {}).unwrap();
                    while receiver.frames().unwrap() < run * 50 {
                        clock::sleep(Duration::from_millis(1));
                    }
                }
                receiver.finish().unwrap()
            })
            .unwrap();
        let stream = got.streams[0];
        assert_eq!((stream.received, stream.highest, stream.restarts), (150, 49, 2), "{mode:?}");
        if mode == ReceiveMode::AfPacket {
            assert_eq!(stream.duplicates, 100, "an XDP program knows copies on the same CPU");
        }
    }
}

#[test]
fn frames_without_room_at_a_packet_socket_are_told() {
    let wire = wire();
    wire.run(|| {
        let receiver = Receiver::start(&ReceivePlan { mode: Some(ReceiveMode::AfPacket), ..receive_plan() }).unwrap();
        let plan = GeneratePlan { mode: Some(SendMode::AfPacket), ..plan() };
        let sent = generate(&plan, &Stop::new(), |_| {}).unwrap();
        let got = receiver.finish().unwrap();
        let missed = got.missed.unwrap();
        assert!(got.distinct() + missed <= sent.sent(), "{} and {missed} of {}", got.distinct(), sent.sent());
        assert_eq!(got.intervals.last().unwrap().got.unwrap().missed, Some(missed));
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
