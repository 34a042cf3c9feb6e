//! The interface of a search: it says which trial comes next, and takes what was seen.

use crate::bisection::Bisection;
use crate::bounds::Book;
use crate::classify::weigh;
use crate::loss_curve::LossCurve;
use crate::mlr::Mlr;
use crate::results;
use narrows_model::run::search::{
    GoalBounds, GoalResult, LoadTrial, Observation, SearchMethod, SearchPlan, SearchRecord,
};
use std::fmt::Debug;
use std::time::Duration;
use thiserror::Error;

/// What a search cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SearchError {
    /// The plan is out of its limits.
    #[error("cannot search: {0}")]
    Plan(String),
    /// An observation of a trial that was never asked for.
    #[error("an observation came, but no trial is under way: ask for the next one first")]
    NothingAsked,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A trial.
    Trial {
        /// Intended load, packets a second.
        load_pps: f64,
        /// How long the load is to be sent.
        duration: Duration,
    },
    /// Nothing: the results, one per goal.
    Done(Vec<GoalResult>),
}

/// A trial to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Intended load.
    pub load_pps: f64,
    /// Its duration.
    pub duration_ms: u64,
}

/// A way to choose loads. It may keep where it is; what the trials say, it reads from the book.
pub trait Strategy: Debug + Send {
    /// The next trial; `None` when nothing is left to find. Asked again without a new trial, it says the same.
    fn propose(&mut self, book: &Book) -> Option<Probe>;

    /// Where it stands, one per goal.
    fn bounds(&self, book: &Book) -> Vec<GoalBounds>;
}

/// A search under way.
#[derive(Debug)]
pub struct Search {
    plan: SearchPlan,
    strategy: Box<dyn Strategy>,
    book: Book,
    trials: Vec<LoadTrial>,
    began: Option<Duration>,
    asked: Option<Probe>,
    ended: bool,
}

impl Search {
    /// A search that has not begun.
    ///
    /// # Errors
    /// What is wrong with the plan ([`SearchPlan::check`]).
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
            book: Book::new(plan.invalid_retries),
            trials: Vec::new(),
            began: None,
            asked: None,
            ended: false,
        })
    }

    /// The next trial, or the results. The first call begins the search; `now` is of any monotonic clock. Until what it
    /// asks for is observed, it asks for the same.
    pub fn next(&mut self, now: Duration) -> Step {
        let spent = now.saturating_sub(*self.began.get_or_insert(now));
        if self.asked.is_none() && !self.ended {
            self.asked = self.choose(spent);
            self.ended = self.asked.is_none();
        }
        self.asked.map_or_else(
            || Step::Done(self.results()),
            |probe| Step::Trial { load_pps: probe.load_pps, duration: Duration::from_millis(probe.duration_ms) },
        )
    }

    fn choose(&mut self, spent: Duration) -> Option<Probe> {
        if self.trials.len() >= self.plan.max_trials as usize {
            return None;
        }
        let probe = self.strategy.propose(&self.book)?;
        let ends = spent.saturating_add(Duration::from_millis(probe.duration_ms));
        (ends <= Duration::from_millis(self.plan.max_search_ms)).then_some(probe)
    }

    /// Takes what was seen of the trial that was asked for. The answer says why the trial counts for nothing, if so; it
    /// is then asked for again, or its load given up.
    ///
    /// # Errors
    /// [`SearchError::NothingAsked`] where [`Search::next`] did not ask for a trial since the last observation.
    pub fn observe(&mut self, seen: Observation, now: Duration) -> Result<Option<String>, SearchError> {
        let probe = self.asked.take().ok_or(SearchError::NothingAsked)?;
        let spent = now.saturating_sub(self.began.unwrap_or(now));
        let ended_at_ms = u64::try_from(spent.as_millis()).unwrap_or(u64::MAX);
        let trial = LoadTrial { load_pps: probe.load_pps, duration_ms: probe.duration_ms, ended_at_ms, seen };
        self.book.add(&trial);
        let invalid = weigh(&trial).err().map(std::borrow::Cow::into_owned);
        self.trials.push(trial);
        Ok(invalid)
    }

    /// Ends the search: what is known now is the result. An observation that is still to come is taken.
    pub const fn stop(&mut self) {
        self.ended = true;
    }

    /// Where the search for each goal stands.
    #[must_use]
    pub fn bounds(&self) -> Vec<GoalBounds> {
        self.strategy.bounds(&self.book)
    }

    /// The results by what is known now.
    #[must_use]
    pub fn results(&self) -> Vec<GoalResult> {
        results::of_book(&self.plan, &self.book)
    }

    /// Every trial so far.
    #[must_use]
    pub fn trials(&self) -> &[LoadTrial] {
        &self.trials
    }

    /// The whole search, for the store.
    #[must_use]
    pub fn record(&self) -> SearchRecord {
        SearchRecord { plan: self.plan.clone(), trials: self.trials.clone(), results: self.results() }
    }
}
