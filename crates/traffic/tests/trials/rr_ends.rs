//! Request/response trials that do not go as planned: lost answers, closed peers, garbage, the stop flag.

#![allow(clippy::unwrap_used)] // helpers of tests may unwrap as tests do

use crate::common;

use common::rr::{KEY, one, per_transaction, raw_udp, run, run_end, run_transactions, tcp_pair, udp_pair};
use common::{connect, raw, stream};
use narrows_model::{Direction, Flow, Place, RrEndRecord, RrPlan, TcpPlan, Transaction};
use narrows_sys::net;
use narrows_traffic::rr::Answers;
use narrows_traffic::{Connections, PerTransaction, Stop, TrafficError};
use narrows_wire::rr::{Header, Role};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

fn tcp(ms: u64) -> RrPlan {
    RrPlan { duration_ms: ms, interval_ms: 50, ..RrPlan::default() }
}

fn udp(ms: u64) -> RrPlan {
    RrPlan { transaction: Transaction::Udp, request_bytes: 32, response_bytes: 40, ..tcp(ms) }
}

fn crr(ms: u64) -> RrPlan {
    RrPlan { transaction: Transaction::TcpConnect, ..tcp(ms) }
}

/// The response to a request, as the server pads it.
fn response(request: &[u8]) -> [u8; 40] {
    let header = Header { role: Role::Response, ..Header::decode(request).unwrap() };
    let mut response = [0; 40];
    response[..20].copy_from_slice(&header.encode());
    response
}

fn remark(end: &RrEndRecord) -> &str {
    assert_eq!(end.remarks.len(), 1, "{:?}", end.remarks);
    &end.remarks[0]
}

#[test]
fn pipelining_keeps_the_asked_number_on_the_way() {
    // Over TCP: a peer that reads all it can get before it answers sees exactly as many requests.
    let (client, mut server) = tcp_pair();
    let plan = RrPlan { outstanding: 5, request_bytes: 10, ..tcp(60_000) };
    let stop = Stop::new();
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, one(client), &stop));
        let mut request = [0; 50];
        server.read_exact(&mut request).unwrap();
        server.set_nonblocking(true).unwrap();
        assert_eq!(server.read(&mut request).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        server.set_nonblocking(false).unwrap();
        // Two answers make room for two.
        server.write_all(&[0xA5; 2]).unwrap();
        server.read_exact(&mut request[..20]).unwrap();
        stop.stop();
        assert_eq!(end.join().unwrap().streams[0].transactions, 2);
    });
}

#[test]
fn every_answer_that_is_owed_at_the_end_is_waited_for() {
    let (client, mut server) = tcp_pair();
    let plan = RrPlan { outstanding: 5, request_bytes: 10, ..tcp(100) };
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, one(client), &Stop::new()));
        server.read_exact(&mut [0; 50]).unwrap();
        let answered = server_out(server, 5, 10);
        let record = end.join().unwrap();
        assert_eq!(record.streams[0].transactions, answered);
        assert_eq!(record.remarks, Vec::<String>::new());
    });
}

/// Answers one by one to the end, `owed` of them at first; how many.
fn server_out(mut server: std::net::TcpStream, owed: u64, request_bytes: u64) -> u64 {
    let (mut requests, mut answered, mut rest) = (owed, 0, 0);
    let mut buffer = [0; 4096];
    while answered < requests {
        server.write_all(&[0xA5]).unwrap();
        answered += 1;
        if answered == requests {
            let got = server.read(&mut buffer).unwrap() as u64 + rest;
            (requests, rest) = (requests + got / request_bytes, got % request_bytes);
        }
    }
    answered
}

#[test]
fn several_datagrams_are_on_the_way_at_the_same_time() {
    let plan = RrPlan { outstanding: 3, ..udp(60_000) };
    let (client, server) = udp_pair(&plan, 0);
    let server = raw_udp(server);
    let stop = Stop::new();
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, one(client), &stop));
        let receive = || {
            let mut requests = [[0; 32]; 3];
            for request in &mut requests {
                assert_eq!(server.recv(request).unwrap(), 32);
            }
            requests
        };
        let sequences = |requests: [[u8; 32]; 3]| requests.map(|one| Header::decode(&one).unwrap().sequence);
        let first = receive();
        // Answered in another order than asked; each answer makes room for one more.
        for request in first.iter().rev() {
            server.send(&response(request)).unwrap();
        }
        let (first, more) = (sequences(first), sequences(receive()));
        assert!(more.iter().all(|sequence| !first.contains(sequence)), "{first:?} {more:?}");
        stop.stop();
        let record = end.join().unwrap();
        assert_eq!(record.streams[0].transactions, 3);
    });
}

