//! Whether two sides differ, are the same within the margin, or neither is proven.

use super::sides::Options;
use narrows_model::run::compare::{CompareEstimate, CompareVerdict, Comparison};
use narrows_stats::paired::differences;
use narrows_stats::several::runs_to_see;
use narrows_stats::student::{Estimate, p_of};
use narrows_stats::{
    difference, equivalence, holm, mean, mean_interval, median, paired_shift, shift, summary::variance,
};

/// A side against the first, before the correction for several comparisons; `None` where pairs do not match.
pub(super) fn against(before: &[f64], after: &[f64], options: &Options) -> Option<Comparison> {
    let level = options.level;
    let (ranks, means, sd) = if options.paired {
        let pairs = differences(before, after)?;
        // A difference of pairs varies by sqrt(2) of what a side would have to vary to be as uncertain.
        let sd = variance(&pairs).map(|it| (it / 2.0).sqrt());
        (paired_shift(&pairs, level)?, mean_interval(&pairs, level), sd)
    } else {
        (shift(before, after, level)?, difference(before, after, level), pooled(before, after))
    };
    let margin = options.margin * mean(before)?.abs();
    let middle = median(before)?.abs();
    let share = |it: f64| (middle > 0.0).then(|| it / middle);
    Some(Comparison {
        side: String::new(),
        verdict: CompareVerdict::CannotTell,
        ranks: CompareEstimate { difference: ranks.by, interval: ranks.interval, p: ranks.p },
        exact: ranks.exact,
        means: means.as_ref().and_then(estimate),
        p_holm: ranks.p,
        p_margin_holm: means.as_ref().and_then(|it| equivalence(it, margin)),
        ratio: share(ranks.by),
        ratio_interval: ranks.interval.and_then(|[low, high]| Some([share(low)?, share(high)?])),
        runs_needed: sd.and_then(|sd| runs_to_see(margin, sd, level)),
    })
}

fn estimate(of: &Estimate) -> Option<CompareEstimate> {
    Some(CompareEstimate { difference: of.value, interval: Some(of.interval), p: p_of(of, 0.0)? })
}

/// The standard deviation within the two sides.
fn pooled(before: &[f64], after: &[f64]) -> Option<f64> {
    Some(f64::midpoint(variance(before)?, variance(after)?).sqrt())
}

/// The verdicts of all comparisons: the p-values of each kind share the error probability by Holm's correction.
///
/// What is proven to be smaller than the margin is *the same*, even where it is proven not to be zero.
pub(super) fn together(all: &mut [&mut Comparison], level: f64) {
    let ranks = holm(&all.iter().map(|it| it.p_holm).collect::<Vec<_>>());
    let margins = holm(&all.iter().map(|it| it.p_margin_holm.unwrap_or(1.0)).collect::<Vec<_>>());
    for ((it, p), p_margin) in all.iter_mut().zip(ranks).zip(margins) {
        it.p_holm = p;
        it.p_margin_holm = it.p_margin_holm.map(|_| p_margin);
        let proven = |p: f64| p <= 1.0 - level;
        it.verdict = if it.p_margin_holm.is_some_and(proven) {
            CompareVerdict::Same
        } else if proven(p) {
            CompareVerdict::Different
        } else {
            CompareVerdict::CannotTell
        };
    }
}
