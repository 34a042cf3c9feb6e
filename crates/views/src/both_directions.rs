//! Diagnoses of both directions, side by side.

use crate::sweep::BETWEEN_RUNS;
use narrows_model::run::both_directions::{BothDirections, DirectionSymmetry, SCHEMA};
use narrows_model::{Direction, Ending, Place, Purpose, Run};
use narrows_search::Steady;
use narrows_stats::Estimate;

/// The view of one run of each direction; `None` where nothing was measured in either.
pub fn of_runs(runs: &[Run]) -> Option<BothDirections> {
    let report =
        |way: Direction| runs.iter().filter_map(narrows_diagnose::report).find(|it| it.verdict.direction == way);
    let goodput = |way: Direction| runs.iter().find_map(|run| goodput(run, way));
    let both = BothDirections {
        schema: SCHEMA.to_owned(),
        up: report(Direction::Up),
        down: report(Direction::Down),
        symmetry: goodput(Direction::Up).zip(goodput(Direction::Down)).and_then(|(up, down)| symmetry(&up, &down)),
    };
    (both.up.is_some() || both.down.is_some()).then_some(both)
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

fn symmetry(up: &Estimate, down: &Estimate) -> Option<DirectionSymmetry> {
    let ratio = (up.value > 0.0 && down.value > 0.0).then(|| down.value / up.value)?;
    let apart = up.interval[1] < down.interval[0] || down.interval[1] < up.interval[0];
    Some(DirectionSymmetry {
        up_bps: up.value,
        up_interval_bps: up.interval,
        down_bps: down.value,
        down_interval_bps: down.interval,
        ratio,
        differs: apart && ratio.max(1.0 / ratio) - 1.0 > BETWEEN_RUNS,
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
        let differs = |up, down| symmetry(&up, &down).expect("both carried something").differs;
        assert!(differs(at(94e6, 1e6), at(42e6, 1e6)));
        assert!(!differs(at(94e6, 3e6), at(90e6, 2e6)), "the intervals overlap");
        assert!(!differs(at(94e6, 1e4), at(94.5e6, 1e4)), "as far apart as two runs of one path");
        assert_eq!(symmetry(&at(94e6, 1e6), &at(0.0, 0.0)), None);
    }
}
