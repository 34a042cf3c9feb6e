//! The TCP connections of a host and what limits each: a table, and one connection opened.

use crate::doc::page::Page;
use crate::doc::{Doc, Sentence};
use crate::format::{Document, Format, Writer};
use crate::style::{Style, Tone};
use crate::table::{self, Cell, Column, Row, Table};
use crate::words::{clean, columns, left, or_dash, plural, right, rounded, sparkline};
use crate::{csv, json};
use narrows_model::words::units::{bps, bytes, grouped, micros, percent};
use narrows_model::{ConnectionEnds, ConnectionLimit, ConnectionShares, ConnectionView, ConnectionsView};

impl Document for ConnectionsView {
    const NAME: &'static str = "a view of connections";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::text("A table, redrawn in place in a terminal; otherwise printed one after another", |it, style| {
            Ok(text(it, style) + "\n")
        }),
        Writer::json("For programs, of one reading (--once); the schema is in docs/"),
        Writer::new(Format::Ndjson, "One object per line for each reading", |it, _| json::line(it)),
        Writer::csv("Comma-separated values, one connection per line (--once)", |it, _| {
            csv::table(COLUMNS, &it.connections)
        }),
        Writer::new(Format::Markdown, "For a ticket or a wiki", |it, style| Ok(doc(it, style.full).markdown())),
    ];
}

/// How a live view is shown.
#[derive(Debug, Clone, Default)]
pub struct LiveOptions {
    /// Lines of the terminal.
    pub rows: usize,
    /// The marked connection, by its place in the table.
    pub marked: Option<usize>,
    /// The word for the order.
    pub order: &'static str,
}

/// The columns of their CSV.
pub(crate) const COLUMNS: &[&str] = &[
    "id",
    "local",
    "remote",
    "process=process/name",
    "pid=process/pid",
    "uid",
    "limit",
    "send_bps",
    "receive_bps",
    "rtt_ms",
    "min_rtt_ms",
    "retransmitted_ratio=retransmitted",
    "retransmitted_total",
    "congestion_control",
    "unread_bytes",
    "unsent_bytes",
    "why",
    "peer_limit=ends/far/limit",
];

/// What the columns are.
pub(crate) const LEGEND: [&str; 6] = [
    "limit: what the connection waited for most in the last interval",
    "send, receive: acknowledged payload, payload received in order",
    "RTT: smoothed; retrans: share of the segments of the interval that were retransmissions",
    "application: no data to send; path: a queue is full, or BBR sends at the rate it measured",
    "congestion window: full, with no queue and no loss on the path",
    "unknown: not visible at this end (for received data, ask the sender with --peer-host)",
];

/// All connections; those without data are only counted, unless `style.full`.
pub fn text(view: &ConnectionsView, style: Style) -> String {
    frame(view, style, &LiveOptions { rows: usize::MAX, ..LiveOptions::default() })
}

/// One frame of a live view.
pub fn frame(view: &ConnectionsView, style: Style, options: &LiveOptions) -> String {
    let shown: Vec<&ConnectionView> = shown(view, style.full).collect();
    // The heading, the head of the table and two lines of remarks.
    let room = options.rows.saturating_sub(view.remarks.len() + 5).max(3);
    let first = options.marked.map_or(0, |marked| (marked + 1).saturating_sub(room));
    let mut page = Page::new(style);
    let count = plural(view.matching as u64, "connection");
    let order = if options.order.is_empty() { String::new() } else { format!(", by {}", options.order) };
    page.heading(&clean(&view.host), &format!("{count}, {} with data{order}, {:.0} s", view.active, view.elapsed_s));
    let mut all = head(view, options.marked.is_some());
    for (at, one) in shown.iter().enumerate().skip(first).take(room) {
        let mark = if options.marked == Some(at) { ">" } else { "" };
        all.rows.push(row(one, mark, view));
    }
    table::text(&mut page, &all);
    let left_out = shown.len().saturating_sub(first + room);
    if left_out > 0 {
        page.line(&style.paint(Tone::Faint, &format!("  … {left_out} more")));
    }
    let idle = view.quiet + view.connections.len() - shown.len();
    if idle > 0 {
        let text = format!("{} without data (--full shows them)", plural(idle as u64, "connection"));
        page.labelled("  ", &text, Some(Tone::Faint));
    }
    for remark in &view.remarks {
        page.labelled("  ! ", &clean(remark), Some(Tone::Mark));
    }
    page.finish()
}

/// The connections that a table shows.
pub fn shown(view: &ConnectionsView, full: bool) -> impl Iterator<Item = &ConnectionView> {
    view.connections.iter().filter(move |it| full || it.limit != ConnectionLimit::Idle)
}

