//! A trace: a table of hops and what was found; live, for a ticket, and as a picture.

mod svg;

#[cfg(test)]
pub(crate) mod tests;

use crate::doc::{Doc, Pair, Sentence};
use crate::figures::tick;
use crate::format::{Format, Writer, document};
use crate::json;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use crate::words::{plural, sparkline};
use narrows_model::run::live::HopHistory;
use narrows_model::trace::report::{TraceEnd, TraceHop, TraceNode};
use narrows_model::words::units::percent;
use narrows_model::{Ending, TraceProtocol, TraceReport};
pub use svg::picture;

document!(
    TraceReport,
    "a trace",
    |it, _| doc(it),
    Writer::new(Format::Ndjson, "One object per line; with --watch one for each interval", |it, _| json::line(it)),
    Writer::csv("Comma-separated values, one address of one hop per line", |it, _| csv(it))
);

/// Probes of a hop that a live view shows.
const PROBES: usize = 20;
/// What the columns are.
pub(crate) const LEGEND: [&str; 7] = [
    "loss: probes without an answer; of a router it is loss of the path only if later hops lose as much",
    "least, median, worst: RTT in ms",
    "last probes: RTT of each, highest at the top of its line; × without an answer",
    "PMTU: the largest packet, in bytes, that came to the hop",
    "!A administratively prohibited, !H host, !N network, !P protocol unreachable",
    "asymm N: the answer came over N hops, by its TTL",
    "several addresses of a hop: equal-cost paths, with the number of flows on each",
];

/// A line for each address of each hop, of the path back, too.
pub(crate) fn csv(report: &TraceReport) -> serde_json::Result<String> {
    const COLUMNS: &[&str] = &[
        "path=0", "ttl=1/ttl", "address=2/address", "name=2/name", "hop_sent=1/sent", "hop_loss_ratio=1/loss",
        "answered=2/answered", "rtt_min_ms=2/rtt_ms/0", "rtt_median_ms=2/rtt_ms/1", "rtt_max_ms=2/rtt_ms/2",
        "pmtu_bytes=1/pmtu_bytes", "return_hops=2/return_hops", "marks=2/marks",
    ];
    let paths = [("there", Some(report)), ("back", report.back.as_deref())];
    let hops = paths
        .into_iter()
        .flat_map(|(path, report)| report.into_iter().flat_map(move |it| it.hops.iter().map(move |hop| (path, hop))));
    let rows = hops.flat_map(|(path, hop)| {
        // A silent hop has a line, too.
        (0..hop.nodes.len().max(1)).map(move |at| (path, hop, hop.nodes.get(at)))
    });
    crate::csv::table(COLUMNS, rows)
}

/// One frame of a live view, with what the last probes to each hop brought.
pub fn frame(report: &TraceReport, style: Style, history: Option<&HopHistory>) -> String {
    written(report, history).text(style)
}

pub(crate) fn doc(report: &TraceReport) -> Doc {
    written(report, None).picture(Some(picture(report)))
}

fn written(report: &TraceReport, history: Option<&HopHistory>) -> Doc {
    let doc = Doc::new(&format!("Trace to {}", title(report))).lead(&title(report), &remark(report), None);
    let mut doc = doc.table(hops(report, history));
    if let Some(line) = mtu(report) {
        doc = doc.pairs([Pair::new("path MTU", &line)]);
    }
    doc =
        doc.pairs(report.findings.iter().map(|finding| {
            Pair::new(&finding.id, &finding.says).tone(if finding.harm { Tone::Bad } else { Tone::Mark })
        }));
    doc = doc.sentences(report.remarks.iter().map(|remark| Sentence::new(remark).tone(Tone::Faint)));
    if report.ending == Ending::Interrupted && history.is_none() {
        doc = doc.warnings(["interrupted".to_owned()]);
    }
    match &report.back {
        Some(back) => doc.part(written(back, None).named("the path back")),
        None => doc,
    }
}

/// `server (192.0.2.7)`
fn title(report: &TraceReport) -> String {
    if report.asked == report.target { report.target.clone() } else { format!("{} ({})", report.asked, report.target) }
}

fn remark(report: &TraceReport) -> String {
    let port =
        if report.protocol == TraceProtocol::Icmp { String::new() } else { format!(" port {}", report.plan.port) };
    let end = match &report.end {
        TraceEnd::Reached { ttl } => format!("reached in {}", plural((*ttl).into(), "hop")),
        TraceEnd::Refused { ttl } => format!("refused at TTL {ttl} (RST)"),
        TraceEnd::Rejected { ttl, mark, .. } => format!("rejected at TTL {ttl} ({mark})"),
        TraceEnd::Silent { after_hop: 0 } => "no answer".to_owned(),
        TraceEnd::Silent { after_hop } => format!("silent behind hop {after_hop}"),
        TraceEnd::MaxHops => format!("not reached in {}", plural(report.plan.max_ttl.into(), "hop")),
    };
    format!("{}{port}, {end}, {:.1} s", report.protocol.word(), report.elapsed_s)
}

