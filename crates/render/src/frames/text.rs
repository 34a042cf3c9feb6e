//! Frames on a terminal: the plan, one line per interval, then the result.

use super::flows::flows;
use super::words::{self, endpoints, rate};
use crate::doc::page::Page;
use crate::figures::{float, grouped, grouped_signed, nanos, ratio};
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use crate::words::{clean, fit, left, millis as time, plural, rounded};
use narrows_model::Distribution;
use narrows_model::load::frames::{GeneratePlan, ReceivePlan, StampClock};
use narrows_model::load::frames_report::{FrameRate, FramesLost, FramesReceived, FramesReport, FramesSent};

/// Width of the labels.
const LABEL: usize = 13;
/// Maximum number of streams with a line each, unless everything is shown.
const STREAMS: usize = 8;

/// The plan of a generator; before the first frame.
pub fn generate_header(plan: &GeneratePlan, style: Style) -> String {
    let mut page = Page::new(style);
    let until = match plan.count {
        Some(count) => format!("{} in at most {}", plural_of(count, "frame"), time(plan.duration_ms)),
        None => time(plan.duration_ms),
    };
    let workers = plural(plan.workers.into(), "worker");
    let text = format!("generate on {}: {}, {until}, {workers}", clean(&plan.device), words::load(plan.load));
    page.labelled("", &text, Some(Tone::Strong));
    if let Some(note) = &plan.workers_note {
        page.labelled("  ", &format!("{workers}: {}", clean(note)), Some(Tone::Faint));
    }
    page.labelled("  ", &words::format(&plan.format), Some(Tone::Faint));
    let format = &plan.format;
    let way = format!(
        "{} to {}; {} to {}",
        endpoints(&format.source),
        endpoints(&format.destination),
        format.source_mac,
        format.destination_mac
    );
    page.labelled("  ", &way, Some(Tone::Faint));
    page.finish()
}

/// The plan of a receiver; before the first frame.
pub fn receive_header(plan: &ReceivePlan, style: Style) -> String {
    let mut page = Page::new(style);
    let idle = plan.idle_ms.map(|ms| format!(", or {} idle after the first frame", time(ms)));
    let text = format!("receive on {}: {}{}", clean(&plan.device), time(plan.duration_ms), idle.unwrap_or_default());
    page.labelled("", &text, Some(Tone::Strong));
    page.finish()
}

pub fn summary(report: &FramesReport, style: Style) -> String {
    let mut page = Page::new(style);
    if let Some(it) = &report.sent {
        sent(&mut page, it);
    }
    if let Some(it) = &report.received {
        received(&mut page, it);
    }
    match (&report.lost, &report.received) {
        (Some(it), _) => lost(&mut page, it),
        (None, Some(it)) if it.received > 0 => lost_by_number(&mut page, it),
        (None, _) => {}
    }
    if let Some(it) = &report.received {
        times(&mut page, it);
        flows(&mut page, it);
    }
    page.finish()
}

/// An interface's name cut for a heading; the kernel's names have at most 15 bytes.
fn device(name: &str) -> String {
    fit(&clean(name), 32)
}

pub(super) fn line(page: &mut Page, label: &str, text: &str, tone: Option<Tone>) {
    page.labelled(&format!("  {}", left(label, LABEL)), text, tone);
}

fn mode(page: &mut Page, word: &str, not_better: &[String]) {
    line(page, "mode", word, None);
    for why in not_better {
        line(page, "", &format!("not a faster mode: {}", clean(why)), Some(Tone::Mark));
    }
}

fn sent(page: &mut Page, it: &FramesSent) {
    page.heading(&format!("sent from {}", device(&it.device)), &words::format(&it.format));
    mode(page, it.mode.word(), &it.not_better);
    let asked = it.of_asked.map(|part| format!("; {:.3} % of the requested load", part * 100.0)).unwrap_or_default();
    line(page, "asked", &words::load(it.load), None);
    let text = amount(it.sent, it.elapsed_ns, &it.rate) + &asked;
    line(page, "sent", &text, Some(Tone::Strong));
    let refused = match it.refused {
        Some(0) => "; none refused by the interface".to_owned(),
        Some(n) => format!("; {} refused by the interface", grouped(n)),
        None => "; the interface does not count refused frames".to_owned(),
    };
    let share = if it.due == 0 { String::new() } else { format!(" ({})", ratio(float(it.unsent) / float(it.due))) };
    let text = format!("{}{share} of {} due{refused}; not counted as lost", grouped(it.unsent), grouped(it.due));
    line(page, "unsent", &text, Some(if it.unsent == 0 { Tone::Good } else { Tone::Mark }));
    if let Some(why) = &it.ended {
        line(page, "ended early", &clean(why), Some(Tone::Bad));
    }
    let columns = ["stream", "due", "sent to kernel"];
    streams(page, &it.streams, columns, |it| [it.stream.to_string(), grouped(it.due), grouped(it.handed)]);
}

/// A table of the first streams, unless everything is shown.
fn streams<T, const N: usize>(page: &mut Page, of: &[T], columns: [&str; N], cells: impl Fn(&T) -> [String; N]) {
    if of.len() < 2 {
        return;
    }
    let few = if page.style().full { of.len() } else { STREAMS };
    let mut table = Table::new("", "", &columns.map(Column::figures));
    table.rows.extend(of.iter().take(few).map(|it| Row::new(cells(it).map(Cell::new).into())));
    crate::table::text(page, &table);
    let left_out = of.len().saturating_sub(few);
    if left_out > 0 {
        page.labelled("  ", &format!("and {left_out} more streams"), Some(Tone::Faint));
    }
}

