//! The sweep on a terminal: a table for each protocol and direction, then comparison of directions.

use super::groups::{bit_unit, groups, name};
use crate::doc::page::Page;
use crate::figures::{digits, grouped, ratio};
use crate::measure::udp_words as words;
use crate::style::{Style, Tone};
use crate::words::{clean, columns, ends, left, or_dash, plural, right};
use narrows_model::run::measure::HostCpu;
use narrows_model::run::sweep::{Spread, SweepRow, Symmetry};
use narrows_model::words::units::{bps, micros};
use narrows_model::{Ending, SweepProtocol, SweepReport};

/// Widths of a rate in bit/s and in packets/s.
const BITS: usize = 8;
const PACKETS: usize = 7;
/// From this width on there is room for packets per second beside the bits.
const PACKETS_FROM: usize = 72;
/// Widths of both ends' CPU: three parts each, four where there is room.
const CPU: usize = 5;

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
            let text = format!("{} ({} of {} points measured)", clean(why), report.done, report.planned);
            page.labelled("failed: ", &text, Some(Tone::Bad));
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
    page.labelled("", &text, Some(Tone::Strong));
}

/// Columns under one heading: each with its own heading, its width and its cell.
type Group<'a> = (&'a str, Vec<Column<'a>>);
/// Its heading, its width and its cell.
type Column<'a> = (&'a str, usize, Box<dyn Fn(&SweepRow) -> String + 'a>);
type Rate = fn(&SweepRow) -> Option<Spread>;
/// A part of a host's CPU.
type Part = (&'static str, fn(HostCpu) -> f64);
const PARTS: [Part; 4] =
    [("user", |it| it.user), ("sys", |it| it.system), ("soft", |it| it.softirq), ("idle", |it| it.idle)];

/// Columns of this many parts of both ends' CPU.
const fn cpu_columns(parts: usize) -> usize {
    2 * (2 + parts * CPU)
}

/// The first parts of the CPU of one end.
fn cpu<'a>(above: &'a str, host: fn(&SweepRow) -> Option<HostCpu>, parts: &'a [Part]) -> Group<'a> {
    let column = |(at, (name, part)): (usize, &'a Part)| {
        let unknown = if at + 1 == parts.len() { "–" } else { "" };
        let cell =
            move |row: &SweepRow| host(row).map_or_else(|| unknown.to_owned(), |it| format!("{:.0}", part(it) * 100.0));
        (*name, if at == 0 { CPU + 2 } else { CPU }, Box::new(cell) as Box<dyn Fn(&SweepRow) -> String>)
    };
    (above, parts.iter().enumerate().map(column).collect())
}

fn table(page: &mut Page, report: &SweepReport, rows: &[SweepRow]) {
    let Some(first) = rows.first() else { return };
    let (unit, factor) = bit_unit(report);
    let udp = first.protocol == SweepProtocol::Udp;
    let with_packets = page.room() >= PACKETS_FROM;
    let rates = |above, bits: Rate, packets: Rate| -> Group<'_> {
        let cell = |of: Rate, factor: f64| -> Box<dyn Fn(&SweepRow) -> String> {
            Box::new(move |row| or_dash(of(row).map(|it| digits(it.median / factor))))
        };
        let packet_unit = if udp { "kpps" } else { "k/s" };
        // Without packets the heading of the group stands above one column.
        let bits_columns = if with_packets { BITS } else { BITS.max(columns(above) + 1) };
        let mut both: Vec<Column<'_>> = vec![(unit, bits_columns, cell(bits, factor))];
        both.extend(with_packets.then(|| (packet_unit, PACKETS, cell(packets, 1e3))));
        (above, both)
    };
    let mut groups: Vec<Group<'_>> = vec![
        ("", vec![("size", 7, Box::new(|row| row.size_bytes.to_string()))]),
        rates("sending", |it| it.sending_bps, |it| it.sending_pps),
        rates("receiving", |it| it.receiving_bps, if udp { |it| it.receiving_pps } else { |_| None }),
    ];
    if udp && report.plan.search_lossless {
        groups.push(rates("max. lossless", |it| it.lossless_bps, |it| it.lossless_pps));
    }
    if udp {
        let loss = |row: &SweepRow| or_dash(row.loss.map(ratio));
        let unsent = |row: &SweepRow| or_dash(row.unsent.map(short));
        groups.push(("", vec![("loss", 8, Box::new(loss)), ("unsent", 7, Box::new(unsent))]));
    }
    let base: usize = groups.iter().flat_map(|(_, columns)| columns).map(|column| column.1).sum();
    let room = page.room().saturating_sub(base);
    let parts = [4, 3].into_iter().find(|parts| cpu_columns(*parts) <= room).unwrap_or(0);
    if parts > 0 {
        let parts = &PARTS[..parts];
        groups.extend([cpu("CPU of sender", |it| it.sender, parts), cpu("CPU of receiver", |it| it.receiver, parts)]);
    }
    let what = if udp { "bytes of datagram" } else { "bytes of message" };
    let cores = if parts == 0 { "" } else { "; CPU in % of one core" };
    page.heading(&name(first), &format!("{}; size in {what}{cores}", ends(first.flow)));
    if base > page.room() {
        rows.iter().for_each(|row| stacked(page, &groups, row));
        return notes(page, report, rows, base, parts);
    }
    let above = groups.iter().map(|(above, columns)| right(above, columns.iter().map(|it| it.1).sum())).collect();
    let columns: Vec<_> = groups.iter().flat_map(|(_, columns)| columns).collect();
    let below = columns.iter().map(|(heading, wide, _)| right(heading, *wide)).collect();
    for line in [above, below] as [String; 2] {
        page.line(&page.style().paint(Tone::Faint, line.trim_end()));
    }
    for row in rows {
        page.line(&columns.iter().map(|(_, wide, cell)| right(&cell(row), *wide)).collect::<String>());
        remarks(page, row);
    }
    notes(page, report, rows, base, parts);
}

