//! One step of a campaign: its settings, its run, and their roll-back.

use super::commands::{NotSet, Undo};
use super::foreign;
use super::plan::{CampaignPlan, Load};
use super::schedule::Step;
use crate::conductor::{At, InForce};
use crate::ends::{Ends, EndsError};
use crate::measure::{self, empty_run};
use crate::stored;
use narrows_model::run::command::CommandRecord;
use narrows_model::run::{Ending, RunPlan};
use narrows_model::{Run, Target};

/// What one step gave.
pub(super) enum Outcome {
    Run(Box<Run>),
    Command(Box<CommandRecord>),
}

impl Outcome {
    pub(super) fn failed(&self) -> Option<&str> {
        match self {
            Self::Run(run) => match &run.ending {
                Ending::Failed(why) => Some(why),
                _ => None,
            },
            Self::Command(record) => record.failed.as_deref(),
        }
    }
}

/// Why a session ended before its steps.
pub(super) enum Stop {
    Interrupted,
    /// The same step again in a new session.
    Again,
    Lost(String),
    Failed(String),
}

impl From<EndsError> for Stop {
    fn from(error: EndsError) -> Self {
        match error {
            EndsError::Interrupted => Self::Interrupted,
            EndsError::Lost(why) => Self::Lost(why),
            EndsError::Failed(why) => Self::Failed(why),
        }
    }
}

/// A step, and what makes it.
pub(super) struct Making<'a> {
    pub(super) plan: &'a CampaignPlan,
    pub(super) step: &'a Step,
    pub(super) ends: &'a mut dyn Ends,
    pub(super) target: &'a Target,
    pub(super) undo: &'a mut Undo,
}

impl Making<'_> {
    /// One run, with the settings of its cell.
    pub(super) fn make(mut self) -> Result<Outcome, Stop> {
        let name = stored::new_name().map_err(|error| Stop::Failed(error.to_string()))?;
        let mut in_force = InForce::default();
        let outcome = match self.set(&mut in_force) {
            Ok(()) => self.measure(name),
            Err(NotSet::Failed(why)) => Ok(self.unset(name, why)),
            Err(NotSet::Stopped) => Err(Stop::Interrupted),
            Err(NotSet::Fatal(why)) => Err(Stop::Failed(why)),
            Err(NotSet::Ends(error)) => Err(error.into()),
        };
        // All of them, also after a failure: a host that is gone rolls back by itself.
        let restored = self.undo.restore().map_err(Stop::Failed);
        let left = in_force.end(self.ends, false);
        restored?;
        let outcome = outcome?;
        for (_, error) in left {
            if outcome.failed().is_none() || !matches!(error, EndsError::Lost(_)) {
                return Err(error.into());
            }
        }
        Ok(outcome)
    }

    fn set(&mut self, in_force: &mut InForce) -> Result<(), NotSet> {
        let (plan, step) = (self.plan, self.step);
        let settings: Vec<At> = plan.of_cell(&step.cell).flat_map(|(_, level)| level.settings.clone()).collect();
        in_force.reach(self.ends, &settings).map_err(NotSet::Ends)?;
        for (factor, level) in plan.of_cell(&step.cell) {
            if let Some(to) = &level.command {
                let stopped = || self.ends.stopped();
                self.undo.set(&factor.name, &plan.hosts[step.host], to, &stopped)?;
            }
        }
        Ok(())
    }

    fn measure(&mut self, name: (String, String)) -> Result<Outcome, Stop> {
        match self.plan.load(&self.step.cell) {
            Load::Narrows(load) => {
                let run = measure::measure(self.ends, &load, self.target.clone(), name, &mut ());
                if run.ending == Ending::Interrupted { Err(Stop::Interrupted) } else { Ok(Outcome::Run(Box::new(run))) }
            }
            Load::Command(load) => {
                let record = foreign::run(&load, self.host(), name, &|| self.ends.stopped());
                record.map(|it| Outcome::Command(Box::new(it))).ok_or(Stop::Interrupted)
            }
        }
    }

    fn host(&self) -> &str {
        &self.plan.hosts[self.step.host]
    }

    /// A run whose settings could not be made.
    fn unset(&self, name: (String, String), why: String) -> Outcome {
        match self.plan.load(&self.step.cell) {
            Load::Narrows(load) => {
                let run = empty_run(RunPlan::Measure(load), self.target.clone(), name);
                Outcome::Run(Box::new(Run { ending: Ending::Failed(why), ..run }))
            }
            Load::Command(load) => Outcome::Command(Box::new(foreign::not_run(&load, self.host(), name, why))),
        }
    }
}
