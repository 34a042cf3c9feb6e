//! Real packets through real TUN devices: every packet comes out, or is counted. Needs root, and fails without.

#![allow(clippy::disallowed_methods)] // Plain sockets: the test must not depend on the product's engines.

use narrows_lab::{Host, Lab, LabSpec, Topology};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Family, Flow, Place};
use narrows_sys::rtnl::{Link, Links};
use narrows_sys::{clock, udp};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn lab(change: impl FnOnce(&mut LabSpec)) -> Lab {
    let mut spec = LabSpec { name: "test".to_owned(), ..LabSpec::default() };
    change(&mut spec);
    Lab::up(&spec).expect("this test builds networks: it needs root and /dev/net/tun")
}

fn end<'a>(lab: &'a Lab, name: &str) -> &'a Host {
    lab.host(name).expect("it is there")
}

fn link(host: &Host) -> Link {
    host.run(|| Links::open()?.get(host.device())).expect("entered").expect("the device")
}

fn any(family: Family) -> SocketAddr {
    match family {
        Family::Ipv4 => "0.0.0.0:0",
        Family::Ipv6 => "[::]:0",
    }
    .parse()
    .expect("an address")
}

fn bind(host: &Host, family: Family) -> (UdpSocket, SocketAddr) {
    let socket = host.run(|| UdpSocket::bind(any(family))).expect("entered").expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let port = socket.local_addr().expect("bound").port();
    (socket, SocketAddr::new(host.address(family).expect("it has one"), port))
}

/// Bytes that differ everywhere, so that a misplaced segment shows.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| step(&mut state)).collect()
}

/// Sends bytes over TCP and compares what arrives.
fn transfer(from: &Host, to: &Host, family: Family, length: usize) {
    let listener = to.run(|| TcpListener::bind(any(family))).expect("entered").expect("bound");
    let port = listener.local_addr().expect("bound").port();
    let address = SocketAddr::new(to.address(family).expect("it has one"), port);
    let sent = pattern(length);
    let received = std::thread::scope(|scope| {
        let sent = &sent;
        scope.spawn(move || {
            let stream = from.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("entered");
            stream.expect("connected").write_all(sent).expect("sent");
        });
        let (mut stream, _) = accept(&listener);
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("received");
        received
    });
    assert!(received == sent, "{} of {length} bytes came, or not these", received.len());
}

/// Accepts within a time limit, so that a test ends in any case.
fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    listener.set_nonblocking(true).expect("set");
    let deadline = clock::now() + PATIENCE;
    loop {
        let accepted = listener.accept();
        let waits = accepted.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        if !waits {
            let (stream, peer) = accepted.expect("accepted");
            stream.set_nonblocking(false).expect("set");
            return (stream, peer);
        }
        assert!(clock::now() < deadline, "nobody connects");
        clock::sleep(Duration::from_millis(1));
    }
}

/// Waits until nothing is under way.
fn settle(lab: &Lab) {
    let deadline = clock::now() + PATIENCE;
    while [Flow::Up, Flow::Down].iter().any(|flow| lab.counters(*flow).waiting_packets > 0) {
        assert!(clock::now() < deadline, "{:?}", lab.counters(Flow::Up));
        clock::sleep(Duration::from_millis(5));
    }
}

#[test]
fn every_packet_is_delivered_or_counted() {
    let lab = lab(|spec| {
        spec.up = Impairment {
            rate_bps: 200_000_000,
            queue_packets: 50,
            delay_us: 3000,
            jitter_us: 2000,
            loss: 0.05,
            burst_loss_enter: 0.01,
            burst_loss_leave: 0.2,
            burst_loss: 0.9,
            reorder: 0.03,
            duplicate: 0.02,
            police_bps: 150_000_000,
            police_burst_bytes: 50_000,
            mtu: 1400,
            corrupt: 0.01,
            ..Impairment::default()
        };
    });
    let (client, server) = (end(&lab, "client"), end(&lab, "server"));
    for family in [Family::Ipv4, Family::Ipv6] {
        let before = (link(client), link(server), lab.counters(Flow::Up), lab.counters(Flow::Down));
        let (_sink, address) = bind(server, family);
        let (source, _) = bind(client, family);
        for index in 0..20_000 {
            source.send_to(&[0; 1000], address).expect("sent");
            if index % 100 == 0 {
                clock::sleep(Duration::from_millis(1));
            }
        }
        settle(&lab);
        let after = (link(client), link(server), lab.counters(Flow::Up), lab.counters(Flow::Down));
        let taken = after.2.taken_packets - before.2.taken_packets;
        assert_eq!(taken, after.0.tx_packets - before.0.tx_packets, "all that the client's device sent");
        assert!(taken >= 20_000);
        assert_eq!(after.0.tx_dropped, 0, "the device's own queue never drops");
        let delivered = after.2.delivered_packets - before.2.delivered_packets;
        let duplicated = after.2.duplicated - before.2.duplicated;
        assert_eq!(
            delivered + duplicated,
            after.1.rx_packets - before.1.rx_packets,
            "all that the server's device got"
        );
        let counters = after.2;
        let dropped = counters.dropped_loss + counters.dropped_queue + counters.dropped_policer + counters.dropped_mtu;
        assert_eq!(counters.taken_packets, counters.delivered_packets + dropped + counters.dropped_device);
        assert_eq!(counters.dropped_device, 0);
        for (name, count) in [
            ("loss", counters.dropped_loss),
            ("queue or policer", counters.dropped_queue + counters.dropped_policer),
            ("duplicated", counters.duplicated),
            ("reordered", counters.reordered),
            ("corrupted", counters.corrupted),
        ] {
            assert!(count > 0, "{name}: {counters:?}");
        }
    }
}

