//! The points of a sweep by size and flow, over all repetitions.

use narrows_model::{Direction, Flow, SweepFigures, SweepOutcome, SweepPoint, SweepProtocol, SweepRecord};

/// The points of one size, over all repetitions.
pub(super) fn points(
    record: &SweepRecord,
    protocol: SweepProtocol,
    direction: Direction,
    size: u32,
) -> impl Iterator<Item = &SweepPoint> {
    record.points.iter().filter(move |point| {
        (point.cell.protocol, point.cell.direction, point.cell.size_bytes) == (protocol, direction, size)
    })
}

/// The figures of one flow of one size, over all repetitions.
pub(super) fn figures(
    record: &SweepRecord,
    protocol: SweepProtocol,
    direction: Direction,
    flow: Flow,
    size: u32,
) -> Vec<&SweepFigures> {
    points(record, protocol, direction, size)
        .filter_map(|point| match &point.outcome {
            SweepOutcome::Measured(flows) => flows.iter().find(|figures| figures.flow == flow),
            SweepOutcome::CannotRun(_) => None,
        })
        .collect()
}
