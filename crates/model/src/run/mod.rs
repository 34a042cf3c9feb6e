//! Runs: the plan, what both hosts were, and what was measured. Raw, and the only thing that is stored.

pub mod both_directions;
pub mod campaign;
pub mod command;
pub mod compare;
pub mod diff;
pub mod fleet;
pub mod grid;
pub mod history;
pub mod live;
pub mod measure;
pub mod mesh;
pub mod ministat;
pub mod optimise;
pub mod report;
pub mod search;
pub mod search_report;
pub mod search_trial;
pub mod sweep;
pub mod target;
pub mod tcp_columns;

pub use target::{Ending, Target};

use crate::host::change::Change;
use crate::host::fact::Snapshot;
use crate::load::LoadPlan;
use crate::load::kind::TrialOf;
use crate::load::trial::{Kind, Trial};
use crate::load::udp::UdpPlan;
use crate::run::report::RunView;
use crate::run::search::{SearchPlan, SearchRecord};
use crate::run::search_report::LoadUnit;
use crate::run::sweep::{SweepPlan, SweepRecord};
use crate::trace::record::TraceRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A diagnosis: the load that shows the problem, and what may be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosePlan {
    /// The load under which the path is looked at; its direction is `up` or `down`, never `both`.
    pub load: LoadPlan,
    /// The whole diagnosis ends within this time, its experiments included.
    pub budget_ms: u64,
    /// Whether the path is profiled by steps of UDP.
    #[serde(default)]
    pub profile: bool,
    /// The diagnosis puts no more bytes of load on the path, give or take one interval; `None`: as many as it takes.
    #[serde(default)]
    pub budget_bytes: Option<u64>,
    /// The profile offers no more, bits a second; `None`: as much as it takes to find the path's limit.
    #[serde(default)]
    pub max_bps: Option<u64>,
    /// A load of TCP ends before its time once its goodput is known within this part of itself (at 95 %); 0: none does.
    #[serde(default)]
    pub known_within: f64,
    /// What the path should carry, bits a second of goodput: less of it is a finding, even where the path is at capacity.
    #[serde(default)]
    pub expect_bps: Option<u64>,
    /// Whether the same load is measured below the tunnel that leads to the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay: Option<Underlay>,
    /// Whether fixes are tried: applied, measured in turn with the state before, and rolled back.
    pub try_fixes: bool,
    /// Whether fixes that helped stay.
    pub keep: bool,
    /// Pairs of trials (without and with the fix) that prove a gain; at least 3.
    pub proof_pairs: u32,
}

impl DiagnosePlan {
    /// A diagnosis by a load alone: no experiments, no profile, no fixes.
    pub const fn of(load: LoadPlan) -> Self {
        Self {
            load,
            budget_ms: 0,
            budget_bytes: None,
            profile: false,
            max_bps: None,
            known_within: 0.0,
            expect_bps: None,
            underlay: None,
            try_fixes: false,
            keep: false,
            proof_pairs: 3,
        }
    }
}

/// By which address the server is reached below the tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Underlay {
    /// The other end of the tunnel, as the client's kernel knows it.
    Tunnel,
    /// One that the user gave.
    Address(IpAddr),
}

/// What a search was asked for: the load whose rate it seeks, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchOrder {
    /// The load; its rate is the trials'.
    pub load: UdpPlan,
    /// What one of its datagrams is.
    pub unit: LoadUnit,
    /// How it is searched.
    pub plan: SearchPlan,
}

/// What the user asked for as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPlan {
    /// `narrows diagnose`.
    Diagnose(DiagnosePlan),
    /// `narrows measure`.
    Measure(LoadPlan),
    /// `narrows search`.
    Search(SearchOrder),
    /// `narrows sweep`.
    Sweep(SweepPlan),
}

/// Why a trial was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The load that the diagnosis looks at; after fixes were applied there is one for each round.
    Baseline {
        /// From 0: how many fixes were in force.
        #[serde(rename = "act")]
        round: u32,
    },
    /// It separates two hypotheses.
    Experiment {
        /// The round it belongs to.
        #[serde(rename = "act")]
        round: u32,
        /// The experiment's id: `more-streams`, `other-direction`, …
        id: String,
    },
    /// Half of a pair that proves a fix.
    Proof {
        /// The round whose fix is proved.
        #[serde(rename = "act")]
        round: u32,
        /// From 0.
        pair: u32,
        /// Whether the fix was in force.
        fixed: bool,
    },
    /// A plain measurement.
    Measure,
}

/// A trial and why it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRecord {
    /// Why.
    pub purpose: Purpose,
    /// Since the run began.
    pub at_us: u64,
    /// What both ends saw.
    pub trial: Trial,
}

