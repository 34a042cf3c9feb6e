//! Both directions compared, size by size.
//!
//! With repetitions the ratio has its 95 % interval, and the two ways differ where it leaves out 1 and the ratio is further
//! from 1 than a run is from the next on one path (0.85 %). A single run has no interval: the two ways then
//! differ where they are further apart than the most unlike tenth of repeated runs (5.6 %).

use super::points::figures;
use narrows_model::run::sweep::Symmetry;
use narrows_model::{Direction, Flow, SweepFigures, SweepProtocol, SweepRecord};

/// Usual variation between runs of one configuration (630 runs of router benchmarks).
pub(crate) const BETWEEN_RUNS: f64 = 0.0085;
/// Variation that only a tenth of those configurations exceeded.
const SINGLE_RUN: f64 = 0.056;

/// A compared figure: its name and its field.
type Figure = (&'static str, fn(&SweepFigures) -> Option<f64>);

const FIGURES: [Figure; 2] = [("receiving", |it| it.receiving_bps), ("lossless", |it| it.lossless.as_ref()?.lower_bps)];

/// Every pair of flows that can be compared: one after the other, and both at once.
pub(super) fn of(record: &SweepRecord) -> Vec<Symmetry> {
    let plan = &record.plan;
    let mut all = Vec::new();
    for &protocol in &plan.protocols {
        for at_once in [false, true] {
            let ways = if at_once { [Direction::Both; 2] } else { [Direction::Up, Direction::Down] };
            if !ways.iter().all(|way| plan.directions.contains(way)) {
                continue;
            }
            for figure in FIGURES {
                all.extend(plan.sizes.iter().filter_map(|size| one(record, protocol, ways, *size, figure)));
            }
        }
    }
    all
}

fn one(
    record: &SweepRecord,
    protocol: SweepProtocol,
    ways: [Direction; 2],
    size_bytes: u32,
    (name, figure): Figure,
) -> Option<Symmetry> {
    let values = |way: Direction, flow: Flow| -> Vec<f64> {
        figures(record, protocol, way, flow, size_bytes).into_iter().filter_map(figure).collect()
    };
    let (up, down) = (values(ways[0], Flow::Up), values(ways[1], Flow::Down));
    let (up_bps, down_bps) = (narrows_stats::median(&up)?, narrows_stats::median(&down)?);
    if up_bps <= 0.0 || down_bps <= 0.0 {
        return None;
    }
    let gain = narrows_stats::gain(&up, &down);
    let ratio = gain.map_or(down_bps / up_bps, |gain| gain.ratio);
    let off = ratio.max(1.0 / ratio) - 1.0;
    let differs = match &gain {
        Some(gain) => (gain.is_gain() || gain.is_loss()) && off > BETWEEN_RUNS,
        None => off > SINGLE_RUN,
    };
    Some(Symmetry {
        protocol,
        at_once: ways[0] == Direction::Both,
        size_bytes,
        figure: name.to_owned(),
        up_bps,
        down_bps,
        ratio,
        interval: gain.map(|gain| gain.interval),
        differs,
    })
}