#[test]
fn a_lost_answer_is_a_failure_the_next_goes_on_and_a_late_one_is_not_mistaken() {
    let plan = udp(60_000);
    let (client, server) = udp_pair(&plan, 0);
    let server = raw_udp(server);
    let stop = Stop::new();
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, one(client), &stop));
        let mut lost = [0; 32];
        server.recv(&mut lost).unwrap();
        // Only after a second the next one comes: the first is given up.
        let mut request = [0; 32];
        server.recv(&mut request).unwrap();
        assert_ne!(Header::decode(&lost).unwrap().sequence, Header::decode(&request).unwrap().sequence);
        // Its answer comes now, then garbage, then what the client waits for, twice.
        server.send(&response(&lost)).unwrap();
        server.send(b"garbage").unwrap();
        server.send(&request).unwrap();
        server.send(&response(&request)[..30]).unwrap();
        server.send(&response(&request)).unwrap();
        server.send(&response(&request)).unwrap();
        // The request after the next shows that all of these were read.
        server.recv(&mut request).unwrap();
        server.send(&response(&request)).unwrap();
        server.recv(&mut request).unwrap();
        stop.stop();
        let record = end.join().unwrap();
        let stream = &record.streams[0];
        assert_eq!((stream.transactions, stream.failures), (2, 1));
        let has = |word: &str| record.remarks.iter().any(|remark| remark.contains(word));
        assert!(has("2 responses were late or duplicate"), "{:?}", record.remarks);
        assert!(has("stream 0: 3 datagrams did not belong to this stream"), "{:?}", record.remarks);
        // The one that took a second is no latency.
        assert_eq!(stream.latency_ns.count, 2);
    });
}

#[test]
fn the_responder_answers_requests_of_its_stream_and_nothing_else() {
    let plan = udp(60_000);
    let (client, server) = udp_pair(&plan, 0);
    let client = raw_udp(client);
    let stop = Stop::new();
    thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Server, &plan, one(server), &stop));
        let request = |stream, role| {
            let mut request = [9; 32];
            request[..20].copy_from_slice(&Header { role, stream, sequence: 77 }.encode());
            request
        };
        for foreign in [request(1, Role::Request), request(0, Role::Response), [3; 32]] {
            client.send(&foreign).unwrap();
        }
        client.send(&request(0, Role::Request)[..31]).unwrap();
        client.send(&request(0, Role::Request)).unwrap();
        let mut answer = [0; 64];
        assert_eq!(client.recv(&mut answer).unwrap(), 40);
        let header = Header::decode(&answer).unwrap();
        assert_eq!(header, Header { role: Role::Response, stream: 0, sequence: 77 });
        stop.stop();
        let record = end.join().unwrap();
        assert_eq!(record.streams[0].transactions, 1);
        assert_eq!(remark(&record), "stream 0: 4 datagrams were not requests of this stream and were not answered");
    });
}

#[test]
fn a_closed_peer_is_told_in_a_sentence() {
    let (client, mut server) = tcp_pair();
    let record = thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &tcp(60_000), one(client), &Stop::new()));
        server.read_exact(&mut [0]).unwrap();
        server.write_all(&[0xA5]).unwrap();
        server.read_exact(&mut [0]).unwrap();
        drop(server);
        end.join().unwrap()
    });
    assert_eq!((record.streams[0].transactions, record.streams[0].failures), (1, 1));
    assert!(remark(&record).starts_with("stream 0: lost the peer: it closed the connection after 0."));
    assert!(remark(&record).ends_with("of 60.00 s"), "{}", remark(&record));
    assert_eq!(record.streams[0].connect_ns.p50, 123_456);

    let (client, server) = tcp_pair();
    drop(client);
    let record = run_end(Place::Server, &tcp(60_000), one(server), &Stop::new());
    assert!(remark(&record).starts_with("stream 0: lost the peer: its requests ended after"));
}

