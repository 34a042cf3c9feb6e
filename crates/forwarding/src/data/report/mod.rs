//! The view of a forwarding benchmark: what `narrows rfc2544` prints in every format. Derived from its record. It holds no password
//! and no community.

mod modified;

pub use modified::{DeviceView, ModifiedView, ModifierView};

use crate::data::accounting::Accounting;
use crate::data::plan::{TesterPort, TrialConditions};
use crate::data::procedures::{Results, Test, Tests};
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames_report::FrameRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.forwarding/1";

/// What was not measured, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// A test, or one of a size: `back-to-back, IPv4, 1518 B`.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Which run it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingRun {
    /// Unique on the machine that made it.
    pub id: String,
    /// The program that made it.
    pub made_by: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// How long it took.
    pub elapsed_s: f64,
}

/// A forwarding benchmark as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: Option<ForwardingRun>,
    /// The device under test and its configuration, as the plan calls it.
    pub name: String,
    /// The whole in a few sentences.
    pub verdict: ForwardingVerdict,
    /// What was asked for.
    pub plan: PlanSummary,
    /// The results, one for each of the plan's traffics.
    pub traffic: Vec<TrafficView>,
    /// Where frames were lost in all trials whose books balance, most first.
    pub losses: Vec<LossPlace>,
    /// How the books of the trials stand.
    pub reconciliation: Reconciliation,
    /// The books of the most telling trials.
    pub books: Vec<BooksView>,
    /// Every trial that says nothing about its load.
    pub invalid: Vec<InvalidTrial>,
    /// What was not measured, and why.
    pub not_measured: Vec<NotMeasured>,
    /// What must be known of the whole.
    pub remarks: Vec<String>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

/// The whole in a few sentences; each list may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingVerdict {
    /// The throughput per size, a sentence for each traffic.
    pub throughput: Vec<String>,
    /// Where frames were lost, and why.
    pub losses: Vec<String>,
    /// What is invalid, and at which hop.
    pub invalid: Vec<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSummary {
    /// The port that sent.
    pub generator: TesterPort,
    /// The port that received.
    pub receiver: TesterPort,
    /// Bits per second on the wire: 100 % of the loads.
    pub link_bps: u64,
    /// The most that was offered, frames a second; `None`: line rate.
    pub max_load_pps: Option<f64>,
    /// In the order of the way, the tester left out.
    pub hops: Vec<HopView>,
    /// What was to be measured; of the command of a reset the program alone.
    pub tests: Tests,
    /// What surrounds each trial.
    #[serde(flatten)]
    pub conditions: TrialConditions,
}

/// A device on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopView {
    /// Its name in the books.
    pub name: String,
    /// Whether it is the device under test.
    pub under_test: bool,
    /// Its interface towards the generator.
    pub input: String,
    /// Its interface towards the receiver.
    pub output: String,
    /// Where its counters were read, in words and without secrets.
    pub counters: String,
}

/// Everything of one traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficView {
    /// As short as tells it from the others: `IPv4`.
    pub name: String,
    /// What it is in a few words.
    pub what: String,
    /// As planned.
    pub traffic: Traffic,
    /// One for each size, in the plan's order; the mix last.
    pub sizes: Vec<SizeView>,
}

/// Everything of one frame size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeView {
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Mean frame size with FCS.
    pub frame_bytes: f64,
    /// What the link carries of such frames.
    pub line: FrameRate,
    /// What the tester carries by itself.
    pub tester: Option<TesterView>,
    /// The results of the procedures.
    #[serde(flatten)]
    pub results: Results,
    /// Beside the same frames without the modifier; `None` where the traffic has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<ModifiedView>,
    /// The devices under test over the trials of this size that are in the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceView>,
}

/// What the tester carries by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TesterView {
    /// Sent and received without loss.
    pub rate: FrameRate,
    /// How it was found.
    pub method: String,
}

/// One place and reason of loss, over all trials whose books balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossPlace {
    /// `r`, or `before r` for what no hop has counted in between.
    pub hop: String,
    /// The drop counter in words, or that none accounts for them.
    pub reason: String,
    /// Frames.
    pub frames: u64,
    /// In so many directions of trials.
    pub trials: u64,
}

/// How the books of the trials stand. A trial with two directions has two books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Reconciliation {
    /// Books that were kept.
    pub books: u64,
    /// Those in which no counter disagrees with another.
    pub balanced: u64,
    /// Those in which some do.
    pub disagree: u64,
    /// Frames sent and not received, in those of trials that say something.
    pub lost: u64,
    /// Trials of the record, those of searches not counted where they are not in it.
    pub trials: u64,
    /// Trials that say nothing about their load.
    pub invalid: u64,
}

/// The books of one direction of a trial, and why they are shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BooksView {
    /// Which trial.
    pub trial: TrialName,
    /// `forth` or `back`; empty where there is one direction only.
    pub direction: String,
    /// Why they are shown: `the counters disagree`, `most frames lost`, …
    pub telling: String,
    /// Reconciled.
    pub books: Accounting,
    /// Why the trial says nothing, if so.
    pub invalid: Option<String>,
}

/// Which trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialName {
    /// Index into the record's trials.
    pub index: usize,
    /// The test it belongs to.
    pub test: Test,
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// From 0.
    pub repetition: u32,
    /// In words: `confirmation 3, IPv4, 64 B`.
    pub name: String,
}

/// A trial that says nothing about its load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InvalidTrial {
    /// Which trial.
    pub trial: TrialName,
    /// Why.
    pub why: String,
    /// The first hop where the counters disagree, where that is the reason.
    pub disagreement: Option<String>,
}
