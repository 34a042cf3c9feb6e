//! The results of a campaign, from the figures of its runs: main effects, two-way interactions, the best combination.

mod design;
mod effects;

pub use design::cells;

use narrows_model::Unit;
use narrows_model::run::campaign::{
    Better, CampaignBest, CampaignCell, CampaignFactor, CampaignReport, CampaignRun, CampaignTerm, Design,
    EffectVerdict, SCHEMA, Step,
};
use narrows_model::run::history::Headline;
use narrows_model::words::show::plural;
use narrows_stats::{LEVEL, difference, mean, mean_interval};
use std::collections::BTreeMap;

/// The plan of a campaign, as far as its results depend on it.
#[derive(Debug, Clone)]
pub struct Planned {
    pub name: String,
    /// The tag of its runs.
    pub tag: String,
    pub hosts: Vec<String>,
    pub factors: Vec<CampaignFactor>,
    pub design: Design,
    pub blocks: usize,
    pub steps: Vec<Step>,
    /// Which way is better; `None`: as the unit says.
    pub better: Option<Better>,
}

/// A run that was made.
#[derive(Debug, Clone)]
pub struct Observed {
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// Its figure, or why it failed.
    pub figure: Result<Headline, String>,
}

impl Planned {
    fn levels(&self, cell: &[usize]) -> Vec<String> {
        self.factors.iter().zip(cell).filter_map(|(it, level)| it.levels.get(*level).cloned()).collect()
    }

    /// A factor at a level.
    fn term(&self, factor: usize, level: usize) -> CampaignTerm {
        let it = &self.factors[factor];
        CampaignTerm { factor: it.name.clone(), level: it.levels[level].clone(), baseline: it.levels[0].clone() }
    }
}

/// The results. `margin`: an effect within this share of the mean is none.
pub fn report(planned: &Planned, observed: &BTreeMap<usize, Observed>, margin: f64) -> CampaignReport {
    let figures = planned.steps.iter().filter_map(|it| Some((it, observed.get(&it.number)?.figure.as_ref().ok()?)));
    let measured: Vec<(&Step, f64)> = figures.clone().map(|(step, figure)| (step, figure.value)).collect();
    let first = figures.map(|(_, figure)| figure).next();
    let unit = first.map_or(Unit::Number, |it| it.unit);
    let of_figure = || crate::figures::better(&first?.name, unit);
    let better = planned.better.or_else(of_figure).unwrap_or(Better::Higher);
    let mut warnings = Vec::new();
    let effects = effects::of(planned, &measured, margin, &mut warnings);
    let does = |name: &str, verdict: &[EffectVerdict], terms: &[usize]| {
        let own = effects.iter().filter(|it| terms.contains(&it.terms.len()));
        let mut own = own.filter(|it| it.terms.iter().any(|term| term.factor == name)).peekable();
        own.peek().is_some() && own.all(|it| verdict.contains(&it.verdict))
    };
    let quiet = [EffectVerdict::Nothing, EffectVerdict::CannotTell, EffectVerdict::Aliased];
    let idle = planned.factors.iter().map(|it| it.name.clone());
    let idle = idle.filter(|it| does(it, &[EffectVerdict::Nothing], &[1]) && does(it, &quiet, &[1, 2]));
    let idle = idle.collect();
    let cells = cells_of(planned, &measured);
    let failed = observed.values().filter(|it| it.figure.is_err()).count();
    if failed > 0 {
        warnings.push(format!("{} failed; they are left out", plural(failed as u64, "run")));
    }
    if observed.len() < planned.steps.len() {
        warnings.push(format!("{} of {} runs are made", observed.len(), planned.steps.len()));
    }
    CampaignReport {
        schema: SCHEMA.to_owned(),
        name: planned.name.clone(),
        tag: planned.tag.clone(),
        level: LEVEL,
        margin,
        figure: first.map(|it| it.name.clone()).unwrap_or_default(),
        unit,
        better,
        hosts: planned.hosts.clone(),
        factors: planned.factors.clone(),
        design: planned.design,
        blocks: planned.blocks as u64,
        planned: planned.steps.len() as u64,
        mean: mean(&measured.iter().map(|(_, value)| *value).collect::<Vec<_>>()),
        effects,
        idle,
        best: best(planned, &measured, better),
        cells,
        runs: planned.steps.iter().filter_map(|it| run(planned, it, observed.get(&it.number)?)).collect(),
        warnings,
    }
}

fn run(planned: &Planned, step: &Step, observed: &Observed) -> Option<CampaignRun> {
    Some(CampaignRun {
        step: step.number as u64,
        block: step.block as u64,
        host: planned.hosts.get(step.host)?.clone(),
        levels: planned.levels(&step.cell),
        id: observed.id.clone(),
        started_unix_us: observed.started_unix_us,
        value: observed.figure.as_ref().ok().map(|it| it.value),
        failed: observed.figure.as_ref().err().cloned(),
    })
}

/// The figures of each combination.
fn by_cell<'a>(measured: &[(&'a Step, f64)]) -> BTreeMap<&'a [usize], Vec<f64>> {
    let mut cells: BTreeMap<&[usize], Vec<f64>> = BTreeMap::new();
    for (step, value) in measured {
        cells.entry(&step.cell).or_default().push(*value);
    }
    cells
}

fn cells_of(planned: &Planned, measured: &[(&Step, f64)]) -> Vec<CampaignCell> {
    let values = by_cell(measured);
    let cell = |cell: &Vec<usize>| {
        let own = values.get(cell.as_slice()).map_or(&[][..], Vec::as_slice);
        CampaignCell {
            levels: planned.levels(cell),
            runs: own.len() as u64,
            mean: mean(own),
            interval: mean_interval(own, LEVEL).map(|it| it.interval),
        }
    };
    let mut all: Vec<&Vec<usize>> = planned.steps.iter().map(|it| &it.cell).collect();
    all.sort();
    all.dedup();
    all.into_iter().map(cell).collect()
}

fn best(planned: &Planned, measured: &[(&Step, f64)], better: Better) -> Option<CampaignBest> {
    let cells = by_cell(measured);
    let means = cells.iter().filter_map(|(cell, values)| Some((*cell, mean(values)?)));
    let order = |a: &(&[usize], f64), b: &(&[usize], f64)| a.1.total_cmp(&b.1);
    let (cell, best) = match better {
        Better::Higher => means.max_by(order),
        Better::Lower => means.min_by(order),
    }?;
    let baseline = vec![0; cell.len()];
    let base = cells.get(baseline.as_slice()).filter(|_| cell != baseline);
    let whole = base.and_then(|it| mean(it)).filter(|it| *it != 0.0).map(f64::abs);
    let gain = base.and_then(|it| difference(it, &cells[cell], LEVEL));
    Some(CampaignBest {
        levels: planned.levels(cell),
        mean: best,
        gain: whole.and_then(|whole| Some((best - mean(base?)?) / whole)),
        gain_interval: whole.and_then(|whole| Some(gain?.interval.map(|it| it / whole))),
    })
}

#[cfg(test)]
mod tests;
