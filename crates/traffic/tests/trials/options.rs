//! What the plan says is what the sockets have, and the record says what they have.

use crate::common;

use common::{connect, raw, run_both};
use narrows_model::{BufferLock, Flow, Limit, Place, TcpPlan};
use narrows_sys::{files, tcp};
use narrows_traffic::tcp::prepare;
use std::os::fd::AsFd as _;

fn plan() -> TcpPlan {
    TcpPlan { limit: Limit::BytesPerStream(100_000), ..TcpPlan::default() }
}

#[test]
fn fixed_buffers_are_locked_and_doubled() {
    let plan = TcpPlan { send_buffer_bytes: Some(100_000), receive_buffer_bytes: Some(50_000), ..plan() };
    let (client, server, _) = run_both(&plan);
    assert_eq!(client.streams[0].buffer_lock, Some(BufferLock { send: true, receive: false }));
    assert_eq!(client.streams[0].sndbuf_bytes, Some(200_000));
    assert_eq!(server.streams[0].buffer_lock, Some(BufferLock { send: false, receive: true }));
    assert_eq!(server.streams[0].rcvbuf_bytes, Some(100_000));
}

#[test]
fn what_was_not_asked_for_stays_with_the_kernel() {
    let (client, server, _) = run_both(&plan());
    for end in [client, server] {
        assert_eq!(end.streams[0].buffer_lock, Some(BufferLock::default()));
        assert_eq!(end.streams[0].samples[0].tcp.max_pacing_bps(), None);
        assert!(end.streams[0].congestion_control.is_some());
    }
}

#[test]
fn a_buffer_beyond_the_limit_is_remarked_with_the_limit() {
    let plan = TcpPlan { send_buffer_bytes: Some(1 << 30), ..plan() };
    let (client, _, _) = run_both(&plan);
    let remark = &client.remarks[0];
    assert!(remark.starts_with("stream 0: asked for 1073741824 bytes of SO_SNDBUF, got "), "{remark}");
    assert!(remark.contains("(net.core.wmem_max is "), "{remark}");
}

#[test]
fn pacing_is_read_back() {
    let plan = TcpPlan { pacing_bps: Some(8_000_000_000), ..plan() };
    let (client, _, _) = run_both(&plan);
    assert_eq!(client.streams[0].samples[0].tcp.max_pacing_bps(), Some(8_000_000_000));
    assert_eq!(client.remarks, Vec::<String>::new());
}

#[test]
fn pacing_beyond_32_bits_is_not_cut() {
    let plan = TcpPlan { pacing_bps: Some(400_000_000_000), ..plan() };
    let (client, _, _) = run_both(&plan);
    assert_eq!(client.streams[0].samples[0].tcp.max_pacing_bps(), Some(400_000_000_000));
}

#[test]
fn the_mss_bounds_both_ways() {
    let plan = TcpPlan { mss_bytes: Some(1000), direction: narrows_model::Direction::Both, ..plan() };
    let (client, server, _) = run_both(&plan);
    for stream in client.streams.iter().chain(&server.streams) {
        // Timestamps take 12 of it.
        assert!(stream.mss_bytes.is_some_and(|mss| (980..=1000).contains(&mss)), "{:?}", stream.mss_bytes);
    }
    assert_eq!(client.remarks, Vec::<String>::new());
}

#[test]
fn the_dscp_is_on_both_ends() {
    let plan = TcpPlan { dscp: 46, ..plan() };
    let (client, server) = connect(&plan);
    for streams in [client, server] {
        assert_eq!(tcp::dscp(raw(streams).as_fd(), false).unwrap(), 46);
    }
}

#[test]
fn an_unknown_congestion_control_names_those_there_are() {
    let plan = TcpPlan { congestion_control: Some("nosuch".to_owned()), ..plan() };
    let listener = narrows_sys::net::listen(0).unwrap();
    let error = prepare(&listener, Place::Client, Flow::Up, &plan).unwrap_err().to_string();
    assert!(error.starts_with("new connection: cannot set TCP_CONGESTION to nosuch: "), "{error}");
    let there = files::read_text("/proc/sys/net/ipv4/tcp_available_congestion_control".as_ref());
    let first = there.unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(error.contains("; this host has: ") && error.contains(&first), "{error}");
}

#[test]
fn a_known_congestion_control_is_read_back() {
    let plan = TcpPlan { congestion_control: Some("reno".to_owned()), ..plan() };
    let (client, _, _) = run_both(&plan);
    assert_eq!(client.streams[0].congestion_control.as_deref(), Some("reno"));
    assert_eq!(client.streams[0].flow, Flow::Up);
}
