//! The sweep: one point after the other, and the run as it stands is handed on after each, so that an interrupted sweep goes
//! on where it stood.

mod lossless;
pub mod over;

use crate::ends::{Ends, EndsError, On, TrialFailed};
use crate::measure;
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::run::{Ending, RunPlan};
use narrows_model::{
    DatagramSizes, Flow, LoadPlan, Place, Run, SweepCell, SweepFigures, SweepOutcome, SweepPlan, SweepPoint,
    SweepProtocol, SweepRecord, Target, Trial, UdpPlan, UdpRate,
};
use narrows_sys::clock;
use narrows_views::sweep::figures;

/// What a trial takes beyond its load: set-up, counters of both ends, tear-down.
const AROUND_MS: u64 = 500;

/// Who hears how the sweep goes.
pub trait Watch {
    fn begins(&mut self, record: &SweepRecord, cell: SweepCell);
    /// A point was measured, or could not be: the run is worth keeping.
    fn measured(&mut self, run: &Run);
}

/// The shortest and the longest time that the rest of a sweep takes on a path that is well, in milliseconds: the searches
/// take between nothing, where a trial loses nothing, and their limit.
pub fn expected_ms(record: &SweepRecord) -> [u64; 2] {
    let plan = &record.plan;
    record.remaining().into_iter().fold([0, 0], |[least, most]: [u64; 2], cell| {
        let trial = plan.trial_ms.saturating_add(AROUND_MS);
        let searches = if searched(plan, cell) { cell.direction.flows().len() as u64 } else { 0 };
        [least.saturating_add(trial), most.saturating_add(trial).saturating_add(searches * lossless::LONGEST_MS)]
    })
}

/// A sweep that has measured nothing yet. Until it is over it reads as interrupted, for a process may be killed.
pub fn begin(ends: &mut dyn Ends, plan: &SweepPlan, target: Target, name: (String, String)) -> Run {
    let mut run = measure::empty_run(RunPlan::Sweep(plan.clone()), target, name);
    run.idle_rtt_us = ends.idle_rtt_us();
    measure::take_inventories(ends, &mut run);
    run.sweep = Some(SweepRecord { plan: plan.clone(), points: Vec::new(), ending: Ending::Interrupted });
    run.ending = Ending::Interrupted;
    run
}

/// Measures what a run's sweep still lacks. What went wrong on the way is in the run's ending; a point that was cut short is
/// left out, so that it is measured again when the sweep goes on.
pub fn go_on(ends: &mut dyn Ends, run: &mut Run, watch: &mut dyn Watch) {
    let (began, before_us) = (clock::now(), run.elapsed_us);
    let since_begin_us = || before_us.saturating_add(clock::micros_since(began));
    let Some(record) = run.sweep.as_mut() else { return };
    (record.ending, run.ending) = (Ending::Interrupted, Ending::Interrupted);
    let (plan, cells) = (record.plan.clone(), record.remaining());
    let mut ending = Ending::Complete;
    for cell in cells {
        if ends.stopped() {
            ending = Ending::Interrupted;
            break;
        }
        let Some(record) = run.sweep.as_mut() else { break };
        watch.begins(record, cell);
        let at_us = since_begin_us();
        match point(ends, &plan, cell) {
            Ok(outcome) => {
                let took_us = since_begin_us().saturating_sub(at_us);
                record.points.push(SweepPoint { cell, at_us, took_us, outcome });
            }
            Err(why) => {
                ending = measure::ending(why);
                break;
            }
        }
        run.elapsed_us = since_begin_us();
        watch.measured(run);
    }
    run.elapsed_us = since_begin_us();
    if let Some(record) = run.sweep.as_mut() {
        record.ending = ending.clone();
    }
    run.ending = ending;
}

/// One point. An error ends the sweep; what only this point cannot do is its outcome.
fn point(ends: &mut dyn Ends, plan: &SweepPlan, cell: SweepCell) -> Result<SweepOutcome, EndsError> {
    let outcome = match cell.protocol {
        SweepProtocol::Udp => udp(ends, plan, cell),
        SweepProtocol::Tcp => tcp(ends, plan, cell),
    };
    match outcome {
        Ok(figures) => Ok(SweepOutcome::Measured(figures)),
        // Where the other end does not answer any more, it is not the point that cannot be measured.
        Err(EndsError::Failed(why)) => match ends.inventory(Place::Server) {
            Ok(_) => Ok(SweepOutcome::CannotRun(why)),
            Err(_) => Err(EndsError::Failed(why)),
        },
        Err(other) => Err(other),
    }
}

fn udp(ends: &mut dyn Ends, plan: &SweepPlan, cell: SweepCell) -> Result<Vec<SweepFigures>, EndsError> {
    let load = UdpPlan {
        streams: plan.streams,
        direction: cell.direction,
        rate_up: plan.rate,
        rate_down: plan.rate,
        sizes: DatagramSizes::Sequence(vec![cell.size_bytes]),
        duration_ms: plan.trial_ms,
        omit_ms: plan.omit_ms,
        interval_ms: interval_ms(plan),
        ..UdpPlan::default()
    };
    let trial = whole(ends, &load.clone().into())?;
    let mut figures = trial.of().map_or_else(Vec::new, figures::of_udp);
    if searched(plan, cell) {
        let load = beside(load, &figures);
        for flow in &mut figures {
            flow.lossless = Some(lossless::find(ends, &load, flow, cell.size_bytes)?);
        }
    }
    Ok(figures)
}

/// While one way is searched, the other one carries what it was seen to carry.
fn beside(load: UdpPlan, figures: &[SweepFigures]) -> UdpPlan {
    let carried = |flow: Flow, asked: UdpRate| {
        let seen = figures.iter().find(|it| it.flow == flow).and_then(|it| it.receiving_bps);
        seen.map_or(asked, |bps| UdpRate::Bps(bps.round().max(1.0) as u64))
    };
    UdpPlan { rate_up: carried(Flow::Up, load.rate_up), rate_down: carried(Flow::Down, load.rate_down), ..load }
}

fn tcp(ends: &mut dyn Ends, plan: &SweepPlan, cell: SweepCell) -> Result<Vec<SweepFigures>, EndsError> {
    let load = TcpPlan {
        streams: plan.streams,
        direction: cell.direction,
        limit: Limit::DurationMs(plan.trial_ms),
        omit_ms: plan.omit_ms,
        interval_ms: interval_ms(plan),
        message_bytes: cell.size_bytes,
        keeps_message_bytes: true,
        no_delay: true,
        ..TcpPlan::default()
    };
    let trial = whole(ends, &load.into())?;
    Ok(trial.of().map_or_else(Vec::new, figures::of_tcp))
}

/// A trial that ran to its end.
fn whole(ends: &mut dyn Ends, plan: &LoadPlan) -> Result<Trial, EndsError> {
    match ends.trial(plan, On::Path, &mut |_, _| {}) {
        Ok(_) if ends.stopped() => Err(EndsError::Interrupted),
        Ok(trial) => Ok(trial),
        Err(TrialFailed { why, .. }) => Err(why),
    }
}

const fn searched(plan: &SweepPlan, cell: SweepCell) -> bool {
    plan.search_lossless && matches!(cell.protocol, SweepProtocol::Udp)
}

/// Samples enough for the cost of the CPUs, and no more.
fn interval_ms(plan: &SweepPlan) -> u64 {
    (plan.trial_ms / 10).clamp(50, 1_000)
}