/// Frames, their time and, where time passed, their rate.
fn amount(frames: u64, elapsed_ns: u64, of: &FrameRate) -> String {
    let frames = plural_of(frames, "frame");
    if elapsed_ns == 0 {
        format!("{frames} at once")
    } else {
        format!("{frames} in {}: {}", nanos(elapsed_ns), rate(of))
    }
}

fn received(page: &mut Page, it: &FramesReceived) {
    let bytes = it.frame_bytes.map(|bytes| format!("mean frame size {bytes:.1} B with FCS")).unwrap_or_default();
    page.heading(&format!("received on {}", device(&it.device)), &bytes);
    mode(page, it.mode.word(), &it.not_better);
    let text = if it.received == 0 {
        "no frame with the signature".to_owned()
    } else {
        amount(it.received, it.elapsed_ns, &it.rate)
    };
    line(page, "received", &text, Some(if it.received == 0 { Tone::Bad } else { Tone::Strong }));
    let order = format!("{} reordered, {} duplicated", grouped(it.reordered), grouped(it.duplicates));
    line(page, "order", &order, (it.reordered > 0 || it.duplicates > 0).then_some(Tone::Mark));
    if let Some(missed @ 1..) = it.missed {
        let text = format!(
            "{} dropped by the full receive socket: they arrived, but count as lost; an XDP mode drops fewer",
            plural_of(missed, "frame")
        );
        line(page, "missed", &text, Some(Tone::Bad));
    }
    if it.restarts > 0 {
        let text = format!(
            "sequence numbers restarted {}: the generator ran again, or two generators use the same streams; later \
            frames count as duplicated or late; start one receiver per run",
            if it.restarts == 1 { "once".to_owned() } else { format!("{} times", grouped(it.restarts)) }
        );
        line(page, "restarts", &text, Some(Tone::Bad));
    }
    if let Some(why) = &it.ended {
        line(page, "ended early", &clean(why), Some(Tone::Bad));
    }
    if it.foreign > 0 {
        line(page, "foreign", &format!("{} without the signature", plural_of(it.foreign, "frame")), Some(Tone::Mark));
    }
    let columns = ["stream", "received", "lost", "reordered", "duplicated", "highest number"];
    streams(page, &it.streams, columns, |it| {
        let counts = [it.received, it.lost(), it.reordered, it.duplicates, it.highest].map(grouped);
        let [received, lost, reordered, duplicates, highest] = counts;
        [it.stream.to_string(), received, lost, reordered, duplicates, highest]
    });
}

pub(super) fn plural_of(n: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" })
}

fn lost(page: &mut Page, it: &FramesLost) {
    page.blank();
    let (text, tone) = match it.frames {
        0 => ("0 (0 %)".to_owned(), Tone::Good),
        1.. => {
            let share = it.ratio.map(|part| format!(" ({})", ratio(part))).unwrap_or_default();
            (format!("{}{share} of those sent", grouped(it.frames.unsigned_abs())), Tone::Bad)
        }
        _ => (format!("{}: more received than sent; one counter is wrong", grouped_signed(it.frames)), Tone::Bad),
    };
    line(page, "lost", &text, Some(tone));
}

/// The counts of a receiver without its generator.
fn lost_by_number(page: &mut Page, it: &FramesReceived) {
    let share = it.lost_ratio.map(|part| format!(" ({})", ratio(part))).unwrap_or_default();
    let text = format!(
        "{}{share} by sequence number; frames after the highest number of a stream are known to the generator only",
        grouped(it.lost)
    );
    line(page, "lost", &text, Some(if it.lost == 0 { Tone::Good } else { Tone::Bad }));
}

fn times(page: &mut Page, it: &FramesReceived) {
    let columns = ["", "min", "mean", "p50", "p99", "p99.9", "max", "samples"];
    let mut table = Table::new("times", "latency (timestamp in the frame to arrival)", &columns.map(Column::figures));
    table.columns[0].figures = false;
    let mut row = |name: &str, of: Option<&Distribution>| {
        let Some(of) = of.filter(|of| of.count > 0) else { return };
        let times = [of.min, rounded(of.mean), of.p50, of.p99, of.p99_9, of.max].map(nanos);
        let cells: Vec<Cell> = times.iter().chain([&grouped(of.count)]).map(Cell::new).collect();
        table.rows.push(Row::new([vec![Cell::new(name)], cells].into_iter().flatten().collect()));
    };
    row("latency", it.latency_ns.as_ref());
    row("inter-arrival times", it.gaps_ns.as_ref());
    crate::table::text(page, &table);
    if it.received > 0 {
        page.blank();
        line(page, "clock", &clock(it), None);
    }
}

/// The accuracy of the latencies, or why there are none.
fn clock(it: &FramesReceived) -> String {
    let measured = it.latency_ns.as_ref().is_some_and(|of| of.count > 0);
    match (measured, it.stamp_clock) {
        (true, Some(StampClock { bound_ns: Some(0), .. })) => {
            "one clock on one CPU: latency error below 1 ns".to_owned()
        }
        (true, Some(StampClock { bound_ns: Some(bound), .. })) => {
            format!("one clock; CPUs differ by at most {}, the latency error", nanos(bound))
        }
        (true, Some(StampClock { bound_ns: None, .. })) => {
            "one clock; the difference between CPUs could not be measured".to_owned()
        }
        (true, None) => "one clock".to_owned(),
        (false, Some(StampClock { of_others: others @ 1.., .. })) => {
            format!(
                "no latency: the timestamps of {} are from the clock of another \
                machine",
                plural_of(others, "frame")
            )
        }
        (false, _) => "no latency: no timestamped frame arrived".to_owned(),
    }
}
