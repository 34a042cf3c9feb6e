//! One plain measurement from begin to end.

use crate::ends::{Ends, EndsError, On, TrialFailed};
use narrows_model::run::{Ending, Purpose, RunPlan, TrialRecord};
use narrows_model::{LoadPlan, Place, Progress, Run, Snapshot, Target, Trial};
use narrows_sys::clock;

/// Hears how a measurement goes.
pub trait Watch {
    /// The run as it is before its first trial.
    fn planned(&mut self, _run: &Run) {}
    /// A trial of this plan begins.
    fn begins(&mut self, _plan: &LoadPlan) {}
    /// The progress of one end.
    fn progress(&mut self, _place: Place, _progress: &Progress) {}
    /// The trial is over, or as much of it as was measured.
    fn ended(&mut self, _trial: &Trial) {}
}

/// Shows nothing.
impl Watch for () {}

/// A run that holds no trial yet. `name` is its id and the program that makes it.
pub fn empty_run(plan: RunPlan, target: Target, name: (String, String)) -> Run {
    let (id, made_by) = name;
    Run {
        format: Run::FORMAT,
        id,
        made_by,
        started_unix_us: clock::unix_us(),
        elapsed_us: 0,
        plan,
        target,
        client: Snapshot::default(),
        server: Snapshot::default(),
        idle_rtt_us: Vec::new(),
        trials: Vec::new(),
        search: None,
        sweep: None,
        path: None,
        attempts: Vec::new(),
        ending: Ending::Complete,
    }
}

/// Reads the inventories of both hosts into the run. A host that cannot be asked leaves its inventory empty.
pub(crate) fn take_inventories(ends: &mut dyn Ends, run: &mut Run) {
    run.client = ends.inventory(Place::Client).unwrap_or_default();
    run.server = ends.inventory(Place::Server).unwrap_or_default();
}

/// The trial as far as it was measured, and how the run ends with it.
fn ended(ends: &dyn Ends, outcome: Result<Trial, TrialFailed>) -> (Option<Trial>, Ending) {
    match outcome {
        Ok(trial) => (Some(trial), if ends.stopped() { Ending::Interrupted } else { Ending::Complete }),
        Err(TrialFailed { why, partial }) => (partial.map(|trial| *trial), ending(why)),
    }
}

/// How a run ends that this stopped.
pub(crate) fn ending(why: EndsError) -> Ending {
    match why {
        EndsError::Interrupted => Ending::Interrupted,
        EndsError::Lost(why) | EndsError::Failed(why) => Ending::Failed(why),
    }
}

/// Measures a load between two ends: one trial for each phase of its plan. What went wrong on the way is in the run's ending.
pub fn measure(
    ends: &mut dyn Ends,
    plan: &LoadPlan,
    target: Target,
    name: (String, String),
    watch: &mut dyn Watch,
) -> Run {
    let began = clock::now();
    let phases = plan.phases();
    if let Some(first) = phases.first() {
        watch.begins(first);
    }
    let mut run = empty_run(RunPlan::Measure(plan.clone()), target, name);
    run.idle_rtt_us = ends.idle_rtt_us();
    if plan.needs_inventory() {
        take_inventories(ends, &mut run);
    }
    watch.planned(&run);
    for (nth, phase) in phases.iter().enumerate() {
        if nth > 0 {
            watch.begins(phase);
        }
        let at_us = clock::micros_since(began);
        let outcome = ends.trial(phase, On::Path, &mut |place, progress| watch.progress(place, progress));
        let (trial, ending) = ended(ends, outcome);
        trial.iter().for_each(|trial| watch.ended(trial));
        run.trials.extend(trial.map(|trial| TrialRecord { purpose: Purpose::Measure, at_us, trial }));
        run.ending = ending;
        if run.ending != Ending::Complete {
            break;
        }
    }
    run.elapsed_us = clock::micros_since(began);
    // After the load, where it disturbs nothing; two runs are compared by it.
    if !plan.needs_inventory() && !matches!(run.ending, Ending::Failed(_)) {
        take_inventories(ends, &mut run);
    }
    run
}
