//! A measurement of UDP in words: one line per interval under a heading, then a paragraph for each flow and both ends' CPU.

use super::udp_words::{rate, sizes, unsent};
use super::{
    Measured, OMITTED, Shown, TrialView, costs, cpu, ending, lasting, name, remarks, span, trial_view, way_to, word,
};
use crate::doc::page::Page;
use crate::figures::{digits, float, grouped, nanos, pps, pps_short, ratio, success};
use crate::format::{Format, Writer};
use crate::iperf3;
use crate::json::pretty;
use crate::ledger::text as ledgers;
use crate::style::{Style, Tone};
use crate::words::{clean, columns, ends, fitting, left, or_dash, plural, right, rounded, share};
use narrows_model::load::udp::report::{
    MeasureUdpReport, ReceivedTotal, SCHEMA, SentTotal, ShortBuffer, UdpFlowSummary, UdpInterval, UdpStreamView,
    UdpSummary, UdpTotal,
};
use narrows_model::run::measure::EndCpu;
use narrows_model::run::report::RunView;
use narrows_model::words::units::{bps, bytes};
use narrows_model::{Direction, Ending, Flow, Ledger, Target, UdpPlan, Unit};
use serde::Serialize;

/// Columns of the labels of a summary.
const LABEL: usize = 12;

/// A measurement of UDP with the ledger of each flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct UdpMeasurement {
    /// The view of the measurement.
    pub report: MeasureUdpReport,
    /// One for each flow; none where the hosts' counters were not read.
    #[serde(skip)]
    pub ledgers: Vec<Ledger>,
}

impl Measured for UdpMeasurement {
    type Load = UdpPlan;
    const WRITERS: &'static [Writer<Self>] = &[
        Self::TEXT,
        Self::JSON,
        Self::NDJSON,
        Self::CSV,
        Self::HTML,
        Writer::new(Format::Iperf3, "The JSON of iperf3 -J", |it, _| pretty(&iperf3::udp(&it.report))),
    ];

    fn run(&self) -> &RunView {
        &self.report.run
    }

    fn trials(&self) -> Vec<TrialView<'_, UdpPlan>> {
        vec![trial_view!(self.report)]
    }

    fn rest(&self, _whole: bool, style: Style) -> String {
        if self.ledgers.is_empty() { String::new() } else { format!("\n{}", ledgers(&self.ledgers, style)) }
    }
}

impl Shown for UdpPlan {
    type Stream = UdpStreamView;
    type Interval = UdpInterval;
    type Summary = UdpSummary;
    const SCHEMA: &'static str = SCHEMA;

    fn width(&self) -> u32 {
        self.streams
    }

    fn title(&self, target: &Target) -> String {
        let mut words = vec![match self.direction {
            Direction::Up => rate(self.rate_up),
            Direction::Down => rate(self.rate_down),
            Direction::Both if self.rate_up == self.rate_down => format!("{} each way", rate(self.rate_up)),
            Direction::Both => format!("{} up and {} down", rate(self.rate_up), rate(self.rate_down)),
        }];
        words.extend([plural(self.streams.into(), "stream"), sizes(&self.sizes)]);
        words.extend(lasting(Some(self.duration_ms), self.omit_ms));
        words.extend(self.burst_datagrams.map(|burst| format!("bursts of at most {burst}")));
        words.extend(self.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size.into()))));
        words.extend(self.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size.into()))));
        words.extend(self.allow_fragments.then(|| "fragments allowed".to_owned()));
        format!("UDP {}, {}", way_to(self.direction, target), words.join(", "))
    }

    const FIGURES: &'static [(&'static str, Unit)] = &[
        ("goodput", Unit::BitsPerSecond),
        ("sent", Unit::BitsPerSecond),
        ("loss", Unit::Fraction),
        ("jitter", Unit::Microseconds),
        ("reordered", Unit::Count),
    ];

    fn values(view: &UdpInterval) -> (Option<Flow>, [f64; 2], Vec<Option<f64>>) {
        let got = view.received.as_ref();
        let values = vec![
            got.map(|it| it.bps),
            view.sent.as_ref().map(|it| it.bps),
            got.and_then(|it| it.loss),
            got.map(|it| it.jitter_ns / 1e3),
            got.map(|it| float(it.reordered)),
        ];
        (Some(view.flow), [view.from_s, view.to_s], values)
    }

    fn about(view: &UdpInterval) -> (Option<u32>, bool) {
        (view.stream, view.omitted)
    }

    fn heading(&self, style: Style) -> String {
        row(self, &HEADING.map(str::to_owned), style, 0)
    }

    fn line(&self, view: &UdpInterval, style: Style) -> String {
        let (sent, got) = (view.sent.as_ref(), view.received.as_ref());
        let cells = [
            name(view.stream),
            word(view.flow).to_owned(),
            span(view.from_s, view.to_s),
            or_dash(sent.map(|it| bps(it.bps))),
            or_dash(sent.map(|it| pps_short(it.pps))),
            or_dash(got.map(|it| bps(it.bps))),
            or_dash(got.map(|it| it.lost.to_string())),
            or_dash(got.and_then(|it| it.loss).map(ratio)),
            or_dash(got.map(|it| nanos(rounded(it.jitter_ns)))),
            or_dash(sent.filter(|it| counts_calls(it.calls, it.datagrams)).map(|it| it.unsent.to_string())),
            or_dash(got.map(|it| it.reordered.to_string())),
            or_dash(got.map(|it| it.duplicates.to_string())),
        ];
        row(self, &cells, style, if view.omitted { OMITTED.len() } else { 0 })
    }

    fn summary(trial: &TrialView<'_, Self>, ended: &Ending, style: Style) -> String {
        let mut page = Page::new(style);
        for flow in &trial.summary.flows {
            flow_summary(&mut page, trial, flow);
        }
        page.blank();
        costs(&mut page, [&trial.summary.client, &trial.summary.server], |it| left(it.word(), LABEL), cost_words);
        remarks(&mut page, trial.remarks);
        ending(&mut page, ended);
        // What comes before the summary is no part of it.
        format!("\n{}", page.finish())
    }
}

