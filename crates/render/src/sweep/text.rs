//! The sweep on a terminal: a table for each protocol and direction, then both directions compared.

use super::groups::{bit_unit, groups, name};
use crate::figures::{digits, grouped, ratio};
use crate::measure::udp_words as words;
use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, ends, left, plural, right};
use narrows_model::run::measure::HostCpu;
use narrows_model::run::sweep::{Spread, SweepRow, Symmetry};
use narrows_model::words::units::{bps, micros};
use narrows_model::{Ending, SweepProtocol, SweepReport};

/// Widths of a rate in bit/s and in packets/s.
const BITS: usize = 8;
const PACKETS: usize = 7;
/// Widths of both ends' CPU: three parts each, four where there is room.
const CPU: usize = 5;

/// The whole report.
#[must_use]
pub fn report(report: &SweepReport, style: Style) -> String {
    let mut page = Page::new(style);
    head(&mut page, report);
    for group in groups(report) {
        table(&mut page, report, group);
    }
    symmetry(&mut page, report);
    match &report.run.ending {
        Ending::Complete => {}
        Ending::Interrupted => {
            page.blank();
            let text = format!("interrupted after {} of {} points", report.done, report.planned);
            page.line(&style.paint(Tone::Mark, &text));
        }
        Ending::Failed(why) => {
            page.blank();
            let text = format!("{} ({} of {} points were measured)", clean(why), report.done, report.planned);
            page.beside("failed: ", &text, Some(Tone::Bad));
        }
    }
    page.finish()
}

fn head(page: &mut Page, report: &SweepReport) {
    let (plan, target) = (&report.plan, &report.run.target);
    let protocols: Vec<_> = plan.protocols.iter().map(|it| it.word()).collect();
    let directions: Vec<_> = plan.directions.iter().map(|it| it.word()).collect();
    let each = micros(plan.trial_ms.saturating_mul(1000));
    let mut words = vec![
        format!("{} {}", protocols.join(" and "), directions.join(", ")),
        plural(plan.sizes.len() as u64, "size"),
        if plan.repetitions > 1 { format!("{} × {each} each", plan.repetitions) } else { format!("{each} each") },
    ];
    if plan.streams > 1 {
        words.push(plural(plan.streams.into(), "stream"));
    }
    if plan.protocols.contains(&SweepProtocol::Udp) {
        words.push(format!("UDP {}", words::rate(plan.rate)));
    }
    let text = format!("sweep of {} ({}): {}", clean(&target.asked), clean(&target.address), words.join(", "));
    page.beside("", &text, Some(Tone::Strong));
}

/// The parts of the CPU that fit.
#[derive(Clone, Copy, PartialEq)]
enum Cpu {
    None,
    Three,
    Four,
}

impl Cpu {
    /// Width of one end's CPU.
    const fn wide(self) -> usize {
        match self {
            Self::None => 0,
            Self::Three => 2 + 3 * CPU,
            Self::Four => 2 + 4 * CPU,
        }
    }
}

fn table(page: &mut Page, report: &SweepReport, rows: &[SweepRow]) {
    let Some(first) = rows.first() else { return };
    let (unit, factor) = bit_unit(report);
    let udp = first.protocol == SweepProtocol::Udp;
    let lossless = udp && report.plan.search_lossless;
    let base = 7 + (BITS + PACKETS) * if lossless { 3 } else { 2 } + if udp { 8 + 7 } else { 0 };
    let room = page.width().saturating_sub(base);
    let cpu = [Cpu::Four, Cpu::Three].into_iter().find(|it| 2 * it.wide() <= room).unwrap_or(Cpu::None);
    let ends = ends(first.flow);
    let what = if udp { "bytes of datagram" } else { "bytes of message" };
    let cores = if cpu == Cpu::None { "" } else { "; CPU in % of one core" };
    page.heading(&name(first), &format!("{ends}; size in {what}{cores}"));
    let pair = BITS + PACKETS;
    let mut above = " ".repeat(7) + &right("sending", pair) + &right("receiving", pair);
    let mut below = right("size", 7);
    let packets = if udp { "kpps" } else { "k/s" };
    for _ in 0..2 {
        below += &(right(unit, BITS) + &right(packets, PACKETS));
    }
    if lossless {
        above += &right("max. lossless", pair);
        below += &(right(unit, BITS) + &right(packets, PACKETS));
    }
    if udp {
        above += &" ".repeat(15);
        below += &(right("loss", 8) + &right("unsent", 7));
    }
    if cpu != Cpu::None {
        let parts = ["user", "sys", "soft", "idle"];
        let parts: String = parts.iter().take(if cpu == Cpu::Four { 4 } else { 3 }).map(|it| right(it, CPU)).collect();
        above += &format!("{}{}", right("CPU of sender", cpu.wide()), right("CPU of receiver", cpu.wide()));
        below += &format!("  {parts}  {parts}");
    }
    for line in [above, below] {
        page.line(&page.style().paint(Tone::Faint, line.trim_end()));
    }
    for row in rows {
        let dash = || "–".to_owned();
        let bits = |it: Option<Spread>| right(&it.map_or_else(dash, |it| digits(it.median / factor)), BITS);
        let packets = |it: Option<Spread>| right(&it.map_or_else(dash, |it| digits(it.median / 1e3)), PACKETS);
        let mut line = right(&row.size_bytes.to_string(), 7);
        line += &(bits(row.sending_bps) + &packets(row.sending_pps));
        line += &(bits(row.receiving_bps) + &packets(if udp { row.receiving_pps } else { None }));
        if lossless {
            line += &(bits(row.lossless_bps) + &packets(row.lossless_pps));
        }
        if udp {
            line += &right(&row.loss.map_or_else(dash, ratio), 8);
            line += &right(&row.unsent.map_or_else(dash, short), 7);
        }
        line += &(host(row.sender, cpu) + &host(row.receiver, cpu));
        page.line(&line);
        for remark in &row.remarks {
            page.beside("        ! ", &clean(remark), Some(Tone::Mark));
        }
    }
    if let Some((size, spread)) = widest(rows).filter(|(_, spread)| *spread > 0.01) {
        let text = format!("medians; the widest spread of what was received: {} at {size} B", ratio(spread));
        page.line(&page.style().paint(Tone::Faint, &format!("    {text}")));
    }
    if cpu == Cpu::None {
        let needs = base + 2 * Cpu::Three.wide();
        let text = format!("CPU of both ends: with {needs} columns, and in JSON and CSV");
        page.line(&page.style().paint(Tone::Faint, &format!("    {text}")));
    }
}

