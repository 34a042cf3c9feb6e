//! One diagnosis from begin to end: inventory, baseline, experiments, and with `--try` the climb up the roofline.
//!
//! The [`Run`] grows step by step and is handed to [`Watch::save`] after each, so that nothing measured is lost.

mod climb;

use crate::ends::{Ends, EndsError, TrialFailed};
use narrows_diagnose::{ActDiagnosis, Experiment, diagnose_act};
use narrows_model::plan::{DiagnosePlan, Limit, TcpPlan};
use narrows_model::run::{Ending, Purpose, RunPlan, TrialRecord};
use narrows_model::{Place, Run, Status, Target, Trial};
use narrows_sys::clock;
use narrows_wire::api::TrialProgress;
use std::time::Instant;

/// What a diagnosis tells its user while it goes on.
pub trait Watch {
    /// A new step begins: one short sentence.
    fn step(&mut self, text: &str);
    /// A step brought something worth saying.
    fn result(&mut self, text: &str);
    /// A trial goes on; `planned_ms` is how long it will take in all.
    fn progress(&mut self, place: Place, progress: &TrialProgress, planned_ms: Option<u64>);
    /// Something new was measured.
    fn save(&mut self, run: &Run);
}

/// What is left of an experiment's cost when the time budget is checked: set-up, tear-down and the grace for the last bytes.
const OVERHEAD_MS: u64 = 400;

/// A diagnosis under way.
pub(crate) struct Diagnosis<'a> {
    ends: &'a mut dyn Ends,
    watch: &'a mut dyn Watch,
    plan: DiagnosePlan,
    run: Run,
    began: Instant,
}

/// Diagnoses the path between two ends. What went wrong on the way is in the run's ending; what was measured is in the run.
pub fn diagnose(
    ends: &mut dyn Ends,
    watch: &mut dyn Watch,
    plan: &DiagnosePlan,
    target: Target,
    id: String,
    made_by: String,
) -> Run {
    let run = Run {
        format: Run::FORMAT,
        id,
        made_by,
        started_unix_us: clock::unix_us(),
        elapsed_us: 0,
        plan: RunPlan::Diagnose(plan.clone()),
        target,
        client: narrows_model::Snapshot::default(),
        server: narrows_model::Snapshot::default(),
        idle_rtt_us: Vec::new(),
        trials: Vec::new(),
        udp: Vec::new(),
        rr: Vec::new(),
        search: None,
        sweep: None,
        attempts: Vec::new(),
        ending: Ending::Complete,
    };
    let mut diagnosis = Diagnosis { ends, watch, plan: plan.clone(), run, began: clock::now() };
    if let Err(why) = diagnosis.go() {
        diagnosis.run.ending = match why {
            EndsError::Interrupted => Ending::Interrupted,
            EndsError::Lost(why) | EndsError::Failed(why) => Ending::Failed(why),
        };
    }
    diagnosis.run.elapsed_us = clock::micros_since(diagnosis.began);
    diagnosis.save();
    diagnosis.run
}

