//! The results of a campaign: the figure of each step from the store, main effects, two-way interactions and the best cell.

use super::effects::{Effect, fit};
use super::plan::CampaignPlan;
use super::schedule::{Design, Step};
use crate::stored::{self, Filter, StoreError};
use narrows_model::run::history::{Headline, StoredRun};
use narrows_model::words::units;
use narrows_stats::{LEVEL, difference, mean};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An effect within this part of the mean is none (minimum effect of interest).
const IDLE: f64 = 0.01;

/// A step that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// Its run.
    pub run: StoredRun,
    /// The headline figure; `None`: the run failed.
    pub figure: Option<Headline>,
}

/// The steps that are done, by their number.
pub fn kept(tag: &str) -> Result<BTreeMap<usize, Kept>, StoreError> {
    let Some(store) = stored::existing_store()? else { return Ok(BTreeMap::new()) };
    let filter = Filter { tag: Some(tag.to_owned()), ..Filter::default() };
    let runs = store.list(&filter, 0, super::plan::MAX_RUNS as u64)?;
    let step = |tags: &[String]| tags.iter().find_map(|tag| tag.strip_prefix("step:")?.parse().ok());
    let kept = |run: StoredRun| {
        let figure = run.figures.first().filter(|_| run.verdict == "complete").cloned();
        Some((step(&run.tags)?, Kept { run, figure }))
    };
    Ok(runs.into_iter().filter_map(kept).collect())
}

/// The headline figure of each step that is done and did not fail, by its number.
pub fn done(tag: &str) -> Result<BTreeMap<usize, f64>, StoreError> {
    Ok(kept(tag)?.into_iter().filter_map(|(step, it)| Some((step, it.figure?.value))).collect())
}

/// What a factor, or two of them, change.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `gro: on → off`, or `gro × rmem`.
    pub name: String,
    /// `None` where the design cannot separate it from the rows before.
    pub effect: Option<Effect>,
    /// Whether it is an interaction.
    pub interaction: bool,
}

/// The observations of a campaign as columns: mean, blocks and hosts, main effects, interactions.
fn design(plan: &CampaignPlan, steps: &[&Step]) -> (Vec<Vec<f64>>, Vec<(String, bool)>, usize) {
    let mut terms: Vec<(Vec<(usize, usize)>, String)> = Vec::new();
    let mains: Vec<(usize, usize)> = plan
        .factors
        .iter()
        .enumerate()
        .flat_map(|(at, it)| (1..it.levels.len()).map(move |level| (at, level)))
        .collect();
    for (at, level) in &mains {
        let factor = &plan.factors[*at];
        let name = format!("{}: {} → {}", factor.name, factor.levels[0].name, factor.levels[*level].name);
        terms.push((vec![(*at, *level)], name));
    }
    // Another design does not separate them.
    let crossed = if plan.design == Design::Full { mains.as_slice() } else { &[] };
    for (first, a) in crossed.iter().enumerate() {
        for b in mains.iter().skip(first + 1).filter(|b| b.0 != a.0) {
            let word = |(at, level): &(usize, usize)| {
                format!("{}={}", plan.factors[*at].name, plan.factors[*at].levels[*level].name)
            };
            terms.push((vec![*a, *b], format!("{} × {}", word(a), word(b))));
        }
    }
    #[allow(clippy::cast_precision_loss)]
    let centred = |step: &Step, (at, level): &(usize, usize)| {
        f64::from(u8::from(step.cell[*at] == *level)) - 1.0 / plan.factors[*at].levels.len() as f64
    };
    let is = |yes: bool| f64::from(u8::from(yes));
    let rows = steps.iter().map(|step| {
        let mut row = vec![1.0];
        row.extend((2..=plan.repetitions).map(|block| is(step.block == block)));
        row.extend((1..plan.hosts.len()).map(|host| is(step.host == host)));
        row.extend(terms.iter().map(|(parts, _)| parts.iter().map(|part| centred(step, part)).product::<f64>()));
        row
    });
    let nuisance = plan.repetitions + plan.hosts.len() - 1;
    (rows.collect(), terms.into_iter().map(|(parts, name)| (name, parts.len() > 1)).collect(), nuisance)
}

