//! Experiments: where two hypotheses are left, the program does not guess but measures what separates them.

use narrows_model::{Flow, LoadPlan, Snapshot};
use std::fmt;

/// What an experiment is planned from: a baseline and the host that sent.
#[derive(Debug, Clone)]
pub struct Baseline<'a> {
    /// The load as it was planned.
    pub load: LoadPlan,
    /// The flow that is judged.
    pub flow: Flow,
    pub goodput_bps: f64,
    /// The inventory of the sending host.
    pub sender: &'a Snapshot,
    /// The congestion control that the sender used.
    pub congestion_control: Option<&'a str>,
    /// What its receiver acknowledged with, bits of IP packets a second, where that is known.
    pub acks_bps: Option<f64>,
    /// The smallest RTT, microseconds.
    pub min_rtt_us: Option<f64>,
    /// The part of its packets that it lost, or that its worst stream did, where that is known.
    pub lost: Option<f64>,
    /// Bits of IP packets a second that the path is known to carry, where it was profiled.
    pub carries_bps: Option<f64>,
}

/// One more measurement, with one thing changed.
pub struct Experiment {
    /// The public id, which its trial has in the run.
    pub id: &'static str,
    /// What is done, in a sentence.
    pub words: &'static str,
    pub plan: Plan,
}

/// What an experiment measures.
pub enum Plan {
    /// A trial over the path; `None` where it is not possible on these hosts or would change nothing.
    Path(fn(&Baseline<'_>) -> Option<LoadPlan>),
    /// A trial between both ends of the engine on the client alone.
    Loopback(fn(&Baseline<'_>) -> Option<LoadPlan>),
    /// Several trials, in their order.
    Several(&'static [Experiment]),
}

impl Experiment {
    /// The experiments of one trial each that this one consists of.
    pub const fn trials(&'static self) -> &'static [Self] {
        match self.plan {
            Plan::Several(parts) => parts,
            Plan::Path(_) | Plan::Loopback(_) => std::slice::from_ref(self),
        }
    }

    /// The trial to make, where this experiment is one and is possible.
    pub fn planned(&'static self, baseline: &Baseline<'_>) -> Option<Planned> {
        let (plan, loopback) = match self.plan {
            Plan::Path(plan) => (plan, false),
            Plan::Loopback(plan) => (plan, true),
            Plan::Several(_) => return None,
        };
        Some(Planned { id: self.id, words: self.words, plan: plan(baseline)?, loopback, decides: false })
    }
}

/// An experiment has one definition, so its id stands for it.
impl PartialEq for Experiment {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// A trial of an experiment, ready to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The id of the experiment.
    pub id: &'static str,
    /// What is done, in a sentence.
    pub words: &'static str,
    pub plan: LoadPlan,
    /// Whether both ends run on the client.
    pub loopback: bool,
    /// Whether an otherwise proven cause depends on its result.
    pub decides: bool,
}
