//! A request/response measurement in words: a line an interval, then the summary with a table of latencies and both ends' CPU; of an
//! idle and a loaded path the latencies beside each other.

use super::{
    Measured, Shown, TrialView, costs, cpu, ending, event, lasting, name, noted, remarks, rule, span, trial_view, word,
};
use crate::doc::page::Page;
use crate::figures::{self, float};
use crate::style::{Style, Tone};
use crate::words::{clean, fitting, left, plural, right};
use narrows_model::load::rr::report::{
    LatencyUnderLoad, Responsiveness, RrIntervalView, RrReport, RrStreamView, RrSummary, SCHEMA,
};
use narrows_model::run::report::RunView;
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Direction, Distribution, Ending, Flow, RrPlan, Target, Transaction, Unit};

/// The table's columns, with the part of the values that lies beyond each, and the rank of [`fitting`].
const COLUMNS: [(&str, f64, u8); 8] = [
    ("min", 1.0, 1),
    ("mean", 1.0, 3),
    ("p50", 0.5, 0),
    ("p90", 0.1, 4),
    ("p99", 0.01, 0),
    ("p99.9", 0.001, 2),
    ("p99.99", 0.0001, 5),
    ("max", 1.0, 0),
];
/// Of the words before a row, and of a column.
const ROW: usize = 8;
const COLUMN: usize = 9;
/// A line of an interval with the count of its transactions.
const WIDE: usize = 53;

impl Measured for RrReport {
    type Load = RrPlan;

    fn run(&self) -> &RunView {
        &self.run
    }

    fn trials(&self) -> Vec<TrialView<'_, RrPlan>> {
        self.phases.iter().map(|phase| trial_view!(phase)).collect()
    }

    fn rest(&self, whole: bool, style: Style) -> String {
        let compared = self.under_load.as_ref().map(|view| under_load(view, style)).unwrap_or_default();
        let mut page = Page::new(style);
        ending(&mut page, &self.run.ending);
        let ended = if self.run.ending == Ending::Complete { String::new() } else { page.finish() };
        let blank = if compared.is_empty() || !whole { "" } else { "\n" };
        format!("{blank}{compared}{ended}")
    }

    fn last_events(&self) -> serde_json::Result<String> {
        self.under_load.as_ref().map_or_else(|| Ok(String::new()), |view| event("under_load", view))
    }
}

impl Shown for RrPlan {
    type Stream = RrStreamView;
    type Interval = RrIntervalView;
    type Summary = RrSummary;
    const SCHEMA: &'static str = SCHEMA;

    fn width(&self) -> u32 {
        self.streams
    }

    fn title(&self, target: &Target) -> String {
        let what = match self.transaction {
            Transaction::Tcp => "TCP requests",
            Transaction::Udp => "UDP requests",
            Transaction::TcpConnect => "TCP connections, each with a request,",
        };
        let [request, response] = [self.request_bytes, self.response_bytes].map(|size| bytes(size.into()));
        let mut words = vec![format!("{request} and {response} back"), plural(self.streams.into(), "stream")];
        words.extend((self.outstanding > 1).then(|| format!("{} outstanding on each", self.outstanding)));
        words.extend(self.rate_per_s.map(|rate| format!("{} in all", per_s(rate))));
        words.extend(lasting(Some(self.duration_ms), self.omit_ms));
        words.extend(self.load.as_ref().map(|load| {
            let way = if load.direction == Direction::Both { "both ways" } else { load.direction.word() };
            format!("with a TCP load {way} of {}", plural(load.streams.into(), "stream"))
        }));
        format!("{what} to {} ({}), {}", clean(&target.asked), clean(&target.address), words.join(", "))
    }

    const FIGURES: &'static [(&'static str, Unit)] =
        &[("transactions per second", Unit::Number), ("mean latency", Unit::Microseconds), ("failures", Unit::Count)];

    fn values(view: &RrIntervalView) -> (Option<Flow>, [f64; 2], Vec<Option<f64>>) {
        let values = vec![Some(view.per_s), view.mean_latency_ns.map(|ns| ns / 1e3), Some(float(view.failures))];
        (None, [view.from_s, view.to_s], values)
    }

    fn about(view: &RrIntervalView) -> (Option<u32>, bool) {
        (view.stream, view.omitted)
    }

    fn heading(&self, style: Style) -> String {
        let [seconds, counted] = if style.room() < WIDE { ["", ""] } else { ["    ", " Transactions"] };
        format!("[ ID]  {:<11}{seconds}{counted}{:>12}{:>10}", "Interval", "Rate", "Mean")
    }

    fn line(&self, view: &RrIntervalView, style: Style) -> String {
        let mean = view.mean_latency_ns.map_or_else(|| "-".to_owned(), nanos);
        let seconds = span(view.from_s, view.to_s);
        let rate = per_s(view.per_s);
        let counted = if style.room() < WIDE { String::new() } else { format!(" sec{:>13}", view.transactions) };
        let line = format!("{} {seconds:>12}{counted}{rate:>12}{mean:>10}", name(view.stream));
        if view.failures > 0 { noted(&line, &format!("  failed {}", view.failures), style) } else { line }
    }

    fn summary(trial: &TrialView<'_, Self>, _: &Ending, style: Style) -> String {
        let mut page = Page::new(style);
        page.line(&rule(style));
        let summary = trial.summary;
        match &summary.total {
            Some(total) => {
                let only = trial.streams.first().filter(|_| trial.streams.len() == 1);
                let total = RrIntervalView { stream: only.map(|stream| stream.id), ..*total };
                page.line(&style.paint(Tone::Strong, trial.plan.line(&total, style).trim_end()));
            }
            None => page.line("nothing was measured"),
        }
        if summary.latency_ns.count > 0 {
            head(&mut page);
            row(&mut page, if trial.plan.load.is_some() { "loaded" } else { "latency" }, &summary.latency_ns);
            if summary.connect_ns.count > 0 {
                row(&mut page, "connect", &summary.connect_ns);
            }
        }
        for flow in &summary.load {
            let retransmits =
                flow.total.columns.retransmits.map(|n| format!(", {}", plural(n, "retransmit"))).unwrap_or_default();
            let rtt = flow.min_rtt_us.map(|rtt| format!(", min RTT {}", micros(rtt))).unwrap_or_default();
            let line = format!("load {}  {}{retransmits}{rtt}", word(flow.total.flow), bps(flow.total.goodput_bps));
            page.row(&line, None);
        }
        costs(&mut page, [&summary.client, &summary.server], |place| format!("{place}  "), cpu);
        remarks(&mut page, trial.remarks);
        page.finish()
    }
}

