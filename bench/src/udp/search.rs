//! The search for the highest rate without loss: the same steps and the same stopping rule for every tool. Pure: takes
//! outcomes, returns the next trial.
//!
//! Rates are steps of a fixed ladder. First short probes double the rate until one loses, and halve the bracket. From there,
//! trials of full length follow, until a rate passes and the next step above it fails. A rate passes when enough of its
//! trials reach it without loss; a rate that a tool cannot send is the end of its ladder, but what it did send without loss
//! counts. A last trial requests the top of the ladder: how much arrives without a limit.

use crate::figures::median;

/// The lowest step of the ladder, datagrams per second.
const LOWEST_PPS: f64 = 1000.0;
/// Steps per doubling: each is 9 % above the one before.
const PER_DOUBLING: usize = 8;
/// The top of the ladder: 16.4 million per second.
const TOP: usize = 14 * PER_DOUBLING;
/// The first probe: 32,000 per second.
const START: usize = 5 * PER_DOUBLING;
/// A tool reached a rate if it delivered this share of it.
const KEPT: f64 = 0.95;

fn pps(step: usize) -> f64 {
    #[allow(clippy::cast_precision_loss)] // at most 112
    let octaves = step as f64 / PER_DOUBLING as f64;
    LOWEST_PPS * octaves.exp2()
}

/// The length and number of trials.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) probe_seconds: u32,
    pub(crate) trial_seconds: u32,
    /// A rate passes when this many of at most `tries` trials lose nothing.
    pub(crate) passes: usize,
    pub(crate) tries: usize,
    /// The search ends after this many trials of full length.
    pub(crate) trials_max: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Next {
    pub(crate) pps: f64,
    pub(crate) seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) pps: f64,
    pub(crate) lossless: bool,
}

/// A rate at which enough trials of full length lost nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Confirmed {
    pub(crate) asked_pps: f64,
    /// The received rate: the median of its lossless trials.
    pub(crate) pps: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Probe,
    Confirm,
    Flood,
    Done,
}

#[derive(Debug)]
pub(crate) struct Search {
    rules: Rules,
    phase: Phase,
    step: usize,
    highest_pass: Option<usize>,
    lowest_fail: Option<usize>,
    stride: usize,
    /// Trials at this step.
    votes: Vec<Option<Outcome>>,
    long_trials: usize,
    confirmed: Option<Confirmed>,
    most_pps: Option<f64>,
}

