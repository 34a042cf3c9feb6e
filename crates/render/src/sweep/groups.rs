//! The rows of a sweep in groups: one for each protocol, direction and flow.

use narrows_model::run::sweep::SweepRow;
use narrows_model::{Direction, SweepReport};

/// Neighbouring rows of one protocol, direction and flow.
pub(super) fn groups(report: &SweepReport) -> impl Iterator<Item = &[SweepRow]> {
    report.rows.chunk_by(|a, b| (a.protocol, a.direction, a.flow) == (b.protocol, b.direction, b.flow))
}

/// `UDP up`, `TCP down (both ways at once)`.
pub(super) fn name(row: &SweepRow) -> String {
    let at_once = if row.direction == Direction::Both { ", both directions" } else { "" };
    format!("{} {}{at_once}", row.protocol.word(), row.flow.direction())
}

/// The unit of all bit rates of a sweep, and its factor.
pub(super) fn bit_unit(report: &SweepReport) -> (&'static str, f64) {
    let highest = report
        .rows
        .iter()
        .flat_map(|row| [row.receiving_bps.or(row.sending_bps), row.lossless_bps])
        .flatten()
        .map(|spread| spread.median)
        .fold(0.0, f64::max);
    match highest {
        v if v >= 0.5e9 => ("Gbit/s", 1e9),
        v if v >= 0.5e6 => ("Mbit/s", 1e6),
        _ => ("kbit/s", 1e3),
    }
}
