//! The datagram size that a path carries, and what the sender's host refuses.

use crate::common::{open_all, plan, roles, run_end, serve};
use crate::hosts::{addresses, far_address, links, neighbours, routed};
use narrows_model::{DatagramSizes, Direction, Place, UdpEndRecord, UdpPlan, UdpRate};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Qdisc;
use narrows_sys::udp::UdpListener;
use narrows_traffic::TrafficError;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::thread;

/// Both ends of a trial between two hosts; `between` is called on the client's host when the streams are open.
fn run_between(
    (near, far): &(Namespaces, Namespaces),
    ipv6: bool,
    plan: &UdpPlan,
    between: impl FnOnce() + Send,
) -> Result<(UdpEndRecord, UdpEndRecord), TrafficError> {
    run_towards(near, far, addresses(ipv6)[1], plan, between)
}

fn run_towards(
    near: &Namespaces,
    far: &Namespaces,
    ip: IpAddr,
    plan: &UdpPlan,
    between: impl FnOnce() + Send,
) -> Result<(UdpEndRecord, UdpEndRecord), TrafficError> {
    let (listening, ready) = mpsc::channel();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            far.run(|| {
                let listener = UdpListener::bind(0).unwrap();
                listening.send(listener.port()).unwrap();
                run_end(Place::Server, plan, serve(&listener, plan, roles(plan).len()))
            })
        });
        let address = SocketAddr::new(ip, ready.recv().unwrap());
        let client = near.run(|| {
            let streams = open_all(address, plan)?;
            between();
            Ok::<_, TrafficError>(run_end(Place::Client, plan, streams))
        });
        Ok((client.unwrap()?, server.join().unwrap().unwrap()))
    })
}

fn sizes(record: &UdpEndRecord) -> Vec<(u32, Option<u32>)> {
    record.streams.iter().map(|stream| (stream.datagram_bytes, stream.path_mtu_bytes)).collect()
}

#[test]
fn the_largest_datagram_fills_one_packet_in_either_family() {
    let hosts = neighbours(1500, 1500);
    let plan = UdpPlan { direction: Direction::Both, duration_ms: 100, ..plan() };
    for (ipv6, largest) in [(false, 1472), (true, 1452)] {
        let (client, server) = run_between(&hosts, ipv6, &plan, || ()).unwrap();
        assert_eq!(sizes(&client), [(largest, Some(1500)); 2]);
        assert_eq!(sizes(&server), [(largest, Some(1500)); 2]);
        for received in [&server.streams[0].received, &client.streams[1].received] {
            let received = received.as_ref().unwrap();
            assert_eq!(received.bytes, received.datagrams * u64::from(largest));
            assert_eq!((received.lost, received.datagrams > 0), (0, true));
        }
    }
}

#[test]
fn a_router_says_what_fits() {
    let plan = UdpPlan { direction: Direction::Both, duration_ms: 100, ..plan() };
    let (near, _router, far) = routed(1380);
    for (ipv6, largest) in [(false, 1352), (true, 1332)] {
        let (client, server) = run_towards(&near, &far, far_address(ipv6), &plan, || ()).unwrap();
        assert_eq!(sizes(&client), [(largest, Some(1380)); 2]);
        for received in [&server.streams[0].received, &client.streams[1].received] {
            let received = received.as_ref().unwrap();
            assert_eq!((received.lost, received.bytes), (0, received.datagrams * u64::from(largest)));
        }
    }
}

#[test]
fn a_path_that_swallows_large_packets_is_searched() {
    // Nobody says a word about what is larger than the far end's MTU.
    let hosts = neighbours(1500, 1400);
    let plan = UdpPlan { direction: Direction::Both, duration_ms: 100, ..plan() };
    let (client, server) = run_between(&hosts, false, &plan, || ()).unwrap();
    assert_eq!(sizes(&client), [(1372, Some(1400)); 2]);
    assert_eq!(sizes(&server), [(1372, Some(1400)); 2]);
    assert_eq!(server.streams[0].received.as_ref().unwrap().lost, 0);
}

