//! A measurement on a terminal: a line an interval, as users of iperf know it, then the summary with both ends' CPU.

use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, left, plural, right, share};
use narrows_model::run::measure::{EndCpu, IntervalView, MeasureReport};
use narrows_model::run::tcp_columns::{ColumnUnit, Over, TcpColumns};
use narrows_model::words::units::{bps, bytes, micros};
use narrows_model::{Direction, Ending, Flow, Limit, Place, Target, TcpPlan};

/// Up to this many streams get a line each.
const FEW_STREAMS: u32 = 4;
/// Above it, neighbouring intervals tell too much of each other.
const CORRELATED: f64 = 0.25;

/// The whole output of a measurement that is over.
#[must_use]
pub fn report(report: &MeasureReport, style: Style) -> String {
    let mut out = header(&report.run.target, &report.plan, style);
    for view in report.intervals.iter().filter(|view| shown(view, &report.plan, style)) {
        out += &interval(view, style);
    }
    out + &summary(report, style)
}

/// What will be measured; before the first interval.
#[must_use]
pub fn header(target: &Target, plan: &TcpPlan, style: Style) -> String {
    let mut words = vec![plural(plan.streams.into(), "stream")];
    words.push(match plan.limit {
        Limit::DurationMs(ms) => micros(ms.saturating_mul(1000)),
        Limit::BytesPerStream(size) => format!("{} each", bytes(size)),
    });
    if plan.omit_ms > 0 {
        words.push(format!("{} omitted", micros(plan.omit_ms.saturating_mul(1000))));
    }
    let mut option = |set: Option<String>| words.extend(set);
    option(plan.congestion_control.as_ref().map(|name| clean(name)));
    option(plan.mss_bytes.map(|mss| format!("MSS {mss}")));
    option(plan.send_buffer_bytes.map(|size| format!("send buffer {}", bytes(size.into()))));
    option(plan.receive_buffer_bytes.map(|size| format!("receive buffer {}", bytes(size.into()))));
    option(plan.pacing_bps.map(|rate| format!("paced at {}", bps(crate::figures::float(rate)))));
    let way = match plan.direction {
        Direction::Up => "to",
        Direction::Down => "from",
        Direction::Both => "to and from",
    };
    let mut page = Page::new(style);
    let text = format!("TCP {way} {} ({}), {}", clean(&target.asked), clean(&target.address), words.join(", "));
    page.beside("", &text, Some(Tone::Strong));
    page.finish()
}

/// Whether an interval gets a line: each stream where they are few, else only all of them together.
#[must_use]
pub fn shown(view: &IntervalView, plan: &TcpPlan, style: Style) -> bool {
    match view.stream {
        Some(_) => plan.streams <= FEW_STREAMS || style.full,
        None => plan.streams > 1,
    }
}

/// One interval's line, its line break included.
#[must_use]
pub fn interval(view: &IntervalView, style: Style) -> String {
    let line = line(view, style);
    let line = if view.omitted { format!("{line}  (omitted)") } else { line };
    let tone = if view.omitted { Some(Tone::Faint) } else { None };
    tone.map_or_else(|| line.clone(), |tone| style.paint(tone, &line)).trim_end().to_owned() + "\n"
}

/// What does not fit the terminal is left out, the least important last column first.
fn line(view: &IntervalView, style: Style) -> String {
    let stream = view.stream.map_or_else(|| "sum".to_owned(), |id| id.to_string());
    let word = match view.flow {
        Flow::Up => "up",
        Flow::Down => "down",
    };
    let mut line = format!(
        "[{}] {} {} s {} {}",
        right(&stream, 3),
        left(word, 4),
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

/// How the receiver took the data, unless it copied it.
const DISCARDED: &str =
    "received data was discarded in the kernel; --receive copy adds the cost of an application's copy";

/// The counted part: each flow's goodput, what it cost both ends, and what went otherwise than planned.
#[must_use]
pub fn summary(report: &MeasureReport, style: Style) -> String {
    let mut page = Page::new(style);
    page.line("- - -");
    for flow in &report.summary.flows {
        if flow.streams.len() > 1 {
            flow.streams
                .iter()
                .filter(|view| shown(view, &report.plan, style))
                .for_each(|view| page.line(&line(view, style)));
        }
        let seen = if flow.total.seen_by == flow.total.flow.receiver() { "received" } else { "acknowledged" };
        let mut total = flow.total.clone();
        total.stream =
            total.stream.or_else(|| (report.plan.streams == 1).then(|| flow.streams.first()?.stream).flatten());
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
            page.beside("      ", &text, Some(Tone::Faint));
        }
    }
    if report.streams.iter().any(|stream| stream.received_by.as_deref() == Some("discard")) {
        page.beside("", DISCARDED, Some(Tone::Faint));
    }
    for (place, cost) in [(Place::Client, &report.summary.client), (Place::Server, &report.summary.server)] {
        match cost {
            Some(cost) => page.beside(&format!("{place}  "), &cpu(cost), None),
            None => page.line(&format!("{place}  CPU times are not known")),
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
    page.finish()
}

/// The cost of one end in words.
pub(crate) fn cpu(cost: &EndCpu) -> String {
    let mut words = Vec::new();
    if let Some(core) = &cost.busiest {
        let steal = if core.steal >= 0.005 { format!(", steal {}", share(core.steal)) } else { String::new() };
        words.push(format!(
            "busiest core cpu{}: user {}, system {}, softirq {}, idle {}{steal}",
            core.cpu,
            share(core.user),
            share(core.system),
            share(core.softirq + core.irq),
            share(core.idle)
        ));
    }
    words.extend(cost.busy_cores.map(|cores| format!("{cores:.2} cores busy")));
    words.extend(cost.data_threads_cores.map(|cores| format!("data threads {cores:.2}")));
    words.join("; ")
}