#[test]
fn a_stream_arrives_whole_whatever_the_path_does() {
    let impaired = |change: fn(&mut Impairment)| {
        let mut path = Impairment { delay_us: 500, ..Impairment::default() };
        change(&mut path);
        path
    };
    let lab = lab(|_| {});
    let paths: [fn(&mut Impairment); 7] = [
        |_| {},
        |path| path.loss = 0.01,
        |path| path.reorder = 0.02,
        |path| path.duplicate = 0.05,
        |path| path.jitter_us = 300,
        |path| (path.rate_bps, path.queue_packets) = (200_000_000, 30),
        |path| path.mtu = 1300,
    ];
    for change in paths {
        for flow in [Flow::Up, Flow::Down] {
            lab.set(flow, impaired(change)).expect("a path");
        }
        transfer(end(&lab, "client"), end(&lab, "server"), Family::Ipv4, 3_000_000);
        transfer(end(&lab, "server"), end(&lab, "client"), Family::Ipv6, 3_000_000);
    }
    let counters = lab.counters(Flow::Up);
    assert!(counters.dropped_loss > 0 && counters.duplicated > 0 && counters.dropped_mtu > 0, "{counters:?}");
    // Once more with every segment alone from the start.
    lab.fault("offloads-off", Place::Client, None, Direction::Both).expect("a fault");
    lab.set(Flow::Up, impaired(|path| path.loss = 0.005)).expect("a path");
    transfer(end(&lab, "client"), end(&lab, "server"), Family::Ipv4, 3_000_000);
}

#[test]
fn a_batch_of_datagrams_arrives_one_by_one() {
    // A slow rate takes the super-packet apart, a fast one splits it, none passes it whole.
    for rate_bps in [0, 20_000_000, 2_000_000_000] {
        let lab = lab(|spec| spec.up.rate_bps = rate_bps);
        for family in [Family::Ipv4, Family::Ipv6] {
            let (sink, address) = bind(end(&lab, "server"), family);
            let (source, _) = bind(end(&lab, "client"), family);
            udp::set_segment_bytes(&source, 1200).expect("Linux 4.18");
            let sent = pattern(30 * 1200 + 77);
            source.send_to(&sent, address).expect("sent");
            let mut buffer = [0; 2000];
            for expected in sent.chunks(1200) {
                let length = sink.recv(&mut buffer).expect("a datagram");
                assert!(buffer[..length] == *expected, "{family:?} at {rate_bps}: {length} bytes, or not these");
            }
        }
    }
}

#[test]
fn a_sender_above_the_mtu_is_notified() {
    let lab = lab(|spec| spec.up.mtu = 1400);
    for family in [Family::Ipv4, Family::Ipv6] {
        let dropped_before = lab.counters(Flow::Up).dropped_mtu;
        let (sink, address) = bind(end(&lab, "server"), family);
        let (source, _) = bind(end(&lab, "client"), family);
        source.connect(address).expect("connected");
        sink.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
        // The first is lost and answered; the kernel then splits the next ones to the path's MTU.
        let sent = pattern(1450);
        let mut buffer = [0; 2000];
        let arrived = (0..50).find_map(|_| {
            // The answer may arrive as an error of the socket.
            let _ = source.send(&sent);
            sink.recv(&mut buffer).ok()
        });
        assert_eq!(arrived, Some(1450), "{family:?}");
        assert!(buffer[..1450] == sent[..]);
        assert!(lab.counters(Flow::Up).dropped_mtu > dropped_before);
    }
}

#[test]
fn a_router_forwards_between_the_path_and_the_server() {
    let lab = lab(|spec| {
        spec.topology = Topology::Chain;
        spec.up.delay_us = 2000;
    });
    for family in [Family::Ipv4, Family::Ipv6] {
        transfer(end(&lab, "client"), end(&lab, "server"), family, 1_000_000);
        transfer(end(&lab, "server"), end(&lab, "client"), family, 1_000_000);
    }
    assert!(lab.counters(Flow::Up).taken_bytes > 2_000_000);
    assert!(link(end(&lab, "server")).rx_packets > 0);
}

#[test]
fn an_impairment_can_change_under_load() {
    let lab = lab(|spec| spec.up.delay_us = 200);
    std::thread::scope(|scope| {
        let stream = scope.spawn(|| transfer(end(&lab, "client"), end(&lab, "server"), Family::Ipv4, 30_000_000));
        for round in 0_u64..40 {
            let path = Impairment {
                delay_us: round % 3 * 700,
                rate_bps: round % 4 * 500_000_000,
                loss: if round % 5 == 0 { 0.002 } else { 0.0 },
                ..Impairment::default()
            };
            lab.set(Flow::Up, path).expect("a path");
            clock::sleep(Duration::from_millis(5));
        }
        lab.set(Flow::Up, Impairment::default()).expect("a path");
        stream.join().expect("the bytes arrived");
    });
}
