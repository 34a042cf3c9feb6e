//! Latency over the trials of a row.

use super::super::size::{Of, word};
use super::entry::Entry;
use crate::data::Test;
use crate::data::procedures::Results;
use crate::data::procedures::latency::LatencyOfSize;
use crate::procedures::latency;
use narrows_model::run::sweep::Spread;

pub(super) const ENTRY: Entry = Entry::new(Test::Latency, fill, |it| it.latency.figures.is_some(), false);

fn fill(of: &Of<'_>, results: &mut Results, remarks: &mut Vec<String>) {
    let valid = of.trials(Test::Latency).into_iter().filter(|(_, invalid)| !invalid);
    let stamped: Vec<_> = valid.filter_map(|(trial, _)| trial.directions.first()?.got.latency_ns.clone()).collect();
    let Some(found) = latency(&stamped) else { return };
    let size = word(of.row.size);
    remarks.extend(found.remarks.iter().map(|remark| format!("latency, {size}: {remark}")));
    let whole = |ns: f64| ns.round().max(0.0) as u64;
    results.latency.figures = Some(LatencyOfSize {
        traffic: of.row.traffic,
        size: of.row.size,
        load_pps: of.throughput_pps().unwrap_or(0.0),
        repetitions: found.repetitions,
        stamps: found.stamps,
        min_ns: found.min_ns,
        mean_ns: found.mean_ns,
        p50_ns: whole(found.typical_ns),
        p99_ns: whole(found.p99_ns),
        p99_9_ns: whole(found.worst_case_ns),
        max_ns: found.max_ns,
        pdv_ns: whole(found.pdv_ns),
        means_ns: Spread::of(&stamped.iter().map(|trial| trial.mean).collect::<Vec<_>>()),
    });
}
