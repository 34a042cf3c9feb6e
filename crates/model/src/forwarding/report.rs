//! The view of a forwarding benchmark: what `narrows rfc2544` prints in every format. Derived from its record and from
//! what others derive of it ([`Derived`]). It holds no password and no community.

mod beside;

pub use beside::{DeviceView, ModifiedView, ModifierView};

use crate::forwarding::{Books, Test, TesterPort, Tests, Traffic};
use crate::load::frames_report::FrameRate;
use crate::run::search::{Goal, LossPoint, Outcome};
use crate::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.forwarding/1";

/// What follows from a record by rules that the view does not know: it is handed in beside the record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Derived {
    /// Which run it was; `None` where it is not stored.
    pub run: Option<ForwardingRun>,
    /// The reconciled books of trials, in any number and order.
    pub books: Vec<BooksOfTrial>,
    /// Latencies, one for each traffic and size that has any.
    pub latencies: Vec<LatencyOfSize>,
    /// Loss curves, one for each traffic and size that has one.
    pub curves: Vec<CurveOfSize>,
    /// Bursts, one for each traffic and size that has any.
    pub bursts: Vec<BurstsOfSize>,
    /// Estimates for the mixes.
    pub estimates: Vec<MixEstimate>,
    /// What was asked for and not measured. What was not asked for is found by the view itself.
    pub not_measured: Vec<NotMeasured>,
    /// What else must be known.
    pub remarks: Vec<String>,
}

/// The books of one direction of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BooksOfTrial {
    /// Index into [`crate::forwarding::ForwardingRecord::trials`].
    pub trial: usize,
    /// Index into the trial's directions.
    pub direction: usize,
    /// Reconciled.
    pub books: Books,
}

/// Latency at the throughput over all repetitions of one size (RFC 2544, section 26.2; RFC 8219, section 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyOfSize {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// The load at which it was measured, frames a second.
    pub load_pps: f64,
    /// How many trials.
    pub repetitions: u32,
    /// Time stamps over all of them.
    pub stamps: u64,
    /// The smallest.
    pub min_ns: u64,
    /// The mean: RFC 2544's latency.
    pub mean_ns: f64,
    /// The median: RFC 8219's typical latency.
    pub p50_ns: u64,
    /// 99 of 100 are not above it.
    pub p99_ns: u64,
    /// 999 of 1,000: RFC 8219's worst-case latency.
    pub p99_9_ns: u64,
    /// The largest.
    pub max_ns: u64,
    /// Packet delay variation (RFC 8219): p99.9 − minimum.
    pub pdv_ns: u64,
    /// The means of the repetitions, ns.
    pub means_ns: Option<Spread>,
}

/// A loss curve (RFC 2544, section 26.3).
#[derive(Debug, Clone, PartialEq)]
pub struct CurveOfSize {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Highest load first.
    pub points: Vec<LossPoint>,
}

/// The longest bursts without loss over all repetitions of one size (RFC 9004).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstsOfSize {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// The average burst, frames: RFC 9004's back-to-back value.
    pub mean_frames: f64,
    /// Over the repetitions, frames.
    pub frames: Spread,
    /// At which rate they left: the RFC's maximum frame rate, frames a second.
    pub offered_pps: f64,
    /// Implied buffer time: average burst ÷ maximum rate.
    pub implied_ns: f64,
    /// The part of it that the device did not forward meanwhile: implied × (1 − throughput ÷ maximum rate); `None` without
    /// a throughput.
    pub corrected_ns: Option<f64>,
    /// Whether even the longest burst that was tried passed, once or more: all figures are then at least so large.
    pub at_least: bool,
}

