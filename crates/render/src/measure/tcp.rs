//! A measurement of TCP as a table that users of iperf3 know: one line per interval, then what was sent and what was received, and
//! both ends' CPU.

use super::{
    Measured, OMITTED, Shown, TrialView, costs, cpu, ending, lasting, name, remarks, rule, span, trial_view, way_to,
    word,
};
use crate::doc::page::Page;
use crate::figures::float;
use crate::format::{Format, Writer};
use crate::iperf3;
use crate::json::pretty;
use crate::style::{Style, Tone};
use crate::words::{clean, fitting, plural};
use narrows_model::run::measure::{FlowSummary, IntervalView, MeasureReport, SCHEMA, StreamView, SummaryView};
use narrows_model::run::report::RunView;
use narrows_model::run::tcp_columns::{ColumnUnit, TcpColumns};
use narrows_model::words::units::{amount, bps, bytes, micros};
use narrows_model::{Direction, Ending, Flow, Limit, Target, TcpPlan, Transport, Unit};
use std::iter;

/// Above it, neighbouring intervals tell too much of each other.
const CORRELATED: f64 = 0.25;

/// How the receiver took the data, unless it copied it.
const DISCARDED: &str =
    "received data was discarded in the kernel; --receive copy adds the cost of an application's copy";

/// What stands in for the receiver's line.
const ACKED: &str = "the receiver's record is missing: acked is what its kernel acknowledged";

impl Measured for MeasureReport {
    type Load = TcpPlan;
    const WRITERS: &'static [Writer<Self>] = &[
        Self::TEXT,
        Self::JSON,
        Self::NDJSON,
        Self::CSV,
        Self::HTML,
        Writer::new(Format::Iperf3, "The JSON of iperf3 -J", |it, _| pretty(&iperf3::tcp(it))),
    ];

    fn run(&self) -> &RunView {
        &self.run
    }

    fn trials(&self) -> Vec<TrialView<'_, TcpPlan>> {
        vec![trial_view!(self)]
    }
}

impl Shown for TcpPlan {
    type Stream = StreamView;
    type Interval = IntervalView;
    type Summary = SummaryView;
    const SCHEMA: &'static str = SCHEMA;

    fn width(&self) -> u32 {
        self.streams
    }

    fn title(&self, target: &Target) -> String {
        let (duration_ms, each) = match self.limit {
            Limit::DurationMs(ms) => (Some(ms), None),
            Limit::BytesPerStream(size) => (None, Some(format!("{} each", bytes(size)))),
        };
        let words = [
            Some(plural(self.streams.into(), "stream")),
            each,
            Some(lasting(duration_ms, self.omit_ms).collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty()),
            self.congestion_control.as_ref().map(|name| clean(name)),
            self.mss_bytes.map(|mss| format!("MSS {mss}")),
            self.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size.into()))),
            self.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size.into()))),
            self.pacing_bps.map(|rate| format!("paced at {}", bps(float(rate)))),
            (self.transport == Transport::Multipath).then(|| "Multipath TCP".to_owned()),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        format!("{} {}, {}", self.transport.word(), way_to(self.direction, target), words.join(", "))
    }

    const FIGURES: &'static [(&'static str, Unit)] = &[
        ("goodput", Unit::BitsPerSecond),
        ("retransmits", Unit::Count),
        ("RTT", Unit::Microseconds),
        ("congestion window", Unit::Bytes),
    ];

    fn values(view: &IntervalView) -> (Option<Flow>, [f64; 2], Vec<Option<f64>>) {
        let own = TcpColumns::TABLE.iter().map(|column| (column.value)(&view.columns).map(float));
        (Some(view.flow), [view.from_s, view.to_s], iter::once(Some(view.goodput_bps)).chain(own).collect())
    }

    fn about(view: &IntervalView) -> (Option<u32>, bool) {
        (view.stream, view.omitted)
    }

    fn heading(&self, style: Style) -> String {
        let own = TcpColumns::TABLE.iter().map(|column| column.heading.to_owned());
        table_row(self, &[HEADING.map(str::to_owned).to_vec(), own.collect()].concat(), style, 0)
    }

    fn line(&self, view: &IntervalView, style: Style) -> String {
        let own = TcpColumns::TABLE.iter().map(|column| match (column.value)(&view.columns) {
            None => UNKNOWN.to_owned(),
            Some(value) => match column.unit {
                ColumnUnit::Count => value.to_string(),
                ColumnUnit::Micros => micros(value),
                ColumnUnit::Bytes => amount(value),
            },
        });
        let cells = [carried(view, [view.from_s, view.to_s], view.bytes, view.goodput_bps), own.collect()].concat();
        table_row(self, &cells, style, if view.omitted { OMITTED.len() } else { 0 })
    }

    fn summary(trial: &TrialView<'_, Self>, ended: &Ending, style: Style) -> String {
        let mut page = Page::new(style);
        page.line(&rule(style));
        if !trial.summary.flows.is_empty() {
            let heading = [HEADING.map(str::to_owned).to_vec(), vec!["Retr".to_owned(), "min RTT".to_owned()]].concat();
            page.line(&style.paint(Tone::Faint, table_row(trial.plan, &heading, style, ROLE).trim_end()));
        }
        for flow in &trial.summary.flows {
            flow_summary(&mut page, trial.plan, flow);
        }
        for stream in trial.streams {
            subflows(&mut page, stream);
        }
        if trial.streams.iter().any(|stream| stream.received_by.as_deref() == Some("discard")) {
            page.labelled("", DISCARDED, Some(Tone::Faint));
        }
        costs(&mut page, [&trial.summary.client, &trial.summary.server], |place| format!("{place}  "), cpu);
        remarks(&mut page, trial.remarks);
        ending(&mut page, ended);
        page.finish()
    }
}

