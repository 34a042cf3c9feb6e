//! A UDP measurement on a terminal: a line an interval under a heading, then a paragraph for each flow and both ends' CPU.

use super::words::{rate, sizes, unsent};
use crate::figures::{digits, float, grouped, nanos, pps, pps_short, ratio, success};
use crate::measure::text::cpu;
use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, left, plural, right, share};
use narrows_model::run::measure::EndCpu;
use narrows_model::run::measure_udp::{
    MeasureUdpReport, ReceivedTotal, SentTotal, ShortBuffer, UdpFlowSummary, UdpInterval, UdpTotal,
};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Direction, Ending, Flow, Place, Target, UdpPlan};

/// Up to this many streams get a line each.
const FEW_STREAMS: u32 = 4;
/// Columns of the labels of a summary.
const LABEL: usize = 12;

/// The whole output of a measurement that is over.
#[must_use]
pub fn report(report: &MeasureUdpReport, style: Style) -> String {
    let mut out = header(&report.run.target, &report.plan, style);
    for view in report.intervals.iter().filter(|view| shown(view, &report.plan, style)) {
        out += &interval(view, style);
    }
    out + &summary(report, style)
}

/// What will be measured, and the heading of the interval lines.
#[must_use]
pub fn header(target: &Target, plan: &UdpPlan, style: Style) -> String {
    let mut words = vec![match plan.direction {
        Direction::Up => rate(plan.rate_up),
        Direction::Down => rate(plan.rate_down),
        Direction::Both if plan.rate_up == plan.rate_down => format!("{} each way", rate(plan.rate_up)),
        Direction::Both => format!("{} up and {} down", rate(plan.rate_up), rate(plan.rate_down)),
    }];
    words.push(plural(plan.streams.into(), "stream"));
    words.push(sizes(&plan.sizes));
    words.push(micros(plan.duration_ms.saturating_mul(1000)));
    if plan.omit_ms > 0 {
        words.push(format!("{} omitted", micros(plan.omit_ms.saturating_mul(1000))));
    }
    let mut option = |set: Option<String>| words.extend(set);
    option(plan.burst_datagrams.map(|burst| format!("bursts of at most {burst}")));
    option(plan.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size.into()))));
    option(plan.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size.into()))));
    option(plan.allow_fragments.then(|| "fragments allowed".to_owned()));
    let way = match plan.direction {
        Direction::Up => "to",
        Direction::Down => "from",
        Direction::Both => "to and from",
    };
    let mut page = Page::new(style);
    let text = format!("UDP {way} {} ({}), {}", clean(&target.asked), clean(&target.address), words.join(", "));
    page.beside("", &text, Some(Tone::Strong));
    let heading = row(&HEADING.map(str::to_owned), style);
    page.line(&style.paint(Tone::Faint, heading.trim_end()));
    page.finish()
}

/// Whether an interval gets a line: each stream where they are few, else only all of them together.
#[must_use]
pub fn shown(view: &UdpInterval, plan: &UdpPlan, style: Style) -> bool {
    match view.stream {
        Some(_) => plan.streams <= FEW_STREAMS || style.full,
        None => plan.streams > 1,
    }
}

const HEADING: [&str; 12] =
    ["", "", "interval", "sent", "pps", "received", "lost", "loss", "jitter", "unsent", "reord", "dup"];
/// Columns of each; from the ninth on they are left out where the terminal is too narrow.
const WIDE: [usize; 12] = [5, 4, 13, 11, 6, 11, 7, 7, 7, 6, 5, 4];
const NEEDED: usize = 8;

fn row(cells: &[String; 12], style: Style) -> String {
    let mut line = String::new();
    for (at, (cell, wide)) in cells.iter().zip(WIDE).enumerate() {
        let cell = if at < 2 { left(cell, wide) } else { right(cell, wide) };
        if at >= NEEDED && columns(&line) + 1 + wide > style.columns() {
            break;
        }
        if at > 0 {
            line.push(' ');
        }
        line += &cell;
    }
    line
}

