//! The client's end of the handshake against servers that lose, refuse or are not there.

use crate::common::{KEY, LOOPBACK, open_all, plan, serve};
use narrows_model::{DatagramSizes, Flow, UdpPlan};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::udp::{Arrival, UdpListener, socket};
use narrows_traffic::udp::open;
use narrows_wire::Key;
use narrows_wire::probe::{HELLO_BYTES, Hello};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::Duration;

/// The next hello that comes to a fake server.
fn next_hello(listener: &UdpListener) -> (Hello, Arrival) {
    let never = Event::new().unwrap();
    let mut buffer = [0; 2048];
    wait_readable([listener.as_fd(), never.as_fd()], Some(Duration::from_secs(10))).unwrap();
    let arrival = listener.receive(&mut buffer).unwrap().expect("a hello within ten seconds");
    (Hello::decode(&buffer[..arrival.bytes.min(2048)]).unwrap(), arrival)
}

fn small() -> UdpPlan {
    UdpPlan { sizes: DatagramSizes::Sequence(vec![64]), ..plan() }
}

fn listen() -> (UdpListener, SocketAddr) {
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    (listener, address)
}

#[test]
fn a_lost_hello_is_said_again() {
    let (listener, address) = listen();
    let stream = thread::scope(|scope| {
        scope.spawn(|| {
            for attempt in 1..=3 {
                let (hello, arrival) = next_hello(&listener);
                assert_eq!((hello.attempt, hello.stream, hello.flow, hello.key), (attempt, 5, Flow::Down, KEY));
                if attempt == 3 {
                    let answers = socket::connect_from(arrival.local, arrival.source).unwrap();
                    // Garbage, and an answer to another stream, before the right one.
                    answers.send(b"what?").unwrap();
                    answers.send(&Hello { stream: 6, ..hello }.ok(arrival.bytes, 0, 1)).unwrap();
                    answers.send(&hello.ok(arrival.bytes, 0, 2)).unwrap();
                }
            }
        });
        open(address, &KEY, 5, Flow::Down, &small()).unwrap()
    });
    assert_eq!((stream.id, stream.flow, stream.datagram_bytes, stream.cookie), (5, Flow::Down, 64, 2));
}

#[test]
fn a_refusal_carries_its_sentence_and_amplifies_nothing() {
    let (listener, address) = listen();
    thread::scope(|scope| {
        // The real server, which knows another key: it refuses, then accepts the right one.
        let server = scope.spawn(|| serve(&listener, &small(), 1));
        let error = open(address, &Key([8; 32]), 0, Flow::Up, &small()).unwrap_err().to_string();
        assert_eq!(error, format!("{address} refused stream 0: no trial has this key"));
        let own = socket::connect(address).unwrap();
        own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // Garbage gets no answer, so the first one belongs to the hello.
        own.send(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        own.send(&Hello { key: Key([8; 32]), stream: 0, flow: Flow::Up, attempt: 0, time_ns: 0 }.encode(0)).unwrap();
        assert!(own.recv(&mut [0; 1000]).unwrap() <= HELLO_BYTES);
        assert_eq!(open_all(address, &small()).unwrap().len(), 1);
        assert_eq!(server.join().unwrap().len(), 1);
    });
}

#[test]
fn a_closed_port_is_told_from_a_silent_one() {
    let (listener, address) = listen();
    drop(listener);
    let error = open(address, &KEY, 0, Flow::Up, &small()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("no UDP answer from {address} within ")), "{error}");
    assert!(error.contains("ICMP port unreachable"), "{error}");
    assert!(error.ends_with(&format!("firewalls allow UDP port {}", address.port())), "{error}");
}
