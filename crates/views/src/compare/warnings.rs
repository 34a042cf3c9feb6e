//! What limits a comparison, in sentences.

use super::sides::{Side, Values};
use narrows_model::run::compare::{CompareReport, CompareVerdict};
use narrows_model::run::history::StoredRun;
use std::collections::BTreeSet;

/// The warnings, most important first.
pub(super) fn of(sides: &[Side], report: &CompareReport) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(unlike(sides, report));
    for figure in &report.figures {
        for (side, sample) in report.sides.iter().zip(&figure.samples) {
            if let Some(drift) = sample.drift {
                all.push(format!(
                    "{}, {}: the values drift with their order, by {:+.1} % from the first to the last; interleave the runs of the sides",
                    side.label,
                    figure.name,
                    drift * 100.0
                ));
            }
            if !sample.outliers.is_empty() {
                let which: Vec<String> = sample.outliers.iter().map(|at| (at + 1).to_string()).collect();
                all.push(format!(
                    "{}, {}: outliers, not left out: value {}",
                    side.label,
                    figure.name,
                    which.join(", ")
                ));
            }
        }
    }
    all.extend(in_blocks(sides));
    let few = report.figures.iter().flat_map(|it| &it.comparisons).filter(|it| it.verdict != CompareVerdict::Different);
    let few: BTreeSet<&str> = few.filter(|it| it.ranks.interval.is_none()).map(|it| it.side.as_str()).collect();
    if !few.is_empty() {
        let least = if report.paired { "6 pairs are" } else { "4 runs per side are" };
        all.push(format!(
            "{} against A: too few values to prove a difference; at least {least} needed at 95 % confidence",
            few.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    all
}

fn runs(side: &Side) -> &[StoredRun] {
    if let Values::Runs(runs) = &side.values { runs } else { &[] }
}

/// Sides whose runs are of different kinds.
fn unlike(sides: &[Side], report: &CompareReport) -> Vec<String> {
    type Part = (&'static str, fn(&StoredRun) -> &str);
    const PARTS: [Part; 4] = [
        ("commands", |run| &run.command),
        ("plans", |run| &run.plan),
        ("address families", |run| &run.family),
        ("servers", |run| &run.server),
    ];
    let values = |of: fn(&StoredRun) -> &str| {
        sides.iter().flat_map(runs).map(of).filter(|it| !it.is_empty()).collect::<BTreeSet<_>>()
    };
    let mut all: Vec<String> = PARTS
        .iter()
        .filter(|(_, of)| values(*of).len() > 1)
        .map(|(what, _)| format!("the runs have different {what}"))
        .collect();
    let mixed = report.sides.iter().any(|it| it.runs.is_empty()) && report.sides.iter().any(|it| !it.runs.is_empty());
    if mixed {
        all.push("runs are compared with plain numbers: make sure that the units are the same".to_owned());
    }
    let ids: Vec<&str> = sides.iter().flat_map(runs).map(|it| it.id.as_str()).collect();
    if ids.iter().collect::<BTreeSet<_>>().len() < ids.len() {
        all.push("a run is on both sides, or twice on one".to_owned());
    }
    all
}

/// All runs of one side before all of another: what drifts meanwhile is taken for a difference.
fn in_blocks(sides: &[Side]) -> Option<String> {
    let times = |side: &Side| {
        let all = || runs(side).iter().map(|it| it.started_unix_us);
        Some((all().min()?, all().max()?))
    };
    let apart = sides.windows(2).any(|two| match (times(&two[0]), times(&two[1])) {
        (Some(a), Some(b)) => runs(&two[0]).len() > 1 && runs(&two[1]).len() > 1 && (a.1 < b.0 || b.1 < a.0),
        _ => false,
    });
    apart.then(|| {
        "the runs of the sides are not interleaved: a drift between them would look like a difference".to_owned()
    })
}
