//! Where frames go: networks, and all stations.

use crate::wire::{assert_all_came, has_xdp, plan, trial, wire};
use narrows_model::Family;
use narrows_model::load::frames::{BROADCAST_STREAM, Endpoints, GeneratePlan, SendMode, Transport, Walk};
use narrows_sys::ethtool::Device;
use narrows_sys::packet_io::PacketReader;
use narrows_sys::rtnl::Links;
use narrows_traffic::Stop;
use narrows_traffic::frames::generate;
use narrows_wire::frame::{Seen, checksum};
use std::time::Duration;

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
