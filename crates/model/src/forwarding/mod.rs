//! The forwarding benchmark of a device under test: what is planned, what each trial saw, what every hop's counters said.
//! Procedures as in RFC 2544, RFC 5180, RFC 9004; words as in RFC 1242 and RFC 2285. The record is raw: results and
//! reconciled books are derived from it.

pub mod ab;
pub mod ab_report;
pub mod advice;
pub mod modifiers;
pub mod plan;
pub mod report;

use crate::forwarding::modifiers::{BroadcastSeen, Modifier, ModifierSeen};
use crate::host::device_state::DeviceSeen;
use crate::load::frames::{FrameTrial, Transport, Walk};
use crate::run::search::{Goal, SearchRecord};
use crate::words::place::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One port of the tester.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TesterPort {
    /// The tester's device.
    pub device: String,
    /// The address that the tester has there, of the benchmarking ranges 198.18.0.0/15 and 2001:2::/48.
    pub address: IpAddr,
    /// The device under test's address on that side: frames go to its Ethernet address.
    pub gateway: IpAddr,
    /// Both once more, of the other family; `None`: the port has one family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<AddressPair>,
    /// The host of the device, which runs `narrows serve --frames`; `None`: the one that makes the benchmark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The file with the token of that host; never kept in a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<String>,
}

/// The addresses of one family at a port of the tester.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressPair {
    /// The tester's.
    pub address: IpAddr,
    /// That of the device under test.
    pub gateway: IpAddr,
}

/// Frames of one family through the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Of IP.
    pub family: Family,
    /// What follows IP.
    pub transport: Transport,
    /// Flows: source ports from 2000 on, one for each.
    pub flows: u32,
    /// Networks that the destinations lie in: 1, or up to 256 (RFC 2544, section 12).
    pub networks: u32,
    /// The order of the flows.
    pub walk: Walk,
    /// Frame sizes with FCS, each a row of the report.
    pub sizes: Vec<u32>,
    /// A mix measured beside them: a sequence of sizes (RFC 6985); empty: none.
    pub mix: Vec<u32>,
    /// Whether both directions are loaded at the same time.
    pub bidirectional: bool,
    /// What the device has to bear beside (RFC 2544, section 11); the same frames without it are a traffic of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifier: Option<Modifier>,
}

/// Where the counters of a hop are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CounterSource {
    /// A network namespace of this machine, by name, or by `pid:N`.
    Namespace {
        /// Its name.
        name: String,
    },
    /// A host that runs `narrows serve`.
    Narrows {
        /// Its name or address, or `ssh://[user@]host[:port]`.
        host: String,
        /// The file with its token; never kept in a record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_file: Option<String>,
    },
    /// An SNMP agent with IF-MIB.
    Snmp {
        /// `address` or `address:port`.
        agent: String,
        /// `2c` or `3`.
        version: String,
        /// The community (v2c) or the user (v3).
        name: String,
        /// Authentication password (v3), empty where there is none.
        #[serde(default)]
        password: String,
    },
}

/// A device between generator and receiver whose counters are part of the books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopPlan {
    /// How reports call it.
    pub name: String,
    /// Where its counters are read.
    pub source: CounterSource,
    /// Its interface towards the generator.
    pub input: String,
    /// Its interface towards the receiver.
    pub output: String,
    /// Whether it is the device under test; the others are switches.
    pub under_test: bool,
}

/// RFC 2544, 26.1, by the search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputTest {
    /// What is sought.
    pub goals: Vec<Goal>,
    /// Trials at the result of the first goal that confirm it, each as long as its final trial.
    pub confirm: u32,
    /// The longest search of one size.
    pub max_search_ms: u64,
}

/// RFC 2544, 26.2; RFC 8219, section 7.1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyTest {
    /// How long each trial is; the RFC wants 120 s.
    pub duration_ms: u64,
    /// How many; the RFC wants 20.
    pub repetitions: u32,
}

/// RFC 2544, 26.3.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LossTest {
    /// By which part of the maximum the next load is lower; at most 0.1.
    pub step: f64,
    /// How long each trial is.
    pub duration_ms: u64,
}