/// What the mix should carry by the results of single sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixEstimate {
    /// Index into the plan's traffic.
    pub traffic: usize,
    /// Frames a second.
    pub pps: f64,
    /// From which results, and what it takes for granted.
    pub method: String,
}

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
    /// Frames before each trial so that hops learn addresses.
    pub learning_frames: u32,
    /// Silence after the load before counters were read.
    pub residue_ms: u64,
    /// Rest before the next trial.
    pub rest_ms: u64,
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
    /// The search; `None` where there was none.
    pub throughput: Option<ThroughputView>,
    /// Repetitions at the throughput.
    pub confirmation: Option<ConfirmationView>,
    /// What the mix should carry by the results of single sizes.
    pub estimate: Option<EstimateView>,
    /// Latency at the throughput.
    pub latency: Option<LatencyOfSize>,
    /// Loss over the load, highest load first.
    pub loss: Vec<LossPoint>,
    /// The longest bursts without loss.
    pub bursts: Option<BurstsOfSize>,
    /// Time to recover from an overload, ns.
    pub recovery_ns: Option<Spread>,
    /// Outage of a reset, ns.
    pub reset_ns: Option<Spread>,
    /// What must be known of the recoveries: how near the receiver saw them, which had none and why.
    #[serde(default)]
    pub recovery_notes: Vec<String>,
    /// And of the reset.
    #[serde(default)]
    pub reset_notes: Vec<String>,
    /// What arrived at line rate.
    pub worst_case: Option<WorstCaseView>,
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

/// The search for one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputView {
    /// One for each goal, in the plan's order.
    pub goals: Vec<GoalOfSize>,
    /// Trials.
    pub trials: u64,
    /// Trials that say nothing.
    pub invalid: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// One goal and what was found for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalOfSize {
    /// What was sought.
    pub goal: Goal,
    /// How it ended.
    pub outcome: Outcome,
    /// The same in words: `found`, `limited by the tester`, …
    pub word: String,
    /// Why a bound is missing, or whose it is; nothing where both were found.
    pub why: Option<String>,
    /// The highest load that passes.
    pub lower: Option<FrameRate>,
    /// The lowest load that fails.
    pub upper: Option<FrameRate>,
    /// The forwarding rate to expect at the lower bound.
    pub conditional_throughput: Option<FrameRate>,
}

impl GoalOfSize {
    /// Whether the device may carry more than the lower bound says.
    #[must_use]
    pub fn is_at_least(&self) -> bool {
        match self.outcome {
            Outcome::Found | Outcome::MinLoadFails => false,
            // No device carries more than the line.
            Outcome::MaxLoadPasses => !self.lower.and_then(|it| it.of_line).is_some_and(|part| part > 0.9999),
            Outcome::Unfinished | Outcome::TesterLimited(_) => true,
        }
    }
}

/// Repetitions at the throughput. Of both directions the one that carried less counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmationView {
    /// The load of each; `None` where it was not the same.
    pub load: Option<FrameRate>,
    /// How many were made.
    pub repetitions: u32,
    /// How many were planned.
    pub planned: u32,
    /// How many lost no more than the goal allows.
    pub passed: u32,
    /// How many say nothing.
    pub invalid: u32,
    /// What arrived, frames a second, of those that say something.
    pub received_pps: Option<Spread>,
    /// Frames lost, of those that say something.
    pub lost: Option<Spread>,
    /// Whether as many as were planned say something and passed.
    pub all_passed: bool,
    /// Whether the goal's own measure is met: as many as were planned say something, and no larger part of them than its exceed
    /// ratio failed.
    pub holds: bool,
}

/// What the mix should carry by the results of single sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EstimateView {
    /// The estimate; it was not measured.
    pub rate: FrameRate,
    /// From which results, and what it takes for granted.
    pub method: String,
}

/// What arrived at line rate. Of both directions the one that carried less counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstCaseView {
    /// How many trials say something.
    pub repetitions: u32,
    /// How many say nothing.
    pub invalid: u32,
    /// What was sent, frames a second.
    pub offered_pps: Option<Spread>,
    /// What arrived, frames a second.
    pub received_pps: Option<Spread>,
    /// The median of what arrived.
    pub received: Option<FrameRate>,
    /// Lost of those sent, over all trials that say something.
    pub loss_ratio: Option<f64>,
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
    pub books: Books,
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
