//! How trials end: by time, by the stop flag, by a peer that is gone.

use crate::common;

use common::{bytes_of, connect, growth, pair, raw, run, run_both, run_end, stream};
use narrows_model::{Application, Direction, Flow, Limit, Place, TcpPlan};
use narrows_sys::{clock, tcp};
use narrows_traffic::{CALL_LIMIT, GRACE, Stop, TrafficError};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::Duration;

fn timed(ms: u64) -> TcpPlan {
    TcpPlan { limit: Limit::DurationMs(ms), interval_ms: 50, ..TcpPlan::default() }
}

/// The time of the last sample of an end.
fn last_us(end: &narrows_model::TcpEndRecord) -> u64 {
    end.streams.iter().filter_map(|stream| stream.samples.last()).map(|sample| sample.at_us).max().unwrap_or(0)
}

#[test]
fn time_ends_both_ends_without_remarks() {
    for direction in [Direction::Up, Direction::Both] {
        let plan = TcpPlan { direction, streams: 2, ..timed(300) };
        let (client, server, progress) = run_both(&plan);
        for (end, other) in [(&client, &server), (&server, &client)] {
            assert_eq!(end.remarks, Vec::<String>::new());
            assert!(last_us(end) >= 290_000, "{}", last_us(end));
            for &flow in plan.flows() {
                if flow.receiver() == end.place {
                    // What the sender threw away at its end never arrives; what arrived was sent.
                    let (got, sent) = (bytes_of(end, flow), bytes_of(other, flow));
                    assert!(got.iter().zip(&sent).all(|(got, sent)| *got > 0 && got <= sent), "{got:?} of {sent:?}");
                }
            }
        }
        // Intervals, and the end; a machine that pauses joins some of them.
        assert!(progress.len() >= 2, "{}", progress.len());
        let last = progress.last().unwrap();
        assert!(last.at_us >= last_us(&client));
        for (told, stream) in last.streams.iter().zip(&client.streams) {
            assert_eq!(told.sample, stream.samples.last().unwrap().clone().into());
        }
    }
}