/// One interval's line, its line break included.
#[must_use]
pub fn interval(view: &UdpInterval, style: Style) -> String {
    let stream = view.stream.map_or_else(|| "sum".to_owned(), |id| id.to_string());
    let (sent, got) = (view.sent.as_ref(), view.received.as_ref());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let cells = [
        format!("[{}]", right(&stream, 3)),
        word(view.flow).to_owned(),
        format!("{:.1}–{:.1} s", view.from_s, view.to_s),
        or_dash(sent.map(|it| bps(it.bps))),
        or_dash(sent.map(|it| pps_short(it.pps))),
        or_dash(got.map(|it| bps(it.bps))),
        or_dash(got.map(|it| it.lost.to_string())),
        or_dash(got.and_then(|it| it.loss).map(ratio)),
        or_dash(got.map(|it| nanos(rounded(it.jitter_ns)))),
        or_dash(sent.map(|it| it.unsent.to_string())),
        or_dash(got.map(|it| it.reordered.to_string())),
        or_dash(got.map(|it| it.duplicates.to_string())),
    ];
    let line = row(&cells, style);
    let line = line.trim_end();
    let line = if view.omitted { style.paint(Tone::Faint, &format!("{line}  (omitted)")) } else { line.to_owned() };
    line + "\n"
}

const fn word(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "up",
        Flow::Down => "down",
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a cast of a float saturates
pub(crate) fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The counted part: each flow's figures, what they cost both ends, and what went otherwise than planned.
#[must_use]
pub fn summary(report: &MeasureUdpReport, style: Style) -> String {
    let mut page = Page::new(style);
    for flow in &report.summary.flows {
        flow_summary(&mut page, report, flow);
    }
    page.blank();
    for (place, cost) in [(Place::Client, &report.summary.client), (Place::Server, &report.summary.server)] {
        match cost {
            Some(cost) => page.beside(&left(place.word(), LABEL), &cost_words(cost), None),
            None => page.line(&format!("{}CPU times are not known", left(place.word(), LABEL))),
        }
    }
    for remark in &report.remarks {
        page.beside(&format!("{}  ! ", remark.at), &clean(&remark.says), Some(Tone::Mark));
    }
    match &report.run.ending {
        Ending::Complete => {}
        Ending::Interrupted => page.line("interrupted: this is what was measured until then"),
        Ending::Failed(why) => page.beside("failed: ", &clean(why), Some(Tone::Bad)),
    }
    // What comes before the summary is no part of it.
    format!("\n{}", page.finish())
}

fn cost_words(cost: &EndCpu) -> String {
    let host = cost.host.map(|host| {
        format!(
            "{} together: user {}, system {}, softirq {} (100 % is one core); ",
            plural(host.cores.into(), "core"),
            share(host.user),
            share(host.system),
            share(host.softirq)
        )
    });
    host.unwrap_or_default() + &cpu(cost)
}

fn flow_summary(page: &mut Page, report: &MeasureUdpReport, flow: &UdpFlowSummary) {
    let streams: Vec<_> = report.streams.iter().filter(|it| it.flow == flow.flow).collect();
    let of = |all: Vec<Option<u32>>| {
        let mut values: Vec<u32> = all.into_iter().flatten().collect();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then(|| values.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))
    };
    let mut about = Vec::new();
    about.extend(of(streams.iter().map(|it| it.datagram_bytes).collect()).map(|size| format!("up to {size} B")));
    about.extend(of(streams.iter().map(|it| it.path_mtu_bytes).collect()).map(|mtu| format!("path MTU {mtu} B")));
    let methods = streams.first().map(|it| (it.sent_by.as_deref(), it.received_by.as_deref()));
    about.extend(methods.and_then(|it| it.0).map(|by| format!("sent by {}", clean(by))));
    about.extend(methods.and_then(|it| it.1).map(|by| format!("received by {}", clean(by))));
    page.heading(&format!("{}, {}", word(flow.flow), ends(flow.flow)), "");
    if flow.streams.len() > 1 {
        let few = report.plan.streams <= FEW_STREAMS || page.style().full;
        flow.streams.iter().filter(|_| few).for_each(|stream| one_stream(page, stream));
    }
    let mut line =
        |label: &str, text: &str, tone: Option<Tone>| page.beside(&format!("  {}", left(label, LABEL)), text, tone);
    if !about.is_empty() {
        line("datagrams", &about.join(", "), None);
    }
    line("asked", &rate(flow.asked), None);
    match &flow.total.sent {
        Some(it) => sent(&mut line, it),
        None => line("sent", "not known: the sender's record is missing", Some(Tone::Bad)),
    }
    match &flow.total.received {
        Some(it) => received(&mut line, it),
        None => line("received", "not known: the receiver's record is missing", Some(Tone::Bad)),
    }
    for short in &flow.short_buffers {
        line("buffer", &buffer(short), Some(Tone::Mark));
    }
}

const fn ends(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "client to server",
        Flow::Down => "server to client",
    }
}

