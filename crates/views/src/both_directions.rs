//! Diagnoses of both directions, side by side.

use crate::sweep::BETWEEN_RUNS;
use narrows_model::run::both_directions::{BothDirections, DirectionSymmetry, SCHEMA};
use narrows_model::run::report::Report;
use narrows_model::{Direction, Ending, Place, Purpose, Run, Status};
use narrows_search::Steady;
use narrows_stats::Estimate;

/// The view of one run of each direction; `None` where nothing was measured in either.
pub fn of_runs(runs: &[Run]) -> Option<BothDirections> {
    let report =
        |way: Direction| runs.iter().filter_map(narrows_diagnose::report).find(|it| it.verdict.direction == way);
    let (up, down) = (report(Direction::Up), report(Direction::Down));
    let by_path = [&up, &down].into_iter().flatten().all(limited_by_path);
    let between_runs = if by_path { BETWEEN_RUNS } else { BETWEEN_RUNS_OF_HOSTS };
    // The goodput is that of the reports; the interval, of the same load, is that of the steady part.
    let estimate = |way: Direction, report: &Option<Report>| {
        let (steady, value) = (runs.iter().find_map(|run| goodput(run, way))?, report.as_ref()?.verdict.goodput_bps);
        let interval = [steady.interval[0].min(value), steady.interval[1].max(value)];
        Some(Estimate { value, interval, ..steady })
    };
    let both_ways = estimate(Direction::Up, &up).zip(estimate(Direction::Down, &down));
    let symmetry = both_ways.and_then(|(up, down)| symmetry(&up, &down, between_runs));
    let both = BothDirections { schema: SCHEMA.to_owned(), up, down, symmetry };
    (both.up.is_some() || both.down.is_some()).then_some(both)
}

/// Where no limit of the path is known, the hosts are it: which cores the load runs on makes one run differ from the next by so much (six runs of one bare path: 18.4 to 24.6 Gbit/s).
const BETWEEN_RUNS_OF_HOSTS: f64 = 0.35;

/// Whether a report names a limit of the path itself, as what bounds it or as its fault.
fn limited_by_path(report: &Report) -> bool {
    let first = report.verdict.causes.first();
    first.is_some_and(|first| first.at == Place::Path) && report.verdict.status != Status::Suspected
}

/// The goodput of a run's first load in this direction, bits a second, as its receiving end saw it; `None` where it was cut short.
fn goodput(run: &Run, way: Direction) -> Option<Estimate> {
    let is_load = |purpose: &Purpose| matches!(purpose, Purpose::Baseline { round: 0 });
    let record = run.trials.iter().find(|record| is_load(&record.purpose) && run.ending == Ending::Complete)?;
    let plan = &record.trial.plan;
    plan.streams().iter().all(|stream| stream.flow.direction() == way).then_some(())?;
    let receiver = match way.flows().first()?.receiver() {
        Place::Client => &record.trial.client,
        _ => &record.trial.server,
    };
    let streams = receiver.end().samples();
    let mut steady = Steady::new(0.0, plan.omitted_ms().saturating_mul(1000), 0, 0);
    // Streams are sampled at the same instants.
    for nth in 0..streams.iter().map(Vec::len).min()? {
        let at_us = streams.first()?[nth].at_us();
        steady.observe(at_us, streams.iter().map(|samples| samples[nth].bytes()).fold(0, u64::saturating_add));
    }
    steady.goodput_bps()
}

fn symmetry(up: &Estimate, down: &Estimate, between_runs: f64) -> Option<DirectionSymmetry> {
    let ratio = (up.value > 0.0 && down.value > 0.0).then(|| down.value / up.value)?;
    let apart = up.interval[1] < down.interval[0] || down.interval[1] < up.interval[0];
    Some(DirectionSymmetry {
        up_bps: up.value,
        up_interval_bps: up.interval,
        down_bps: down.value,
        down_interval_bps: down.interval,
        ratio,
        between_runs,
        differs: apart && ratio.max(1.0 / ratio) - 1.0 > between_runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: f64, half: f64) -> Estimate {
        Estimate { value, interval: [value - half, value + half], df: 7.0, error: half / 2.365 }
    }

    #[test]
    fn directions_differ_by_more_than_their_intervals_and_than_runs_do() {
        let differs_by = |up, down, runs| symmetry(&up, &down, runs).expect("both carried something").differs;
        let differs = |up, down| differs_by(up, down, BETWEEN_RUNS);
        assert!(differs(at(94e6, 1e6), at(42e6, 1e6)));
        assert!(!differs(at(94e6, 3e6), at(90e6, 2e6)), "the intervals overlap");
        assert!(!differs(at(94e6, 1e4), at(94.5e6, 1e4)), "as far apart as two runs of one path");
        // Where on its cores a load runs decides how fast hosts are: six runs of one bare path carried 18.4 to 24.6 Gbit/s.
        assert!(!differs_by(at(24.6e9, 1e9), at(20.2e9, 1e9), BETWEEN_RUNS_OF_HOSTS));
        assert!(differs_by(at(24.6e9, 1e9), at(9.4e9, 1e9), BETWEEN_RUNS_OF_HOSTS));
        assert_eq!(symmetry(&at(94e6, 1e6), &at(0.0, 0.0), BETWEEN_RUNS), None);
    }
}
