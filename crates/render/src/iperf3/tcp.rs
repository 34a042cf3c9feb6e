//! A measurement of TCP as `iperf3 -J` has it.

use super::{connected, cpu, intervals, socket, span, start, sums, whole, with};
use crate::figures::float;
use narrows_model::run::measure::{FlowSummary, IntervalView, MeasureReport};
use narrows_model::{Direction, Flow, Limit};
use serde_json::{Value, json};

pub(crate) fn tcp(report: &MeasureReport) -> Value {
    let plan = &report.plan;
    let streams = u64::from(plan.streams.max(1));
    let bps = plan.application.write_bps / streams;
    let omit_s = float(plan.omit_ms) / 1e3;
    let seconds = plan_seconds(plan.limit, plan.omit_ms);
    let bytes = if let Limit::BytesPerStream(bytes) = plan.limit { bytes * streams } else { 0 };
    let first = report.streams.first();
    let all: Vec<_> = report.streams.iter().map(|it| connected(it.id, &it.client, &it.server)).collect();
    let start = with(
        start(&report.run, &all, bps),
        json!({
            "tcp_mss_default": first.and_then(|it| it.mss_bytes).unwrap_or(0),
            "sock_bufsize": plan.send_buffer_bytes.unwrap_or(0),
            "sndbuf_actual": first.and_then(|it| it.sndbuf_bytes).unwrap_or(0),
            "rcvbuf_actual": first.and_then(|it| it.rcvbuf_bytes).unwrap_or(0),
            "test_start": {
                "protocol": "TCP", "num_streams": plan.streams, "blksize": plan.message_bytes,
                "omit": plan.omit_ms / 1000, "duration": seconds, "bytes": bytes, "blocks": 0,
                "reverse": u8::from(plan.direction == Direction::Down), "tos": u32::from(plan.dscp) << 2,
                "target_bitrate": bps, "bidir": u8::from(plan.direction == Direction::Both),
                "fqrate": plan.pacing_bps.unwrap_or(0), "interval": float(plan.interval_ms) / 1e3,
            },
        }),
    );
    let views = report.intervals.iter().map(|view| (view.flow, view.stream, interval(view, omit_s)));
    let summary = &report.summary;
    let ends: Vec<Value> =
        summary.flows.iter().flat_map(|flow| flow.streams.iter().map(|it| stream_end(report, it))).collect();
    let congestion = first.and_then(|it| it.congestion_control.clone()).unwrap_or_default();
    let mut end = sums(summary.flows.iter().map(flow_sums).collect());
    end.insert("streams".to_owned(), ends.into());
    end.insert("cpu_utilization_percent".to_owned(), cpu(summary.client.as_ref(), summary.server.as_ref()));
    for key in ["sender_tcp_congestion", "receiver_tcp_congestion"] {
        end.insert(key.to_owned(), congestion.clone().into());
    }
    whole(start, intervals(views), end.into(), &report.run.ending)
}

fn plan_seconds(limit: Limit, omit_ms: u64) -> u64 {
    if let Limit::DurationMs(ms) = limit { ms.saturating_sub(omit_ms).div_ceil(1000) } else { 0 }
}

/// The times of a view since the end of the omitted part, unless it is omitted itself.
fn spanned(view: &IntervalView, omit_s: f64) -> Value {
    let since = if view.omitted { 0.0 } else { omit_s };
    span((view.from_s - since).max(0.0), view.to_s - since, view.bytes, view.goodput_bps)
}

fn interval(view: &IntervalView, omit_s: f64) -> Value {
    let sends = view.flow == Flow::Up;
    let mut value = with(spanned(view, omit_s), json!({"omitted": view.omitted, "sender": sends}));
    if sends {
        value = with(value, json!({"retransmits": view.columns.retransmits.unwrap_or(0)}));
    }
    let Some(id) = view.stream else { return value };
    value = with(value, json!({"socket": socket(id)}));
    if sends {
        let info = view.sender.clone().unwrap_or_default();
        let columns = view.columns;
        value = with(
            value,
            json!({
                "snd_cwnd": columns.cwnd_bytes.unwrap_or(0), "snd_wnd": info.snd_wnd_bytes.unwrap_or(0),
                "rtt": columns.rtt_us.unwrap_or(0), "rttvar": info.rttvar_us.unwrap_or(0),
                "pmtu": info.pmtu_bytes.unwrap_or(0),
            }),
        );
    }
    value
}

/// What was sent, and what was received.
fn both(total: &IntervalView) -> [Value; 2] {
    let length = total.to_s - total.from_s;
    let received = span(0.0, length, total.bytes, total.goodput_bps);
    let sent = total.sent.map(|it| span(0.0, it.to_s - it.from_s, it.bytes, it.bps));
    let sends = json!({"sender": total.flow == Flow::Up});
    let sent =
        with(sent.unwrap_or_else(|| received.clone()), json!({"retransmits": total.columns.retransmits.unwrap_or(0)}));
    [with(sent, sends.clone()), with(received, sends)]
}

fn stream_end(report: &MeasureReport, total: &IntervalView) -> Value {
    let socket = json!({"socket": total.stream.map(socket)});
    let own = || report.intervals.iter().filter(|it| (it.flow, it.stream) == (total.flow, total.stream) && !it.omitted);
    let max = |of: fn(&IntervalView) -> Option<u64>| own().filter_map(of).max().unwrap_or(0);
    let rtts: Vec<u64> = own().filter_map(|it| it.columns.rtt_us).collect();
    let mean = rtts.iter().sum::<u64>().checked_div(rtts.len() as u64).unwrap_or(0);
    let [sent, received] = both(total);
    let sender = json!({
        "max_snd_cwnd": max(|it| it.columns.cwnd_bytes),
        "max_snd_wnd": max(|it| it.sender.as_ref()?.snd_wnd_bytes),
        "max_rtt": max(|it| it.columns.rtt_us), "min_rtt": rtts.iter().min().unwrap_or(&0), "mean_rtt": mean,
    });
    json!({"sender": with(with(sent, socket.clone()), sender), "receiver": with(received, socket)})
}

fn flow_sums(flow: &FlowSummary) -> Vec<(&'static str, Value)> {
    let [sent, received] = both(&flow.total);
    vec![("sum_sent", sent), ("sum_received", received)]
}