fn one_stream(page: &mut Page, stream: &UdpTotal) {
    let id = stream.stream.map_or_else(String::new, |id| id.to_string());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let text = format!(
        "sent {}  received {}  lost {} ({})",
        right(&or_dash(stream.sent.as_ref().map(|it| bps(it.bps))), 11),
        right(&or_dash(stream.received.as_ref().map(|it| bps(it.bps))), 11),
        right(&or_dash(stream.received.as_ref().map(|it| grouped(it.lost))), 8),
        or_dash(stream.received.as_ref().and_then(|it| it.loss).map(ratio)),
    );
    page.line(&format!("  {}{text}", left(&format!("stream {id}"), LABEL)));
}

type Line<'a> = dyn FnMut(&str, &str, Option<Tone>) + 'a;

fn sent(line: &mut Line<'_>, it: &SentTotal) {
    let asked = it.of_asked.map(|part| format!(", {:.2} % of what was asked", part * 100.0)).unwrap_or_default();
    let text = format!("{}, {}, {} datagrams{asked}", bps(it.bps), pps(it.pps), grouped(it.datagrams));
    line("sent", &text, Some(Tone::Strong));
    let mut not = Vec::new();
    if it.unsent > 0 {
        let by = it.unsent_by.as_ref().map(unsent).filter(|by| !by.is_empty());
        not.push(format!(
            "{} refused by the socket{}",
            grouped(it.unsent),
            by.map_or_else(String::new, |by| format!(": {by}"))
        ));
    }
    not.extend(it.skipped.filter(|n| *n > 0).map(|n| format!("{} given up after a stall", grouped(n))));
    if !not.is_empty() {
        line("unsent", &format!("{} (not counted as lost)", not.join("; ")), Some(Tone::Mark));
    }
    let calls = format!(
        "{} calls, {} failed; success {}, {} handed over, throughput {}",
        grouped(it.calls),
        grouped(it.errors),
        it.success.map_or_else(|| "–".to_owned(), success),
        pps(it.offered_pps),
        bps(it.bps),
    );
    line("send calls", &calls, None);
    if let Some(gaps) = &it.gaps_ns {
        let burst =
            it.burst_max.map(|most| format!(", longest burst {}", plural(most, "datagram"))).unwrap_or_default();
        line("departures", &format!("gaps p50 {}, p99 {}{burst}", nanos(gaps.p50), nanos(gaps.p99)), None);
    }
}

fn received(line: &mut Line<'_>, it: &ReceivedTotal) {
    let text = format!("{}, {}, {} datagrams", bps(it.bps), pps(it.pps), grouped(it.datagrams));
    line("received", &text, Some(Tone::Strong));
    let mut text = format!("{} ({})", grouped(it.lost), it.loss.map_or_else(|| "–".to_owned(), ratio));
    if let (Some(bursts @ 1..), Some(most)) = (it.loss_bursts, it.loss_burst_max) {
        text += &format!(" in {}, the longest {}", plural(bursts, "burst"), grouped(most));
    }
    if let Some(drops @ 1..) = it.socket_drops {
        text += &format!("; the receiver's socket buffer had no room for {}", grouped(drops));
    }
    line("lost", &text, Some(if it.lost == 0 { Tone::Good } else { Tone::Bad }));
    let mut order = vec![format!("{} reordered", grouped(it.reordered))];
    if let Some(extent @ 1..) = it.reorder_extent_max {
        order[0] += &format!(" (by up to {extent})");
    }
    order.push(format!("{} duplicated", grouped(it.duplicates)));
    order.extend(it.late.map(|late| format!("{} late", grouped(late))));
    line("order", &order.join(", "), None);
    let mut times = vec![format!("jitter {}", nanos(rounded(it.jitter_ns)))];
    if let Some(pdv) = &it.delay_variation_ns {
        let [p50, p99, p99_9] = [pdv.p50, pdv.p99, pdv.p99_9].map(nanos);
        times.push(format!("PDV p50 {p50}, p99 {p99}, p99.9 {p99_9}"));
    }
    let stamps = it.stamps.as_ref().map(|by| format!(" ({} time stamps)", clean(by))).unwrap_or_default();
    line("delay", &(times.join("; ") + &stamps), None);
}

fn buffer(short: &ShortBuffer) -> String {
    format!(
        "{} {} buffer: {} wanted, {} obtained ({} %); for all of it, there: sysctl -w {}={}",
        short.at,
        clean(&short.buffer),
        bytes(short.wanted_bytes),
        bytes(short.obtained_bytes),
        digits(100.0 * float(short.obtained_bytes) / float(short.wanted_bytes.max(1))),
        clean(&short.sysctl),
        short.needs
    )
}
