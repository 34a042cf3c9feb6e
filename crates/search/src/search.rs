//! The interface of a search: it requests trials and accepts observations.

use crate::bisection::Bisection;
use crate::bounds::History;
use crate::classify::reduce;
use crate::loss_curve::LossCurve;
use crate::mlr::Mlr;
use crate::results;
use crate::strategy::{Probe, Strategy};
use narrows_model::run::search::{
    GoalBounds, GoalResult, LoadTrial, Observation, SearchMethod, SearchPlan, SearchRecord,
};
use std::time::Duration;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The plan is invalid.
    #[error("cannot search: {0}")]
    Plan(String),
    /// An observation without a requested trial.
    #[error("an observation came, but no trial is under way: ask for the next one first")]
    NoTrialPending,
}

/// The next step of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Trial {
        /// Intended load, packets a second.
        load_pps: f64,
        /// Duration of the load.
        duration: Duration,
    },
    /// The search has ended: the results, one per goal.
    Done(Vec<GoalResult>),
}

#[derive(Debug)]
pub struct Search {
    plan: SearchPlan,
    strategy: Box<dyn Strategy>,
    history: History,
    trials: Vec<LoadTrial>,
    started: Option<Duration>,
    pending: Option<Probe>,
    ended: bool,
}

impl Search {
    /// A search that has not started.
    /// Errors: what is wrong with the plan ([`SearchPlan::check`]).
    pub fn new(plan: &SearchPlan) -> Result<Self, SearchError> {
        plan.check().map_err(SearchError::Plan)?;
        let strategy: Box<dyn Strategy> = match plan.method {
            SearchMethod::Mlr => Box::new(Mlr::new(plan)),
            SearchMethod::Bisection => Box::new(Bisection::new(plan)),
            SearchMethod::LossCurve { step, trial_ms } => Box::new(LossCurve::new(plan, step, trial_ms)),
        };
        Ok(Self {
            plan: plan.clone(),
            strategy,
            history: History::new(plan.invalid_retries),
            trials: Vec::new(),
            started: None,
            pending: None,
            ended: false,
        })
    }

    /// The next trial, or the results. The first call starts the search; `now` is of any monotonic clock. Repeated
    /// calls return the same trial until it is observed.
    pub fn next(&mut self, now: Duration) -> Step {
        let spent = now.saturating_sub(*self.started.get_or_insert(now));
        if self.pending.is_none() && !self.ended {
            self.pending = self.choose(spent);
            self.ended = self.pending.is_none();
        }
        self.pending.map_or_else(
            || Step::Done(self.results()),
            |probe| Step::Trial { load_pps: probe.load_pps, duration: Duration::from_millis(probe.duration_ms) },
        )
    }

    fn choose(&mut self, spent: Duration) -> Option<Probe> {
        if self.trials.len() >= self.plan.max_trials as usize {
            return None;
        }
        let probe = self.strategy.propose(&self.history)?;
        let ends = spent.saturating_add(Duration::from_millis(probe.duration_ms));
        (ends <= Duration::from_millis(self.plan.max_search_ms)).then_some(probe)
    }

    /// Adds the observation of the requested trial. Returns why the trial is invalid, if so; it is then repeated,
    /// or its load abandoned.
    /// Errors: [`SearchError::NoTrialPending`] where [`Search::next`] did not ask for a trial since the last
    /// observation.
    pub fn observe(&mut self, seen: Observation, now: Duration) -> Result<Option<String>, SearchError> {
        let probe = self.pending.take().ok_or(SearchError::NoTrialPending)?;
        let spent = now.saturating_sub(self.started.unwrap_or(now));
        let ended_at_ms = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
        let trial = LoadTrial { load_pps: probe.load_pps, duration_ms: probe.duration_ms, ended_at_ms, seen };
        self.history.add(&trial);
        let invalid = reduce(&trial).err().map(std::borrow::Cow::into_owned);
        self.trials.push(trial);
        Ok(invalid)
    }

    /// Ends the search with the results known now. An outstanding observation is still accepted.
    pub const fn stop(&mut self) {
        self.ended = true;
    }

    /// The current bounds of each goal.
    pub fn bounds(&self) -> Vec<GoalBounds> {
        self.strategy.bounds(&self.history)
    }

    /// The results known now.
    pub fn results(&self) -> Vec<GoalResult> {
        results::of_history(&self.plan, &self.history)
    }

    pub fn trials(&self) -> &[LoadTrial] {
        &self.trials
    }

    /// The whole search, for the store.
    pub fn record(&self) -> SearchRecord {
        SearchRecord {
            plan: self.plan.clone(),
            trials: self.trials.clone(),
            results: self.results(),
            spent: Vec::new(),
        }
    }
}
