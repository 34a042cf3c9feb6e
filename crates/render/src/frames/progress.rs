//! A line for each interval while frames are sent or received.

use super::build::interval;
use super::words::of_line;
use crate::figures::{float, grouped, precise};
use crate::style::{Style, Tone};
use crate::words::{fit, right};
use narrows_model::frames::FrameInterval;
use narrows_model::frames_report::FramesInterval;

/// Whose interval it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The generator's.
    Sent,
    /// The receiver's.
    Received,
}

/// What turns frames into bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Mean frame size with FCS; `None`: not known, and no bits are told.
    pub frame_bytes: Option<f64>,
    /// Bits per second on the wire; `None`: not known.
    pub link_bps: Option<u64>,
}

/// The line of one interval, its line break included. `before` is the cumulative reading at its begin (`None`: the start),
/// `now` the one at its end.
#[must_use]
pub fn line(end: End, before: Option<FrameInterval>, now: FrameInterval, scale: Scale, style: Style) -> String {
    let bytes = scale.frame_bytes.filter(|bytes| bytes.is_finite() && *bytes > 0.0);
    let it = interval(before.unwrap_or_default(), now, bytes.unwrap_or(0.0), scale.link_bps);
    one(end, &it, bytes.is_some(), style)
}

/// The line of an interval of a view.
pub(super) fn one(end: End, it: &FramesInterval, bits: bool, style: Style) -> String {
    let word = match end {
        End::Sent => "sent    ",
        End::Received => "received",
    };
    let mut text = format!(
        "{}  {word} {}  {}",
        right(&format!("{:.1}–{:.1} s", it.from_s, it.to_s), 15),
        right(&grouped(it.frames), 14),
        right(&speed(it.rate.pps, "pps"), 11),
    );
    if bits {
        text += &format!("  {}", right(&speed(it.rate.wire_bps, "bit/s"), 13));
        text += &it.rate.of_line.map(|part| format!("  {}", right(&of_line(part), 7))).unwrap_or_default();
    }
    let text = fit(&text, style.columns());
    (if it.frames == 0 { style.paint(Tone::Mark, &text) } else { text }) + "\n"
}

fn speed(value: f64, unit: &str) -> String {
    if value == 0.0 { format!("0 {unit}") } else { precise(value, unit, 4) }
}

/// Both ends of one interval in one line, where both are known: sent and received, and how they differ.
#[must_use]
pub fn both(
    before: Option<[FrameInterval; 2]>,
    [sent, received]: [FrameInterval; 2],
    scale: Scale,
    style: Style,
) -> String {
    let bytes = scale.frame_bytes.unwrap_or(0.0);
    let [from_sent, from_received] = before.unwrap_or_default();
    let (out, got) =
        (interval(from_sent, sent, bytes, scale.link_bps), interval(from_received, received, bytes, scale.link_bps));
    // Frames under way between the two readings look missing here; only the end of the trial tells what was lost.
    let share =
        if out.frames == 0 { String::new() } else { format!("{:.2} %", 100.0 * float(got.frames) / float(out.frames)) };
    let text = format!(
        "{}  sent {} {}  received {} {}  {}",
        right(&format!("{:.1}–{:.1} s", out.from_s, out.to_s), 13),
        right(&grouped(out.frames), 12),
        right(&speed(out.rate.pps, "pps"), 11),
        right(&grouped(got.frames), 12),
        right(&speed(got.rate.pps, "pps"), 11),
        right(&share, 9),
    );
    fit(text.trim_end(), style.columns()) + "\n"
}
