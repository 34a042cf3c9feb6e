//! The report of a sweep: medians over the repetitions of each point.

pub mod figures;
mod points;
mod symmetry;

pub(crate) use symmetry::BETWEEN_RUNS;

use narrows_model::run::measure::{EndCpu, HostCpu};
use narrows_model::run::report::RunView;
use narrows_model::run::sweep::{SCHEMA, Spread, SweepRow};
use narrows_model::{Direction, Flow, Run, SweepFigures, SweepOutcome, SweepProtocol, SweepRecord, SweepReport};
use points::{figures, points};

/// The sweep of a run, as far as it got; `None` where it holds none.
pub fn of_run(run: &Run) -> Option<SweepReport> {
    Some(build(run.sweep.as_ref()?, run.into()))
}

/// The report of a sweep, complete or not.
pub fn build(record: &SweepRecord, run: RunView) -> SweepReport {
    let plan = &record.plan;
    let rows = plan.protocols.iter().flat_map(|protocol| {
        plan.directions.iter().flat_map(move |direction| {
            direction.flows().iter().flat_map(move |flow| {
                plan.sizes.iter().filter_map(move |size| row(record, *protocol, *direction, *flow, *size))
            })
        })
    });
    let planned = plan.cells().count() as u64;
    SweepReport {
        schema: SCHEMA.to_owned(),
        run,
        planned,
        done: planned.saturating_sub(record.remaining().len() as u64),
        rows: rows.collect(),
        symmetry: symmetry::of(record),
        plan: plan.clone(),
    }
}

/// One row; `None` where none of it was measured yet.
fn row(
    record: &SweepRecord,
    protocol: SweepProtocol,
    direction: Direction,
    flow: Flow,
    size_bytes: u32,
) -> Option<SweepRow> {
    points(record, protocol, direction, size_bytes).next()?;
    let all = figures(record, protocol, direction, flow, size_bytes);
    let spread =
        |of: &dyn Fn(&SweepFigures) -> Option<f64>| Spread::of(&all.iter().filter_map(|it| of(it)).collect::<Vec<_>>());
    let sum = |of: fn(&SweepFigures) -> Option<u64>| {
        let known: Vec<u64> = all.iter().filter_map(|it| of(it)).collect();
        (!known.is_empty()).then(|| known.iter().fold(0u64, |sum, n| sum.saturating_add(*n)))
    };
    let mut remarks: Vec<String> = points(record, protocol, direction, size_bytes)
        .filter_map(|point| match &point.outcome {
            SweepOutcome::CannotRun(why) => Some(why.clone()),
            SweepOutcome::Measured(_) => None,
        })
        .chain(all.iter().filter_map(|it| it.lossless.as_ref()?.remark.clone()))
        .collect();
    remarks.sort();
    remarks.dedup();
    Some(SweepRow {
        protocol,
        direction,
        flow,
        size_bytes,
        sending_bps: spread(&|it| it.sending_bps),
        sending_pps: spread(&|it| it.sending_pps),
        receiving_bps: spread(&|it| it.receiving_bps),
        receiving_pps: spread(&|it| it.receiving_pps),
        lossless_bps: spread(&|it| it.lossless.as_ref()?.lower_bps),
        lossless_pps: spread(&|it| it.lossless.as_ref()?.lower_pps),
        lossless_upper_pps: all.iter().filter_map(|it| it.lossless.as_ref()?.upper_pps).min_by(f64::total_cmp),
        unsent: sum(|it| it.unsent),
        lost: sum(|it| it.lost),
        loss: spread(&|it| it.loss).map(|it| it.median),
        segmentation_offload: all.iter().filter_map(|it| it.segmentation_offload).reduce(|one, other| one || other),
        sender: host(all.iter().filter_map(|it| it.sender.as_ref())),
        receiver: host(all.iter().filter_map(|it| it.receiver.as_ref())),
        remarks,
    })
}

/// The median of each part; `None` where the number of cores changed.
fn host<'a>(costs: impl Iterator<Item = &'a EndCpu>) -> Option<HostCpu> {
    let all: Vec<HostCpu> = costs.filter_map(|cost| cost.host).collect();
    let median = |of: fn(&HostCpu) -> f64| narrows_stats::median(&all.iter().map(of).collect::<Vec<_>>());
    Some(HostCpu {
        cores: all.iter().map(|it| it.cores).max()?,
        user: median(|it| it.user)?,
        system: median(|it| it.system)?,
        softirq: median(|it| it.softirq)?,
        steal: median(|it| it.steal)?,
        idle: median(|it| it.idle)?,
    })
}
