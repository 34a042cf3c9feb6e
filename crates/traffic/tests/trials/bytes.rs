//! Trials that end by bytes: both ends count the same.

use crate::common;

use common::{bytes_of, run_both};
use narrows_model::{Direction, Flow, Limit, Receive, TcpPlan, ZeroCopy};

fn plan(bytes: u64) -> TcpPlan {
    TcpPlan { limit: Limit::BytesPerStream(bytes), interval_ms: 10, ..TcpPlan::default() }
}

#[test]
fn both_ends_count_the_same_on_eight_streams_each_way() {
    for direction in [Direction::Up, Direction::Down, Direction::Both] {
        let plan = TcpPlan { streams: 8, direction, ..plan(3_000_001) };
        let (client, server, _) = run_both(&plan);
        for &flow in plan.flows() {
            assert_eq!(bytes_of(&client, flow), vec![3_000_001; 8]);
            assert_eq!(bytes_of(&server, flow), vec![3_000_001; 8]);
        }
        assert_eq!(client.remarks, Vec::<String>::new());
        assert_eq!(server.remarks, Vec::<String>::new());
        assert_eq!(client.streams.len(), 8 * plan.flows().len());
        assert!(client.streams.iter().zip(&server.streams).all(|(a, b)| a.id == b.id && a.local == b.remote));
    }
}

#[test]
fn everything_is_acknowledged_before_the_sender_ends() {
    let (client, server, progress) = run_both(&plan(20 << 20));
    let last = client.streams[0].samples.last().unwrap();
    assert_eq!(last.send_q_bytes, Some(0));
    assert!(last.tcp.bytes_acked.unwrap() >= 20 << 20);
    let got = server.streams[0].samples.last().unwrap();
    assert!(got.tcp.bytes_received.unwrap() >= 20 << 20);
    assert_eq!((client.streams[0].method.as_str(), server.streams[0].method.as_str()), ("send", "discard"));
    assert_eq!(progress.last().unwrap().streams[0].sample, last.clone().into());
}

#[test]
fn messages_of_any_size_and_method_add_up() {
    for (message_bytes, zero_copy) in [(1, ZeroCopy::Auto), (1461, ZeroCopy::On), (5 << 20, ZeroCopy::On)] {
        let bytes = u64::from(message_bytes) * 3 + 1;
        let plan = TcpPlan { message_bytes, zero_copy, ..plan(bytes) };
        let (client, server, _) = run_both(&plan);
        assert_eq!(bytes_of(&client, Flow::Up), [bytes]);
        assert_eq!(bytes_of(&server, Flow::Up), [bytes]);
        let expected = if zero_copy == ZeroCopy::On { "splice" } else { "send" };
        assert_eq!(client.streams[0].method, expected);
    }
}

#[test]
fn a_receiver_copies_where_the_plan_says_so() {
    let plan = TcpPlan { receive: Receive::Copy, ..plan(3 << 20) };
    let (_, server, _) = run_both(&plan);
    assert_eq!(bytes_of(&server, Flow::Up), [3 << 20]);
    assert_eq!(server.streams[0].method, "recv");
}

#[test]
fn samples_are_cumulative_and_begin_and_end_with_the_stream() {
    let plan = TcpPlan { streams: 2, ..plan(64 << 20) };
    let (client, server, _) = run_both(&plan);
    for end in [&client, &server] {
        for stream in &end.streams {
            assert_eq!(stream.samples[0].at_us, 0);
            assert_eq!(stream.samples[0].bytes, 0);
            assert!(stream.samples.is_sorted_by(|a, b| a.at_us <= b.at_us && a.bytes <= b.bytes && a.calls <= b.calls));
            assert!(stream.samples.iter().all(|sample| sample.tcp.rtt_us.is_some() && sample.memory.is_some()));
            assert!(stream.samples.last().unwrap().thread_cpu_us.is_some_and(|us| us > 0));
        }
        assert_eq!(end.host[0].cpus, common::cpus());
        assert_eq!(bytes_of(end, Flow::Up), [64 << 20; 2]);
    }
}