#[test]
fn a_stop_frees_a_sender_that_is_blocked() {
    let (socket, silent) = pair();
    let stop = Stop::new();
    let plan = timed(60_000);
    let record = thread::scope(|scope| {
        let end = scope.spawn(|| run_end(Place::Client, &plan, vec![stream(0, Flow::Up, socket)], &stop));
        // The peer never reads: the stream is blocked once what can be received does not grow any more.
        let mut received = 0;
        loop {
            clock::sleep(Duration::from_millis(120));
            let now = tcp::queued_in(&silent).unwrap();
            if now > 0 && now == received {
                break;
            }
            received = now;
        }
        stop.stop();
        end.join().unwrap()
    });
    // It ended by the flag, a minute early, and holds what was measured.
    assert!(last_us(&record) < 30_000_000);
    assert_eq!(record.remarks, Vec::<String>::new());
    let last = record.streams[0].samples.last().unwrap();
    assert!(last.bytes > 0 && last.send_q_bytes.unwrap() > 0);
    // And closed abortively: nothing drains.
    let mut end = Ok(1);
    while matches!(end, Ok(1..)) {
        end = tcp::discard(silent.as_fd(), 1 << 20);
    }
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_stop_frees_a_receiver_that_waits_for_its_first_byte() {
    let (_silent, socket) = pair();
    let stop = Stop::new();
    let plan = timed(60_000);
    let record = thread::scope(|scope| {
        let streams = vec![stream(0, Flow::Up, socket)];
        let end = scope.spawn(|| run_end(Place::Server, &plan, streams, &stop));
        stop.stop();
        end.join().unwrap()
    });
    assert_eq!(bytes_of(&record, Flow::Up), [0]);
    assert_eq!(record.remarks, Vec::<String>::new());
}

#[test]
fn a_peer_that_dies_leaves_what_was_measured() {
    let (client, server) = connect(&timed(60_000));
    let mut sockets = vec![raw(server)];
    let peer = thread::spawn(move || {
        let socket = sockets.remove(0);
        let mut got = 0;
        while got < 10 << 20 {
            got += tcp::discard(socket.as_fd(), 1 << 20).unwrap();
        }
        // Data is left unread: the kernel resets the connection as it does for a killed process.
    });
    let record = run_end(Place::Client, &timed(60_000), client, &Stop::new());
    peer.join().unwrap();
    assert!(bytes_of(&record, Flow::Up)[0] >= 10 << 20);
    assert_eq!(record.remarks.len(), 1);
    let remark = &record.remarks[0];
    assert!(remark.starts_with("stream 0: ") && remark.contains("the peer"), "{remark}");
    assert!(remark.contains("of 60.00 s"), "{remark}");
}

#[test]
fn a_sender_that_dies_is_noticed_by_the_receiver() {
    let (client, server) = connect(&timed(60_000));
    let socket = raw(client);
    tcp::send(socket.as_fd(), &[7; 5000]).unwrap();
    socket.shutdown(Shutdown::Both).unwrap();
    let record = run_end(Place::Server, &timed(60_000), server, &Stop::new());
    assert_eq!(bytes_of(&record, Flow::Up), [5000]);
    assert!(record.remarks[0].starts_with("stream 0: lost the peer: its data ended after"), "{:?}", record.remarks);
}

#[test]
fn a_receiver_whose_sender_is_silent_ends_by_itself() {
    let (_silent, socket) = pair();
    let plan = timed(100);
    let streams = vec![stream(0, Flow::Up, socket)];
    let record = run_end(Place::Server, &plan, streams, &Stop::new());
    assert_eq!(bytes_of(&record, Flow::Up), [0]);
    assert!(last_us(&record) >= 100_000);
}

#[test]
fn an_outage_before_the_first_byte_is_part_of_the_trial() {
    let (socket, receiver) = pair();
    let record = thread::scope(|scope| {
        let plan = timed(2_000);
        let streams = vec![stream(0, Flow::Up, receiver)];
        let end = scope.spawn(move || run_end(Place::Server, &plan, streams, &Stop::new()));
        // Longer than any start, and less than a trial that has lost its peer runs on.
        clock::sleep(Duration::from_millis(1_000));
        tcp::send(socket.as_fd(), &[7; 5000]).unwrap();
        clock::sleep(Duration::from_millis(1_000));
        tcp::abort_on_close(&socket).unwrap();
        drop(socket);
        end.join().unwrap()
    });
    assert_eq!(record.remarks, Vec::<String>::new(), "the sender was there until its time was up");
    let samples = &record.streams[0].samples;
    assert!(last_us(&record) >= 1_900_000, "{}", last_us(&record));
    let silent = samples.iter().filter(|it| it.bytes == 0).map(|it| it.at_us);
    assert!(silent.clone().max().is_some_and(|at_us| at_us >= 900_000), "{samples:?}");
    assert!(silent.filter(|at_us| *at_us >= 400_000).count() > 5, "each interval is sampled");
}

/// The most bytes that an application of this rate moves in this time: its slots, what a late wake-up forgives, and what
/// was on its way.
fn paced_most(bps: u64, elapsed_us: u64) -> u64 {
    bps / 8 * (elapsed_us + 10_000) / 1_000_000 + (256 << 10)
}

#[test]
fn a_slow_writer_is_as_slow_as_planned() {
    for (streams, message_bytes) in [(1, 131_072), (3, 1000)] {
        let application = Application { write_bps: 80_000_000, ..Application::default() };
        let plan = TcpPlan { application, streams, message_bytes, omit_ms: 100, ..timed(1100) };
        let (client, _, _) = run_both(&plan);
        let (got, most) = (bytes_of(&client, Flow::Up).iter().sum::<u64>(), paced_most(80_000_000, last_us(&client)));
        // A busy machine may be slower than the plan, by far; nothing makes it faster.
        assert!((1..=most).contains(&got), "{got} of {most}");
        // The kernel saw a sender that had nothing to send. (Small writes look busy: each waits for its acknowledgement,
        // which the receiver delays.)
        let busy = growth(&client, &plan, |tcp| tcp.busy_time_us);
        assert!(message_bytes == 1000 || busy < (last_us(&client) - 100_000) * 95 / 100, "{busy}");
    }
}

#[test]
fn a_slow_reader_is_as_slow_as_planned_and_its_queue_fills() {
    let application = Application { read_bps: 400_000_000, ..Application::default() };
    let plan = TcpPlan { application, receive_buffer_bytes: Some(256 << 10), omit_ms: 100, ..timed(1100) };
    let (client, server, _) = run_both(&plan);
    let (got, most) = (bytes_of(&server, Flow::Up)[0], paced_most(400_000_000, last_us(&server)));
    assert!((1..=most).contains(&got), "{got} of {most}");
    assert!(server.streams[0].samples.iter().any(|sample| sample.recv_q_bytes.unwrap() > 64 << 10));
    let limited = growth(&client, &plan, |tcp| tcp.rwnd_limited_us);
    assert!(limited > 100_000, "{limited}");
}

#[test]
fn burning_shows_in_the_threads_time() {
    let application = Application { read_cpu_us_per_mib: 10_000, ..Application::default() };
    let plan = TcpPlan { application, limit: Limit::BytesPerStream(8 << 20), ..timed(1000) };
    let (_, server, _) = run_both(&plan);
    let cpu = server.streams[0].samples.last().unwrap().thread_cpu_us.unwrap();
    assert!(cpu >= 79_000, "{cpu} us for 8 MiB");
}

#[test]
fn what_cannot_start_says_why() {
    let nothing =
        |plan: &TcpPlan, place, streams| run(place, plan, streams, &Stop::new(), &mut Vec::new()).unwrap_err();
    let (socket, _peer) = pair();
    let one = |socket| vec![stream(0, Flow::Up, socket)];
    let error = nothing(&TcpPlan { streams: 0, ..timed(100) }, Place::Client, one(socket));
    assert_eq!(error.to_string(), "the plan cannot be run: streams is 0, but must be from 1 to 128");
    assert!(matches!(nothing(&timed(100), Place::Client, Vec::new()), TrafficError::NoStreams));
    let (socket, _peer) = pair();
    assert!(matches!(nothing(&timed(100), Place::Path, one(socket)), TrafficError::NotAnEnd));
    // The bounds that the documentation promises.
    assert!(CALL_LIMIT <= Duration::from_millis(100) && GRACE <= Duration::from_secs(2));
}
