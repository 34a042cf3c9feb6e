//! Runs: the plan, what both hosts were, and what was measured. Raw, and the only thing that is stored.

pub mod measure;
pub mod measure_rr;
pub mod measure_udp;
pub mod report;
pub mod search;
pub mod search_report;
pub mod sweep;

use crate::host::change::Change;
use crate::host::fact::Snapshot;
use crate::load::rr::{RrPlan, RrTrial};
use crate::load::tcp::{DiagnosePlan, TcpPlan};
use crate::load::trial::Trial;
use crate::load::udp::{UdpPlan, UdpTrial};
use crate::run::search::{SearchPlan, SearchRecord};
use crate::run::search_report::LoadUnit;
use crate::run::sweep::{SweepPlan, SweepRecord};
use crate::words::place::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The other end, as it was asked for and as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The user's word: a name, an address, an `ssh://` address.
    pub asked: String,
    /// `address:port` of the data connections.
    pub address: String,
    /// The family used.
    pub family: Family,
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
    /// `narrows measure tcp`.
    MeasureTcp(TcpPlan),
    /// `narrows measure udp`.
    MeasureUdp(UdpPlan),
    /// `narrows measure rr` and `crr`.
    MeasureRr(RrPlan),
    /// `narrows search`.
    Search(SearchOrder),
    /// `narrows sweep`.
    Sweep(SweepPlan),
}

/// Why a trial was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The load that the diagnosis looks at; after fixes were applied there is one for each act.
    Baseline {
        /// From 0: how many fixes were in force.
        act: u32,
    },
    /// It separates two hypotheses.
    Experiment {
        /// The act it belongs to.
        act: u32,
        /// The experiment's id: `more-streams`, `other-direction`, …
        id: String,
    },
    /// Half of a pair that proves a fix.
    Proof {
        /// The act whose fix is proved.
        act: u32,
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

/// A UDP trial and why it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTrialRecord {
    /// Why.
    pub purpose: Purpose,
    /// Since the run began.
    pub at_us: u64,
    /// What both ends saw.
    pub trial: UdpTrial,
}

/// A request/response trial and why it was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrTrialRecord {
    /// Why.
    pub purpose: Purpose,
    /// Since the run began.
    pub at_us: u64,
    /// What both ends saw.
    pub trial: RrTrial,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As planned.
    Complete,
    /// By the user; what was measured is kept.
    Interrupted,
    /// By a failure; what was measured is kept.
    Failed(String),
}

/// A fix that was tried in a run, in the order of acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// The act: the baseline of this number named the cause.
    pub act: u32,
    /// The cause that the fix was for.
    pub cause: String,
    /// What was predicted, in bits per second of goodput.
    pub predicted_bps: u64,
    /// The prediction's interval.
    pub predicted_interval_bps: [u64; 2],
    /// What was changed on which host, with the old values.
    pub changes: Vec<Change>,
    /// The plan after the fix, where the fix is in the application and not in the host.
    pub load: Option<TcpPlan>,
    /// The same of a load of UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_load: Option<UdpPlan>,
    /// Whether the changes stayed in force for the next act.
    pub kept_for_next_act: bool,
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
    /// UDP trials, in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpTrialRecord>,
    /// Request/response trials, in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rr: Vec<RrTrialRecord>,
    /// The trials of a search, and what followed from them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// The points of a sweep, as far as it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRecord>,
    /// The fixes that were tried.
    pub attempts: Vec<Attempt>,
    /// How it ended.
    pub ending: Ending,
}

impl Run {
    /// The stored form that this program writes.
    pub const FORMAT: u32 = 1;

    /// The baseline trial of an act.
    #[must_use]
    pub fn baseline(&self, act: u32) -> Option<&Trial> {
        self.trials.iter().find_map(|record| match record.purpose {
            Purpose::Baseline { act: of } if of == act => Some(&record.trial),
            _ => None,
        })
    }

    /// The baseline of an act that looks at UDP.
    #[must_use]
    pub fn udp_baseline(&self, act: u32) -> Option<&UdpTrial> {
        self.udp.iter().find_map(|record| match record.purpose {
            Purpose::Baseline { act: of } if of == act => Some(&record.trial),
            _ => None,
        })
    }

    /// The UDP experiments of an act, with their ids.
    pub fn udp_experiments(&self, act: u32) -> impl Iterator<Item = (&str, &UdpTrial)> {
        self.udp.iter().filter_map(move |record| match &record.purpose {
            Purpose::Experiment { act: of, id } if *of == act => Some((id.as_str(), &record.trial)),
            _ => None,
        })
    }

    /// The experiments of an act, with their ids.
    pub fn experiments(&self, act: u32) -> impl Iterator<Item = (&str, &Trial)> {
        self.trials.iter().filter_map(move |record| match &record.purpose {
            Purpose::Experiment { act: of, id } if *of == act => Some((id.as_str(), &record.trial)),
            _ => None,
        })
    }
}