#[test]
fn a_size_that_would_be_fragmented_is_refused_unless_allowed() {
    let hosts = neighbours(1500, 1500);
    let plan = UdpPlan { sizes: DatagramSizes::Sequence(vec![100, 1453]), duration_ms: 100, ..plan() };
    let address = SocketAddr::new(addresses(true)[1], 9);
    let refused = hosts.0.run(|| open_all(address, &plan)).unwrap().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "datagrams of 1453 bytes are too large: the path MTU to [fd00::2]:9 is 1500 bytes, at most 1452 of payload; \
        use a smaller --size, or --fragments"
    );
    let plan = UdpPlan { allow_fragments: true, ..plan };
    for ipv6 in [false, true] {
        let (client, server) = run_between(&hosts, ipv6, &plan, || ()).unwrap();
        let (sent, received) = (client.streams[0].sent.as_ref().unwrap(), server.streams[0].received.as_ref().unwrap());
        assert_eq!((received.datagrams, received.bytes, received.lost), (sent.datagrams, sent.bytes, 0));
    }
}

#[test]
fn a_size_that_vanishes_names_one_that_works() {
    let hosts = neighbours(1500, 1400);
    let plan = UdpPlan { sizes: DatagramSizes::Sequence(vec![1472]), ..plan() };
    let (listening, ready) = mpsc::channel();
    let error = thread::scope(|scope| {
        let (far, plan) = (&hosts.1, &plan);
        let server = scope.spawn(move || {
            far.run(|| {
                let listener = UdpListener::bind(0).unwrap();
                listening.send(listener.port()).unwrap();
                // Kept: it answers until the client has made up its mind.
                serve(&listener, plan, 1)
            })
        });
        let address = SocketAddr::new(addresses(false)[1], ready.recv().unwrap());
        let error = hosts.0.run(|| open_all(address, plan)).unwrap().unwrap_err();
        // The client heard that it is the way back which knows the smaller MTU, or found it by itself.
        drop(server.join().unwrap());
        error.to_string()
    });
    assert!(error.contains("datagrams of 1472 bytes") && error.contains("1372"), "{error}");
}

#[test]
fn what_the_host_refuses_is_unsent_and_not_lost() {
    let hosts = neighbours(1500, 1500);
    let sizes = DatagramSizes::Sequence(vec![1472, 100, 100]);
    let plan = UdpPlan { sizes, rate_up: UdpRate::Pps(3000.0), burst_datagrams: Some(9), ..plan() };
    // The MTU shrinks after the handshake: one datagram in three cannot leave any more.
    let shrink = || links(&hosts.0, |links| links.set_mtu("near0", 1400));
    let (client, server) = run_between(&hosts, false, &plan, shrink).unwrap();
    let (sent, received) = (client.streams[0].sent.as_ref().unwrap(), server.streams[0].received.as_ref().unwrap());
    assert_eq!(sent.unsent.too_big, sent.unsent.total());
    assert!(sent.unsent.too_big.abs_diff(sent.datagrams / 2) <= 5, "{sent:?}");
    assert_eq!((received.distinct, received.lost, received.bytes), (sent.datagrams, 0, sent.datagrams * 100));
    assert_eq!(received.next_sequence, sent.datagrams);
    assert_eq!(client.streams[0].samples.last().unwrap().unsent, sent.unsent.total());
}

#[test]
fn a_send_buffer_that_stays_full_is_unsent_and_not_lost() {
    let hosts = neighbours(1500, 1500);
    // A datagram takes some 120 ms to leave, and the buffer holds one or two.
    let qdisc = Qdisc::TokenBucket { rate_bps: 100_000, burst_bytes: 1600, limit_bytes: 100_000 };
    let plan = UdpPlan {
        sizes: DatagramSizes::Sequence(vec![1448]),
        rate_up: UdpRate::Pps(1000.0),
        send_buffer_bytes: Some(2304),
        duration_ms: 500,
        ..plan()
    };
    let shape = || links(&hosts.0, |links| links.replace_qdisc("near0", &qdisc));
    let (client, server) = run_between(&hosts, false, &plan, shape).unwrap();
    let (sent, received) = (client.streams[0].sent.as_ref().unwrap(), server.streams[0].received.as_ref().unwrap());
    assert!(sent.unsent.would_block > 0 && sent.unsent.would_block == sent.unsent.total(), "{sent:?}");
    assert!(sent.skipped > 0);
    assert_eq!(sent.intended, sent.datagrams + sent.unsent.total() + sent.skipped);
    assert_eq!((received.distinct, received.lost), (sent.datagrams, 0));
}
