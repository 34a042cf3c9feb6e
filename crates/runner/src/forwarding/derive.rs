//! What follows from a record by the rules of the procedures and the books, for the report.

use narrows_diagnose::forwarding::{books, storms};
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::report::{
    BooksOfTrial, BurstsOfSize, CurveOfSize, Derived, LatencyOfSize, MixEstimate, NotMeasured,
};
use narrows_model::forwarding::{ForwardingRecord, Test};
use narrows_model::run::sweep::Spread;
use narrows_search::loss_curve;
use narrows_search::procedures::estimate::OfSize;
use narrows_search::procedures::latency::TWO_CLOCKS;
use narrows_search::procedures::{
    BackToBackPlan, LatencyPlan, RecoveryPlan, ResetPlan, buffer_time, estimate, latency, throughput,
};

/// Of a record, whole or in part.
#[must_use]
pub fn derive(record: &ForwardingRecord) -> Derived {
    let mut derived = Derived::default();
    for (at, trial) in record.trials.iter().enumerate() {
        for direction in 0..trial.directions.len() {
            derived.books.push(BooksOfTrial { trial: at, direction, books: books(&record.plan, trial, direction) });
        }
    }
    for row in record.plan.rows() {
        of_row(record, row, &mut derived);
    }
    let names = narrows_render::forwarding::names(&record.plan.traffic);
    for storm in storms(record) {
        let size = storm.size.map_or_else(|| "mix".to_owned(), |size| format!("{size} B"));
        let name = names.get(storm.traffic).map_or("", String::as_str);
        derived.remarks.push(format!("{name}, {size}: {}", storm.says));
    }
    for at in 0..record.plan.traffic.len() {
        if record.plan.traffic[at].mix.is_empty() || record.searches.is_empty() {
            continue;
        }
        let results: Vec<OfSize> = record
            .searches
            .iter()
            .filter(|search| search.traffic == at)
            .filter_map(|search| {
                let (pps, at_least) = search.record.results.first().and_then(throughput::found)?;
                Some(OfSize { size: search.size?, pps, at_least })
            })
            .collect();
        if let Ok(estimate) = estimate(&record.plan, at, &results) {
            let at_least = if estimate.at_least { "; at least, since a size's throughput is" } else { "" };
            let method = format!("{}{at_least}", estimate.method);
            derived.estimates.push(MixEstimate { traffic: at, pps: estimate.pps, method });
        }
    }
    derived
}

fn of_row(record: &ForwardingRecord, row: Row, derived: &mut Derived) {
    let plan = &record.plan;
    let is_row = |traffic: usize, size: Option<u32>| (traffic, size) == (row.traffic, row.size);
    let search = record.searches.iter().find(|search| is_row(search.traffic, search.size));
    let result = search.and_then(|search| search.record.results.first());
    let throughput_pps = result.and_then(throughput::found).map(|(pps, _)| pps);
    let measured = search.is_some();
    let size = row.size.map_or_else(|| "mix".to_owned(), |size| format!("{size} B"));
    if plan.tests.latency.is_some() && !plan.one_clock() {
        let why = TWO_CLOCKS.to_owned();
        derived.not_measured.push(NotMeasured { what: format!("latency, {size}"), why });
    }
    let mut missing = |what: &str, why: Result<(), String>| {
        if let (Err(why), true) = (why, measured) {
            derived.not_measured.push(NotMeasured { what: format!("{what}, {size}"), why });
        }
    };
    if let Some(test) = plan.tests.latency.as_ref().filter(|_| plan.one_clock()) {
        missing("latency", LatencyPlan::of(plan, test, row, throughput_pps).map(drop));
    }
    if let Some(test) = &plan.tests.back_to_back {
        missing("back-to-back", BackToBackPlan::of(plan, test, row, throughput_pps).map(drop));
    }
    if let Some(test) = &plan.tests.recovery {
        missing("recovery", RecoveryPlan::of(plan, test, row, throughput_pps).map(drop));
    }
    if let Some(test) = &plan.tests.reset {
        missing("reset", ResetPlan::of(plan, test, row, throughput_pps).map(drop));
    }
    let stamped: Vec<_> = record
        .trials
        .iter()
        .filter(|trial| trial.test == Test::Latency && is_row(trial.traffic, trial.size) && trial.invalid.is_none())
        .filter_map(|trial| trial.directions.first()?.got.latency_ns.clone())
        .collect();
    if let Some(found) = latency(&stamped) {
        derived.remarks.extend(found.remarks.iter().map(|remark| format!("latency, {size}: {remark}")));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // ns of a latency
        let whole = |ns: f64| ns.round().max(0.0) as u64;
        derived.latencies.push(LatencyOfSize {
            traffic: row.traffic,
            size: row.size,
            load_pps: throughput_pps.unwrap_or(0.0),
            repetitions: found.repetitions,
            stamps: found.stamps,
            min_ns: found.min_ns,
            mean_ns: found.mean.mean_ns,
            p50_ns: whole(found.typical.median_ns),
            p99_ns: whole(found.p99.median_ns),
            p99_9_ns: whole(found.worst_case.median_ns),
            max_ns: found.max_ns,
            pdv_ns: whole(found.pdv.median_ns),
            means_ns: Spread::of(&stamped.iter().map(|trial| trial.mean).collect::<Vec<_>>()),
        });
    }
    for curve in record.curves.iter().filter(|curve| is_row(curve.traffic, curve.size)) {
        let points = loss_curve(&curve.record.plan, &curve.record.trials);
        derived.curves.push(CurveOfSize { traffic: row.traffic, size: row.size, points });
    }
    let bursts: Vec<_> = record.bursts.iter().filter(|burst| is_row(burst.traffic, burst.size)).cloned().collect();
    let upper_pps = result.and_then(|result| result.upper_pps);
    let time = throughput_pps.and_then(|pps| buffer_time(&bursts, pps, upper_pps));
    let lengths: Vec<f64> = bursts.iter().map(|burst| burst.frames as f64).collect();
    if let (Some(time), Some(frames)) = (time, Spread::of(&lengths)) {
        derived.bursts.push(BurstsOfSize {
            traffic: row.traffic,
            size: row.size,
            mean_frames: lengths.iter().sum::<f64>() / lengths.len() as f64,
            frames,
            offered_pps: bursts.first().map_or(0.0, |burst| burst.offered_pps),
            implied_ns: time.implied_ns,
            corrected_ns: Some(time.corrected_ns),
            at_least: bursts.iter().any(|burst| burst.at_most),
        });
    }
}
