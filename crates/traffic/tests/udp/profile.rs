//! The path profile between two ends, and its server against a client that asks for too much.

use crate::common::{KEY, LOOPBACK, cpus, serve};
use crate::order::shake_hands;
use narrows_model::{Direction, Flow, Place, ProfileEndRecord, ProfilePlan, ProfileStep, Progress, UdpPlan, UdpRate};
use narrows_sys::udp::UdpListener;
use narrows_traffic::udp::{UdpStream, open};
use narrows_traffic::{Connections, DataStream, Socket, Stop};
use narrows_wire::profile::{Note, decode, encode};
use std::net::SocketAddr;
use std::thread;

fn plan(direction: Direction) -> ProfilePlan {
    ProfilePlan { direction, start_bps: 2_000_000, max_bps: 20_000_000, limit_ms: 3_000 }
}

/// The handshake that the engine asks for.
fn handshake(plan: &ProfilePlan) -> UdpPlan {
    UdpPlan { direction: plan.direction, rate_up: UdpRate::Max, rate_down: UdpRate::Max, ..UdpPlan::default() }
}

fn run(place: Place, plan: &ProfilePlan, stream: UdpStream, stop: &Stop) -> ProfileEndRecord {
    run_until(place, plan, stream, stop, &mut |_| {})
}

fn run_until(
    place: Place,
    plan: &ProfilePlan,
    stream: UdpStream,
    stop: &Stop,
    on_progress: &mut dyn FnMut(Progress),
) -> ProfileEndRecord {
    let flow = stream.flow;
    let streams = vec![DataStream { id: 0, flow, socket: Socket::Udp(stream), connect_ns: None }];
    let record =
        narrows_traffic::run(place, &plan.clone().into(), Connections::of(streams), stop, &cpus, on_progress).unwrap();
    record.get::<ProfileEndRecord>().unwrap().clone()
}

fn one(mut streams: Vec<UdpStream>) -> UdpStream {
    streams.pop().expect("one stream")
}

#[test]
fn both_ends_account_for_every_datagram_of_every_step() {
    for direction in [Direction::Up, Direction::Down] {
        let (plan, listener) = (plan(direction), UdpListener::bind(0).unwrap());
        let address = SocketAddr::new(LOOPBACK, listener.port());
        let (client, server) = thread::scope(|scope| {
            let server =
                scope.spawn(|| run(Place::Server, &plan, one(serve(&listener, &handshake(&plan), 1)), &Stop::new()));
            let stream = open(address, &KEY, 0, direction.flows()[0], &handshake(&plan)).unwrap();
            (run(Place::Client, &plan, stream, &Stop::new()), server.join().unwrap())
        });
        assert!(client.probes.len() >= 50 && client.probes.iter().all(|probe| probe.rtt_ns > 0), "{direction}");
        // Four trains, and a step at least.
        assert!(client.steps.len() >= 5, "{direction}: {} steps", client.steps.len());
        for (n, step) in (1..).zip(&client.steps) {
            let received = step
                .received
                .as_ref()
                .unwrap_or_else(|| panic!("its account: {direction} {n}: {step:?} of {:?}", client.remarks));
            assert_eq!(step.step.id, n, "{direction}");
            assert_eq!(received.datagrams + received.socket_drops, step.sent.datagrams, "{direction}: {step:?}");
            assert!(step.sent.datagrams <= step.step.datagrams && received.parts.len() <= 16);
            assert_eq!(received.parts.iter().map(|part| part.received).sum::<u32>(), received.datagrams);
        }
        assert!(client.steps.iter().any(|step| step.step.gap_ns == 0), "trains");
        assert_eq!((server.steps.len(), server.place), (0, Place::Server));
    }
}

#[test]
fn a_stop_ends_both_ends() {
    let (plan, listener) = (plan(Direction::Up), UdpListener::bind(0).unwrap());
    let address = SocketAddr::new(LOOPBACK, listener.port());
    let (stop, streams) = (Stop::new(), handshake(&plan));
    let client = thread::scope(|scope| {
        let server = scope.spawn(|| run(Place::Server, &plan, one(serve(&listener, &streams, 1)), &stop));
        let stream = open(address, &KEY, 0, Direction::Up.flows()[0], &streams).unwrap();
        // The first step has been made; then the user has enough.
        let client = scope.spawn(|| run_until(Place::Client, &plan, stream, &stop, &mut |_| stop.stop()));
        server.join().unwrap();
        client.join().unwrap()
    });
    assert!(client.probes_sent > 0 && !client.steps.is_empty(), "what was measured is kept");
}

#[test]
fn a_server_sends_no_step_beyond_its_plan() {
    let (plan, listener) = (plan(Direction::Down), UdpListener::bind(0).unwrap());
    let address = SocketAddr::new(LOOPBACK, listener.port());
    let streams = handshake(&plan);
    thread::scope(|scope| {
        let server = scope.spawn(|| run(Place::Server, &plan, one(serve(&listener, &streams, 1)), &Stop::new()));
        let socket = shake_hands(address, Flow::Up);
        let mut buffer = [0; 4096];
        let fast = ProfileStep { id: 1, datagrams: 1_000, datagram_bytes: 1472, gap_ns: 1_000, stop_above_us: 0 };
        socket.send(&encode(&Note::Send { step: fast }, &KEY, 1)).unwrap();
        let note = std::iter::repeat_with(|| {
            let bytes = socket.recv(&mut buffer).expect("an answer");
            decode(&buffer[..bytes], &KEY)
        });
        let (answer, _) = note.flatten().next().expect("a note");
        assert!(matches!(&answer, Note::Refused { id: 1, why } if why.contains("gap of a step")), "{answer:?}");
        socket.send(&encode(&Note::End, &KEY, 2)).unwrap();
        assert_eq!(server.join().unwrap().streams[0].samples.last().unwrap().bytes, 0, "nothing was sent");
    });
}
