//! The roofline: every limit that could be given a value, lowest first.

use crate::causes::tcp::{self as causes, Cause};
use crate::evidence::tcp::Evidence;
use crate::role::Role;
use narrows_model::Ceiling;

/// A ceiling with the cause that gave it.
#[derive(Clone)]
pub struct PlacedCeiling {
    /// The cause.
    pub cause: &'static Cause,
    /// Where in the flow.
    pub role: Role,
    /// The value.
    pub ceiling: Ceiling,
}

/// How far a measured goodput may lie outside of a ceiling's interval and still sit at it: the grain of the
/// limited-time counters and of the counted part, as seen on steady emulated paths (see the fault bank).
pub const TOLERANCE: f64 = 0.06;

/// All ceilings, lowest first. A ceiling that the measured goodput exceeds was none, and is left out.
#[must_use]
pub fn roofline(evidence: &Evidence<'_>) -> Vec<PlacedCeiling> {
    let mut ceilings: Vec<PlacedCeiling> = causes::every_role()
        .filter_map(|(cause, role)| Some(PlacedCeiling { cause, role, ceiling: (cause.ceiling)(evidence, role)? }))
        .filter(|ceiling| ceiling.ceiling.interval_bps[1] * (1.0 + TOLERANCE) >= evidence.goodput_bps())
        .collect();
    ceilings.sort_by(|a, b| a.ceiling.bps.total_cmp(&b.ceiling.bps));
    ceilings
}

/// Whether the measured goodput sits at a ceiling.
#[must_use]
pub fn sits_at(ceiling: &Ceiling, goodput_bps: f64) -> bool {
    let [low, high] = ceiling.interval_bps;
    (low * (1.0 - TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&goodput_bps)
}
