//! A request/response measurement on a terminal: a line an interval, then the summary with a table of latencies and both ends'
//! CPU; of an idle and a loaded path the latencies beside each other.

use super::words::{nanos, per_s};
use crate::figures::float;
use crate::measure::text::cpu;
use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, left, plural, right};
use narrows_model::run::measure_rr::{LatencyUnderLoad, Responsiveness, RrIntervalView, RrPhase, RrReport};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Direction, Distribution, Ending, Flow, Place, RrPlan, Target, Transaction};

/// Up to this many streams get a line each.
const FEW_STREAMS: u32 = 4;
/// The table's columns, with the part of the values that lies beyond each.
const COLUMNS: [(&str, f64); 8] = [
    ("min", 1.0),
    ("mean", 1.0),
    ("p50", 0.5),
    ("p90", 0.1),
    ("p99", 0.01),
    ("p99.9", 0.001),
    ("p99.99", 0.0001),
    ("max", 1.0),
];
/// Of the words before a row, and of a column.
const ROW: usize = 8;
const COLUMN: usize = 9;

/// The whole output of a measurement that is over.
#[must_use]
pub fn report(report: &RrReport, style: Style) -> String {
    let mut out = String::new();
    for phase in &report.phases {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &header(&report.run.target, &phase.plan, style);
        for view in phase.intervals.iter().filter(|view| shown(view, &phase.plan, style)) {
            out += &interval(view, style);
        }
        out += &summary(phase, style);
    }
    if let Some(view) = &report.under_load {
        out.push('\n');
        out += &under_load(view, style);
    }
    out + &ending(&report.run.ending, style)
}

/// What will be measured; before the first interval.
#[must_use]
pub fn header(target: &Target, plan: &RrPlan, style: Style) -> String {
    let what = match plan.transaction {
        Transaction::Tcp => "TCP requests",
        Transaction::Udp => "UDP requests",
        Transaction::TcpConnect => "TCP connections, each with a request,",
    };
    let mut words =
        vec![format!("{} and {} back", bytes(plan.request_bytes.into()), bytes(plan.response_bytes.into()))];
    words.push(plural(plan.streams.into(), "stream"));
    if plan.outstanding > 1 {
        words.push(format!("{} outstanding on each", plan.outstanding));
    }
    words.extend(plan.rate_per_s.map(|rate| format!("{} in all", per_s(rate))));
    words.push(micros(plan.duration_ms.saturating_mul(1000)));
    if plan.omit_ms > 0 {
        words.push(format!("{} omitted", micros(plan.omit_ms.saturating_mul(1000))));
    }
    if let Some(load) = &plan.load {
        let way = match load.direction {
            Direction::Up => "up",
            Direction::Down => "down",
            Direction::Both => "both ways",
        };
        words.push(format!("beside a TCP load {way} of {}", plural(load.streams.into(), "stream")));
    }
    let mut page = Page::new(style);
    let text = format!("{what} to {} ({}), {}", clean(&target.asked), clean(&target.address), words.join(", "));
    page.beside("", &text, Some(Tone::Strong));
    page.finish()
}

/// Whether an interval gets a line: each stream where they are few, else only all of them together.
#[must_use]
pub fn shown(view: &RrIntervalView, plan: &RrPlan, style: Style) -> bool {
    match view.stream {
        Some(_) => plan.streams <= FEW_STREAMS || style.full,
        None => plan.streams > 1,
    }
}

/// One interval's line, its line break included.
#[must_use]
pub fn interval(view: &RrIntervalView, style: Style) -> String {
    let line = line(view);
    let line = if view.omitted { format!("{line}  (omitted)") } else { line };
    let painted = if view.omitted { style.paint(Tone::Faint, &line) } else { line };
    painted.trim_end().to_owned() + "\n"
}

fn line(view: &RrIntervalView) -> String {
    let stream = view.stream.map_or_else(|| "sum".to_owned(), |id| id.to_string());
    let mean = view.mean_latency_ns.map_or_else(|| "-".to_owned(), nanos);
    let failures = if view.failures > 0 { format!("  failed {}", view.failures) } else { String::new() };
    format!(
        "[{}] {} {} done {}  mean {}{failures}",
        right(&stream, 3),
        right(&format!("{:.1}–{:.1} s", view.from_s, view.to_s), 15),
        right(&view.transactions.to_string(), 11),
        right(&per_s(view.per_s), 12),
        left(&mean, 7),
    )
}

