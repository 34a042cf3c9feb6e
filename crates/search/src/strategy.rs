//! What a search strategy is: it chooses the load of the next trial.

use crate::bounds::History;
use narrows_model::run::search::GoalBounds;
use std::fmt::Debug;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    pub load_pps: f64,
    pub duration_ms: u64,
}

/// Chooses loads. It may keep state; the trials' results are in the history.
pub trait Strategy: Debug + Send {
    /// The next trial; `None` when the search is complete. Repeated calls without a new trial give the same answer.
    fn propose(&mut self, history: &History) -> Option<Probe>;

    /// The current bounds, one per goal.
    fn bounds(&self, history: &History) -> Vec<GoalBounds>;
}
