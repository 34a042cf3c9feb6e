//! All trials of a search by load, and the relevant bounds that follow for a target.

use crate::classify::{Class, Weighed, classify, forwarding_ratio, reduce};
use crate::goal::{Agreed, Target};
use narrows_model::run::search::LoadTrial;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A load as a key; loads are equal only if all bits are.
#[derive(Debug, Clone, Copy)]
struct Load(f64);

impl Ord for Load {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Load {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Load {}

/// The trials at one load.
#[derive(Debug, Clone, Default)]
struct At {
    valid: Vec<Weighed>,
    /// Invalid trials since the last valid one.
    invalid_run: u32,
    /// The tester could not make a valid trial here within the permitted retries.
    blocked: bool,
    /// The maximum throughput of an invalid trial, packets/s: not a result, but a hint for the next load.
    clue_pps: Option<f64>,
}

/// The relevant bounds of a target. `lower < upper` if both are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bounds {
    /// The highest load that passes, below the upper bound.
    pub lower: Option<f64>,
    /// The lowest load that fails.
    pub upper: Option<f64>,
}

impl Bounds {
    /// Whether nothing is left to find for the target.
    pub fn settled(&self, target: &Target, min: f64, max: f64) -> bool {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => target.narrow(lower, upper),
            (None, Some(upper)) => upper <= min,
            (Some(lower), None) => lower >= max,
            (None, None) => false,
        }
    }
}

/// The trials of a search by load.
#[derive(Debug, Clone)]
pub struct History {
    loads: BTreeMap<Load, At>,
    invalid_retries: u32,
}

impl History {
    /// An empty one; `retries` limits how often an invalid trial is repeated.
    pub const fn new(invalid_retries: u32) -> Self {
        Self { loads: BTreeMap::new(), invalid_retries }
    }

    /// One with these trials.
    pub fn of(trials: &[LoadTrial], invalid_retries: u32) -> Self {
        let mut history = Self::new(invalid_retries);
        for trial in trials {
            history.add(trial);
        }
        history
    }

    pub fn add(&mut self, trial: &LoadTrial) {
        let at = self.loads.entry(Load(trial.load_pps)).or_default();
        match reduce(trial) {
            Ok(weighed) => {
                at.valid.push(weighed);
                at.invalid_run = 0;
            }
            Err(_) => {
                at.invalid_run = at.invalid_run.saturating_add(1);
                at.blocked |= at.invalid_run > self.invalid_retries;
                let passed = trial.seen.received as f64 * 1e3 / trial.duration_ms.max(1) as f64;
                at.clue_pps = Some(at.clue_pps.map_or(passed, |clue| clue.max(passed)));
            }
        }
    }

    /// Whether the tester could not make a valid trial at a load.
    pub fn blocked(&self, load: f64) -> bool {
        self.loads.get(&Load(load)).is_some_and(|at| at.blocked)
    }

    /// The class of a load for a target. A blocked one is an upper bound: no trial there or above is useful.
    pub fn class(&self, target: &Target, load: f64) -> Class {
        self.loads.get(&Load(load)).map_or(Class::Undecided, |at| class(target, at))
    }

    /// The class that a load would have for a target if nothing had been left unsent.
    pub fn class_of_path(&self, target: &Target, load: f64) -> Class {
        classify(target, self.valid(load), |trial| trial.path_loss_ratio)
    }

    /// The relevant bounds of a target: the lowest upper bound, and the highest lower bound below it.
    pub fn bounds(&self, target: &Target) -> Bounds {
        let mut bounds = Bounds::default();
        for (load, at) in &self.loads {
            match class(target, at) {
                Class::Lower => bounds.lower = Some(load.0),
                Class::Undecided => {}
                Class::Upper => {
                    bounds.upper = Some(load.0);
                    break;
                }
            }
        }
        bounds
    }

    /// The bounds of a shorter sum where they settle a goal in agreement with a second witness.
    pub fn agreed(&self, agreed: &Agreed, min: f64, max: f64) -> Option<Bounds> {
        let bounds = self.bounds(&agreed.target);
        (bounds.settled(&agreed.target, min, max)
            && agreed.holds(bounds.lower, bounds.upper, |from| self.passed_from(from)))
        .then_some(bounds)
    }

    /// What passed, packets/s, of the lowest load not below this one with a valid trial: the median there.
    pub fn passed_from(&self, load: f64) -> Option<f64> {
        let (load, at) = self.loads.range(Load(load)..).find(|(_, at)| !at.valid.is_empty())?;
        let mut lost: Vec<f64> = at.valid.iter().map(|trial| trial.loss_ratio).collect();
        lost.sort_by(f64::total_cmp);
        Some(load.0 * (1.0 - lost[lost.len() / 2]))
    }

    /// Whether a load of this range has a valid trial.
    pub fn tried_between(&self, least: f64, most: f64) -> bool {
        self.loads.range(Load(least)..Load(most.max(least))).any(|(_, at)| !at.valid.is_empty())
    }

    /// Whether a load was tried.
    pub fn tried(&self, load: f64) -> bool {
        self.loads.contains_key(&Load(load))
    }

