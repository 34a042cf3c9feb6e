//! The view of two configurations from the record of all runs and the comparison of their throughputs.

use super::words::names;
use crate::data::SearchOfSize;
use crate::data::ab::{AbRecord, AbRow, AbRun, AbRunRecord, DeviceConfiguration, Side, SwitchStep, ThroughputOfSize};
use crate::data::ab_report::{AbDerived, AbReport, AbRowView, AbRunView, ConfigurationView, SCHEMA, Sample};
use crate::procedures::throughput;

/// The report of two configurations.
pub fn report_pair(record: &AbRecord) -> AbReport {
    build_pair(record, derive_pair(record))
}

/// The view of a comparison, complete or not.
pub fn build_pair(record: &AbRecord, derived: AbDerived) -> AbReport {
    let plan = &record.ab.plan;
    let names = names(&plan.traffic);
    let complete = |side: Side| {
        let runs = record.measured.iter().filter(|run| run.side == side && run.record.ended.is_none());
        u32::try_from(runs.count()).unwrap_or(u32::MAX)
    };
    let view = |row: AbRow| AbRowView {
        name: names.get(row.traffic).cloned().unwrap_or_default(),
        a: sample(&row.a_pps),
        b: sample(&row.b_pps),
        row,
    };
    AbReport {
        schema: SCHEMA.to_owned(),
        name: plan.name.clone(),
        a: configuration(&record.ab.a, complete(Side::A)),
        b: configuration(&record.ab.b, complete(Side::B)),
        goal: plan.first_goal().map(|goal| goal.name.clone()).unwrap_or_default(),
        planned: record.ab.runs,
        rows: derived.rows.into_iter().map(view).collect(),
        runs: record.measured.iter().enumerate().map(|(at, of)| run(of, derived.runs.get(at))).collect(),
        remarks: record.remarks.clone(),
        ended: record.ended.clone(),
    }
}

fn configuration(of: &DeviceConfiguration, runs: u32) -> ConfigurationView {
    let step = |step: &SwitchStep| match step {
        // Its further words may hold a password, and a report is passed on.
        SwitchStep::Command { words } => format!("command {}", words.first().map_or("", String::as_str)),
        SwitchStep::Fault { id, value } if value.is_empty() => format!("fault {id}"),
        SwitchStep::Fault { id, value } => format!("fault {id}={value}"),
    };
    ConfigurationView { name: of.name.clone(), steps: of.steps.iter().map(step).collect(), runs }
}

fn sample(values: &[f64]) -> Option<Sample> {
    let of = narrows_stats::summary(values)?;
    let n = u32::try_from(of.n).unwrap_or(u32::MAX);
    Some(Sample { n, min: of.min, max: of.max, median: of.median, mean: of.mean, sd: of.sd })
}

/// The 95 % intervals of both means in each row, for the picture; `None` where there are fewer than two runs.
pub fn mean_intervals(report: &AbReport) -> Vec<[Option<[f64; 2]>; 2]> {
    let of = |values: &[f64]| Some(narrows_stats::mean_interval(values, narrows_stats::LEVEL)?.interval);
    report.rows.iter().map(|it| [of(&it.row.a_pps), of(&it.row.b_pps)]).collect()
}

fn run(of: &AbRunRecord, found: Option<&AbRun>) -> AbRunView {
    let searched = of.record.searches.iter().flat_map(|search| &search.record.trials);
    let invalid = searched.filter(|trial| trial.seen.invalid.is_some()).count() as u64;
    let throughputs = found.map(|found| found.throughputs.clone()).unwrap_or_default();
    AbRunView { side: of.side, at_ms: of.at_ms, throughputs, invalid, left_out: of.record.ended.clone() }
}

/// The throughputs of all runs, and those of the complete ones compared row by row.
pub fn derive_pair(record: &AbRecord) -> AbDerived {
    let found = |search: &SearchOfSize| {
        let (pps, at_least) = search.record.results.first().and_then(throughput::found)?;
        Some(ThroughputOfSize { traffic: search.traffic, size: search.size, pps, at_least })
    };
    let run = |run: &AbRunRecord| AbRun {
        side: run.side,
        at_ms: run.at_ms,
        throughputs: run.record.searches.iter().filter_map(found).collect(),
    };
    let runs: Vec<AbRun> = record.measured.iter().map(run).collect();
    let complete = runs.iter().zip(&record.measured).filter(|(_, whole)| whole.record.ended.is_none());
    let rows = crate::judge::compare(&complete.map(|(run, _)| run.clone()).collect::<Vec<_>>());
    AbDerived { runs, rows }
}
