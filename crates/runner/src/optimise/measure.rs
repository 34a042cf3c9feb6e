//! Measurements of the optimiser: the settings that are in force, pairs of runs, diagnoses.

use super::state::{Optimiser, Watch, duration_ms};
use crate::conductor::{At, sides};
use crate::ends::EndsError;
use crate::{diagnosis, measure, stored};
use narrows_model::run::optimise::OptimiseGain;
use narrows_model::run::{DiagnosePlan, Ending};
use narrows_model::{LoadPlan, Place, Progress, Run, Verdict};
use narrows_stats::{LEVEL, difference, gain, shift};
use narrows_sys::clock;
use std::time::Duration;

/// Pairs of the last comparison: with 4 on each side the interval of ranks reaches 95 %.
pub(super) const CONFIRM_PAIRS: u64 = 5;
/// A diagnosis ends within this time.
pub(super) const DIAGNOSIS_MS: u64 = 15_000;

/// What two sets of settings carry.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
}

impl Pairs {
    /// Whether something arrived with the settings for certain, and nothing without them: that has no ratio.
    pub(super) fn nothing_before(&self) -> bool {
        self.gain().is_none() && difference(&self.before, &self.after, LEVEL).is_some_and(|more| more.interval[0] > 0.0)
    }

    pub(super) fn gain(&self) -> Option<OptimiseGain> {
        let (ratio, shift) = (gain(&self.before, &self.after)?, shift(&self.before, &self.after, LEVEL)?);
        Some(OptimiseGain {
            before_bps: self.before.clone(),
            after_bps: self.after.clone(),
            ratio: ratio.ratio,
            interval: ratio.interval,
            shift_bps: shift.by,
            shift_interval_bps: shift.interval,
        })
    }
}

impl Optimiser<'_> {
    /// Goodput with these settings, bits per second.
    fn goodput(&mut self, settings: &[At]) -> Result<f64, EndsError> {
        if self.ends.stopped() {
            return Err(EndsError::Interrupted);
        }
        self.in_force.reach(self.ends, settings)?;
        let load = LoadPlan::from(self.plan.load.clone());
        let name = stored::new_name().map_err(|error| EndsError::Failed(error.to_string()))?;
        let began = clock::now();
        let mut bridge = Bridge { watch: &mut *self.watch, left: Duration::ZERO, planned_ms: load.duration_ms() };
        let run = measure::measure(self.ends, &load, self.target.clone(), name, &mut bridge);
        self.trial_ms = self.trial_ms.max(clock::micros_since(began) / 1000);
        self.store(&run)?;
        let figures = stored::listed(&run).figures;
        figures
            .first()
            .map(|it| it.value)
            .ok_or_else(|| EndsError::Failed("nothing arrived at the receiver".to_owned()))
    }

    fn store(&mut self, run: &Run) -> Result<(), EndsError> {
        stored::keep(run, std::slice::from_ref(&self.tag)).map_err(|error| EndsError::Failed(error.to_string()))?;
        self.report.runs += 1;
        match &run.ending {
            Ending::Complete => Ok(()),
            Ending::Interrupted => Err(EndsError::Interrupted),
            Ending::Failed(why) => Err(EndsError::Lost(why.clone())),
        }
    }

    /// Adds a pair.
    pub(super) fn pair(&mut self, pairs: &mut Pairs, before: &[At], after: &[At]) -> Result<(), EndsError> {
        for second in sides(pairs.before.len()) {
            let bps = self.goodput(if second { after } else { before })?;
            if second { &mut pairs.after } else { &mut pairs.before }.push(bps);
        }
        Ok(())
    }

    /// Diagnoses with the settings that are in force.
    pub(super) fn diagnose(&mut self) -> Result<Verdict, EndsError> {
        let plan = DiagnosePlan {
            budget_ms: DIAGNOSIS_MS.max(4 * duration_ms(&self.plan.load)),
            profile: true,
            known_within: 0.03,
            ..DiagnosePlan::of(self.plan.load.clone().into())
        };
        let name = stored::new_name().map_err(|error| EndsError::Failed(error.to_string()))?;
        let mut bridge = Bridge { left: self.left(), watch: &mut *self.watch, planned_ms: None };
        let run = diagnosis::diagnose(self.ends, &mut bridge, &plan, self.target.clone(), name);
        self.store(&run)?;
        let known = narrows_diagnose::diagnose(&run, 0).map(|it| it.verdict);
        self.hosts = [run.client, run.server];
        known.ok_or_else(|| EndsError::Failed("nothing arrived at the receiver".to_owned()))
    }
}

/// What the parts report, for who watches the whole.
struct Bridge<'a> {
    watch: &'a mut dyn Watch,
    left: Duration,
    planned_ms: Option<u64>,
}

impl measure::Watch for Bridge<'_> {
    fn progress(&mut self, place: Place, progress: &Progress) {
        self.watch.progress(place, progress, self.planned_ms);
    }
}

impl diagnosis::Watch for Bridge<'_> {
    fn result(&mut self, text: &str) {
        self.watch.line(&format!("  {text}"), self.left);
    }
    fn progress(&mut self, place: Place, progress: &Progress, planned_ms: Option<u64>) {
        self.watch.progress(place, progress, planned_ms);
    }
}