    /// Whether there are valid trials at a load, and none lost or left unsent more than a part.
    pub fn within(&self, loss_ratio: f64, load: f64) -> bool {
        let valid = self.valid(load);
        !valid.is_empty() && valid.iter().all(|trial| trial.loss_ratio <= loss_ratio)
    }

    /// Conditional throughput at a load that passes.
    pub fn conditional_throughput(&self, target: &Target, load: f64) -> f64 {
        load * forwarding_ratio(target, self.valid(load))
    }

    /// The load that would just pass a target if the throughput at this load is the maximum: the median of the
    /// valid trials there, otherwise the maximum of the others. A queue of `buffer_ms` raises the throughput of a short
    /// trial more than that of a long one. `None` without a trial.
    pub fn estimate(&self, target: &Target, load: f64, buffer_ms: f64) -> Option<f64> {
        let queued = |trial_ms: u64| 1.0 + buffer_ms / trial_ms.max(1) as f64;
        let share = |trial: &Weighed| (1.0 - trial.loss_ratio) * queued(target.trial_ms) / queued(trial.duration_ms);
        let mut shares: Vec<f64> = self.valid(load).iter().map(share).collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let passed = shares.get(shares.len() / 2).map(|share| load * share);
        passed.or_else(|| self.clue(load)).map(|pps| pps / (1.0 - target.loss_ratio))
    }

    /// Whether all trials at a load were invalid, with a throughput so low that the load is far above what passes:
    /// repeating it there would waste time.
    pub fn far_above(&self, load: f64) -> bool {
        self.valid(load).is_empty() && self.clue(load).is_some_and(|pps| pps < load / 2.0)
    }

    fn clue(&self, load: f64) -> Option<f64> {
        self.loads.get(&Load(load)).and_then(|at| at.clue_pps).filter(|pps| *pps > 0.0)
    }

    fn valid(&self, load: f64) -> &[Weighed] {
        self.loads.get(&Load(load)).map_or(&[], |at| &at.valid)
    }
}

fn class(target: &Target, at: &At) -> Class {
    if at.blocked { Class::Upper } else { classify(target, &at.valid, |trial| trial.loss_ratio) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::search::{Goal, Observation};

    fn trial(load_pps: f64, unsent: u64, lost: u64) -> LoadTrial {
        let intended = load_pps as u64;
        let sent = intended - unsent;
        let seen = Observation { intended, offered: intended, sent, received: sent - lost, ..Observation::default() };
        LoadTrial { load_pps, duration_ms: 1_000, ended_at_ms: 0, seen }
    }

    fn target() -> Target {
        Target { exceed_ratio: 0.0, sum_ms: 1_000.0, ..Target::last(&Goal::ndr()) }
    }

    #[test]
    fn a_load_that_passes_above_one_that_fails_is_not_relevant() {
        let trials = [trial(1e4, 0, 0), trial(2e4, 0, 1), trial(3e4, 0, 0), trial(4e4, 0, 1), trial(9e3, 0, 0)];
        let bounds = History::of(&trials, 2).bounds(&target());
        assert_eq!(bounds, Bounds { lower: Some(1e4), upper: Some(2e4) });
    }

    #[test]
    fn a_load_with_only_invalid_trials_is_a_barrier_after_the_repetitions() {
        let mut bad = trial(2e4, 0, 0);
        bad.seen.invalid = Some("the sender stalled".to_owned());
        let mut history = History::of(&[trial(1e4, 0, 0), bad.clone(), bad.clone()], 2);
        assert_eq!(history.bounds(&target()).upper, None);
        history.add(&bad);
        assert!(history.blocked(2e4));
        assert_eq!(history.bounds(&target()), Bounds { lower: Some(1e4), upper: Some(2e4) });
        let with_a_valid_one = [bad.clone(), bad.clone(), trial(2e4, 0, 0), bad.clone(), bad];
        assert!(!History::of(&with_a_valid_one, 2).blocked(2e4));
    }

    #[test]
    fn unsent_datagrams_do_not_count_against_the_path() {
        let history = History::of(&[trial(1e4, 1, 0), trial(2e4, 1, 1)], 2);
        assert_eq!(
            (history.class(&target(), 1e4), history.class_of_path(&target(), 1e4)),
            (Class::Upper, Class::Lower)
        );
        assert_eq!(
            (history.class(&target(), 2e4), history.class_of_path(&target(), 2e4)),
            (Class::Upper, Class::Upper)
        );
    }

    #[test]
    fn the_throughput_is_the_first_estimate() {
        let history = History::of(&[trial(1e5, 0, 60_000)], 2);
        assert_eq!(history.estimate(&target(), 1e5, 0.0), Some(4e4));
        assert_eq!(history.estimate(&target(), 2e5, 0.0), None);
        // A queue of 100 ms held a tenth of what passed in a second; in four seconds it holds a fortieth.
        let long = Target { trial_ms: 4_000, ..target() };
        let pps = history.estimate(&long, 1e5, 100.0).expect("a trial");
        assert!((pps - 4e4 / 1.1 * 1.025).abs() < 1e-6, "{pps}");
    }
}
