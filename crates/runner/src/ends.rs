//! The two ends of a path, as the orchestration needs them. Live ones talk to a server; tests bring their own.

use narrows_diagnose::path::Wanted;
use narrows_model::{Change, LoadPlan, Place, Progress, Setting, Snapshot, TraceRecord, Trial};
use std::net::IpAddr;
use std::time::Duration;
use thiserror::Error;

/// Why something could not be done with the two ends.
#[derive(Debug, Error)]
pub enum EndsError {
    /// The user asked to stop; nothing is wrong.
    #[error("interrupted")]
    Interrupted,
    /// The other end cannot be reached any more: nothing further can be measured.
    #[error("{0}")]
    Lost(String),
    /// This one thing failed; others may work.
    #[error("{0}")]
    Failed(String),
}

/// A trial that ended early, with what was measured.
#[derive(Debug)]
pub struct TrialFailed {
    pub why: EndsError,
    /// What both ends saw so far.
    pub partial: Option<Box<Trial>>,
}

/// Where the data of a trial goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// Over the path between the two ends.
    Path,
    /// To the same server by another address.
    Underlay(IpAddr),
    /// Over the loopback of the client, which runs both ends.
    Loopback,
}

/// Called with the progress of both ends while a trial runs.
pub type Watch<'a> = &'a mut dyn FnMut(Place, &Progress);

/// Hosts whose settings can be changed.
pub trait Changes {
    /// Changes a host; the old value is on its disk before the new one is set.
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError>;

    /// Rolls a change back.
    /// Errors: if it could not be rolled back: the journal on that host still has it.
    fn undo(&mut self, change: &Change) -> Result<(), EndsError>;

    /// Lets a change stay when the run is over.
    fn keep(&mut self, change: &Change) -> Result<(), EndsError>;
}

/// The two ends of a path.
pub trait Ends: Changes {
    /// What is known of a host.
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError>;

    /// RTTs of the idle path, microseconds, smallest first; empty where they could not be measured.
    fn idle_rtt_us(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Why these ends cannot run such a load over the path; `None` where they can.
    fn refuses(&self, _plan: &LoadPlan) -> Option<String> {
        None
    }

    /// The nearest plan that these ends can run, of one whose times nobody gave.
    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        plan.clone()
    }

    /// How many times its limit, which is of its load, a path profile takes at most.
    fn profile_takes(&self) -> u64 {
        1
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed>;

    /// Runs one trial, which ends before its time once `enough` says so of the progress of an end. Ends that cannot end one early run it
    /// whole.
    fn trial_until(
        &mut self,
        plan: &LoadPlan,
        on: On,
        enough: &mut dyn FnMut(Place, &Progress) -> bool,
    ) -> Result<Trial, TrialFailed> {
        self.trial(plan, on, &mut |place, progress| {
            enough(place, progress);
        })
    }

    /// Goes on with a new session where the other end gave up the one before, as under a load that lets nothing else pass. What
    /// the old session had changed is undone.
    fn renew(&mut self) -> Result<(), EndsError> {
        Err(EndsError::Failed("cannot reconnect these ends".to_owned()))
    }

    /// Traces the path between the ends for so long at most, from the end that `wanted` needs. `None` where that is not possible.
    fn trace(&mut self, wanted: &Wanted, limit: Duration) -> Option<TraceRecord> {
        let _ = (wanted, limit);
        None
    }

    /// Whether the user asked to stop.
    fn stopped(&self) -> bool;
}
