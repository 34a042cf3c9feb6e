//! Whole trials: what one end sent is what the other counted; how trials end.

use crate::common::{KEY, LOOPBACK, open_all, plan, remarks, roles, run, run_both, run_end, serve};
use narrows_model::{Batching, DatagramSizes, Direction, Flow, Place, UdpEndRecord, UdpPlan, UdpRate};
use narrows_sys::udp::UdpListener;
use narrows_traffic::udp::open;
use narrows_traffic::{Stop, TrafficError};
use std::net::SocketAddr;
use std::thread;

/// Checks that two ends tell the same story of every stream, without a loss.
fn agree(plan: &UdpPlan, client: &UdpEndRecord, server: &UdpEndRecord) {
    for (id, flow) in roles(plan) {
        let (from, to) = if flow == Flow::Up { (client, server) } else { (server, client) };
        let (from, to) = (&from.streams[id as usize], &to.streams[id as usize]);
        let (sent, received) = (from.sent.as_ref().unwrap(), to.received.as_ref().unwrap());
        assert_eq!((from.id, to.id, from.flow, to.flow), (id, id, flow, flow));
        assert_eq!((&from.local, &from.remote), (&to.remote, &to.local));
        assert_eq!((from.received.is_none(), to.sent.is_none()), (true, true));
        assert!(sent.datagrams > 0);
        assert_eq!(sent.intended.max(sent.datagrams), sent.datagrams + sent.unsent.total() + sent.skipped);
        assert_eq!(
            (received.datagrams, received.bytes, received.distinct, received.next_sequence),
            (sent.datagrams, sent.bytes, sent.datagrams, sent.datagrams)
        );
        assert_eq!((received.lost, received.duplicates, received.reordered, received.late), (0, 0, 0, 0));
        assert_eq!((received.foreign, received.stamps.as_str()), (0, "kernel"));
        assert_eq!(received.gaps_ns.count, received.datagrams - 1);
        assert_eq!(received.delay_variation_ns.count, received.datagrams);
        assert_eq!(sent.gaps_ns.count, sent.datagrams - 1);
        for end in [from, to] {
            let last = end.samples.last().unwrap();
            assert_eq!((last.datagrams, last.bytes), (sent.datagrams, sent.bytes));
            assert!(end.samples.is_sorted_by(|a, b| a.at_us <= b.at_us && a.datagrams <= b.datagrams));
        }
    }
    assert_eq!((remarks(client), remarks(server)), (vec![], vec![]));
}

#[test]
fn both_directions_at_different_rates_and_several_streams() {
    for (direction, streams) in [(Direction::Up, 1), (Direction::Down, 1), (Direction::Both, 2)] {
        let plan = UdpPlan { direction, streams, sizes: DatagramSizes::Sequence(vec![200]), ..plan() };
        let (client, server) = run_both(&plan);
        agree(&plan, &client, &server);
        for (id, flow) in roles(&plan) {
            let end = if flow == Flow::Up { &client } else { &server };
            let sent = end.streams[id as usize].sent.as_ref().unwrap();
            // 300 ms at the flow's rate, shared by its streams.
            let intended = if flow == Flow::Up { 3000 } else { 1500 } / u64::from(streams);
            assert!(sent.intended.abs_diff(intended) <= 1, "{} of {intended}", sent.intended);
        }
    }
}

#[test]
fn the_wait_for_the_answer_to_the_end_is_no_part_of_what_was_sent() {
    let plan = plan();
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(&listener, &plan, 1));
        let streams = open_all(address, &plan).unwrap();
        // It is there, and confirms nothing for the second that the sender asks.
        let _silent = server.join().unwrap();
        let client = run_end(Place::Client, &plan, streams);
        let samples = &client.streams[0].samples;
        let last = samples.last().unwrap();
        assert_eq!(last.datagrams, client.streams[0].sent.as_ref().unwrap().datagrams);
        assert!((300_000..1_000_000).contains(&last.at_us), "{}", last.at_us);
        assert!(samples.is_sorted_by(|a, b| a.at_us < b.at_us));
    });
}

#[test]
fn each_way_of_batching_tells_the_same() {
    use Batching::{Auto, Off, On};
    for (segmentation, coalescing) in [(Off, Off), (On, Off), (Off, On), (On, On), (Auto, Auto)] {
        let plan = UdpPlan {
            segmentation,
            coalescing,
            rate_up: UdpRate::Pps(40_000.0),
            burst_datagrams: Some(16),
            sizes: DatagramSizes::Sequence(vec![1000]),
            ..plan()
        };
        let (mut client, mut server) = run_both(&plan);
        let (sent, received) = (&client.streams[0], &server.streams[0]);
        assert_eq!(sent.method, if segmentation == Off { "sendmmsg" } else { "sendmmsg+segment" });
        // Loopback hands runs over whole where the receiver takes them.
        let whole = segmentation != Off && coalescing != Off;
        assert_eq!(received.method, if whole { "recvmmsg+gro" } else { "recvmmsg" });
        let sent = sent.sent.as_ref().unwrap();
        assert!(sent.burst_max >= 16);
        // A remark on coalescing that was asked for and did not happen is right.
        server.remarks.retain(|remark| !remark.contains("UDP_GRO"));
        client.remarks.retain(|remark| !remark.contains("UDP_GRO"));
        agree(&plan, &client, &server);
    }
}

