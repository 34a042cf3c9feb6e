//! Campaigns: what was varied, what was measured, and the effect of each factor.

use crate::host::fact::Unit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.campaign/1";

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time, a loss.
    Lower,
}

impl Better {
    /// `better` or `worse`: a figure that changed by `by`.
    pub const fn word(self, by: f64) -> &'static str {
        if matches!(self, Self::Higher) == (by > 0.0) { "better" } else { "worse" }
    }
}

/// Which combinations of levels are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All.
    #[default]
    Full,
    /// Two levels each, resolution IV: main effects are clear of two-way interactions, which are aliased with each other.
    Fractional,
    /// The baseline, and each other level alone.
    OneAtATime,
}

/// One run of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// From 1, in the order of the schedule.
    pub number: usize,
    /// The repetition, from 1: each block has every cell once for each host.
    pub block: usize,
    /// Index of the host.
    pub host: usize,
    /// Index of the level of each factor.
    pub cell: Vec<usize>,
}

/// The results of a campaign.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The name in the plan.
    pub name: String,
    /// The tag of its runs in the store.
    pub tag: String,
    /// Confidence level of the intervals and the verdicts: 0.95.
    pub level: f64,
    /// An effect within this share of the mean is none.
    pub margin: f64,
    /// The figure: `goodput up`; empty if nothing was measured.
    pub figure: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way it is better.
    pub better: Better,
    /// The hosts that were measured.
    pub hosts: Vec<String>,
    /// What was varied.
    pub factors: Vec<CampaignFactor>,
    /// The design.
    pub design: Design,
    /// Blocks; each has every combination once for each host.
    pub blocks: u64,
    /// Runs of the whole schedule.
    pub planned: u64,
    /// The mean of all runs; `None` if nothing was measured.
    pub mean: Option<f64>,
    /// The main effects, in the order of the plan, then the interactions of each two.
    pub effects: Vec<CampaignEffect>,
    /// Factors of which no level does anything.
    pub idle: Vec<String>,
    /// The combinations, in the order of the plan.
    pub cells: Vec<CampaignCell>,
    /// The best combination; `None` if nothing was measured.
    pub best: Option<CampaignBest>,
    /// The runs, in the order of the schedule.
    pub runs: Vec<CampaignRun>,
    /// What limits the results, in sentences.
    pub warnings: Vec<String>,
}

/// A factor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignFactor {
    /// Its name.
    pub name: String,
    /// Its levels; the first one is the baseline.
    pub levels: Vec<String>,
}

/// What is known of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectVerdict {
    /// It raises the figure.
    Raises,
    /// It lowers the figure.
    Lowers,
    /// Any effect is smaller than the margin.
    Nothing,
    /// None of these is proven.
    CannotTell,
    /// The design or the runs that failed do not separate it from another one.
    Aliased,
}

/// A factor at a level other than its baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignTerm {
    /// The factor.
    pub factor: String,
    /// The level.
    pub level: String,
    /// The baseline of the factor.
    pub baseline: String,
}

/// What a level does against the baseline, averaged over the other factors; or how two of them depend on each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignEffect {
    /// One: a main effect. Two: their interaction.
    pub terms: Vec<CampaignTerm>,
    /// The effect, in the unit of the figure; `None` if it is aliased.
    pub effect: Option<f64>,
    /// Its interval; `None` with too few runs.
    pub interval: Option<[f64; 2]>,
    /// p of *no effect* after Holm's correction over the main effects, or over the interactions.
    pub p_holm: Option<f64>,
    /// p of *an effect above the margin* (two one-sided t-tests), after Holm's correction.
    pub p_margin_holm: Option<f64>,
    /// The verdict.
    pub verdict: EffectVerdict,
}

/// A combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignCell {
    /// The level of each factor.
    pub levels: Vec<String>,
    /// Runs that gave a figure.
    pub runs: u64,
    /// Their mean; `None` without one.
    pub mean: Option<f64>,
    /// The interval of the mean; `None` with fewer than two runs.
    pub interval: Option<[f64; 2]>,
}

/// The best combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignBest {
    /// The level of each factor.
    pub levels: Vec<String>,
    /// Its mean.
    pub mean: f64,
    /// Its mean above that of the baselines, as a share of that; `None` if it is the baseline, or that was not measured.
    pub gain: Option<f64>,
    /// The interval of `gain` (Welch).
    pub gain_interval: Option<[f64; 2]>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignRun {
    /// From 1, in the order of the schedule.
    pub step: u64,
    /// The block, from 1.
    pub block: u64,
    /// The host.
    pub host: String,
    /// The level of each factor.
    pub levels: Vec<String>,
    /// Its id in the store.
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// The figure; `None`: the run failed.
    pub value: Option<f64>,
    /// Why the run failed, if it did.
    pub failed: Option<String>,
}
