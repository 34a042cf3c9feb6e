//! What to expect once causes are gone.

use super::cause::{Cause, Evidence, Holds};
use super::ceilings::{PlacedCeiling, TOLERANCE, sits_at};
use crate::role::Role;
use narrows_model::{Ceiling, Method, Place, Prediction};

/// Costs per byte that were read off a load hold for loads up to so many times as large: with larger bursts a byte
/// gets cheaper, so a limited load says nothing of the core at ten times its rate.
pub(crate) const EXTRAPOLATION: f64 = 2.5;

/// Rates that differ by less are written alike, or nearly.
pub(super) const SAME: f64 = 0.005;

/// Losses make the rate of single trials vary by so much above their average.
const SPREAD: f64 = 2.2;

/// A cause that is taken away, at its role.
pub(super) type Gone<E> = (&'static Cause<E>, Role);

/// The ceilings of the load as it was, and once no queue stands on the path.
pub(super) struct Rooflines<'c, E: 'static> {
    pub(super) met: &'c [PlacedCeiling<E>],
    pub(super) emptied: &'c [PlacedCeiling<E>],
}

impl<E: Evidence> Rooflines<'_, E> {
    /// The ceilings that remain, lowest first: the queue goes with a cause of the path, and with it what it took of windows and buffers.
    fn without(&self, gone: &[Gone<E>]) -> Vec<&PlacedCeiling<E>> {
        let emptied = gone.iter().any(|(_, role)| *role == Role::Path);
        let of_ends = if emptied { self.emptied } else { self.met }.iter().filter(|placed| placed.role != Role::Path);
        let of_path = self.met.iter().filter(|placed| placed.role == Role::Path);
        let mut all: Vec<_> =
            of_ends.chain(of_path).filter(|placed| !is_gone(gone, placed.cause, placed.role)).collect();
        all.sort_by(|a, b| a.ceiling.bps.total_cmp(&b.ceiling.bps));
        all
    }
}

pub(super) fn is_gone<E>(gone: &[Gone<E>], cause: &'static Cause<E>, role: Role) -> bool {
    gone.iter().any(|(other, at)| std::ptr::eq(*other, cause) && *at == role)
}

/// What to expect once the causes are gone: what was measured without it, what its drops would have added, or the lowest
/// of the other ceilings that lies above the goodput; `other` holds the goodput down by itself, too. Ceilings that were read off the
/// limited load itself (a congestion window that was never needed, a core that was hardly used) are left out.
pub(super) fn predict<E: Evidence>(
    evidence: &E,
    rooflines: &Rooflines<'_, E>,
    gone: &[Gone<E>],
    other: Option<Gone<E>>,
) -> Option<Prediction> {
    let goodput = evidence.goodput_bps();
    // The label of a link is the most that a path can carry; connections that were each held back show together what it carries at least.
    let each = gone.iter().all(|(cause, _)| cause.per_connection);
    let label = evidence.unreached_label_bps().filter(|_| each);
    let below = |ceiling: &Ceiling| label.is_none_or(|label| ceiling.bps < (1.0 - SAME) * label);
    let mut ceilings = rooflines.without(gone);
    ceilings.retain(|placed| placed.ceiling.method != Method::Computed || below(&placed.ceiling));
    let together = label.and_then(|_| evidence.more_connections_bps());
    // Only a capacity that was measured is said to bind.
    let capacity = ceilings.iter().find(|placed| placed.cause.healthy && !placed.ceiling.at_least);
    let measured = |bps: f64, interval_bps| {
        let then = capacity.filter(|placed| sits_at(&placed.ceiling, bps)).map(|placed| placed.cause.id);
        let then = then.unwrap_or_default().to_owned();
        Prediction { bps, interval_bps: Some(interval_bps), then, then_at: Place::Path }
    };
    if let [(cause, role)] = gone {
        // An experiment that already removed the cause is the best prediction there is.
        if let Some(bps) = cause.removed_by.and_then(|experiment| evidence.experiment_bps(experiment.id)) {
            return Some(measured(bps, [bps * 0.85, bps * 1.1]));
        }
        if let Some((bps, interval_bps)) = (cause.without)(evidence, *role) {
            // Beyond what a profile that met no limit carried nothing is known of the path; a host that ended it at the goodput hid that.
            let carried = evidence.carries_at_least_bps().filter(|carried| *carried < bps);
            let carried = carried.map(|carried| if carried > goodput * (1.0 + TOLERANCE) { carried } else { bps });
            let known = carried.map_or_else(
                || measured(bps, interval_bps),
                |carried| at_least(carried.min(interval_bps[0]).max(goodput)),
            );
            return Some(with_losses(evidence, gone, below_the_ends(goodput, &ceilings, known)));
        }
        if let Some(bps) = evidence.without_drops(cause.stages) {
            // Without these drops the load arrives as far as the path carries it; beyond that nothing but the load is the limit.
            let bps = bps.min(capacity.map_or(f64::INFINITY, |placed| placed.ceiling.bps.max(goodput)));
            return Some(measured(bps, [goodput + 0.5 * (bps - goodput), bps]));
        }
    }
    // Another cause that holds the goodput down as well goes on to do so.
    let holds = |placed: &&&PlacedCeiling<E>| other.is_some_and(|other| is_gone(&[other], placed.cause, placed.role));
    if let Some(placed) = ceilings.iter().find(holds) {
        return Some(with_losses(evidence, gone, meets(goodput, &placed.ceiling)));
    }
    // Where the limit of the path was not reached no ceiling far above the goodput foretells one.
    let above = |ceiling: &Ceiling| ceiling.bps > goodput * (1.0 + TOLERANCE);
    let path_is_known = capacity.is_some_and(|placed| above(&placed.ceiling));
    let next = ceilings
        .iter()
        .filter(|placed| placed.cause.predicts && above(&placed.ceiling))
        .map(|placed| &placed.ceiling)
        .filter(|ceiling| ceiling.method != Method::Inferred || ceiling.bps < EXTRAPOLATION * goodput)
        .find(|ceiling| path_is_known || ceiling.method == Method::Measured || ceiling.bps < EXTRAPOLATION * goodput);
    let next = next.filter(|next| together.is_none_or(|bps| next.bps <= bps));
    if let Some(next) = next.filter(|next| !next.at_least) {
        return Some(with_losses(evidence, gone, meets(goodput, next)));
    }
    // What an experiment carried beside the cause was sustained; bursts that pass are not.
    let beside = gone.iter().filter_map(|(cause, _)| (cause.beside)(evidence));
    let beside = beside.filter(|bps| *bps > goodput * (1.0 + TOLERANCE)).reduce(f64::max);
    // Where a limit in front of the path hid it, the path carries what passed that limit.
    let hidden = || ceilings.iter().find(|placed| placed.cause.healthy && placed.ceiling.at_least);
    let hidden = || hidden().map(|placed| placed.ceiling.bps.max(goodput));
    // The path carried so much of UDP in short steps: of TCP no more is foretold than its load of the hosts, and its other ceilings, allow.
    let others = ceilings.iter().filter(|placed| placed.cause.predicts).map(|placed| &placed.ceiling);
    let others = others.filter(|ceiling| above(ceiling) && !ceiling.at_least && ceiling.method != Method::Inferred);
    let lowest = others.map(|ceiling| ceiling.interval_bps[0].max(goodput)).fold(f64::INFINITY, f64::min);
    let supported = evidence.reach_bps().min(lowest);
    let carried = next.map(|next| next.bps).or_else(hidden).or(together);
    // A lower bound at or below the goodput is no information.
    let carried = carried.filter(|bps| *bps <= supported || supported > goodput * (1.0 + TOLERANCE));
    let carried = carried.map(|bps| bps.min(supported));
    beside.or(carried).map(at_least)
}