/// The effects, in the order of the plan.
#[must_use]
pub fn effects(plan: &CampaignPlan, steps: &[Step], done: &BTreeMap<usize, f64>) -> Vec<Row> {
    let measured: Vec<&Step> = steps.iter().filter(|it| done.contains_key(&it.number)).collect();
    let values: Vec<f64> = measured.iter().filter_map(|it| done.get(&it.number).copied()).collect();
    let (rows, names, nuisance) = design(plan, &measured);
    let fitted = fit(&rows, &values, LEVEL).unwrap_or_default();
    let named = names.into_iter().zip(fitted.into_iter().skip(nuisance));
    named.map(|((name, interaction), effect)| Row { name, effect, interaction }).collect()
}

/// The tables of a campaign.
#[must_use]
pub fn text(plan: &CampaignPlan, steps: &[Step], done: &BTreeMap<usize, f64>) -> String {
    let values: Vec<f64> = done.values().copied().collect();
    let Some(middle) = mean(&values) else { return "nothing was measured\n".to_owned() };
    let mut out = format!("{}: {} of {} runs, mean {}\n", plan.name, done.len(), steps.len(), units::bps(middle));
    let rows = effects(plan, steps, done);
    for (interactions, title) in [(false, "Main effects"), (true, "Two-way interactions")] {
        let rows: Vec<&Row> = rows.iter().filter(|it| it.interaction == interactions).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{title} (95 % intervals)");
        let width = rows.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        for row in rows {
            let _ = writeln!(out, "  {:width$}  {}", row.name, words(row.effect, middle));
        }
    }
    let mut cells: BTreeMap<&[usize], Vec<f64>> = BTreeMap::new();
    for step in steps {
        if let Some(value) = done.get(&step.number) {
            cells.entry(&step.cell).or_default().push(*value);
        }
    }
    let _ = writeln!(out, "\nCells");
    for (cell, values) in &cells {
        let _ = writeln!(
            out,
            "  {}  {} ({} runs)",
            units::bps(mean(values).unwrap_or(0.0)),
            plan.words(cell),
            values.len()
        );
    }
    let best = cells.iter().max_by(|a, b| mean(a.1).unwrap_or(0.0).total_cmp(&mean(b.1).unwrap_or(0.0)));
    let base = cells.first_key_value();
    if let (Some((cell, best)), Some((first, base))) = (best, base) {
        let gain = difference(base, best, LEVEL).filter(|_| cell != first);
        let gain = gain.map_or_else(String::new, |it| {
            let percent = |bps: f64| 100.0 * bps / mean(base).unwrap_or(f64::NAN);
            let [low, high] = it.interval;
            format!(": {:+.1} % ({:+.1} to {:+.1} %) over the baseline", percent(it.value), percent(low), percent(high))
        });
        let _ = writeln!(out, "\nBest: {}{gain}", plan.words(cell));
    }
    out
}

/// An effect in words.
fn words(effect: Option<Effect>, middle: f64) -> String {
    let Some(Effect { value, half_width }) = effect else {
        return "aliased: this design cannot separate it".to_owned();
    };
    let percent = |bps: f64| 100.0 * bps / middle;
    let Some(half) = half_width else { return format!("{:+.1} %, too few runs for an interval", percent(value)) };
    let verdict = if value - half > 0.0 {
        "raises"
    } else if value + half < 0.0 {
        "lowers"
    } else if (value.abs() + half) < IDLE * middle {
        "does nothing"
    } else {
        "no effect found"
    };
    format!("{:+.1} % ± {:.1} %  {verdict}", percent(value), percent(half))
}
