//! One diagnosis from begin to end: inventory, baseline, experiments, and with `--try` the climb up the roofline.
//!
//! The [`Run`] grows step by step and is handed to [`Watch::save`] after each, so that nothing measured is lost.

mod climb;

use crate::ends::{Ends, EndsError, TrialFailed};
use narrows_diagnose::judge::Planned;
use narrows_model::load::tcp::{DiagnosePlan, Limit};
use narrows_model::run::{Ending, Purpose, RrTrialRecord, RunPlan, TrialRecord, UdpTrialRecord};
use narrows_model::{LoadPlan, Place, Run, Status, Target, UdpRate, Verdict, words::units};
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
        let load = match &self.plan.udp {
            Some(plan) => LoadPlan::Udp(plan.clone()),
            None => LoadPlan::Tcp(self.plan.load.clone()),
        };
        let first = self.act(0, &load)?;
        if self.plan.try_fixes {
            self.climb(first, load)?;
        }
        Ok(())
    }

    /// One act: the baseline, then the experiments that are still wanted while the time lasts.
    fn act(&mut self, act: u32, load: &LoadPlan) -> Result<Verdict, EndsError> {
        let began = if act == 0 { self.began } else { clock::now() };
        self.watch.step(&format!("load: {}", words(load)));
        self.trial(Purpose::Baseline { act }, load)?;
        loop {
            let nothing =
                || EndsError::Failed("nothing arrived at the receiver, so there is nothing to account for".to_owned());
            let narrows_diagnose::Diagnosis { verdict, next, .. } =
                narrows_diagnose::diagnose(&self.run, act).ok_or_else(nothing)?;
            let left_ms = self.plan.budget_ms.saturating_sub(clock::micros_since(began) / 1000);
            let next = next.into_iter().find(|next| cost_ms(next).is_some_and(|cost| cost <= left_ms));
            let Some(next) = next else {
                self.watch.result(&verdict.headline);
                return Ok(verdict);
            };
            self.watch.step(&format!("experiment {}: {}", next.id, next.words));
            let purpose = Purpose::Experiment { act, id: next.id.to_owned() };
            let outcome =
                if next.loopback { self.loopback(purpose, &next.plan) } else { self.trial(purpose, &next.plan) };
            match outcome {
                // An experiment that fails leaves its question open; it is not asked again.
                Err(EndsError::Failed(why)) => {
                    self.watch.result(&format!("the experiment failed: {why}"));
                    self.watch.result(&verdict.headline);
                    return Ok(verdict);
                }
                other => other?,
            }
        }
    }

    fn loopback(&mut self, purpose: Purpose, plan: &LoadPlan) -> Result<(), EndsError> {
        let LoadPlan::Tcp(plan) = plan else { return Ok(()) };
        let at_us = clock::micros_since(self.began);
        let outcome = self.ends.loopback(plan);
        let (trial, result) = parts(outcome);
        self.run.trials.extend(trial.map(|trial| TrialRecord { purpose, at_us, trial }));
        self.recorded(result)
    }

    /// Makes a trial and puts it into the run, whole or as far as it came.
    fn trial(&mut self, purpose: Purpose, plan: &LoadPlan) -> Result<(), EndsError> {
        if self.ends.stopped() {
            return Err(EndsError::Interrupted);
        }
        let at_us = clock::micros_since(self.began);
        let planned_ms = plan.duration_ms();
        let watch = &mut *self.watch;
        let mut tell = |place, progress: &TrialProgress| watch.progress(place, progress, planned_ms);
        let result = match plan {
            LoadPlan::Tcp(plan) => {
                let (trial, result) = parts(self.ends.trial(plan, &mut tell));
                self.run.trials.extend(trial.map(|trial| TrialRecord { purpose, at_us, trial }));
                result
            }
            LoadPlan::Udp(plan) => {
                let (trial, result) = parts(self.ends.udp_trial(plan, &mut tell));
                self.run.udp.extend(trial.map(|trial| UdpTrialRecord { purpose, at_us, trial }));
                result
            }
            LoadPlan::Rr(plan) => {
                let (trial, result) = parts(self.ends.rr_trial(plan, &mut tell));
                self.run.rr.extend(trial.map(|trial| RrTrialRecord { purpose, at_us, trial }));
                result
            }
        };
        self.recorded(result)
    }

    fn recorded(&mut self, result: Result<(), EndsError>) -> Result<(), EndsError> {
        self.save();
        if result.is_ok() && self.ends.stopped() { Err(EndsError::Interrupted) } else { result }
    }

    fn save(&mut self) {
        self.run.elapsed_us = clock::micros_since(self.began);
        self.watch.save(&self.run);
    }
}

/// How long a trial of an experiment takes; `None` where its plan does not say.
fn cost_ms(planned: &Planned) -> Option<u64> {
    Some(planned.plan.duration_ms()? + OVERHEAD_MS)
}

fn parts<T>(outcome: Result<T, TrialFailed<T>>) -> (Option<T>, Result<(), EndsError>) {
    match outcome {
        Ok(trial) => (Some(trial), Ok(())),
        Err(TrialFailed { why, partial }) => (partial.map(|trial| *trial), Err(why)),
    }
}

/// A load in a few words.
fn words(load: &LoadPlan) -> String {
    let (what, direction, span) = match load {
        LoadPlan::Tcp(plan) => {
            let span = match plan.limit {
                Limit::DurationMs(ms) => units::micros(ms * 1000),
                Limit::BytesPerStream(bytes) => units::bytes(bytes),
            };
            ("TCP".to_owned(), plan.direction, span)
        }
        LoadPlan::Udp(plan) => {
            let rate = match plan.rate(plan.flows().first().copied().unwrap_or(narrows_model::Flow::Up)) {
                UdpRate::Bps(bps) => format!("UDP at {}", units::bps(bps as f64)),
                UdpRate::Pps(pps) => format!("UDP at {pps} datagrams/s"),
                UdpRate::Max => "as much UDP as goes".to_owned(),
            };
            (rate, plan.direction, units::micros(plan.duration_ms * 1000))
        }
        LoadPlan::Rr(plan) => {
            ("requests".to_owned(), narrows_model::Direction::Up, units::micros(plan.duration_ms * 1000))
        }
    };
    format!("{what} {direction} for {span}")
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