#[test]
fn a_closed_port_is_given_up() {
    let (client, server) = udp_pair(&udp(60_000), 0);
    drop(server);
    let record = run_end(Place::Client, &udp(60_000), one(client), &Stop::new());
    assert!(remark(&record).contains("no listener on the peer's port: Connection refused"), "{}", remark(&record));
    assert_eq!((record.streams[0].transactions, record.streams[0].failures), (0, 100));

    let port = net::listen(0).unwrap().local_addr().unwrap().port();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let plan = RrPlan { request_bytes: 64, ..crr(60_000) };
    let connections = per_transaction(PerTransaction::Connect { address, key: KEY });
    let record = run_end(Place::Client, &plan, connections, &Stop::new());
    let has = |words: &str| record.remarks.iter().any(|remark| remark.contains(words));
    assert!(has("gave up after") && has("100 transactions failed; the first: cannot connect to 127.0.0.1:"));
    assert_eq!((record.streams[0].transactions, record.streams[0].failures), (0, 100));
}

#[test]
fn an_answer_that_nobody_asked_for_ends_the_stream() {
    let (client, mut server) = tcp_pair();
    server.write_all(&[1, 2, 3]).unwrap();
    let record = run_end(Place::Client, &tcp(60_000), one(client), &Stop::new());
    assert!(remark(&record).contains("the peer sent more responses than requests"), "{}", remark(&record));
}

#[test]
fn a_server_that_refuses_a_transaction_is_quoted() {
    // Of two streams the server knows one.
    let client = RrPlan { streams: 2, request_bytes: 64, ..crr(200) };
    let server = RrPlan { streams: 1, request_bytes: 64, ..crr(200) };
    let (client, server) = run_transactions(&client, &server, &Stop::new());
    assert_eq!(client.streams[0].transactions, server.streams[0].transactions);
    assert_eq!((client.streams[1].transactions, client.streams[1].failures), (0, 1));
    assert!(remark(&client).contains("the server refused: the trial has no such stream"), "{:?}", client.remarks);
}

#[test]
fn another_server_on_the_port_is_recognised() {
    for (says, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], "the listener is not a narrows server with transactions"),
        (&[0xA5, 0xA5][..], "the peer sent more responses than requests"),
        (&b""[..], "all further transactions failed; the last one: the peer closed after 0 of 1 bytes"),
    ] {
        let listener = net::listen(0).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
        let stop = Stop::new();
        let record = thread::scope(|scope| {
            let connections = per_transaction(PerTransaction::Connect { address, key: KEY });
            let plan = RrPlan { request_bytes: 44, ..crr(60_000) };
            let end = scope.spawn(move || run_end(Place::Client, &plan, connections, &Stop::new()));
            listener.set_nonblocking(true).unwrap();
            while !end.is_finished() {
                if let Ok((mut socket, _)) = listener.accept() {
                    socket.set_nonblocking(false).unwrap();
                    socket.read_exact(&mut [0; 44]).unwrap();
                    socket.write_all(says).unwrap();
                } else {
                    thread::yield_now();
                }
            }
            stop.stop();
            end.join().unwrap()
        });
        assert!(record.remarks.iter().any(|remark| remark.contains(expected)), "{:?}", record.remarks);
        assert_eq!(record.streams[0].transactions, 0);
    }
}

#[test]
fn a_stop_frees_every_kind_of_thread() {
    let stopped = |place, plan: &RrPlan, connections| {
        let stop = Stop::new();
        let record = thread::scope(|scope| {
            let end = scope.spawn(|| run_end(place, plan, connections, &stop));
            stop.stop();
            end.join().unwrap()
        });
        assert_eq!(record.remarks, Vec::<String>::new());
        assert_eq!((record.streams[0].transactions, record.streams[0].failures), (0, 0));
        assert!(record.streams[0].samples.last().unwrap().at_us < 30_000_000);
    };
    // Each with a peer that is silent.
    for place in [Place::Client, Place::Server] {
        let (mine, _silent) = tcp_pair();
        stopped(place, &tcp(60_000), one(mine));
        let (mine, silent) = udp_pair(&udp(60_000), 0);
        let _silent = raw_udp(silent);
        stopped(place, &udp(60_000), one(mine));
    }
    let answers = Answers::new(&crr(60_000));
    stopped(Place::Server, &crr(60_000), per_transaction(PerTransaction::Answer(answers)));
    let listener = net::listen(0).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
    let plan = RrPlan { request_bytes: 44, ..crr(60_000) };
    stopped(Place::Client, &plan, per_transaction(PerTransaction::Connect { address, key: KEY }));
}

