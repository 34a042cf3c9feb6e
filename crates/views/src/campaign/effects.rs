//! Main effects and two-way interactions, by least squares with the blocks and hosts as terms.

use super::Planned;
use narrows_model::run::campaign::{CampaignEffect, Design, EffectVerdict, Step};
use narrows_stats::effects::fit;
use narrows_stats::student::{Estimate, equivalence, p_of};
use narrows_stats::{LEVEL, holm, mean};

/// More interactions are not estimated.
const INTERACTIONS_MAX: usize = 300;

/// A factor at a level other than its baseline.
type Main = (usize, usize);

/// The effects: main ones, then interactions of a full design.
pub(super) fn of(
    planned: &Planned,
    measured: &[(&Step, f64)],
    margin: f64,
    warnings: &mut Vec<String>,
) -> Vec<CampaignEffect> {
    let levels = planned.factors.iter().enumerate();
    let mains: Vec<Main> = levels.flat_map(|(at, it)| (1..it.levels.len()).map(move |level| (at, level))).collect();
    let mut terms: Vec<Vec<Main>> = mains.iter().map(|it| vec![*it]).collect();
    // Another design does not separate them.
    if planned.design == Design::Full {
        let pairs = mains
            .iter()
            .enumerate()
            .flat_map(|(first, a)| mains[first + 1..].iter().filter(|b| b.0 != a.0).map(|b| vec![*a, *b]));
        let pairs: Vec<_> = pairs.collect();
        if pairs.len() > INTERACTIONS_MAX {
            warnings.push(format!(
                "{} interactions are too many to estimate; the maximum is {INTERACTIONS_MAX}",
                pairs.len()
            ));
        } else {
            terms.extend(pairs);
        }
    }
    let rows: Vec<Vec<f64>> = measured.iter().map(|(step, _)| row(planned, step, &terms)).collect();
    let values: Vec<f64> = measured.iter().map(|(_, value)| *value).collect();
    let Some(fitted) = fit(&rows, &values, LEVEL) else { return Vec::new() };
    let nuisance = planned.blocks + planned.hosts.len() - 1;
    let limit = margin * mean(&values).unwrap_or(0.0).abs();
    let mut effects: Vec<CampaignEffect> = terms
        .iter()
        .zip(fitted.into_iter().skip(nuisance))
        .map(|(of, estimate)| effect(planned, of, estimate, limit))
        .collect();
    let (mains, interactions) = effects.split_at_mut(mains.len());
    together(mains);
    together(interactions);
    effects
}

/// The observation of a step: mean, blocks and hosts, and the terms, which are centred over the levels.
fn row(planned: &Planned, step: &Step, terms: &[Vec<Main>]) -> Vec<f64> {
    let is = |yes: bool| f64::from(u8::from(yes));
    let centred = |(at, level): &Main| is(step.cell[*at] == *level) - 1.0 / planned.factors[*at].levels.len() as f64;
    let mut row = vec![1.0];
    row.extend((2..=planned.blocks).map(|block| is(step.block == block)));
    row.extend((1..planned.hosts.len()).map(|host| is(step.host == host)));
    row.extend(terms.iter().map(|parts| parts.iter().map(centred).product::<f64>()));
    row
}

fn effect(planned: &Planned, of: &[Main], estimate: Option<Estimate>, limit: f64) -> CampaignEffect {
    let known = estimate.filter(|it| it.interval[1].is_finite());
    CampaignEffect {
        terms: of.iter().map(|(factor, level)| planned.term(*factor, *level)).collect(),
        effect: estimate.map(|it| it.value),
        interval: known.map(|it| it.interval),
        p_holm: known.and_then(|it| p_of(&it, 0.0)),
        p_margin_holm: known.and_then(|it| equivalence(&it, limit)),
        verdict: if estimate.is_some() { EffectVerdict::CannotTell } else { EffectVerdict::Aliased },
    }
}

/// The verdicts: the p-values of each kind share the error probability by Holm's correction. What is proven to be smaller than the
/// margin does nothing, even where it is proven not to be zero.
fn together(effects: &mut [CampaignEffect]) {
    let known = effects.iter_mut().filter(|it| it.p_holm.is_some());
    let known: Vec<&mut CampaignEffect> = known.collect();
    let zero = holm(&known.iter().map(|it| it.p_holm.unwrap_or(1.0)).collect::<Vec<_>>());
    let margin = holm(&known.iter().map(|it| it.p_margin_holm.unwrap_or(1.0)).collect::<Vec<_>>());
    for ((it, p), p_margin) in known.into_iter().zip(zero).zip(margin) {
        it.p_holm = Some(p);
        it.p_margin_holm = it.p_margin_holm.map(|_| p_margin);
        let proven = |p: f64| p <= 1.0 - LEVEL;
        it.verdict = match it.effect {
            _ if it.p_margin_holm.is_some_and(proven) => EffectVerdict::Nothing,
            Some(effect) if proven(p) && effect > 0.0 => EffectVerdict::Raises,
            Some(_) if proven(p) => EffectVerdict::Lowers,
            _ => EffectVerdict::CannotTell,
        };
    }
}
