//! A measurement of UDP as `iperf3 -J` has it.

use super::{connected, cpu, intervals, socket, span, start, sums, whole, with};
use crate::figures::float;
use narrows_model::load::udp::report::{MeasureUdpReport, UdpFlowSummary, UdpInterval, UdpTotal};
use narrows_model::{DatagramSizes, Direction, Flow, UdpRate};
use serde_json::{Value, json};

pub(crate) fn udp(report: &MeasureUdpReport) -> Value {
    let plan = &report.plan;
    let flow = plan.flows().first().copied().unwrap_or_default();
    let bps = match plan.rate(flow) {
        UdpRate::Bps(bps) => bps / u64::from(plan.streams.max(1)),
        UdpRate::Pps(_) | UdpRate::Max => 0,
    };
    let first = report.streams.first();
    let size = match &plan.sizes {
        DatagramSizes::Sequence(sizes) => sizes.first().copied(),
        DatagramSizes::Largest => first.and_then(|it| it.datagram_bytes),
    };
    let all: Vec<_> = report.streams.iter().map(|it| connected(it.id, &it.client, &it.server)).collect();
    let start = with(
        start(&report.run, &all, bps),
        json!({
            "sock_bufsize": plan.send_buffer_bytes.unwrap_or(0),
            "sndbuf_actual": first.and_then(|it| it.sndbuf_bytes).unwrap_or(0),
            "rcvbuf_actual": first.and_then(|it| it.rcvbuf_bytes).unwrap_or(0),
            "test_start": {
                "protocol": "UDP", "num_streams": plan.streams, "blksize": size.unwrap_or(0),
                "omit": plan.omit_ms / 1000, "duration": (plan.duration_ms - plan.omit_ms.min(plan.duration_ms)).div_ceil(1000),
                "bytes": 0, "blocks": 0, "reverse": u8::from(plan.direction == Direction::Down),
                "tos": u32::from(plan.dscp) << 2, "target_bitrate": bps,
                "bidir": u8::from(plan.direction == Direction::Both), "interval": float(plan.interval_ms) / 1e3,
            },
        }),
    );
    let omit_s = float(plan.omit_ms) / 1e3;
    let views = report.intervals.iter().map(|view| (view.flow, view.stream, interval(view, omit_s)));
    let summary = &report.summary;
    let seconds = float(plan.duration_ms.saturating_sub(plan.omit_ms)) / 1e3;
    let of_flow = |flow: &UdpFlowSummary| {
        let stream = |it: &UdpTotal| {
            let order = json!({"socket": it.stream.map(socket), "out_of_order": it.received.as_ref().map_or(0, |it| it.reordered)});
            json!({"udp": with(total(flow.flow, it, seconds), order)})
        };
        flow.streams.iter().map(stream).collect::<Vec<_>>()
    };
    let mut end = sums(summary.flows.iter().map(|flow| flow_sums(flow, seconds)).collect());
    end.insert("streams".to_owned(), summary.flows.iter().flat_map(of_flow).collect());
    end.insert("cpu_utilization_percent".to_owned(), cpu(summary.client.as_ref(), summary.server.as_ref()));
    whole(start, intervals(views), end.into(), &report.run.ending)
}

fn interval(view: &UdpInterval, omit_s: f64) -> Value {
    let since = if view.omitted { 0.0 } else { omit_s };
    let [from_s, to_s] = [(view.from_s - since).max(0.0), view.to_s - since];
    let sends = view.flow == Flow::Up;
    let mut value = match (sends, view.sent, view.received) {
        (true, Some(sent), _) => with(span(from_s, to_s, sent.bytes, sent.bps), json!({"packets": sent.datagrams})),
        (_, _, Some(received)) => with(
            span(from_s, to_s, received.bytes, received.bps),
            order(
                received.jitter_ns,
                received.lost,
                received.datagrams - received.duplicates.min(received.datagrams) + received.lost,
            ),
        ),
        _ => with(span(from_s, to_s, 0, 0.0), json!({"packets": 0})),
    };
    value = with(value, json!({"omitted": view.omitted, "sender": sends}));
    match view.stream {
        Some(id) => with(value, json!({"socket": socket(id)})),
        None => value,
    }
}

/// Jitter and losses among so many datagrams.
fn order(jitter_ns: f64, lost: u64, packets: u64) -> Value {
    json!({
        "jitter_ms": jitter_ns / 1e6, "lost_packets": lost, "packets": packets,
        "lost_percent": float(lost) * 100.0 / float(packets.max(1)),
    })
}

/// A stream or a flow: what was sent, with the losses that the receiver counted.
fn total(flow: Flow, total: &UdpTotal, seconds: f64) -> Value {
    let received = total.received.as_ref();
    let (bytes, bps) = total.sent.as_ref().map_or((0, 0.0), |it| (it.bytes, it.bps));
    let (jitter, lost) = received.map_or((0.0, 0), |it| (it.jitter_ns, it.lost));
    let packets = total.sent.as_ref().map_or(0, |it| it.datagrams);
    with(with(span(0.0, seconds, bytes, bps), order(jitter, lost, packets)), json!({"sender": flow == Flow::Up}))
}

fn flow_sums(flow: &UdpFlowSummary, seconds: f64) -> Vec<(&'static str, Value)> {
    let whole = &flow.total;
    let packets = whole.sent.as_ref().map_or(0, |it| it.datagrams);
    let sent = whole.sent.as_ref().map_or((0, 0.0), |it| (it.bytes, it.bps));
    let received = whole.received.as_ref().map_or((0, 0.0, 0.0, 0), |it| (it.bytes, it.bps, it.jitter_ns, it.lost));
    let sum_sent = with(span(0.0, seconds, sent.0, sent.1), order(0.0, 0, packets));
    // A queue goes on draining after the load: the rate is that of the time of the arrivals.
    let arrived_s = if received.1 > 0.0 { float(received.0) * 8.0 / received.1 } else { seconds };
    let sum_received = with(span(0.0, arrived_s, received.0, received.1), order(received.2, received.3, packets));
    vec![
        ("sum", total(flow.flow, whole, seconds)),
        ("sum_sent", with(sum_sent, json!({"sender": true}))),
        ("sum_received", with(sum_received, json!({"sender": false}))),
    ]
}
