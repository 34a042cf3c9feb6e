//! One line per interval while frames are sent or received, in columns under a heading.

use crate::figures::{grouped, of_line, precise};
use crate::style::{Style, Tone};
use crate::words::{fitting, or_dash, right};
use narrows_model::load::frames_report::{FrameRate, ReceivedInterval, SentInterval};

/// The end that an interval belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Sent,
    Received,
}

/// Columns of a line.
const CELLS: usize = 9;
const SENT: [&str; CELLS] =
    ["interval", "sent", "pps", "on the wire", "of line", "unsent", "behind", "skipped", "refused"];
const RECEIVED: [&str; CELLS] =
    ["interval", "received", "pps", "on the wire", "of line", "lost", "reord", "dup", "foreign"];
/// Their widths with the blank before each but the first, and the ranks of [`fitting`].
const COLUMNS: [(usize, u8); CELLS] = [(14, 0), (13, 0), (11, 1), (14, 2), (8, 3), (11, 0), (9, 4), (10, 5), (10, 6)];

impl End {
    /// The heading of its lines with its line break.
    pub fn heading(self, style: Style) -> String {
        let words = match self {
            Self::Sent => SENT,
            Self::Received => RECEIVED,
        };
        style.paint(Tone::Faint, &row(&words.map(str::to_owned), style)) + "\n"
    }
}

fn row(cells: &[String; CELLS], style: Style) -> String {
    fitting(&COLUMNS, style.room())
        .into_iter()
        .map(|at| match at {
            0 => right(&cells[at], COLUMNS[at].0),
            _ => format!(" {}", right(&cells[at], COLUMNS[at].0 - 1)),
        })
        .collect()
}

/// The line of a generator's interval with its line break.
pub fn sent(it: &SentInterval, style: Style) -> String {
    let [interval, frames, pps, wire, line] = common(it.from_s, it.to_s, it.frames, it.rate);
    let unsent = it.unsent;
    let rest = [
        or_dash(unsent.map(|it| signed(it.frames))),
        or_dash(unsent.map(|it| signed(it.behind))),
        or_dash(unsent.map(|it| grouped(it.skipped))),
        or_dash(unsent.and_then(|it| it.refused).map(grouped)),
    ];
    let [all, behind, skipped, refused] = rest;
    let cells = [interval, frames, pps, wire, line, all, behind, skipped, refused];
    painted(it.frames == 0 || unsent.is_some_and(|it| it.frames > 0), &cells, style)
}

/// The line of a receiver's interval with its line break.
pub fn received(it: &ReceivedInterval, style: Style) -> String {
    let [interval, frames, pps, wire, line] = common(it.from_s, it.to_s, it.frames, it.rate);
    let lost = or_dash(it.lost.map(signed));
    let [reordered, duplicates, foreign] =
        [it.reordered, it.duplicates, it.foreign].map(|count| or_dash(count.map(grouped)));
    let cells = [interval, frames, pps, wire, line, lost, reordered, duplicates, foreign];
    painted(it.frames == 0 || it.lost.is_some_and(|lost| lost > 0), &cells, style)
}

fn common(from_s: f64, to_s: f64, frames: u64, rate: FrameRate) -> [String; 5] {
    // Without a frame size there is no bit rate.
    let bits = frames == 0 || rate.wire_bps > 0.0;
    [
        format!("{from_s:.1}–{to_s:.1} s"),
        grouped(frames),
        speed(rate.pps, "pps"),
        or_dash(bits.then(|| speed(rate.wire_bps, "bit/s"))),
        or_dash(rate.of_line.filter(|_| bits).map(of_line)),
    ]
}

fn painted(mark: bool, cells: &[String; CELLS], style: Style) -> String {
    let line = row(cells, style);
    (if mark { style.paint(Tone::Mark, &line) } else { line }) + "\n"
}

fn speed(value: f64, unit: &str) -> String {
    if value == 0.0 { format!("0 {unit}") } else { precise(value, unit, 4) }
}

/// `12`, `−1,234`: the sign of a negative count only.
fn signed(count: i64) -> String {
    if count < 0 { format!("−{}", grouped(count.unsigned_abs())) } else { grouped(count.unsigned_abs()) }
}
