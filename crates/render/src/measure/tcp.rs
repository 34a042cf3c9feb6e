//! A measurement of TCP in words: a line an interval, as users of iperf know it, then the summary with both ends' CPU.

use super::{Measured, Shown, TrialView, costs, cpu, each_stream, ending, lasting, remarks, trial_view, way_to, word};
use crate::figures::float;
use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, left, plural, right};
use narrows_model::run::measure::{FlowSummary, IntervalView, MeasureReport, SCHEMA, StreamView, SummaryView};
use narrows_model::run::report::RunView;
use narrows_model::run::tcp_columns::{ColumnUnit, Over, TcpColumns};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Ending, Limit, Target, TcpPlan};

/// Above it, neighbouring intervals tell too much of each other.
const CORRELATED: f64 = 0.25;

/// How the receiver took the data, unless it copied it.
const DISCARDED: &str =
    "received data was discarded in the kernel; --receive copy adds the cost of an application's copy";

impl Measured for MeasureReport {
    type Load = TcpPlan;

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
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        format!("TCP {}, {}", way_to(self.direction, target), words.join(", "))
    }

    fn about(view: &IntervalView) -> (Option<u32>, bool) {
        (view.stream, view.omitted)
    }

    fn line(view: &IntervalView, style: Style) -> String {
        line(view, style)
    }

    fn summary(trial: &TrialView<'_, Self>, ended: &Ending, style: Style) -> String {
        let mut page = Page::new(style);
        page.line("- - -");
        for flow in &trial.summary.flows {
            flow_summary(&mut page, trial.plan, flow);
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

fn flow_summary(page: &mut Page, plan: &TcpPlan, flow: &FlowSummary) {
    let style = page.style();
    if flow.streams.len() > 1 && each_stream(plan, style) {
        flow.streams.iter().for_each(|view| page.line(&line(view, style)));
    }
    let seen = if flow.total.seen_by == flow.total.flow.receiver() { "received" } else { "acknowledged" };
    let mut total = flow.total.clone();
    total.stream = total.stream.or_else(|| (plan.streams == 1).then(|| flow.streams.first()?.stream).flatten());
    // The values of the last instant say nothing of the whole.
    total.columns =
        TcpColumns::from_each(|column| (column.value)(&total.columns).filter(|_| column.over == Over::Growth));
    let min = flow.min_rtt_us.map(|rtt| format!("  least rtt {}", micros(rtt))).unwrap_or_default();
    let (line, rest) = (line(&total, style), format!("{min}  {seen}"));
    if columns(&line) + columns(&rest) <= style.columns() {
        page.line(&style.paint(Tone::Strong, &(line + &rest)));
    } else {
        page.line(&style.paint(Tone::Strong, line.trim_end()));
        page.line(&format!("     {rest}"));
    }
    if let Some(lag) = flow.lag1.filter(|lag| *lag > CORRELATED) {
        let text = format!(
            "neighbouring intervals are correlated ({lag:.2}): for an interval of confidence repeat the run, its \
             seconds are no independent measurements"
        );
        page.labelled("      ", &text, Some(Tone::Faint));
    }
}

/// What does not fit the terminal is left out, the least important last column first.
fn line(view: &IntervalView, style: Style) -> String {
    let stream = view.stream.map_or_else(|| "sum".to_owned(), |id| id.to_string());
    let mut line = format!(
        "[{}] {} {} s {} {}",
        right(&stream, 3),
        left(word(view.flow), 4),
        right(&format!("{:.1}–{:.1}", view.from_s, view.to_s), 13),
        right(&bytes(view.bytes), 10),
        right(&bps(view.goodput_bps), 12),
    );
    for (nth, column) in TcpColumns::TABLE.iter().enumerate() {
        let Some(value) = (column.value)(&view.columns) else { continue };
        let (text, width) = match column.unit {
            ColumnUnit::Count => (value.to_string(), 5),
            ColumnUnit::Micros => (micros(value), 8),
            ColumnUnit::Bytes => (bytes(value), 10),
        };
        let last = nth + 1 == TcpColumns::TABLE.len();
        let text = format!("  {} {}", column.heading, if last { text } else { left(&text, width) });
        if columns(&line) + columns(text.trim_end()) <= style.columns() {
            line += &text;
        }
    }
    line
}