const HEADING: [&str; 12] =
    ["[ ID]", "Dir", "Interval", "Sent", "pps", "Received", "Lost", "Loss", "Jitter", "Unsent", "Reord", "Dup"];
/// Their widths with the blank before each, and the ranks of [`fitting`].
const COLUMNS: [(usize, u8); 12] =
    [(5, 0), (5, 0), (13, 0), (12, 1), (7, 8), (12, 0), (8, 2), (8, 3), (8, 4), (7, 5), (6, 6), (5, 7)];

/// Where not even the loss fits beside the rates, a row is stacked: nothing of it is left out.
const STACKED: u8 = 4;
/// Blanks before what stands below the name and the interval of a stacked row.
const BELOW: usize = 6;

/// What does not fit beside what is reserved is left out. The direction stands there only where there are two.
fn row(plan: &UdpPlan, cells: &[String; 12], style: Style, reserved: usize) -> String {
    let both = plan.direction == Direction::Both;
    let columns: Vec<usize> = (0..cells.len()).filter(|at| both || *at != 1).collect();
    let wide: Vec<_> = columns.iter().map(|at| COLUMNS[*at]).collect();
    let cell = |at: usize| {
        let ((wide, _), cell) = (wide[at], &cells[columns[at]]);
        match columns[at] {
            0 => cell.clone(),
            1 => format!(" {cell:<0$}", wide - 1),
            2 if cell == HEADING[2] => format!("  {cell:<0$}", wide - 2),
            _ => format!(" {cell:>0$}", wide - 1),
        }
    };
    let line = |shown: &[usize]| shown.iter().map(|at| cell(*at)).collect::<String>();
    let least: usize = wide.iter().filter(|(_, rank)| *rank < STACKED).map(|(wide, _)| wide).sum();
    if least > style.room() {
        let first = if both { 3 } else { 2 };
        let rest: Vec<String> = columns[first..].iter().map(|at| format!("{} {}", HEADING[*at], cells[*at])).collect();
        let rest = if cells[2] == HEADING[2] { String::new() } else { packed(&rest, style.room()) };
        return line(&(0..first).collect::<Vec<_>>()) + &rest;
    }
    // A note that would cost more than that stands below.
    let reserved = if least + reserved > style.room() { 0 } else { reserved };
    line(&fitting(&wide, style.room() - reserved))
}