/// A count in at most six columns.
fn short(count: u64) -> String {
    let text = grouped(count);
    if columns(&text) <= 6 { text } else { crate::figures::pps_short(crate::figures::float(count)) }
}

fn host(host: Option<HostCpu>, cpu: Cpu) -> String {
    let cell = |cores: f64| right(&format!("{:.0}", cores * 100.0), CPU);
    match (cpu, host) {
        (Cpu::None, _) => String::new(),
        (_, None) => right("–", cpu.wide()),
        (Cpu::Three, Some(it)) => format!("  {}{}{}", cell(it.user), cell(it.system), cell(it.softirq)),
        (Cpu::Four, Some(it)) => {
            format!("  {}{}{}{}", cell(it.user), cell(it.system), cell(it.softirq), cell(it.idle))
        }
    }
}

/// The size with the largest spread over its repetitions, and that spread relative to its median.
fn widest(rows: &[SweepRow]) -> Option<(u32, f64)> {
    rows.iter()
        .filter_map(|row| {
            let it = row.receiving_bps.filter(|it| it.n > 1 && it.median > 0.0)?;
            Some((row.size_bytes, (it.max - it.min) / it.median))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn symmetry(page: &mut Page, report: &SweepReport) {
    if report.symmetry.is_empty() {
        return;
    }
    page.heading("both directions compared", "(down over up; ≠ beyond the noise)");
    for group in
        report.symmetry.chunk_by(|a, b| (a.protocol, a.at_once, &a.figure) == (b.protocol, b.at_once, &b.figure))
    {
        let Some(first) = group.first() else { continue };
        let unlike: Vec<&Symmetry> = group.iter().filter(|it| it.differs).collect();
        let what = if first.figure == "receiving" { "received" } else { "max. lossless" };
        let at_once = if first.at_once { ", both ways at once" } else { "" };
        let verdict = match unlike.len() {
            0 => format!("alike at {}", all(group.len())),
            n if n == group.len() => format!("different at {}", all(n)),
            n => format!("different at {n} of {} sizes", group.len()),
        };
        let tone = if unlike.is_empty() { Tone::Good } else { Tone::Mark };
        let text = format!("  {} {what}{at_once}: {verdict}", first.protocol.word());
        page.line(&page.style().paint(tone, &text));
        let full = page.style().full;
        for it in group.iter().filter(|it| it.differs || full) {
            let mark = if it.differs { "≠" } else { " " };
            let interval = it.interval.map(|[low, high]| format!("  ({low:.2} to {high:.2} at 95 %)"));
            page.line(&format!(
                "  {mark} {} B   up {}   down {}   {}{}",
                right(&it.size_bytes.to_string(), 6),
                left(&bps(it.up_bps), 11),
                left(&bps(it.down_bps), 11),
                format_args!("{:.2}", it.ratio),
                interval.unwrap_or_default()
            ));
        }
    }
}

fn all(sizes: usize) -> String {
    if sizes == 1 { "the one size".to_owned() } else { format!("all {sizes} sizes") }
}
