//! The roofline: every limit that could be given a value, lowest first.

use crate::causes::{self, Cause};
use crate::evidence::{Evidence, Seat};
use narrows_model::Ceiling;

/// A ceiling with the cause that gave it.
#[derive(Clone)]
pub struct Roof {
    /// The cause.
    pub cause: &'static Cause,
    /// Where in the flow.
    pub seat: Seat,
    /// The value.
    pub ceiling: Ceiling,
}

/// How far a measured goodput may lie outside of a ceiling's interval and still sit at it: the grain of the
/// chronographs and of the counted part, as seen on steady emulated paths (see the fault bank).
pub const TOLERANCE: f64 = 0.06;

/// All ceilings, lowest first. A ceiling that the measured goodput exceeds was none, and is left out.
#[must_use]
pub fn roofline(evidence: &Evidence<'_>) -> Vec<Roof> {
    let mut roofs: Vec<Roof> = causes::every_seat()
        .filter_map(|(cause, seat)| Some(Roof { cause, seat, ceiling: (cause.ceiling)(evidence, seat)? }))
        .filter(|roof| roof.ceiling.interval_bps[1] * (1.0 + TOLERANCE) >= evidence.goodput_bps())
        .collect();
    roofs.sort_by(|a, b| a.ceiling.bps.total_cmp(&b.ceiling.bps));
    roofs
}

/// Whether the measured goodput sits at a ceiling.
#[must_use]
pub fn sits_at(ceiling: &Ceiling, goodput_bps: f64) -> bool {
    let [low, high] = ceiling.interval_bps;
    (low * (1.0 - TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&goodput_bps)
}