/// The counted part of one trial: its rate, its latencies, what the load carried, what it cost both ends, and what went otherwise
/// than planned.
#[must_use]
pub fn summary(phase: &RrPhase, style: Style) -> String {
    let mut page = Page::new(style);
    page.line("- - -");
    match &phase.summary.total {
        Some(total) => {
            let only = phase.streams.first().filter(|_| phase.streams.len() == 1);
            let total = RrIntervalView { stream: only.map(|stream| stream.id), ..*total };
            page.line(&style.paint(Tone::Strong, line(&total).trim_end()));
        }
        None => page.line("nothing was measured"),
    }
    if phase.summary.latency_ns.count > 0 {
        head(&mut page);
        row(&mut page, "latency", &phase.summary.latency_ns);
        if phase.summary.connect_ns.count > 0 {
            row(&mut page, "connect", &phase.summary.connect_ns);
        }
    }
    for flow in &phase.summary.load {
        let way = if flow.total.flow == Flow::Up { "up" } else { "down" };
        let retransmits =
            flow.total.columns.retransmits.map(|n| format!(", {}", plural(n, "retransmit"))).unwrap_or_default();
        let rtt = flow.min_rtt_us.map(|rtt| format!(", least rtt {}", micros(rtt))).unwrap_or_default();
        page.line(&format!("load {way}  {}{retransmits}{rtt}", bps(flow.total.goodput_bps)));
    }
    for (place, cost) in [(Place::Client, &phase.summary.client), (Place::Server, &phase.summary.server)] {
        match cost {
            Some(cost) => page.beside(&format!("{place}  "), &cpu(cost), None),
            None => page.line(&format!("{place}  CPU times are not known")),
        }
    }
    for remark in &phase.remarks {
        page.beside(&format!("{}  ! ", remark.at), &clean(&remark.says), Some(Tone::Mark));
    }
    page.finish()
}

/// The idle and the loaded path beside each other, and what follows from it.
#[must_use]
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
            page.beside(&left(word, ROW), &rpm(figure), None);
        }
    }
    for why in &view.missing {
        page.beside("! ", &clean(why), Some(Tone::Mark));
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
            page.beside_painted(word, tone, &text);
            for witness in &finding.witnesses {
                page.beside("  + ", &clean(&witness.says), None);
            }
            for other in &finding.rejected {
                page.beside("  - ", &format!("not {}: {}", clean(&other.id), clean(&other.why)), Some(Tone::Faint));
            }
            page.beside("  fix  ", &clean(&finding.fix.advice), None);
        }
        None => page.beside("", &format!("no bufferbloat: {}", clean(&view.why_none)), None),
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
        .map(|((name, beyond), value)| {
            let value = if *name == "mean" { all.mean } else { float(value) };
            (float(all.count) * beyond > 1.0 - 1e-9).then_some(value)
        })
        .collect()
}

fn head(page: &mut Page) {
    let names: String = COLUMNS.iter().map(|(name, _)| right(name, COLUMN)).collect();
    let line = page.style().paint(Tone::Faint, &(left("", ROW) + &names));
    page.line(&line);
}

fn row(page: &mut Page, word: &str, all: &Distribution) {
    cells_line(page, word, &cells(all));
}

fn cells_line(page: &mut Page, word: &str, cells: &[Option<f64>]) {
    let cell = |value: &Option<f64>| right(&value.map_or_else(|| "-".to_owned(), nanos), COLUMN);
    let line = left(word, ROW) + &cells.iter().map(cell).collect::<String>();
    debug_assert!(columns(&line) <= ROW + COLUMNS.len() * COLUMN);
    page.line(&line);
}

fn ending(ending: &Ending, style: Style) -> String {
    let mut page = Page::new(style);
    match ending {
        Ending::Complete => return String::new(),
        Ending::Interrupted => page.line("interrupted: this is what was measured until then"),
        Ending::Failed(why) => page.beside("failed: ", &clean(why), Some(Tone::Bad)),
    }
    page.finish()
}