/// All connections; those without data only if `full`.
pub(crate) fn doc(view: &ConnectionsView, full: bool) -> Doc {
    let mut all = head(view, false);
    all.rows = shown(view, full).map(|one| row(one, "", view)).collect();
    // The mark of the live table.
    all.columns.remove(0);
    all.rows.iter_mut().for_each(|row| drop(row.cells.remove(0)));
    let count = plural(view.matching as u64, "connection");
    Doc::new(&view.host)
        .plain(&format!("{count}, {} with data, {:.0} s", view.active, view.elapsed_s))
        .table(all.trimmed())
        .sentences(view.remarks.iter().map(|remark| Sentence::listed(remark)))
}

/// Those of a host as a page, or why they are not known.
pub fn page(host: &str, view: Result<&ConnectionsView, &str>) -> String {
    let says = |view| doc(view, false);
    view.map_or_else(|why| Doc::new(host).paragraph(&format!("its connections are not known: {why}")), says).html()
}

/// An RTT in milliseconds, with its unit.
fn rtt_words(ms: f64) -> String {
    micros(rounded(ms * 1e3))
}

/// Whether the other end of any of them is known.
fn has_ends(view: &ConnectionsView) -> bool {
    view.connections.iter().any(|one| one.ends.is_some())
}

fn head(view: &ConnectionsView, live: bool) -> Table {
    let mut names = vec![
        Column::words(""),
        Column::words("remote"),
        Column::words("local").spare(5),
        Column::words("process").spare(4),
        Column::words("limit"),
    ];
    if has_ends(view) {
        names.extend([Column::words("this end alone").spare(5), Column::words("other end alone").spare(5)]);
    }
    names.extend([
        Column::figures("send"),
        Column::figures("receive"),
        Column::figures("RTT").spare(2),
        Column::figures("retrans").spare(3),
        Column::words("why").spare(1).beneath(!live),
    ]);
    Table::new("", "", &names)
}

fn row(one: &ConnectionView, mark: &str, view: &ConnectionsView) -> Row {
    let process = one.process.as_ref().map(|owner| format!("{} ({})", owner.name, owner.pid));
    let rate = |bits: Option<f64>| Cell::maybe(bits.map(|bits| if bits > 0.0 { bps(bits) } else { "–".to_owned() }));
    let lost = one.retransmitted.filter(|part| *part > 0.0);
    let marked = |cell: Cell| cell.tone_if(!mark.is_empty(), Tone::Strong);
    let mut cells = vec![
        Cell::new(mark),
        marked(Cell::new(&one.remote)),
        Cell::new(&one.local),
        Cell::maybe(process),
        marked(Cell::new(one.limit.word())),
    ];
    if has_ends(view) {
        let ends = one.ends.as_ref();
        cells.push(Cell::maybe(ends.map(|ends| ends.limit.word().to_owned())));
        cells.push(Cell::maybe(ends.map(|ends| ends.far.limit.word().to_owned())));
    }
    cells.extend([
        rate(one.send_bps),
        rate(one.receive_bps),
        Cell::maybe(one.rtt_ms.map(rtt_words)),
        Cell::maybe(lost.map(percent)).tone_if(lost.is_some(), Tone::Mark),
        Cell::new(&one.why),
    ]);
    Row::new(cells)
}

/// One interval of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Past {
    /// Payload of both directions, bits per second.
    pub bps: f64,
    /// Smoothed RTT, milliseconds.
    pub rtt_ms: Option<f64>,
    pub limit: ConnectionLimit,
}

impl Past {
    /// The last interval of a connection.
    pub fn of(one: &ConnectionView) -> Self {
        Self { bps: one.bps(), rtt_ms: one.rtt_ms, limit: one.limit }
    }
}