#[test]
fn a_server_whose_client_is_silent_ends_by_itself() {
    let (silent, server) = udp_pair(&udp(100), 0);
    let _silent = raw_udp(silent);
    let record = run_end(Place::Server, &udp(100), one(server), &Stop::new());
    assert_eq!(record.streams[0].transactions, 0);
    assert!(record.streams[0].samples.last().unwrap().at_us >= 100_000);
    let (_silent, client) = tcp_pair();
    let record = run_end(Place::Client, &tcp(100), one(client), &Stop::new());
    assert_eq!((record.streams[0].transactions, record.streams[0].failures), (0, 1));
    assert_eq!(remark(&record), "stream 0: 1 requests were not answered within 2 s after the end");
}

#[test]
fn requests_that_a_silence_held_up_count_from_when_they_were_due() {
    // 100 a second, one at a time; the peer answers the first after 300 ms and the others at once.
    let (client, mut server) = tcp_pair();
    let plan = RrPlan { rate_per_s: Some(100.0), ..tcp(500) };
    let record = thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, one(client), &Stop::new()));
        server.read_exact(&mut [0]).unwrap();
        narrows_sys::clock::sleep(Duration::from_millis(300));
        server.write_all(&[0xA5]).unwrap();
        while server.read(&mut [0]).is_ok_and(|bytes| bytes > 0) {
            server.write_all(&[0xA5]).unwrap();
        }
        end.join().unwrap()
    });
    let latency = &record.streams[0].latency_ns;
    // Those due at 0, 10, … 290 ms waited for 300, 290, … 10 ms: a closed loop would show one slow transaction.
    let slow: u64 = latency.buckets.iter().filter(|[bound, _]| *bound > 100_000_000).map(|[_, count]| count).sum();
    assert!(latency.max >= 300_000_000 && slow >= 20, "{slow} of {}", latency.count);
}

#[test]
fn what_cannot_start_says_why() {
    let nothing =
        |place, plan: &RrPlan, connections| run(place, plan, connections, &Stop::new(), &mut Vec::new()).unwrap_err();
    let (socket, _peer) = tcp_pair();
    let error = nothing(Place::Client, &RrPlan { streams: 0, ..tcp(100) }, one(socket));
    assert_eq!(error.to_string(), "the plan cannot be run: streams is 0, but must be from 1 to 128");
    let (socket, _peer) = tcp_pair();
    let error = nothing(Place::Client, &udp(100), one(socket));
    assert!(error.to_string().ends_with("the plan and the sockets have different protocols"), "{error}");
    let (socket, _peer) = tcp_pair();
    assert!(matches!(nothing(Place::Path, &tcp(100), one(socket)), TrafficError::NotAnEnd));
    let empty = || Connections::of(Vec::new());
    assert!(matches!(nothing(Place::Client, &tcp(100), empty()), TrafficError::NoStreams));
    assert!(matches!(nothing(Place::Client, &crr(100), empty()), TrafficError::Sockets(_)));
    let loaded = RrPlan { load: Some(TcpPlan::default()), ..tcp(100) };
    let (socket, _peer) = tcp_pair();
    assert!(matches!(nothing(Place::Client, &loaded, one(socket)), TrafficError::Sockets(_)));
    // A load that cannot start ends the trial at once, with its own error.
    let load = TcpPlan { congestion_control: Some("nonesuch".to_owned()), ..TcpPlan::default() };
    let (streams, _peers) = connect(&TcpPlan { direction: Direction::Up, ..TcpPlan::default() });
    let (socket, _peer) = tcp_pair();
    let mut connections = one(socket);
    connections.streams.push(stream(1, Flow::Up, raw(streams)));
    let error = nothing(Place::Client, &RrPlan { load: Some(load), ..tcp(60_000) }, connections);
    assert!(matches!(error, TrafficError::Option { .. }), "{error}");
}
