//! What a receiver counts, against a sender that sends a known pattern.

use crate::common::{KEY, LOOPBACK, plan, remarks, run_end, serve};
use narrows_model::{Direction, Flow, Place, UdpEndRecord, UdpPlan, UdpRate, UdpReceived};
use narrows_sys::nanos;
use narrows_sys::udp::{UdpListener, socket};
use narrows_wire::probe::{Header, Hello, Kind, Reply, go};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Opens stream 0 of a server as a client would, by hand.
pub(crate) fn shake_hands(address: SocketAddr, flow: Flow) -> UdpSocket {
    let own = socket::connect(address).unwrap();
    own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let hello = Hello { key: KEY, stream: 0, flow, attempt: 1, time_ns: 5 };
    own.send(&hello.encode(300)).unwrap();
    let mut buffer = [0; 1000];
    let length = own.recv(&mut buffer).unwrap();
    let reply = Reply::decode(&buffer[..length], 0);
    assert!(matches!(reply, Ok(Reply::Ok { attempt: 1, hello_bytes: 300, .. })), "{reply:?}");
    assert_eq!(length, 300);
    own
}

fn datagram(kind: Kind, sequence: u64) -> Vec<u8> {
    let mut bytes = Header { kind, stream: 0, sequence, time_ns: nanos::real() }.alone();
    bytes.resize(100, 0);
    bytes
}

/// What a server records of what `send` sends to it.
fn record_of(plan: &UdpPlan, send: impl FnOnce(UdpSocket) + Send) -> UdpEndRecord {
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::new(LOOPBACK, listener.port());
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(Place::Server, plan, serve(&listener, plan, 1)));
        let flow = if plan.direction == Direction::Down { Flow::Down } else { Flow::Up };
        send(shake_hands(address, flow));
        server.join().unwrap()
    })
}

/// Says the last word until it is confirmed.
fn finish(own: &UdpSocket, total: u64) {
    own.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut buffer = [0; 1000];
    for _ in 0..100 {
        own.send(&datagram(Kind::Fin, total)).unwrap();
        while let Ok(length) = own.recv(&mut buffer) {
            let header = Header::decode(&buffer[..length]).unwrap();
            if header.kind == Kind::FinAck {
                assert_eq!(header.sequence, total);
                return;
            }
        }
    }
    panic!("no confirmation");
}

fn received(record: &UdpEndRecord) -> &UdpReceived {
    record.streams[0].received.as_ref().unwrap()
}

#[test]
fn loss_copies_order_and_strangers_are_told_apart() {
    let record = record_of(&plan(), |own| {
        // 0 to 9 without 3 and 4; 8 twice; 6 after 7 and 8; 10 to 12 never.
        for sequence in [0, 1, 2, 5, 7, 8, 8, 6, 9] {
            own.send(&datagram(Kind::Data, sequence)).unwrap();
        }
        own.send(b"garbage").unwrap();
        own.send(&Header { kind: Kind::Data, stream: 9, sequence: 3, time_ns: 0 }.alone()).unwrap();
        own.send(&datagram(Kind::Data, u64::MAX)).unwrap();
        finish(&own, 13);
    });
    let got = received(&record);
    assert_eq!((got.datagrams, got.distinct, got.duplicates, got.lost), (9, 8, 1, 5));
    assert_eq!((got.reordered, got.reorder_extent_max, got.late), (1, 2, 0));
    assert_eq!((got.loss_bursts, got.loss_burst_max, got.next_sequence), (2, 3, 10));
    assert_eq!((got.bytes, got.foreign, got.socket_drops), (900, 7 + 20 + 100, Some(0)));
    let last = record.streams[0].samples.last().unwrap();
    assert_eq!((last.lost, last.duplicates, last.reordered), (5, 1, 1));
    assert_eq!(remarks(&record), Vec::<&str>::new());
}

#[test]
fn who_is_overtaken_by_the_last_word_still_counts() {
    let record = record_of(&plan(), |own| {
        own.send(&datagram(Kind::Data, 0)).unwrap();
        own.send(&datagram(Kind::Fin, 2)).unwrap();
        own.send(&datagram(Kind::Data, 1)).unwrap();
        finish(&own, 2);
    });
    assert_eq!((received(&record).distinct, received(&record).lost), (2, 0));
}

#[test]
fn without_the_last_word_it_says_what_is_not_known() {
    let plan = UdpPlan { duration_ms: 20, ..plan() };
    let record = record_of(&plan, |own| {
        own.send(&datagram(Kind::Data, 0)).unwrap();
        own.send(&datagram(Kind::Data, 2)).unwrap();
    });
    assert_eq!((received(&record).distinct, received(&record).lost), (2, 1));
    assert_eq!(
        remarks(&record),
        ["stream 0: the sender's end mark was lost; losses after the last datagram received are not counted here"]
    );
}

#[test]
fn a_repeated_hello_is_answered_before_and_after_the_trial_begins() {
    let record = record_of(&plan(), |own| {
        let hello = Hello { key: KEY, stream: 0, flow: Flow::Up, attempt: 7, time_ns: 0 };
        own.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut buffer = [0; 1000];
        for data in [false, true] {
            if data {
                own.send(&datagram(Kind::Data, 0)).unwrap();
            }
            own.send(&hello.encode(0)).unwrap();
            // A hello with another key is no hello of this stream.
            own.send(&Hello { key: narrows_wire::Key([9; 32]), ..hello }.encode(0)).unwrap();
            let length = own.recv(&mut buffer).unwrap();
            assert!(matches!(Reply::decode(&buffer[..length], 0), Ok(Reply::Ok { attempt: 7, .. })));
        }
        finish(&own, 1);
    });
    assert_eq!((received(&record).distinct, received(&record).lost), (1, 0));
}

/// A server's load for a client that is ready once, and does `then`.
fn unheard(then: impl FnOnce(UdpSocket) + Send) -> UdpEndRecord {
    let plan = UdpPlan { direction: Direction::Down, duration_ms: 20_000, rate_down: UdpRate::Pps(1_000.0), ..plan() };
    record_of(&plan, |own| {
        own.send(&go(0, 100)).unwrap();
        assert!(own.recv(&mut [0; 2048]).unwrap() > 0);
        then(own);
    })
}

#[test]
fn a_load_ends_when_its_receiver_is_silent_or_gone() {
    let silent = unheard(|own| {
        // It takes what comes and says nothing, until nothing comes any more.
        own.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        while own.recv(&mut [0; 2048]).is_ok() {}
    });
    let closed = unheard(drop);
    for (record, why) in [(silent, "nothing heard of the receiver"), (closed, "the receiver's port is closed")] {
        assert!(remarks(&record).iter().any(|remark| remark.contains(why)), "{:?}", record.remarks);
        let sent = record.streams[0].sent.as_ref().unwrap();
        assert!(sent.datagrams > 0 && sent.datagrams < 10_000, "{} of 20,000 were sent", sent.datagrams);
    }
}