/// A fix that was tried in a run, in the order of rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The round: the baseline of this number named the cause.
    #[serde(rename = "act")]
    pub round: u32,
    /// The cause that the fix was for.
    pub cause: String,
    /// What was predicted, in bits per second of goodput.
    pub predicted_bps: u64,
    /// The prediction's interval; none where it is a lower bound.
    #[serde(default)]
    pub predicted_interval_bps: Option<[u64; 2]>,
    /// What was changed on which host, with the old values.
    pub changes: Vec<Change>,
    /// The plan after the fix, where the fix is in the application and not in the host.
    pub load: Option<LoadPlan>,
    /// Whether the changes stayed in force for the next round.
    #[serde(rename = "kept_for_next_act")]
    pub kept_for_next_round: bool,
}

/// Everything that one command measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The version of this stored form; see the table in the store.
    pub format: u32,
    /// Unique on the machine that made it: time and a random part.
    pub id: String,
    /// The program that made it.
    pub made_by: String,
    /// When it began, microseconds since the Unix epoch by the client's clock.
    pub started_unix_us: u64,
    /// How long it took.
    pub elapsed_us: u64,
    /// What was asked for.
    pub plan: RunPlan,
    /// The other end.
    pub target: Target,
    /// The client, before any load.
    pub client: Snapshot,
    /// The server, before any load.
    pub server: Snapshot,
    /// RTT of the control connection while the path was idle, microseconds, smallest first.
    pub idle_rtt_us: Vec<u64>,
    /// In the order in which they were made.
    pub trials: Vec<TrialRecord>,
    /// The trials of a search, and what followed from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// The points of a sweep, as far as it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRecord>,
    /// The path hop by hop, traced after the load where a cause on the path can be located.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<TraceRecord>>,
    /// The fixes that were tried.
    pub attempts: Vec<Attempt>,
    /// How it ended.
    pub ending: Ending,
}

impl Run {
    /// The stored form that this program writes.
    pub const FORMAT: u32 = 2;

    /// The trials of one kind of load, in the order in which they were made. The experiment or proof in which a run was cut short is
    /// left out: a part of it would be taken for the whole.
    pub fn trials_of<L: Kind>(&self) -> impl Iterator<Item = (&Purpose, TrialOf<'_, L>)> {
        let cut = match self.trials.last().map(|record| &record.purpose) {
            Some(Purpose::Experiment { .. } | Purpose::Proof { .. }) if self.ending != Ending::Complete => 1,
            _ => 0,
        };
        let whole = self.trials.len() - cut;
        self.trials.iter().take(whole).filter_map(|record| Some((&record.purpose, record.trial.of()?)))
    }

    /// The baseline of a round, where its load is of this kind.
    pub fn baseline<L: Kind>(&self, round: u32) -> Option<TrialOf<'_, L>> {
        self.trials_of().find_map(|(purpose, trial)| match purpose {
            Purpose::Baseline { round: of } if *of == round => Some(trial),
            _ => None,
        })
    }

    /// The rate that the server set for the load of a round, or of a plain measurement, below the one that was asked for: a server
    /// that is open to clients without a token does (`narrows serve --open-rate`).
    pub fn server_limit_bps(&self, round: u32) -> Option<u64> {
        let asked = match &self.plan {
            RunPlan::Diagnose(plan) => {
                let fixed = self.attempts.iter().filter(|attempt| attempt.round < round && attempt.kept_for_next_round);
                fixed.rev().find_map(|attempt| attempt.load.as_ref()).unwrap_or(&plan.load)
            }
            RunPlan::Measure(load) => load,
            RunPlan::Search(_) | RunPlan::Sweep(_) => return None,
        };
        let limits = |record: &TrialRecord| {
            let is_of = match record.purpose {
                Purpose::Baseline { round: of } => of == round,
                Purpose::Measure => true,
                _ => false,
            };
            let ran = record.trial.plan.rate_limit_bps().filter(|_| is_of)?;
            asked.rate_limit_bps().is_none_or(|asked| ran < asked).then_some(ran)
        };
        self.trials.iter().find_map(limits)
    }

    /// The experiments of a round with this kind of load, with their ids.
    pub fn experiments<L: Kind>(&self, round: u32) -> impl Iterator<Item = (&str, TrialOf<'_, L>)> {
        self.trials_of().filter_map(move |(purpose, trial)| match purpose {
            Purpose::Experiment { round: of, id } if *of == round => Some((id.as_str(), trial)),
            _ => None,
        })
    }
}

impl From<&Run> for RunView {
    fn from(run: &Run) -> Self {
        let elapsed_s = run.elapsed_us as f64 / 1e6;
        Self {
            id: run.id.clone(),
            made_by: run.made_by.clone(),
            started_unix_us: run.started_unix_us,
            elapsed_s,
            target: run.target.clone(),
            ending: run.ending.clone(),
            idle_rtt_us: run.idle_rtt_us.iter().min().copied(),
            server_limit_bps: run.server_limit_bps(0),
        }
    }
}