impl Diagnosis<'_> {
    fn go(&mut self) -> Result<(), EndsError> {
        self.watch.step("inventory of both hosts");
        self.run.client = self.ends.inventory(Place::Client)?;
        self.run.server = self.ends.inventory(Place::Server)?;
        self.run.idle_rtt_us = self.ends.idle_rtt_us();
        self.save();
        let load = self.plan.load.clone();
        let first = self.act(0, &load)?;
        if self.plan.try_fixes {
            self.climb(first)?;
        }
        Ok(())
    }

    /// One act: the baseline, then the experiments that are still wanted while the time lasts.
    fn act(&mut self, act: u32, load: &TcpPlan) -> Result<ActDiagnosis, EndsError> {
        let began = clock::now();
        self.watch.step(&format!("load: TCP {} for {}", load.direction, span(load)));
        self.trial(Purpose::Baseline { act }, load)?;
        loop {
            let diagnosis = diagnose_act(&self.run, act).ok_or_else(|| {
                EndsError::Failed("nothing arrived at the receiver, so there is nothing to account for".to_owned())
            })?;
            let left_ms = self.plan.budget_ms.saturating_sub(if act == 0 {
                clock::micros_since(self.began) / 1000
            } else {
                clock::micros_since(began) / 1000
            });
            let next = diagnosis.wanted.iter().find_map(|experiment| {
                let evidence = narrows_diagnose::Evidence::of(&self.run, act)?;
                let plan = experiment.plan(&evidence)?;
                (duration_ms(&plan)? + OVERHEAD_MS <= left_ms).then_some((*experiment, plan))
            });
            let Some((experiment, plan)) = next else {
                self.watch.result(&diagnosis.verdict.headline);
                return Ok(diagnosis);
            };
            self.watch.step(&format!("experiment {}: {}", experiment.id(), experiment.what()));
            let purpose = Purpose::Experiment { act, id: experiment.id().to_owned() };
            match self.experiment(experiment, purpose, &plan) {
                // An experiment that fails leaves its question open; it is not asked again.
                Err(EndsError::Failed(why)) => {
                    self.watch.result(&format!("the experiment failed: {why}"));
                    self.watch.result(&diagnosis.verdict.headline);
                    return Ok(diagnosis);
                }
                other => other?,
            }
        }
    }

    fn experiment(&mut self, experiment: Experiment, purpose: Purpose, plan: &TcpPlan) -> Result<(), EndsError> {
        if experiment == Experiment::Loopback {
            let at_us = clock::micros_since(self.began);
            let outcome = self.ends.loopback(plan);
            return self.record(purpose, at_us, outcome);
        }
        self.trial(purpose, plan)
    }

    /// Makes a trial and puts it into the run, whole or as far as it came.
    fn trial(&mut self, purpose: Purpose, plan: &TcpPlan) -> Result<(), EndsError> {
        if self.ends.stopped() {
            return Err(EndsError::Interrupted);
        }
        let at_us = clock::micros_since(self.began);
        let planned_ms = duration_ms(plan);
        let watch = &mut *self.watch;
        let outcome = self.ends.trial(plan, &mut |place, progress| watch.progress(place, progress, planned_ms));
        self.record(purpose, at_us, outcome)
    }

    fn record(&mut self, purpose: Purpose, at_us: u64, outcome: Result<Trial, TrialFailed>) -> Result<(), EndsError> {
        let (trial, result) = match outcome {
            Ok(trial) => (Some(trial), Ok(())),
            Err(TrialFailed { why, partial }) => (partial.map(|trial| *trial), Err(why)),
        };
        if let Some(trial) = trial {
            self.run.trials.push(TrialRecord { purpose, at_us, trial });
        }
        self.save();
        if result.is_ok() && self.ends.stopped() { Err(EndsError::Interrupted) } else { result }
    }

    fn save(&mut self) {
        self.run.elapsed_us = clock::micros_since(self.began);
        self.watch.save(&self.run);
    }
}

const fn duration_ms(plan: &TcpPlan) -> Option<u64> {
    match plan.limit {
        Limit::DurationMs(ms) => Some(ms),
        Limit::BytesPerStream(_) => None,
    }
}

fn span(plan: &TcpPlan) -> String {
    match plan.limit {
        Limit::DurationMs(ms) => narrows_model::units::micros(ms * 1000),
        Limit::BytesPerStream(bytes) => narrows_model::units::bytes(bytes),
    }
}

/// The exit code of a verdict: 0 healthy or nothing found, 3 a limiting cause was found.
#[must_use]
pub const fn exit_code(status: Status) -> u8 {
    match status {
        Status::Limited => 3,
        Status::Healthy | Status::Suspected | Status::Unknown => 0,
    }
}

/// The status that a run ends with: that of its last act.
#[must_use]
pub fn final_status(run: &Run) -> Option<Status> {
    let report = narrows_diagnose::report(run)?;
    Some(report.acts.last().map_or(report.verdict.status, |act| act.status))
}