fn remarks(page: &mut Page, row: &SweepRow) {
    for remark in &row.remarks {
        page.labelled("        ! ", &clean(remark), Some(Tone::Mark));
    }
}

/// A row without columns: each cell with its headings.
fn stacked(page: &mut Page, groups: &[Group<'_>], row: &SweepRow) {
    let cells = groups.iter().flat_map(|(above, columns)| columns.iter().map(move |column| (above, column)));
    let cell = |(above, (heading, _, cell)): (&&str, &Column<'_>)| match *above {
        "" => format!("{heading} {}", cell(row)),
        above => format!("{above} {} {heading}", cell(row)),
    };
    let mut cells = cells.map(cell);
    page.labelled("  ", &cells.next().unwrap_or_default(), Some(Tone::Strong));
    page.labelled("    ", &cells.collect::<Vec<_>>().join(", "), None);
    remarks(page, row);
}

/// What is said below a table.
fn notes(page: &mut Page, report: &SweepReport, rows: &[SweepRow], base: usize, parts: usize) {
    if report.plan.search_lossless && rows.iter().any(|row| row.lossless_upper_pps.is_some()) {
        // A bucket of tokens delays nothing that it lets pass, so that no trial shows it.
        let text = "max. lossless: the highest rate without loss for 1 s, in which a queue or a token bucket can take in some percent more \
                    than the path sustains; `narrows search` tells more exactly";
        page.labelled("    ", text, Some(Tone::Faint));
    }
    if let Some(sizes) = segmented(rows) {
        let text = format!(
            "UDP segmentation offload at {sizes}: the sender hands datagrams to the kernel in batches, so kpps counts datagrams, not \
             packets that the hosts handled one by one"
        );
        page.labelled("    ", &text, Some(Tone::Faint));
    }
    if let Some((size, spread)) = widest(rows).filter(|(_, spread)| *spread > 0.01) {
        let text = format!("medians; largest spread of the received rate: {} at {size} B", ratio(spread));
        page.labelled("    ", &text, Some(Tone::Faint));
    }
    if parts == 0 {
        let text = format!("CPU of both ends needs {} columns; see JSON or CSV", base + cpu_columns(3));
        page.labelled("    ", &text, Some(Tone::Faint));
    }
}

/// The sizes at which batches left as one, in words.
fn segmented(rows: &[SweepRow]) -> Option<String> {
    let of: Vec<String> = rows
        .iter()
        .filter(|row| row.segmentation_offload == Some(true))
        .map(|row| row.size_bytes.to_string())
        .collect();
    match of.len() {
        0 => None,
        n if n == rows.len() && n > 1 => Some(all(n)),
        _ => Some(format!("{} B", of.join(", "))),
    }
}

/// A count in at most six columns.
fn short(count: u64) -> String {
    let text = grouped(count);
    if columns(&text) <= 6 { text } else { crate::figures::pps_short(crate::figures::float(count)) }
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
    page.heading("comparison of directions", "(down ÷ up; ≠ above the noise)");
    for group in
        report.symmetry.chunk_by(|a, b| (a.protocol, a.at_once, &a.figure) == (b.protocol, b.at_once, &b.figure))
    {
        let Some(first) = group.first() else { continue };
        let unlike: Vec<&Symmetry> = group.iter().filter(|it| it.differs).collect();
        let what = if first.figure == "receiving" { "received" } else { "max. lossless" };
        let at_once = if first.at_once { ", both directions" } else { "" };
        let verdict = match unlike.len() {
            0 => format!("equal at {}", all(group.len())),
            n if n == group.len() => format!("different at {}", all(n)),
            n => format!("different at {n} of {} sizes", group.len()),
        };
        let tone = if unlike.is_empty() { Tone::Good } else { Tone::Mark };
        let text = format!("  {} {what}{at_once}: {verdict}", first.protocol.word());
        page.row(&text, Some(tone));
        let full = page.style().full;
        for it in group.iter().filter(|it| it.differs || full) {
            let mark = if it.differs { "≠" } else { " " };
            let interval = it.interval.map(|[low, high]| format!("  ({low:.2} to {high:.2} at 95 %)"));
            let line = format!(
                "  {mark} {} B   up {}   down {}   {:.2}",
                right(&it.size_bytes.to_string(), 6),
                left(&bps(it.up_bps), 11),
                left(&bps(it.down_bps), 11),
                it.ratio,
            );
            let interval = interval.filter(|text| columns(&line) + columns(text) <= page.room());
            page.row(&(line + &interval.unwrap_or_default()), None);
        }
    }
}

fn all(sizes: usize) -> String {
    if sizes == 1 { "the one size".to_owned() } else { format!("all {sizes} sizes") }
}