/// The idle and the loaded path beside each other, and what follows from it.
pub fn under_load(view: &LatencyUnderLoad, style: Style) -> String {
    let mut page = Page::new(style);
    page.heading("Latency of the idle and of the loaded path", "");
    head(&mut page);
    row(&mut page, "idle", &view.idle_ns);
    row(&mut page, "loaded", &view.loaded_ns);
    let (idle, loaded) = (cells(&view.idle_ns), cells(&view.loaded_ns));
    let added = idle.iter().zip(&loaded).map(|(idle, loaded)| Some((*loaded)? - (*idle)?));
    cells_line(&mut page, "added", &added.collect::<Vec<_>>());
    for (word, figure) in [("idle", &view.idle_rpm), ("loaded", &view.loaded_rpm)] {
        if let Some(figure) = figure {
            page.labelled(&left(word, ROW), &rpm(figure), None);
        }
    }
    for why in &view.missing {
        page.labelled("! ", &clean(why), Some(Tone::Mark));
    }
    match &view.finding {
        Some(finding) => {
            let (word, tone) = if finding.confidence > 0.5 { ("FOUND", Tone::Bad) } else { ("SUSPECTED", Tone::Mark) };
            let text = format!(
                "{} at the {}: {} (confidence {:.0} %)",
                clean(&finding.id),
                finding.at,
                clean(&finding.summary),
                finding.confidence * 100.0
            );
            page.painted_label(word, tone, &text);
            for witness in &finding.witnesses {
                page.labelled("  + ", &clean(&witness.says), None);
            }
            for other in &finding.rejected {
                page.labelled("  - ", &format!("not {}: {}", clean(&other.id), clean(&other.why)), Some(Tone::Faint));
            }
            page.labelled("  fix  ", &clean(&finding.fix.advice), None);
        }
        None => page.labelled("", &format!("no bufferbloat: {}", clean(&view.why_none)), None),
    }
    page.finish()
}

fn rpm(figure: &Responsiveness) -> String {
    let parts = figure.load_rpm.map(|load| format!(" (requests {:.0}, the load's own {load:.0})", figure.requests_rpm));
    format!(
        "{:.0} round trips a minute{}, confidence {}",
        figure.rpm,
        parts.unwrap_or_default(),
        figure.confidence.word()
    )
}

/// The values of the table's columns. A quantile that no value lies beyond is the largest value by another name, and left out.
fn cells(all: &Distribution) -> Vec<Option<f64>> {
    let values = [all.min, 0, all.p50, all.p90, all.p99, all.p99_9, all.p99_99, all.max];
    COLUMNS
        .iter()
        .zip(values)
        .map(|((name, beyond, _), value)| {
            let value = if *name == "mean" { all.mean } else { float(value) };
            (float(all.count) * beyond > 1.0 - 1e-9).then_some(value)
        })
        .collect()
}

fn head(page: &mut Page) {
    let names = COLUMNS.map(|(name, ..)| name.to_owned());
    let line = page.style().paint(Tone::Faint, &table_row("", &names, page.room()));
    page.line(&line);
}

fn row(page: &mut Page, word: &str, all: &Distribution) {
    cells_line(page, word, &cells(all));
}

fn cells_line(page: &mut Page, word: &str, cells: &[Option<f64>]) {
    let cells: Vec<String> = cells.iter().map(|value| value.map_or_else(|| "-".to_owned(), nanos)).collect();
    page.line(&table_row(word, &cells, page.room()));
}

/// What does not fit is left out.
fn table_row(word: &str, cells: &[String], room: usize) -> String {
    let wide = COLUMNS.map(|(.., rank)| (COLUMN, rank));
    let shown = fitting(&wide, room - ROW).into_iter();
    left(word, ROW) + &shown.map(|at| right(&cells[at], COLUMN)).collect::<String>()
}

/// `820 ns`, `9.41 us`, `35.0 ms`, `-1.20 ms`.
fn nanos(value: f64) -> String {
    let size = figures::nanos(value.abs().round() as u64);
    if value < 0.0 { format!("-{size}") } else { size }
}

/// `20554 /s`, `99.5 /s`, `0.50 /s`.
fn per_s(value: f64) -> String {
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} /s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_in_the_unit_that_fits() {
        let values = [0.0, 820.4, 9_410.0, 99_960.0, 35e6, 1.2e9, -3.2e6, f64::NAN];
        let words = ["0 ns", "820 ns", "9.41 us", "100 us", "35.0 ms", "1.20 s", "-3.20 ms", "0 ns"];
        assert_eq!(values.map(nanos), words);
        assert_eq!([20_553.7, 99.5, 0.5].map(per_s), ["20554 /s", "99.5 /s", "0.50 /s"]);
    }
}
