//! The state of an optimisation: its plan, the set so far, what is in force, the time that is left.

use crate::conductor::{At, InForce};
use crate::ends::Ends;
use narrows_model::run::optimise::{OptimiseGain, OptimiseReport, OptimiseTrial};
use narrows_model::{LoadPlan, Place, Progress, Snapshot, Target, TcpPlan};
use std::time::{Duration, Instant};

/// What is optimised, and how far.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimisePlan {
    /// The load of each measurement: TCP, in one direction, of limited time.
    pub load: TcpPlan,
    pub time: Duration,
    /// A change that gains less is not kept: 0.02 is 2 %.
    pub gain_min: f64,
    /// Whether the set stays in force.
    pub keep: bool,
    /// Whether the server may be changed.
    pub tune_server: bool,
}

/// Who hears how it goes.
pub trait Watch {
    /// A line of progress, and the time that is left.
    fn line(&mut self, text: &str, left: Duration);
    /// A load is running.
    fn progress(&mut self, place: Place, progress: &Progress, planned_ms: Option<u64>);
}

/// A setting of the current set and why it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) at: At,
    pub(super) origin: String,
}

/// An optimisation under way.
pub(super) struct Optimiser<'a> {
    pub(super) ends: &'a mut dyn Ends,
    pub(super) watch: &'a mut dyn Watch,
    pub(super) plan: &'a OptimisePlan,
    pub(super) target: Target,
    pub(super) tag: String,
    pub(super) began: Instant,
    /// What a measurement takes, milliseconds.
    pub(super) trial_ms: u64,
    pub(super) set: Vec<Member>,
    pub(super) in_force: InForce,
    pub(super) hosts: [Snapshot; 2],
    pub(super) report: OptimiseReport,
}

pub(super) fn duration_ms(load: &TcpPlan) -> u64 {
    LoadPlan::from(load.clone()).duration_ms().unwrap_or(0)
}

impl Optimiser<'_> {
    pub(super) fn left(&self) -> Duration {
        self.plan.time.saturating_sub(self.began.elapsed())
    }

    pub(super) fn say(&mut self, text: &str) {
        let left = self.left();
        self.watch.line(text, left);
    }

    /// Whether so many measurements fit, beside those that a set needs at the end. Notes that the time was short.
    pub(super) fn fits(&mut self, trials: u64) -> bool {
        let fits = u128::from(trials * self.trial_ms) <= self.left().as_millis();
        if !fits {
            "the time is over".clone_into(&mut self.report.stopped);
        }
        fits
    }

    pub(super) fn may(&self, place: Place) -> bool {
        place == Place::Client || (place == Place::Server && self.plan.tune_server)
    }

    pub(super) fn note(&mut self, what: &[At], origin: &str, gain: Option<OptimiseGain>, outcome: &str) {
        let what: Vec<String> = what.iter().map(|(at, set)| format!("{at}: {set}")).collect();
        let gained = gain.as_ref().map_or_else(String::new, |it| {
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            let [low, high] = it.interval.map(percent);
            format!("{:+.1} % ({low:+.1} to {high:+.1} %), ", percent(it.ratio))
        });
        self.say(&format!("  {gained}{outcome}"));
        self.report.tried.push(OptimiseTrial { what, origin: origin.to_owned(), gain, outcome: outcome.to_owned() });
    }
}
