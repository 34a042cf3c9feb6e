//! The sweep as a document: a table for each protocol and direction, then the comparison of directions.

use super::groups::{bit_unit, groups, name};
use super::svg;
use crate::doc::{Doc, Sentence};
use crate::figures::{digits, float, grouped, pps_short, ratio};
use crate::measure::udp_words as words;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::{clean, columns, ends, or_dash, plural};
use narrows_model::run::measure::HostCpu;
use narrows_model::run::sweep::{Spread, SweepRow, Symmetry};
use narrows_model::words::units::{bps, micros};
use narrows_model::{Ending, SweepProtocol, SweepReport};

pub(crate) fn doc(report: &SweepReport, full: bool) -> Doc {
    let doc = Doc::new("Sweep").headline(&head(report));
    let doc = groups(report).fold(doc, |doc, rows| doc.table(table(report, rows)).sentences(notes(report, rows)));
    let doc = symmetry(doc, report, full);
    let of = |words: &str| format!("{words} {} of {} points", report.done, report.planned);
    let ended = match &report.run.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some(of("interrupted after")),
        Ending::Failed(why) => Some(format!("failed: {} ({} measured)", clean(why), of("").trim_start())),
    };
    doc.warnings(ended).picture(Some(svg::picture(report)))
}

fn head(report: &SweepReport) -> String {
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
    format!("sweep of {} ({}): {}", clean(&target.asked), clean(&target.address), words.join(", "))
}

/// `15/38/5/142`: user, system, softirq and idle in % of one core.
fn cpu(host: HostCpu) -> String {
    let parts = [host.user, host.system, host.softirq, host.idle];
    parts.map(|part| format!("{:.0}", part * 100.0)).join("/")
}

fn table(report: &SweepReport, rows: &[SweepRow]) -> Table {
    let udp = rows.first().is_some_and(|row| row.protocol == SweepProtocol::Udp);
    let (unit, factor) = bit_unit(report);
    let packets = if udp { "kpps" } else { "k/s" };
    let rate = |what: &str| [Column::figures(&format!("{what} {unit}")), Column::figures(packets).spare(4)];
    let mut all = vec![Column::figures("size")];
    all.extend(rate("sent"));
    all.extend(rate("received"));
    all.extend(rate("lossless"));
    all.extend([
        Column::figures("loss").spare(1),
        Column::figures("unsent").spare(2),
        Column::figures("sender").spare(6),
        Column::figures("receiver").spare(6),
    ]);
    let what = if udp { "bytes of datagram" } else { "bytes of message" };
    let remark = rows.first().map_or_else(String::new, |first| {
        format!("{}; size in {what}; sender and receiver: CPU user/sys/softirq/idle in % of one core", ends(first.flow))
    });
    let mut table = Table::new(rows.first().map(name).unwrap_or_default(), remark, &all);
    table.rows.extend(rows.iter().map(|row| {
        let of = |it: Option<Spread>, factor: f64| Cell::maybe(it.map(|it| digits(it.median / factor)));
        let cells = vec![
            Cell::new(row.size_bytes.to_string()),
            of(row.sending_bps, factor),
            of(row.sending_pps, 1e3),
            of(row.receiving_bps, factor),
            of(row.receiving_pps.filter(|_| udp), 1e3),
            of(row.lossless_bps, factor),
            of(row.lossless_pps, 1e3),
            Cell::new(or_dash(row.loss.map(ratio).filter(|_| udp))),
            Cell::maybe(row.unsent.map(short)),
            Cell::maybe(row.sender.map(cpu)),
            Cell::maybe(row.receiver.map(cpu)),
        ];
        let remarks = row.remarks.iter().map(|remark| clean(remark));
        remarks.fold(Row::new(cells), |row, remark| row.note(Some(remark)))
    }));
    // A group without a column of its own in one protocol has none.
    if rows.iter().all(|row| row.lossless_bps.is_none()) {
        table.columns[5].spare = 5;
    }
    table.trimmed()
}

/// What is said below a table.
fn notes(report: &SweepReport, rows: &[SweepRow]) -> Vec<Sentence> {
    let lossless = report.plan.search_lossless && rows.iter().any(|row| row.lossless_upper_pps.is_some());
    // A bucket of tokens delays nothing that it lets pass, so that no trial shows it.
    let lossless = lossless.then(|| {
        "lossless: the highest rate without loss for 1 s, in which a token bucket can take in some percent more than the path sustains; \
         `narrows search` tells more exactly"
            .to_owned()
    });
    let segmented = segmented(rows).map(|sizes| {
        format!(
            "UDP segmentation offload at {sizes}: the sender hands datagrams to the kernel in batches, so kpps counts datagrams, not \
             packets that the hosts handled one by one"
        )
    });
    let spread = widest(rows).filter(|(_, spread)| *spread > 0.01);
    let spread =
        spread.map(|(size, it)| format!("medians; largest spread of the received rate: {} at {size} B", ratio(it)));
    let all = [lossless, segmented, spread].into_iter().flatten();
    all.map(|says| Sentence::new(&says).tone(Tone::Faint)).collect()
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
    if columns(&text) <= 6 { text } else { pps_short(float(count)) }
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

fn symmetry(doc: Doc, report: &SweepReport, full: bool) -> Doc {
    if report.symmetry.is_empty() {
        return doc;
    }
    let columns = ["", "size", "up", "down", "down ÷ up", "95 % interval"].map(Column::figures);
    let mut columns = columns.to_vec();
    columns[0] = Column::words("");
    columns[5].spare = 1;
    let doc = doc.section("comparison of directions", "down ÷ up; ≠ above the noise");
    let alike = |a: &Symmetry, b: &Symmetry| (a.protocol, a.at_once, &a.figure) == (b.protocol, b.at_once, &b.figure);
    report.symmetry.chunk_by(alike).fold(doc, |doc, group| {
        let first = &group[0];
        let unlike = group.iter().filter(|it| it.differs).count();
        let what = if first.figure == "receiving" { "received" } else { "lossless" };
        let at_once = if first.at_once { ", both directions" } else { "" };
        let verdict = match unlike {
            0 => format!("equal at {}", all(group.len())),
            n if n == group.len() => format!("different at {}", all(n)),
            n => format!("different at {n} of {} sizes", group.len()),
        };
        let says = format!("{} {what}{at_once}: {verdict}", first.protocol.word());
        let doc = doc.sentences([Sentence::new(&says).tone(if unlike == 0 { Tone::Good } else { Tone::Mark })]);
        let mut table = Table::new("", "", &columns);
        table.rows.extend(group.iter().filter(|it| it.differs || full).map(|it| {
            Row::new(vec![
                Cell::new(if it.differs { "≠" } else { "" }),
                Cell::new(format!("{} B", it.size_bytes)),
                Cell::new(bps(it.up_bps)),
                Cell::new(bps(it.down_bps)),
                Cell::new(format!("{:.2}", it.ratio)),
                Cell::maybe(it.interval.map(|[low, high]| format!("{low:.2} to {high:.2}"))),
            ])
        }));
        if table.rows.is_empty() { doc } else { doc.table(table) }
    })
}

fn all(sizes: usize) -> String {
    if sizes == 1 { "the one size".to_owned() } else { format!("all {sizes} sizes") }
}
