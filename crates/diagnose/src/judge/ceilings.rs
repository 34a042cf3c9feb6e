//! The roofline: every limit that could be given a value, lowest first.

use super::cause::{Cause, Evidence};
use crate::role::Role;
use narrows_model::Ceiling;

/// A ceiling with the cause that gave it.
pub(crate) struct PlacedCeiling<E: 'static> {
    pub(crate) cause: &'static Cause<E>,
    pub(crate) role: Role,
    pub(crate) ceiling: Ceiling,
}

/// How far a measured goodput may lie outside of a ceiling's interval and still sit at it: the grain of the
/// limited-time counters and of the counted part, as seen on steady emulated paths (see the fault bank).
pub const TOLERANCE: f64 = 0.06;

/// All ceilings, lowest first. A ceiling that the measured goodput exceeds was none, and is left out.
pub(crate) fn ceilings<E: Evidence>(evidence: &E, causes: &'static [&'static Cause<E>]) -> Vec<PlacedCeiling<E>> {
    let mut ceilings: Vec<_> = every_role(causes)
        .filter_map(|(cause, role)| Some(PlacedCeiling { cause, role, ceiling: (cause.ceiling)(evidence, role)? }))
        .filter(|placed| placed.ceiling.interval_bps[1] * (1.0 + TOLERANCE) >= evidence.goodput_bps())
        .collect();
    ceilings.sort_by(|a, b| a.ceiling.bps.total_cmp(&b.ceiling.bps));
    ceilings
}

/// Each cause at each role that it can have.
pub(crate) fn every_role<E>(causes: &'static [&'static Cause<E>]) -> impl Iterator<Item = (&'static Cause<E>, Role)> {
    causes.iter().flat_map(|cause| cause.roles.iter().map(move |role| (*cause, *role)))
}

/// Whether the measured goodput sits at a ceiling.
pub fn sits_at(ceiling: &Ceiling, goodput_bps: f64) -> bool {
    let [low, high] = ceiling.interval_bps;
    (low * (1.0 - TOLERANCE)..=high * (1.0 + TOLERANCE)).contains(&goodput_bps)
}