/// RFC 9004, which replaces RFC 2544, 26.4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackToBackTest {
    /// The longest burst in frames that is tried.
    pub most_frames: u64,
    /// How often the longest burst without loss is sought; the RFC wants 50.
    pub repetitions: u32,
}

/// RFC 2544, 26.5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryTest {
    /// How long 110 % of the throughput is sent; the RFC wants at least 60 s.
    pub overload_ms: u64,
    /// How long half of it is sent after that.
    pub after_ms: u64,
    /// How often.
    pub repetitions: u32,
}

/// RFC 2544, 26.6; RFC 6201.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResetTest {
    /// What the user runs to reset the device: words of a command, run without a shell.
    pub command: Vec<String>,
    /// How long the device may take.
    pub within_ms: u64,
}

/// The seed's preset: frames at line rate, and the rate at the receiver is the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorstCaseTest {
    /// How long each trial is.
    pub duration_ms: u64,
    /// How many.
    pub repetitions: u32,
}

/// What is measured, size by size; what is `None` is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Tests {
    /// The highest rate without loss.
    pub throughput: Option<ThroughputTest>,
    /// Latency at that rate.
    pub latency: Option<LatencyTest>,
    /// Loss at loads from the maximum down.
    pub loss: Option<LossTest>,
    /// The longest burst without loss.
    pub back_to_back: Option<BackToBackTest>,
    /// Time to recover from an overload.
    pub recovery: Option<RecoveryTest>,
    /// Outage of a reset.
    pub reset: Option<ResetTest>,
    /// The receiver's rate at line rate.
    pub worst_case: Option<WorstCaseTest>,
}

/// `narrows rfc2544 PLAN`, resolved and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingPlan {
    /// How the report calls the device and its configuration.
    pub name: String,
    /// The port that sends.
    pub generator: TesterPort,
    /// The port that receives (and sends back where traffic is bidirectional).
    pub receiver: TesterPort,
    /// Bits per second on the wire: 100 % of the loads.
    pub link_bps: u64,
    /// The most that is offered, frames a second, where the line rate is beyond what the tester can; `None`: line rate.
    pub max_load_pps: Option<f64>,
    /// The frames, one entry per family.
    pub traffic: Vec<Traffic>,
    /// In the order of the way, the tester left out.
    pub hops: Vec<HopPlan>,
    /// What is measured.
    pub tests: Tests,
    /// Frames before each trial so that hops learn addresses, 0: none (RFC 2544, section 23).
    pub learning_frames: u32,
    /// Silence after the load before counters are read: frames under way arrive (2 s in the RFC).
    pub residue_ms: u64,
    /// Rest before the next trial (5 s in the RFC).
    pub rest_ms: u64,
    /// How long a device that no longer answers is waited for; 0: not at all.
    pub lost_device_wait_ms: u64,
}

/// Which test a trial belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The tester alone, its ports wired together or looped.
    Qualification,
    /// A trial of the search.
    Throughput,
    /// A repetition at the throughput.
    Confirmation,
    /// Latency at the throughput.
    Latency,
    /// A point of the loss curve.
    Loss,
    /// A burst.
    BackToBack,
    /// Overload, then half.
    Recovery,
    /// Outage.
    Reset,
    /// Line rate.
    WorstCase,
}

/// How much one of a hop's counters grew over a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HopCount {
    /// [`HopPlan::name`].
    pub hop: String,
    /// Frames that its input took.
    pub input: Option<u64>,
    /// Frames that its output sent.
    pub output: Option<u64>,
    /// Frames that it says it dropped, by reason: `nftables rule`, `qdisc r1`, `no route`, `rx_missed r0`, …
    pub drops: Vec<DropCount>,
    /// By how much its counts may be wrong: packets of its own that were counted too.
    pub uncertainty: u64,
    /// The counters that were read, or why there are none.
    pub source: String,
    /// Why it could not be read, if it could not.
    pub silent: Option<String>,
}

/// One reason of drops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropCount {
    /// In words.
    pub reason: String,
    /// Frames.
    pub frames: u64,
}