#[test]
fn a_mix_of_sizes_keeps_its_order_and_its_rate_in_bits() {
    let sizes = vec![64, 64, 64, 570, 570, 1400, 20];
    let total: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
    let plan = UdpPlan { sizes: DatagramSizes::Sequence(sizes), rate_up: UdpRate::Bps(16_000_000), ..plan() };
    let (client, server) = run_both(&plan);
    agree(&plan, &client, &server);
    let sent = client.streams[0].sent.as_ref().unwrap();
    // 16 Mbit/s over 300 ms are 600,000 bytes; what was skipped on a busy machine is of the mean size.
    let intended = sent.bytes + (sent.skipped * total) / 7;
    assert!(intended.abs_diff(600_000) <= 3 * total, "{intended}");
}

#[test]
fn the_largest_datagram_over_loopback_and_as_fast_as_possible() {
    let plan = UdpPlan { rate_up: UdpRate::Max, duration_ms: 100, ..plan() };
    let (client, server) = run_both(&plan);
    let (from, to) = (&client.streams[0], &server.streams[0]);
    // 65,536 bytes of MTU less 28 bytes of headers, but no more than IPv4 can say.
    assert_eq!((from.datagram_bytes, from.path_mtu_bytes), (65_507, Some(65_535)));
    let (sent, received) = (from.sent.as_ref().unwrap(), to.received.as_ref().unwrap());
    assert_eq!(sent.intended, 0);
    assert_eq!(received.distinct + received.lost, sent.datagrams);
    assert_eq!(received.bytes, received.datagrams * 65_507);
}

#[test]
fn a_stop_ends_both_sides_of_a_stream_early() {
    let long = UdpPlan { duration_ms: 60_000, direction: Direction::Both, ..plan() };
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    let stop = Stop::new();
    thread::scope(|scope| {
        let run = |place, streams| {
            let (stop, long) = (&stop, &long);
            // The first interval has data; then the user has enough.
            scope.spawn(move || run(place, long, streams, stop, &mut |_| stop.stop()).unwrap())
        };
        let server = scope.spawn(|| serve(&listener, &long, 2));
        let client = run(Place::Client, open_all(address, &long).unwrap());
        let server = run(Place::Server, server.join().unwrap());
        for record in [client.join().unwrap(), server.join().unwrap()] {
            let last = record.streams.iter().filter_map(|stream| stream.samples.last()).map(|last| last.at_us).max();
            assert!(last.is_some_and(|at_us| at_us < 30_000_000));
            assert!(record.streams.iter().any(|stream| stream.samples.last().unwrap().datagrams > 0));
            assert_eq!(remarks(&record), Vec::<&str>::new());
        }
    });
}

#[test]
fn ends_without_a_peer_say_so() {
    let plan = UdpPlan { duration_ms: 50, direction: Direction::Both, ..plan() };
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    let client = thread::scope(|scope| {
        // Accepted and never run: the answers come, the trial does not.
        let server = scope.spawn(|| serve(&listener, &plan, 2));
        let client = run_end(Place::Client, &plan, open_all(address, &plan).unwrap());
        drop(server.join().unwrap());
        client
    });
    assert_eq!(remarks(&client), ["stream 1: no datagram arrived"]);
    assert_eq!(client.streams[1].received.as_ref().unwrap().datagrams, 0);
    assert!(client.streams[0].sent.as_ref().unwrap().datagrams > 0);
}

#[test]
fn a_trial_that_cannot_be_is_refused() {
    let none = || run(Place::Client, &plan(), Vec::new(), &Stop::new(), &mut |_| {});
    assert!(matches!(none(), Err(TrafficError::NoStreams)));
    let unsound = UdpPlan { duration_ms: 0, ..plan() };
    let address = SocketAddr::new(LOOPBACK, 9);
    assert!(matches!(open(address, &KEY, 0, Flow::Up, &unsound), Err(TrafficError::Plan(_))));
    let error = open(address, &KEY, 70_000, Flow::Up, &plan()).unwrap_err().to_string();
    assert_eq!(error, "stream 70000: streams of datagrams are numbered from 0 to 65535");
}
