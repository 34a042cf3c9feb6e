//! Samples of runs compared: each side with the first one.

mod ministat;
mod sample;
mod sides;
mod verdict;
mod warnings;

pub use ministat::ministat;
pub use sides::{Options, Side, Values};

use crate::{diff, figures};
use narrows_model::run::compare::{
    CompareInventory, CompareReport, CompareRun, CompareSide, ComparedFigure, Comparison, SCHEMA,
};
use narrows_model::run::history::StoredRun;
use narrows_model::{Run, Unit};

pub const SIDES_MAX: usize = 26;

/// Compares the second side and those after it with the first.
/// Errors: a sentence: a side is empty, a figure is missing or has another unit, or pairs do not match.
pub fn compare(sides: &[Side], options: &Options) -> Result<CompareReport, String> {
    let figures: Vec<ComparedFigure> =
        named(sides, options)?.iter().map(|name| figure(sides, name, options)).collect::<Result<_, _>>()?;
    let mut report = CompareReport {
        schema: SCHEMA.to_owned(),
        level: options.level,
        margin: options.margin,
        paired: options.paired,
        comparisons: figures.iter().map(|it| it.comparisons.len() as u64).sum(),
        sides: sides.iter().enumerate().map(|(at, side)| listed(at, side)).collect(),
        figures,
        warnings: Vec::new(),
        inventory: Vec::new(),
    };
    let mut all: Vec<&mut Comparison> = report.figures.iter_mut().flat_map(|it| &mut it.comparisons).collect();
    verdict::together(&mut all, options.level);
    report.warnings = warnings::of(sides, &report);
    Ok(report)
}

/// Adds what differs between the inventory of the first side's first run and those of the others.
pub fn inventory(report: &mut CompareReport, first: &Result<Run, String>, others: &[(usize, Result<Run, String>)]) {
    report.inventory.extend(others.iter().map(|(side, other)| {
        let (parameters, missing) = match (first, other) {
            (Ok(a), Ok(b)) => (diff::inventory(a, b), diff::unknown(a, b, [&label(0), &label(*side)])),
            (Err(why), _) | (_, Err(why)) => (Vec::new(), Some(why.clone())),
        };
        CompareInventory { side: label(*side), parameters, missing }
    }));
}

/// `A`, `B`, …
pub fn label(side: usize) -> String {
    u8::try_from(side)
        .ok()
        .filter(|it| *it < 26)
        .map_or_else(|| (side + 1).to_string(), |it| char::from(b'A' + it).to_string())
}

fn listed(at: usize, side: &Side) -> CompareSide {
    let runs = match &side.values {
        Values::Numbers(_) => Vec::new(),
        Values::Runs(runs) => {
            runs.iter().map(|run| CompareRun { id: run.id.clone(), started_unix_us: run.started_unix_us }).collect()
        }
    };
    CompareSide { label: label(at), name: side.name.clone(), runs }
}

/// The figures to compare.
fn named(sides: &[Side], options: &Options) -> Result<Vec<String>, String> {
    let runs = sides.iter().filter_map(|it| if let Values::Runs(runs) = &it.values { Some(runs) } else { None });
    let Some(first) = runs.flatten().next() else {
        if let Some(name) = options.figures.first() {
            return Err(format!("cannot compare the figure `{name}`: plain numbers have no names; leave --figure out"));
        }
        return Ok(vec!["value".to_owned()]);
    };
    if !options.figures.is_empty() {
        return options.figures.iter().map(|name| meant(first, name)).collect();
    }
    let figure = first.figures.first();
    figure.map(|it| vec![it.name.clone()]).ok_or_else(|| format!("cannot compare run {}: it has no figure", first.id))
}

/// The figure of the run that the user means: that of this name, else the only one that adds a direction, a goal or a size to it.
fn meant(run: &StoredRun, name: &str) -> Result<String, String> {
    let adds = |of: &&str| {
        of.strip_prefix(name).is_some_and(|rest| rest.starts_with(' '))
            || of.strip_suffix(name).is_some_and(|rest| rest.ends_with(' '))
    };
    let names = || run.figures.iter().map(|it| it.name.as_str());
    if names().any(|it| it == name) {
        return Ok(name.to_owned());
    }
    match &names().filter(adds).collect::<Vec<_>>()[..] {
        [] => Ok(name.to_owned()),
        [only] => Ok((*only).to_owned()),
        several => {
            let several: Vec<String> = several.iter().map(|it| format!("`{it}`")).collect();
            let several = several.join(", ");
            Err(format!("cannot compare the figure `{name}`: the name is ambiguous; give one of {several}"))
        }
    }
}

fn figure(sides: &[Side], name: &str, options: &Options) -> Result<ComparedFigure, String> {
    let mut unit: Option<Unit> = None;
    let mut samples = Vec::new();
    for side in sides {
        let values = match &side.values {
            Values::Numbers(values) => values.clone(),
            Values::Runs(runs) => runs.iter().map(|run| of_run(run, name, &mut unit)).collect::<Result<_, _>>()?,
        };
        let sample = sample::sample(values);
        samples.push(sample.ok_or_else(|| format!("cannot compare {}: it has no values", side.name))?);
    }
    let comparisons = samples.iter().enumerate().skip(1).map(|(at, sample)| {
        verdict::against(&samples[0].values, &sample.values, options)
            .map(|it| Comparison { side: label(at), ..it })
            .ok_or_else(|| {
                let (n, m) = (samples[0].values.len(), sample.values.len());
                format!(
                    "cannot compare {} with {} as pairs: {m} values against {n}; leave --paired out",
                    sides[at].name, sides[0].name
                )
            })
    });
    let comparisons = comparisons.collect::<Result<_, _>>()?;
    let better = unit.and_then(|unit| figures::better(name, unit));
    Ok(ComparedFigure { name: name.to_owned(), unit: unit.unwrap_or(Unit::Number), better, samples, comparisons })
}

fn of_run(run: &StoredRun, name: &str, unit: &mut Option<Unit>) -> Result<f64, String> {
    let Some(figure) = run.figures.iter().find(|it| it.name == name) else {
        let names: Vec<String> = run.figures.iter().map(|it| format!("`{}`", it.name)).collect();
        let has = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        return Err(format!("cannot compare run {}: it has no figure `{name}`; {has} (--figure)", run.id));
    };
    if *unit.get_or_insert(figure.unit) != figure.unit {
        return Err(format!("cannot compare run {}: its figure `{name}` has another unit", run.id));
    }
    Ok(figure.value)
}

#[cfg(test)]
mod tests;