/// Once the load meets a path limit that drops packets, it keeps at least this part of its goodput.
const MEETS: f64 = 0.9;

/// The same load on the same path repeats within this.
const REPEATS: f64 = 0.97;

/// What is left at a ceiling: no less than what was got, or little less where the load meets a limit of the path that it did not reach.
fn meets(goodput: f64, ceiling: &Ceiling) -> Prediction {
    let [low, high] = ceiling.interval_bps;
    let least = if ceiling.at == Place::Path { MEETS * goodput } else { REPEATS * goodput };
    let interval = [low.max(least), high.max(goodput)];
    let (then, then_at) = (ceiling.id.clone(), ceiling.at);
    Prediction { bps: ceiling.bps.max(goodput), interval_bps: Some(interval), then, then_at }
}

/// What the ends allow of what was foretold of the path: the lowest ceiling of a window, a buffer or a core that was not read off the load.
fn below_the_ends<E>(goodput: f64, ceilings: &[&PlacedCeiling<E>], known: Prediction) -> Prediction {
    let mut of_ends = ceilings.iter().filter(|placed| {
        placed.role != Role::Path && placed.cause.predicts && placed.ceiling.method != Method::Inferred
    });
    let lowest = of_ends.next().map(|placed| &placed.ceiling).filter(|ceiling| ceiling.bps < known.bps);
    let Some(ceiling) = lowest else { return known };
    let end = meets(goodput, ceiling);
    let most = known.interval_bps.map_or(f64::INFINITY, |[_, most]| most);
    let interval_bps = end.interval_bps.map(|[low, high]| [low, high.min(most).max(end.bps)]);
    Prediction { interval_bps, ..end }
}

/// The same where the losses that were met go on: once nothing else holds the load back, they do.
fn with_losses<E: Evidence>(evidence: &E, gone: &[Gone<E>], known: Prediction) -> Prediction {
    // Of what a host drops itself less is lost then.
    let drops = |cause: &Cause<E>| cause.device || !cause.stages.is_empty();
    let is_end = |(cause, role): &Gone<E>| *role != Role::Path && (cause.per_connection || !drops(cause));
    let holds = if gone.iter().all(is_end) {
        Some(Holds::End)
    } else {
        gone.iter().all(|(cause, role)| *role == Role::Path && !cause.per_connection).then_some(Holds::Path)
    };
    let losses = holds.and_then(|holds| evidence.losses_leave(holds));
    let (Some(losses), Some([low, high])) = (losses, known.interval_bps) else { return known };
    let goodput = evidence.goodput_bps();
    let least = losses.least.max(goodput).min(low);
    match losses.likely.filter(|bps| *bps < known.bps) {
        Some(bps) => {
            let most = high.min(SPREAD * bps.max(least));
            // A few losses may be more than usual: that they allow less than what was got beside another limit is not so.
            let bps = if bps > goodput * (1.0 + TOLERANCE) { bps } else { (least * most).sqrt() };
            let interval_bps = Some([least, most]);
            Prediction { bps, interval_bps, then: losses.id.to_owned(), then_at: Place::Path }
        }
        None => Prediction { interval_bps: Some([least, high]), ..known },
    }
}

/// A limit that was not reached is a lower bound, and may not be what binds then.
const fn at_least(bps: f64) -> Prediction {
    Prediction { bps, interval_bps: None, then: String::new(), then_at: Place::Path }
}