/// One connection with its shares of time, its ceilings, and what it was so far, oldest first.
pub fn opened(one: &ConnectionView, past: &[Past], style: Style) -> String {
    let mut page = Page::new(style);
    page.heading(&format!("{} → {}", clean(&one.local), clean(&one.remote)), &format!("connection {}", one.id));
    page.labelled("  limit    ", &format!("{}: {}", one.limit.word(), clean(&one.why)), Some(Tone::Strong));
    if let Some(owner) = &one.process {
        page.labelled("  process  ", &format!("{} ({})", clean(&owner.name), owner.pid), None);
    }
    let rtt = |ms: Option<f64>| or_dash(ms.map(rtt_words));
    let [sent, received] = [one.send_bps, one.receive_bps].map(|rate| or_dash(rate.map(bps)));
    page.labelled("  rate     ", &format!("{sent} sent, {received} received"), None);
    page.labelled("  RTT      ", &format!("{}, minimum {}", rtt(one.rtt_ms), rtt(one.min_rtt_ms)), None);
    let again = or_dash(one.retransmitted.map(percent));
    let total = or_dash(one.retransmitted_total.map(|total| grouped(i128::from(total))));
    page.labelled("  retrans  ", &format!("{again} in the last interval, {total} segments in total"), None);
    let unsent = or_dash(one.unsent_bytes.map(bytes));
    let unread = bytes(one.unread_bytes.into());
    page.labelled("  queues   ", &format!("{unread} received and unread, {unsent} written and unsent"), None);
    if let Some(name) = &one.congestion_control {
        page.labelled("  control  ", &clean(name), None);
    }
    if let Some(shares) = &one.shares {
        page.heading("time of the sender", "in the last interval");
        let named = named(shares);
        let wide = named.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
        // The name, the share, and the blanks before, between and behind them.
        let room = page.room().saturating_sub(wide + 10).min(40);
        for (name, share) in named {
            page.line(&format!("  {} {} {}", left(name, wide), right(&percent(share), 6), bar(share, room)));
        }
    }
    if !one.ceilings.is_empty() {
        page.heading("ceilings", "what each limit allows at this RTT");
        for ceiling in &one.ceilings {
            page.line(&format!("  {} {}", left(ceiling.limit.word(), 18), right(&bps(ceiling.bps), 12)));
        }
    }
    if let Some(ends) = &one.ends {
        both(&mut page, one, ends);
    }
    if past.len() > 1 {
        history(&mut page, past);
    }
    page.finish()
}

/// Each end's own figures, side by side.
fn both(page: &mut Page, one: &ConnectionView, ends: &ConnectionEnds) {
    let far = &ends.far;
    page.heading("each end alone", "its figures, and what limits the connection by them");
    let names = [Column::words(""), Column::words("this end"), Column::words("other end")];
    let mut table = Table::new("", "", &names);
    let mut row = |name: &str, of: [Option<String>; 2]| {
        let [near, far] = of.map(Cell::maybe);
        table.rows.push(Row::new(vec![Cell::new(name), near, far]));
    };
    row("limit", [ends.limit, far.limit].map(|limit| Some(limit.word().to_owned())));
    row("sent", [one, far].map(|end| end.send_bps.map(bps)));
    row("received", [one, far].map(|end| end.receive_bps.map(bps)));
    row("RTT", [one, far].map(|end| end.rtt_ms.map(rtt_words)));
    row("retrans", [one, far].map(|end| end.retransmitted.map(percent)));
    row("unread", [one, far].map(|end| Some(bytes(end.unread_bytes.into()))));
    row("unsent", [one, far].map(|end| end.unsent_bytes.map(bytes)));
    row("control", [one, far].map(|end| end.congestion_control.as_deref().map(clean)));
    table::text(page, &table);
    page.labelled("  this end   ", &clean(&ends.why), None);
    page.labelled("  other end  ", &clean(&far.why), None);
}

fn history(page: &mut Page, past: &[Past]) {
    let wide = page.style().columns() - 4;
    let mut curve = |values: &[f64], name: &str, high: fn(f64) -> String| {
        if !values.is_empty() {
            page.heading(name, &format!("highest {}", high(values.iter().copied().fold(0.0, f64::max))));
            page.line(&format!("  {}", sparkline(values, wide, Some(0.0))));
        }
    };
    curve(&past.iter().map(|it| it.bps).collect::<Vec<_>>(), "rate so far", bps);
    curve(&past.iter().filter_map(|it| it.rtt_ms).collect::<Vec<_>>(), "RTT so far", rtt_words);
    let mut counts: Vec<(usize, &str)> = Vec::new();
    for it in past {
        match counts.iter_mut().find(|(_, word)| *word == it.limit.word()) {
            Some((count, _)) => *count += 1,
            None => counts.push((1, it.limit.word())),
        }
    }
    counts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    page.heading("limits so far", &plural(past.len() as u64, "interval"));
    let words: Vec<String> = counts.iter().map(|(count, word)| format!("{word} {count}")).collect();
    page.labelled("  ", &words.join(", "), None);
}

const fn named(shares: &ConnectionShares) -> [(&'static str, f64); 4] {
    [
        ("application had no data", shares.application),
        ("receiver's window full", shares.receive_window),
        ("send buffer full", shares.send_buffer),
        ("network", shares.network),
    ]
}

fn bar(share: f64, wide: usize) -> String {
    "█".repeat((share.clamp(0.0, 1.0) * wide as f64).round() as usize)
}
