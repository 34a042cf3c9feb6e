//! The results of a campaign: its runs from the store, by the number of their step.

use super::plan::{CampaignPlan, Load};
use super::schedule::Step;
use super::{steps, tag};
use crate::stored::{self, Filter, OWN, Store, StoreError, maintenance};
use narrows_model::run::campaign::{CampaignFactor, CampaignReport};
use narrows_model::run::command::CommandRecord;
use narrows_model::run::history::StoredRun;
use narrows_model::{Ending, Run};
use narrows_views::campaign::{self as view, Observed, Planned};
use std::collections::BTreeMap;

/// The steps that are done, also those that failed, by their number.
pub fn done(tag: &str) -> Result<BTreeMap<usize, StoredRun>, StoreError> {
    let Some(store) = stored::existing_store()? else { return Ok(BTreeMap::new()) };
    let filter = Filter { tag: Some(tag.to_owned()), ..Filter::default() };
    // The reports of the campaign have its tag, too, but no step.
    let runs = store.list(&filter, 0, i64::MAX.unsigned_abs())?;
    let step = |run: &StoredRun| run.tags.iter().find_map(|tag| tag.strip_prefix("step:")?.parse().ok());
    Ok(runs.into_iter().filter_map(|run| Some((step(&run)?, run))).collect())
}

/// The steps that are left.
pub fn left(steps: &[Step], done: &BTreeMap<usize, StoredRun>) -> Vec<Step> {
    steps.iter().filter(|it| !done.contains_key(&it.number)).cloned().collect()
}

/// The results so far. `margin`: an effect smaller than this share of the mean counts as none.
pub fn report(plan: &CampaignPlan, margin: f64) -> Result<CampaignReport, StoreError> {
    let tag = tag(plan);
    let store = stored::existing_store()?;
    let observed = |(step, run): (usize, StoredRun)| {
        let figure = run.figures.first().filter(|_| run.verdict == "complete").cloned();
        let figure = figure.ok_or_else(|| why(store.as_ref(), &run.id));
        (step, Observed { id: run.id, started_unix_us: run.started_unix_us, figure })
    };
    let observed = done(&tag)?.into_iter().map(observed).collect();
    let factors = plan.factors.iter().map(|it| CampaignFactor {
        name: it.name.clone(),
        levels: it.levels.iter().map(|level| level.name.clone()).collect(),
    });
    let planned = Planned {
        name: plan.name.clone(),
        tag,
        hosts: plan.hosts.clone(),
        factors: factors.collect(),
        design: plan.design,
        blocks: plan.repetitions,
        steps: steps(plan),
        better: match &plan.load {
            Load::Narrows(_) => None,
            Load::Command(load) => Some(load.better),
        },
    };
    Ok(view::report(&planned, &observed, margin))
}

/// Why a run failed.
fn why(store: Option<&Store>, id: &str) -> String {
    let content = store.and_then(|store| Some(maintenance::show(store, id, OWN).ok()??.1));
    let why = content.and_then(|content| match content.get::<Run>() {
        Some(Run { ending: Ending::Failed(why), .. }) => Some(why.clone()),
        _ => content.get::<CommandRecord>()?.failed.clone(),
    });
    why.unwrap_or_else(|| "it has no figure".to_owned())
}