/// Words on lines of their own, as many on each as fit.
fn packed(all: &[String], room: usize) -> String {
    let (mut out, mut used) = (String::new(), room);
    for (at, words) in all.iter().enumerate() {
        let comma = usize::from(at + 1 < all.len());
        let wide = columns(words) + comma;
        if used + 1 + wide > room {
            out += &format!("\n{}", " ".repeat(BELOW));
            used = BELOW;
        } else {
            out.push(' ');
            used += 1;
        }
        used += wide;
        out += words;
        out += if comma > 0 { "," } else { "" };
    }
    out
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

fn flow_summary(page: &mut Page, trial: &TrialView<'_, UdpPlan>, flow: &UdpFlowSummary) {
    let streams: Vec<_> = trial.streams.iter().filter(|it| it.flow == flow.flow).collect();
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
        flow.streams.iter().for_each(|stream| one_stream(page, stream));
    }
    let mut line =
        |label: &str, text: &str, tone: Option<Tone>| page.labelled(&format!("  {}", left(label, LABEL)), text, tone);
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

fn one_stream(page: &mut Page, stream: &UdpTotal) {
    let id = stream.stream.map_or_else(String::new, |id| id.to_string());
    let text = format!(
        "sent {}  received {}  lost {} ({})",
        right(&or_dash(stream.sent.as_ref().map(|it| bps(it.bps))), 11),
        right(&or_dash(stream.received.as_ref().map(|it| bps(it.bps))), 11),
        right(&or_dash(stream.received.as_ref().map(|it| grouped(it.lost))), 8),
        or_dash(stream.received.as_ref().and_then(|it| it.loss).map(ratio)),
    );
    let lead = format!("  {}", left(&format!("stream {id}"), LABEL));
    if columns(&lead) + columns(&text) <= page.room() {
        page.line(&(lead + &text));
    } else {
        page.labelled(&lead, &text, None);
    }
}

/// A sender that reports only what it sent, such as iperf3, counts neither calls nor what was refused.
const fn counts_calls(calls: u64, datagrams: u64) -> bool {
    calls > 0 || datagrams == 0
}

type Line<'a> = dyn FnMut(&str, &str, Option<Tone>) + 'a;

fn sent(line: &mut Line<'_>, it: &SentTotal) {
    let asked = it.of_asked.map(|part| format!(", {} of what was asked", success(part))).unwrap_or_default();
    let text = format!("{}, {}, {} datagrams{asked}", bps(it.bps), pps(it.pps), grouped(it.datagrams));
    line("sent", &text, Some(Tone::Strong));
    if it.unsent > 0 {
        let by = it.unsent_by.as_ref().map(unsent).filter(|by| !by.is_empty());
        let by = by.map_or_else(String::new, |by| format!(": {by}"));
        line("refused", &format!("{} by the socket{by} (not counted as lost)", grouped(it.unsent)), Some(Tone::Mark));
    }
    if let Some(skipped) = it.skipped.filter(|n| *n > 0) {
        let text = format!("{} while the sender was stalled (not counted as lost)", grouped(skipped));
        line("skipped", &text, Some(Tone::Mark));
    }
    if counts_calls(it.calls, it.datagrams) {
        let calls = format!(
            "{} calls, {} failed; success {}, {} handed over, throughput {}",
            grouped(it.calls),
            grouped(it.errors),
            or_dash(it.success.map(success)),
            pps(it.offered_pps),
            bps(it.bps),
        );
        line("send calls", &calls, None);
    }
    if let Some(gaps) = &it.gaps_ns {
        let burst =
            it.burst_max.map(|most| format!(", longest burst {}", plural(most, "datagram"))).unwrap_or_default();
        line(
            "departures",
            &format!("gaps p50 {}, p99 {}, longest {}{burst}", nanos(gaps.p50), nanos(gaps.p99), nanos(gaps.max)),
            None,
        );
    }
}

fn received(line: &mut Line<'_>, it: &ReceivedTotal) {
    let text = format!("{}, {}, {} datagrams", bps(it.bps), pps(it.pps), grouped(it.datagrams));
    line("received", &text, Some(Tone::Strong));
    let mut text = format!("{} ({})", grouped(it.lost), or_dash(it.loss.map(ratio)));
    if let (Some(bursts @ 1..), Some(most)) = (it.loss_bursts, it.loss_burst_max) {
        text += &format!(" in {}, the longest {}", plural(bursts, "burst"), grouped(most));
    }
    if let Some(drops @ 1..) = it.socket_drops {
        text += &format!("; the receiver's socket buffer had no room for {}", grouped(drops));
    }
    line("lost", &text, Some(if it.lost == 0 { Tone::Good } else { Tone::Bad }));
    if it.uncounted > 0 {
        let text = format!(
            "{} sent after the last one received, when the receiver may have stopped counting (not counted as lost)",
            grouped(it.uncounted)
        );
        line("not known", &text, Some(Tone::Mark));
    }
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
        "{} {} buffer: {} requested, {} obtained ({} %); to allow all of it there: sysctl -w {}={}",
        short.at,
        clean(&short.buffer),
        bytes(short.wanted_bytes),
        bytes(short.obtained_bytes),
        digits(100.0 * float(short.obtained_bytes) / float(short.wanted_bytes.max(1))),
        clean(&short.sysctl),
        short.needs
    )
}