fn mtu(report: &TraceReport) -> Option<String> {
    let mtu = report.mtu.as_ref()?;
    let upto = if mtu.to_target { "to the target" } else { "to the last hop that answers" };
    Some(format!("{} bytes {upto}; the first link takes {}", mtu.path_bytes, mtu.first_link_bytes))
}

fn hops(report: &TraceReport, history: Option<&HopHistory>) -> Table {
    let columns = [
        Column::figures("hop"),
        Column::words("address"),
        Column::words("name").spare(3),
        Column::figures("loss"),
        Column::figures("sent").spare(4),
        Column::figures("least ms"),
        Column::figures("median ms"),
        Column::figures("worst ms").spare(2),
        Column::words("last probes").spare(1),
        Column::figures("PMTU").spare(2),
        Column::words("notes").spare(1),
    ];
    let mut all = Table::new("", "", &columns);
    let mut shrinks = report.mtu.as_ref().map(|mtu| mtu.first_link_bytes);
    let last = |hop: &TraceHop| history.and_then(|all| all.get(&hop.ttl)).map_or_else(String::new, |all| probes(all));
    for hop in &report.hops {
        let less = hop.pmtu_bytes.is_some_and(|bytes| shrinks.is_some_and(|before| bytes < before));
        shrinks = hop.pmtu_bytes.or(shrinks);
        if hop.nodes.is_empty() {
            all.rows.push(row(hop, None, true, less, &last(hop)));
        }
        for (at, node) in hop.nodes.iter().enumerate() {
            all.rows.push(row(hop, Some(node), at == 0, less, &last(hop)));
        }
    }
    all.trimmed()
}

/// The last probes to a hop as blocks.
fn probes(rtts_ms: &[Option<f64>]) -> String {
    let last = &rtts_ms[rtts_ms.len().saturating_sub(PROBES)..];
    let answered: Vec<f64> = last.iter().copied().flatten().collect();
    let mut blocks = sparkline(&answered, answered.len(), Some(0.0)).chars().collect::<Vec<_>>().into_iter();
    last.iter().map(|rtt| rtt.and_then(|_| blocks.next()).unwrap_or('×')).collect()
}

fn row(hop: &TraceHop, node: Option<&TraceNode>, first: bool, less: bool, last: &str) -> Row {
    let once = |text: String| Cell::new(if first { text } else { String::new() });
    let rtt = |at: usize| Cell::maybe(node.and_then(|node| node.rtt_ms).map(|all| tick(all[at])));
    let lost = hop.loss.filter(|loss| *loss > 0.0);
    let harm = lost.is_some() && !hop.limits_answers;
    Row::new(vec![
        once(hop.ttl.to_string()),
        Cell::new(node.map_or("*", |node| node.address.as_str())),
        Cell::maybe(node.and_then(|node| node.name.clone())),
        once(hop.loss.map_or_else(|| "–".to_owned(), percent)).tone_if(first && harm, Tone::Mark),
        once(hop.sent.to_string()),
        rtt(0),
        rtt(1),
        rtt(2),
        once(last.to_owned()),
        once(hop.pmtu_bytes.map_or_else(|| "–".to_owned(), |bytes| bytes.to_string()))
            .tone_if(first && less, Tone::Mark),
        Cell::new(notes(hop, node, first)),
    ])
    .note(node.and_then(labels))
}

fn labels(node: &TraceNode) -> Option<String> {
    let words: Vec<String> = node.mpls.iter().map(|it| format!("{} (TTL {})", it.label, it.ttl)).collect();
    (!words.is_empty()).then(|| format!("MPLS labels {}", words.join(", ")))
}

fn notes(hop: &TraceHop, node: Option<&TraceNode>, first: bool) -> String {
    let mut all: Vec<String> = Vec::new();
    if let Some(node) = node {
        all.extend(node.marks.iter().cloned());
        if hop.nodes.len() > 1 {
            all.push(plural(node.flows.len() as u64, "flow"));
        }
        all.extend(node.return_hops.filter(|back| *back != hop.ttl).map(|back| format!("asymm {back}")));
    }
    if first && hop.limits_answers {
        all.push("limits its answers".to_owned());
    }
    all.join(", ")
}