/// What is not known.
const UNKNOWN: &str = "-";
/// The first columns of each table.
const HEADING: [&str; 5] = ["[ ID]", "Dir", "Interval", "Transfer", "Goodput"];
/// Their widths, those of the extra columns of a table, and the ranks of [`fitting`]; the direction column is shown only if there are
/// two.
const COLUMNS: [(usize, u8); 8] = [(5, 0), (5, 0), (13, 0), (9, 1), (13, 0), (5, 2), (9, 3), (9, 4)];
/// After the interval, where there is room.
const SECONDS: &str = " sec";
/// From here on there is.
const WIDE: usize = 80;
/// Of the word at the end of a line of the summary.
const ROLE: usize = 2 + "receiver".len();

/// The cells under [`HEADING`].
fn carried(view: &IntervalView, [from_s, to_s]: [f64; 2], bytes: u64, goodput_bps: f64) -> Vec<String> {
    vec![name(view.stream), word(view.flow).to_owned(), span(from_s, to_s), amount(bytes), bps(goodput_bps)]
}

/// Cells in their columns. Those that do not fit beside what is reserved are left out, the least important first.
fn table_row(plan: &TcpPlan, cells: &[String], style: Style, reserved: usize) -> String {
    let both = plan.direction == Direction::Both;
    let seconds = if style.room() >= WIDE { SECONDS } else { "" };
    let columns: Vec<_> = (0..cells.len()).filter(|at| both || *at != 1).collect();
    let wide: Vec<_> = columns.iter().map(|at| COLUMNS[*at]).collect();
    let mut line = String::new();
    for at in fitting(&wide, style.room() - reserved - seconds.len()) {
        let ((wide, _), cell) = (wide[at], &cells[columns[at]]);
        line += &match columns[at] {
            // Longer cells shift their line: a cut figure would be a wrong one.
            0 => cell.clone(),
            1 => format!(" {cell:<0$}", wide - 1),
            2 if cell == HEADING[2] => format!("  {cell:<0$}{1:2$}", wide - 2, "", seconds.len()),
            2 if cell == UNKNOWN => format!(" {cell:>0$}{1:2$}", wide - 1, "", seconds.len()),
            2 => format!(" {cell:>0$}{seconds}", wide - 1),
            _ => format!(" {cell:>0$}", wide - 1),
        };
    }
    line
}

/// What carried a stream of Multipath TCP.
fn subflows(page: &mut Page, stream: &StreamView) {
    let whole: u64 = stream.subflows.iter().filter_map(|it| it.bytes).sum();
    for it in &stream.subflows {
        let part = |carried: u64| format!("{} ({:.0} %)", bytes(carried), 100.0 * float(carried) / float(whole.max(1)));
        let words = [
            Some(format!("subflow {} to {}", clean(&it.client), clean(&it.server))),
            it.bytes.map(part),
            it.rtt_us.map(|us| format!("RTT {}", micros(us))),
            it.retransmits.map(|count| plural(count, "retransmit")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        page.labelled(&format!("{}  ", name(Some(stream.id))), &words.join(", "), None);
    }
}

/// What each stream and all together sent and received.
fn flow_summary(page: &mut Page, plan: &TcpPlan, flow: &FlowSummary) {
    let style = page.style();
    let total = IntervalView {
        stream: flow.streams.first().filter(|_| plan.streams == 1).and_then(|only| only.stream),
        ..flow.total.clone()
    };
    let each = flow.streams.iter().filter(|_| plan.streams > 1).map(|view| (view, None));
    for (view, min_rtt_us) in each.chain([(&total, flow.min_rtt_us)]) {
        let tone = std::ptr::eq(view, &raw const total).then_some(Tone::Strong);
        let mut line = |mut cells: Vec<String>, own: [String; 2], role: &str| {
            cells.extend(own);
            let line = table_row(plan, &cells, style, ROLE);
            page.row(&format!("{line}  {role}"), tone);
        };
        let dash = || UNKNOWN.to_owned();
        let retransmits = view.columns.retransmits.map_or_else(dash, |n| n.to_string());
        let own = [retransmits, min_rtt_us.map_or_else(String::new, micros)];
        match view.sent {
            Some(sent) => line(carried(view, [sent.from_s, sent.to_s], sent.bytes, sent.bps), own, "sender"),
            None => {
                let cells = vec![name(view.stream), word(view.flow).to_owned(), dash(), dash(), dash()];
                line(cells, own, "sender");
            }
        }
        let role = if view.seen_by == view.flow.receiver() { "receiver" } else { "acked" };
        let cells = carried(view, [view.from_s, view.to_s], view.bytes, view.goodput_bps);
        line(cells, [String::new(), String::new()], role);
    }
    if flow.total.seen_by != flow.total.flow.receiver() {
        page.labelled("", ACKED, Some(Tone::Mark));
    }
    if let Some(lag) = flow.lag1.filter(|lag| *lag > CORRELATED) {
        let text = format!(
            "neighbouring intervals are correlated ({lag:.2}): for a confidence interval repeat the run, the seconds \
             of one run are not independent measurements"
        );
        page.labelled("      ", &text, Some(Tone::Faint));
    }
}
