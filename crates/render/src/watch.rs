//! Interfaces of both ends while traffic runs, in one frame of text: each with now, peak and total, in and out.

use crate::doc::page::Page;
use crate::figures::{grouped, pps_short};
use crate::format::{Document, Format, Writer};
use crate::json;
use crate::style::{Style, Tone};
use crate::words::{clean, fit, left, or_dash, right};
use narrows_model::host::watch::{WatchEnd, WatchRow, WatchTraffic, WatchView};
use narrows_model::words::units::{amount, bps};

impl Document for WatchView {
    const NAME: &'static str = "a view of interfaces";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::text("A table, redrawn in place in a terminal; otherwise printed one after another", |it, style| {
            Ok(frame(it, style) + "\n")
        }),
        Writer::new(Format::Ndjson, "One object per line for each reading", |it, _| json::line(it)),
    ];
}

const NAME: usize = 15;
const WAY: usize = 4;
const RATE: usize = 12;
const PACKETS: usize = 7;
const TOTAL: usize = 10;
const COUNT: usize = 14;
const DROPS: usize = 9;

/// What the columns are.
pub(crate) const LEGEND: [&str; 5] = [
    "now: the last interval; peak: the highest interval so far",
    "in, out: as the interface counts them, with Ethernet headers",
    "pps: packets per second; total: bytes since the start",
    "dropped: by the interface or its queue since the start",
    "bar: now, relative to the highest peak of its end; │ peak",
];

/// The frame. Interfaces without traffic so far are left out unless `style.full`.
pub fn frame(view: &WatchView, style: Style) -> String {
    let mut page = Page::new(style);
    // A bar is relative to the highest peak of the same end.
    for end in &view.ends {
        one(&mut page, end, view.elapsed_s);
    }
    page.finish()
}

/// Whether there was traffic so far.
pub(crate) fn active(row: &WatchRow) -> bool {
    row.rx.total_packets.saturating_add(row.tx.total_packets) > 0 || row.rx.dropped > 0 || row.tx.dropped > 0
}

/// The optional columns: the peak, packets per second, the totals in bytes and in packets, the peak's packets, then the bar.
struct Room {
    peak: bool,
    packets: bool,
    total: bool,
    peak_packets: bool,
    count: bool,
    bar: usize,
}

impl Room {
    fn of(width: usize) -> Self {
        let mut used = NAME + WAY + RATE + DROPS;
        let mut fits = |wide: usize| {
            let fits = width >= used + wide;
            used += if fits { wide } else { 0 };
            fits
        };
        let (peak, packets) = (fits(RATE), fits(PACKETS));
        let (total, peak_packets) = (fits(TOTAL), peak && packets && fits(PACKETS));
        let count = peak_packets && fits(COUNT);
        let bar = width.saturating_sub(used + 2);
        Self { peak, packets, total, peak_packets, count, bar: if bar >= 8 { bar.min(30) } else { 0 } }
    }
}

fn one(page: &mut Page, end: &WatchEnd, elapsed_s: f64) {
    let room = Room::of(page.room());
    let name = if end.host.is_empty() { String::new() } else { format!(" ({})", clean(&end.host)) };
    page.heading(
        &format!("{}{}", end.place, fit(&name, page.width().saturating_sub(7).min(40))),
        &format!("{elapsed_s:.0} s"),
    );
    if let Some(why) = &end.silent {
        page.labelled("  ", &format!("silent: {}", clean(why)), Some(Tone::Bad));
    }
    let mut head = left("", NAME + WAY);
    head += &right("now", RATE);
    if room.packets {
        head += &right("pps", PACKETS);
    }
    if room.peak {
        head += &right("peak", RATE);
    }
    if room.peak_packets {
        head += &right("pps", PACKETS);
    }
    if room.total {
        head += &right("total", TOTAL);
    }
    if room.count {
        head += &right("packets", COUNT);
    }
    head += &right("dropped", DROPS);
    page.line(&page.style().paint(Tone::Faint, &head));
    let full = page.style().full;
    let shown: Vec<&WatchRow> = end.interfaces.iter().filter(|row| full || active(row)).collect();
    let highest = shown.iter().flat_map(|row| [row.rx.peak_bps, row.tx.peak_bps]).flatten().fold(0.0, f64::max);
    for row in &shown {
        way(page, &clean(&row.name), "in", &row.rx, &room, highest);
        way(page, "", "out", &row.tx, &room, highest);
    }
    let quiet = end.interfaces.len() - shown.len();
    if quiet > 0 {
        let word = if quiet == 1 { "interface" } else { "interfaces" };
        page.line(&page.style().paint(Tone::Faint, &format!("  {quiet} {word} without traffic")));
    }
}

fn way(page: &mut Page, name: &str, word: &str, it: &WatchTraffic, room: &Room, highest: f64) {
    let rate = |bits: Option<f64>| right(&or_dash(bits.map(bps)), RATE);
    let packets = |packets: Option<f64>| right(&or_dash(packets.map(pps_short)), PACKETS);
    let mut line = left(name, NAME - 1) + " " + &left(word, WAY);
    line += &rate(it.now_bps);
    if room.packets {
        line += &packets(it.now_pps);
    }
    if room.peak {
        line += &rate(it.peak_bps);
    }
    if room.peak_packets {
        line += &packets(it.peak_pps);
    }
    if room.total {
        line += &right(&amount(it.total_bytes), TOTAL);
    }
    if room.count {
        line += &right(&grouped(it.total_packets), COUNT);
    }
    let drops = right(&grouped(it.dropped), DROPS);
    line += &if it.dropped > 0 { page.style().paint(Tone::Bad, &drops) } else { drops };
    if room.bar > 0 {
        line += &format!("  {}", bar(it, room.bar, highest));
    }
    page.line(&line);
}

/// The current rate as a bar and the peak as a mark, relative to the highest peak of the end.
fn bar(it: &WatchTraffic, wide: usize, highest: f64) -> String {
    let column = |bits: f64| {
        if highest > 0.0 { (bits / highest * wide as f64).round().clamp(0.0, wide as f64) as usize } else { 0 }
    };
    let now = it.now_bps.map_or(0, column);
    let peak = it.peak_bps.map_or(0, column);
    (1..=wide)
        .map(|at| match at {
            at if at <= now => '█',
            at if at == peak => '│',
            _ => ' ',
        })
        .collect()
}