/// One trial through the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingTrial {
    /// The test it belongs to.
    pub test: Test,
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// From 0, of those that repeat it.
    pub repetition: u32,
    /// Since the run began.
    pub at_ms: u64,
    /// Forth; and back, where traffic is bidirectional.
    pub directions: Vec<FrameTrial>,
    /// What the hops counted.
    pub hops: Vec<HopCount>,
    /// What was seen of the traffic's modifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifier: Option<ModifierSeen>,
    /// What became of the devices under test meanwhile, as far as they can be watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceSeen>,
    /// Why it says nothing, if so: the books disagree, the rate was not kept, the device was lost.
    pub invalid: Option<String>,
}

/// What was found of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchOfSize {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Every trial of the search.
    pub record: SearchRecord,
    /// What an earlier search found, frames a second, and the repetitions did not confirm: it was searched once more.
    #[serde(default)]
    pub not_confirmed_pps: Option<f64>,
}

/// One measured duration: the time to recover, or the outage of a reset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutageOfSize {
    /// `recovery` or `reset`.
    pub test: Test,
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS.
    pub size: Option<u32>,
    /// By frames lost ÷ rate offered, or by time stamps; `None`: there is none, and the remarks say why.
    pub outage_ns: Option<u64>,
    /// At least and at most, by the looks of the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_ns: Option<[u64; 2]>,
    /// From when a recovery counts: the end of the overload, by the monotonic clock of the receiver's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// What must be known of it: why there is none, that the device did not recover, that frames were lost at other times, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// The longest burst without loss, one repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstOfSize {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS.
    pub size: Option<u32>,
    /// From 0.
    pub repetition: u32,
    /// Frames.
    pub frames: u64,
    /// At which rate they left, frames a second.
    pub offered_pps: f64,
    /// Whether even the longest burst tried passed.
    pub at_most: bool,
}

/// What the whole benchmark saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingRecord {
    /// What was asked for.
    pub plan: ForwardingPlan,
    /// What the tester alone can send and count without loss, frames a second, by `(traffic, size)`.
    pub tester: Vec<TesterMaximum>,
    /// Every trial but those of searches in full, in the order of time.
    pub trials: Vec<ForwardingTrial>,
    /// The searches.
    pub searches: Vec<SearchOfSize>,
    /// Loss curves, as searches of the method `loss_curve`.
    pub curves: Vec<SearchOfSize>,
    /// Bursts.
    pub bursts: Vec<BurstOfSize>,
    /// Recoveries and resets.
    pub outages: Vec<OutageOfSize>,
    /// Why it ended early, if it did: interrupted, device lost.
    pub ended: Option<String>,
}

/// What the tester alone can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TesterMaximum {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Frames a second.
    pub pps: f64,
    /// How it was found.
    pub method: String,
}

/// One hop's line in the books of a trial: what came in, what went out, what it says it dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BookLine {
    /// `generator`, the name of a hop, `receiver`.
    pub hop: String,
    /// Frames in; the generator has none.
    pub input: Option<u64>,
    /// Frames out; the receiver has none.
    pub output: Option<u64>,
    /// Its drops by reason.
    pub drops: Vec<DropCount>,
    /// What the hop before sent and this one did not get; negative where it counts more.
    pub lost_before: Option<i64>,
    /// Frames to the hardware broadcast address that it rightly did not forward: no drops.
    #[serde(default)]
    pub kept_back: u64,
    /// In, less out, less drops, less what it rightly kept back: what the hop itself cannot account for.
    pub unexplained: Option<i64>,
    /// By how much both may be wrong.
    pub uncertainty: u64,
    /// Why its counters cannot be believed or were not read, if so.
    pub trouble: Option<String>,
}

/// The books of one direction of a trial, reconciled. Derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Books {
    /// From the generator to the receiver.
    pub lines: Vec<BookLine>,
    /// Frames sent and not received, those to the hardware broadcast address left out.
    pub lost: i64,
    /// Frames to the hardware broadcast address: they are in the lines, and no loss where they do not come out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<BroadcastSeen>,
    /// Where they were lost, in words, with the reason where a hop gives one.
    pub found: Vec<String>,
    /// The first hop where the counters disagree beyond their own error, and how: the trial is invalid.
    pub disagreement: Option<String>,
}