impl Search {
    pub(crate) const fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Probe,
            step: START,
            highest_pass: None,
            lowest_fail: None,
            stride: PER_DOUBLING,
            votes: Vec::new(),
            long_trials: 0,
            confirmed: None,
            most_pps: None,
        }
    }

    /// The next trial, until there is none.
    pub(crate) fn next(&self) -> Option<Next> {
        let seconds = match self.phase {
            Phase::Probe | Phase::Flood => self.rules.probe_seconds,
            Phase::Confirm => self.rules.trial_seconds,
            Phase::Done => return None,
        };
        Some(Next { pps: pps(self.step), seconds })
    }

    /// The highest rate without loss.
    pub(crate) const fn confirmed(&self) -> Option<Confirmed> {
        self.confirmed
    }

    /// The maximum received rate of any trial, with or without loss, per second.
    pub(crate) const fn most_pps(&self) -> Option<f64> {
        self.most_pps
    }

    /// Records the result of the trial that [`Search::next`] returned; `None`: the tool failed, which counts as a
    /// loss.
    pub(crate) fn note(&mut self, outcome: Option<Outcome>) {
        self.most_pps = self.most_pps.into_iter().chain(outcome.map(|outcome| outcome.pps)).reduce(f64::max);
        if self.phase == Phase::Flood {
            self.phase = Phase::Done;
            return;
        }
        self.votes.push(outcome);
        let (passes, tries) = match self.phase {
            Phase::Probe => (1, 2),
            _ => {
                self.long_trials += 1;
                (self.rules.passes, self.rules.tries)
            }
        };
        let asked_pps = pps(self.step);
        let good = |outcome: &&Outcome| outcome.lossless && outcome.pps >= KEPT * asked_pps;
        let passed = self.votes.iter().flatten().filter(good).count();
        if passed >= passes {
            self.highest_pass = Some(self.step);
        } else if self.votes.len() - passed > tries - passes {
            self.lowest_fail = Some(self.step);
        } else if self.phase == Phase::Probe || self.long_trials < self.rules.trials_max {
            return;
        }
        let lossless: Vec<f64> =
            self.votes.iter().flatten().filter(|outcome| outcome.lossless).map(|outcome| outcome.pps).collect();
        if let Some(pps) = median(&lossless)
            && self.phase == Phase::Confirm
            && lossless.len() >= passes
            && self.confirmed.is_none_or(|best| best.pps < pps)
        {
            self.confirmed = Some(Confirmed { asked_pps, pps });
        }
        self.go_on();
    }

    /// The next step, or the next phase once the bracket is closed.
    fn go_on(&mut self) {
        self.votes.clear();
        let exhausted = self.phase == Phase::Confirm && self.long_trials >= self.rules.trials_max;
        let next = match (self.highest_pass, self.lowest_fail) {
            (Some(pass), None) if pass < TOP => Some((pass + self.stride).min(TOP)),
            (None, Some(fail)) if fail > 0 => Some(fail.saturating_sub(self.stride)),
            (Some(pass), Some(fail)) if fail - pass > 1 => Some(usize::midpoint(pass, fail)),
            _ => None,
        };
        match (self.phase, next.filter(|_| !exhausted)) {
            (phase, Some(step)) => {
                self.step = step;
                if phase == Phase::Confirm {
                    self.stride *= 2;
                }
            }
            (Phase::Probe, None) => {
                // The highest step that passed; if the tool could not send the requested rate, the first
                // that it could not.
                self.step = self.highest_pass.or(self.lowest_fail).unwrap_or(0);
                self.phase = Phase::Confirm;
                (self.highest_pass, self.lowest_fail, self.stride) = (None, None, 1);
            }
            _ => {
                self.phase = Phase::Flood;
                self.step = TOP;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { probe_seconds: 1, trial_seconds: 5, passes: 2, tries: 3, trials_max: 24 };

    /// Runs a search against a tool; returns it with its trials.
    fn search(tool: impl Fn(Next, usize) -> Option<Outcome>) -> (Search, Vec<Next>) {
        let mut search = Search::new(RULES);
        let mut trials = Vec::new();
        while let Some(next) = search.next() {
            trials.push(next);
            search.note(tool(next, trials.len()));
            assert!(trials.len() < 200, "it does not end");
        }
        (search, trials)
    }

    /// Loses nothing up to a rate and sends no faster than another.
    fn tool(lossless_pps: f64, most_pps: f64) -> impl Fn(Next, usize) -> Option<Outcome> {
        move |next, _| Some(Outcome { pps: next.pps.min(most_pps), lossless: next.pps.min(most_pps) <= lossless_pps })
    }

    #[test]
    fn the_step_below_the_truth_is_found() {
        for truth in [1500.0, 30_000.0, 32_000.0, 431_000.0, 3e6] {
            let (search, trials) = search(tool(truth, 1e9));
            let found = search.confirmed().expect("a rate").pps;
            assert!(found <= truth && truth < found * 1.1, "{found} of {truth}");
            // Two passes of that step, two losses of the next.
            assert_eq!(trials.iter().filter(|trial| trial.seconds == 5).count(), 4, "{truth}: {trials:?}");
        }
    }

    #[test]
    fn a_tool_that_sends_no_faster_is_measured_by_what_it_sends() {
        let (search, _) = search(tool(1e9, 150_000.0));
        assert_eq!(search.confirmed().map(|confirmed| confirmed.pps), Some(150_000.0));
        assert_eq!(search.most_pps(), Some(150_000.0));
    }

    #[test]
    fn one_slow_trial_of_three_changes_nothing() {
        let (quiet, _) = search(tool(200_000.0, 1e9));
        let (noisy, _) = search(|next, number| {
            let outcome = tool(200_000.0, 1e9)(next, number)?;
            Some(Outcome { pps: if number % 5 == 1 { outcome.pps * 0.8 } else { outcome.pps }, ..outcome })
        });
        assert_eq!(noisy.confirmed(), quiet.confirmed());
    }

    #[test]
    fn one_disturbed_trial_of_three_changes_nothing() {
        let (quiet, _) = search(tool(200_000.0, 1e9));
        let (noisy, _) = search(|next, number| {
            let outcome = tool(200_000.0, 1e9)(next, number)?;
            Some(Outcome { lossless: outcome.lossless && number % 5 != 0, ..outcome })
        });
        assert_eq!(noisy.confirmed(), quiet.confirmed());
    }

    #[test]
    fn a_tool_that_always_loses_or_fails_has_no_rate() {
        let (lossy, _) = search(|next, _| Some(Outcome { pps: next.pps * 0.9, lossless: false }));
        assert_eq!(lossy.confirmed(), None);
        assert!(lossy.most_pps().is_some());
        let (broken, _) = search(|_, _| None);
        assert_eq!((broken.confirmed(), broken.most_pps()), (None, None));
    }

    #[test]
    fn a_tool_without_a_firm_rate_ends_after_its_trials() {
        let (_, trials) = search(|next, number| Some(Outcome { pps: next.pps, lossless: number % 2 == 0 }));
        assert!(trials.iter().filter(|trial| trial.seconds == 5).count() <= RULES.trials_max);
    }
}
