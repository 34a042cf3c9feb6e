//! The report: the view that every format renders, and whose JSON scripts rely on.

use crate::diagnosis::account::{Ceiling, TimeBudget};
use crate::diagnosis::ledger::Ledger;
use crate::diagnosis::verdict::{Command, Rejected, Status, Witness};
use crate::host::change::Change;
use crate::host::fact::{Absent, Fact};
use crate::run::target::{Ending, Target};
use crate::words::figures::float;
use crate::words::place::{Direction, Place};
use crate::words::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form; its schema is published in `docs/`.
pub const SCHEMA: &str = "narrows.report/1";

/// A diagnosis as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The run it was made from.
    pub run: RunView,
    /// What limits the path; of a run with `--try`, as it was found at first.
    pub verdict: VerdictView,
    /// Where bits and time went, as they were found at first.
    pub accounts: AccountsView,
    /// Both ends' parameters.
    pub hosts: HostsView,
    /// The experiments that were made to separate hypotheses.
    pub experiments: Vec<ExperimentView>,
    /// With `--try`: the rounds, one for each fix that was tried, and the last verdict.
    #[serde(rename = "acts")]
    pub rounds: Vec<RoundView>,
    /// With `--try`: the state before the first fix against the state after the last one that stayed.
    pub proof: Option<ProofView>,
    /// Bytes of load that all trials put on the path.
    #[serde(default)]
    pub carried_bytes: u64,
    /// The congestion control of the judged load; none of UDP, or where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
}

/// Which run it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Unique on the machine that made it.
    pub id: String,
    /// The program that made it.
    pub made_by: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
    /// How long it took.
    pub elapsed_s: f64,
    /// The other end.
    pub target: Target,
    /// How it ended.
    pub ending: Ending,
    /// Smallest RTT of the idle path.
    pub idle_rtt_us: Option<u64>,
    /// Rate that the server allows a client without a token (`narrows serve --open-rate`), where it lowered the load, bits a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_limit_bps: Option<u64>,
}

impl RunView {
    /// The server's limit in a sentence, where it lowered the load.
    pub fn server_limit(&self) -> Option<String> {
        let bps = units::bps(float(self.server_limit_bps?));
        Some(format!(
            "this server limits clients without its token to {bps} (`narrows serve --open-rate`): the path may carry more"
        ))
    }
}

/// What limits the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictView {
    /// In a word.
    pub status: Status,
    /// In a sentence.
    pub headline: String,
    /// The measured goodput.
    pub goodput_bps: f64,
    /// The direction that was measured.
    pub direction: Direction,
    /// Best first.
    pub causes: Vec<CauseView>,
    /// Where the first two causes each hold the goodput down: goodput after both are fixed, and where it should lie.
    pub both_bps: Option<f64>,
    /// See above.
    pub both_interval_bps: Option<[f64; 2]>,
    /// Evidence that was missing.
    pub missing: Vec<String>,
    /// Worth fixing, but not known to limit now.
    pub hazards: Vec<String>,
}

/// A cause that the evidence supports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseView {
    /// The public id.
    pub id: String,
    /// Where it is.
    pub at: Place,
    /// From 0 to 1.
    pub confidence: f64,
    /// One sentence.
    pub summary: String,
    /// Goodput under this limit alone.
    pub ceiling_bps: Option<f64>,
    /// Goodput to expect after the fix.
    pub predicted_bps: Option<f64>,
    /// Where it should lie; none where `predicted_bps` is a lower bound.
    pub predicted_interval_bps: Option<[f64; 2]>,
    /// The cause that binds next, where it is known.
    pub then: Option<String>,
    /// The evidence.
    pub witnesses: Vec<Witness>,
    /// The look-alikes that it is not.
    pub rejected: Vec<Rejected>,
    /// What to do.
    pub fix: FixView,
}

/// What to do about a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixView {
    /// One sentence.
    pub advice: String,
    /// The exact commands.
    pub commands: Vec<Command>,
}

/// The accounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountsView {
    /// Lowest ceiling first.
    pub roofline: Vec<Ceiling>,
    /// Fractions of the sender's time.
    pub time_budget: Option<TimeBudget>,
    /// What the path does by itself, where it was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_profile: Option<PathProfileView>,
    /// The latency of the path idle and under the load, and where the difference waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<WorkingLatency>,
    /// The same load below the tunnel, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underlay: Option<UnderlayView>,
    /// Parts of the load between which its rate changed for good; empty where it did not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseView>,
    /// Where the packets went: of each flow, stage by stage; empty where the counters do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledger: Vec<Ledger>,
}

/// The load over a tunnel beside the same load below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderlayView {
    /// The server's address in the underlay.
    pub address: String,
    /// Goodput by that address.
    pub goodput_bps: f64,
    /// Goodput over the tunnel before that, and once more after it where the two differ.
    pub overlay_bps: Vec<f64>,
    /// Where the limit is.
    pub layer: Layer,
    /// What separates the two, in a sentence.
    pub why: String,
}

/// Where the limit of a load over a tunnel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// In the tunnel: the underlay carries more.
    Inside,
    /// In the underlay, which carries as little.
    Below,
    /// In neither: the underlay carries as little, and the hosts or the load limit both.
    Neither,
    /// The measurements do not tell.
    Unknown,
}

/// Latency of the path idle and under the load, and where the difference waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingLatency {
    /// Which way the load went.
    pub direction: Direction,
    /// Round trips of probes before the load; `null` where none was answered.
    pub idle_us: Option<LatencySpread>,
    /// Round trips of the load's own segments, as its TCP smooths them (RFC 6298); `null` where nothing of the load was acknowledged.
    pub loaded_us: Option<LatencySpread>,
    /// In which queue a byte waits at the median, in the order of its way.
    pub waits: Vec<Wait>,
}

/// How latencies are distributed, microseconds. A percentile is `null` where too few values were seen to have one beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencySpread {
    /// How many values.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// 95 of 100 are not above it.
    pub p95: Option<f64>,
    /// 99 of 100.
    pub p99: Option<f64>,
}

/// A wait in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The queue.
    pub queue: Queue,
    /// How long, microseconds.
    pub us: f64,
}

/// A queue that data waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// The sender's socket: written by the application and not yet sent. No round trip holds it.
    Socket,
    /// The queue of the sender's device (queueing discipline and ring): given to the device and not yet gone.
    Device,
    /// The path: its profile shows that it queues what exceeds its capacity, and the load fills it.
    Path,
    /// The hosts (late acknowledgements, unread data) or the reverse path: the profile of the path shows no such queue.
    HostsOrReversePath,
    /// The path or the hosts: no profile tells them apart.
    PathOrHosts,
}

/// A part of the load with a rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct PhaseView {
    /// Begin, seconds since the load began.
    pub from_s: f64,
    /// End.
    pub to_s: f64,
    /// Application bits per second.
    pub goodput_bps: f64,
    /// Segments with payload that were sent in it, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Of them, retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmitted: Option<u64>,
    /// Median of the smoothed RTT, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<f64>,
    /// Where the sender's time went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<PhaseShares>,
}

/// Where the sender's time went in a phase, as fractions of it by TCP's limited-time counters; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct PhaseShares {
    /// The receiver's window was full.
    pub receive_window: f64,
    /// The send buffer was full.
    pub send_buffer: f64,
    /// All other time.
    pub rest: f64,
}

/// What the path does by itself, from a path profile. Rates are bits of IP packets a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathProfileView {
    /// What it is, in a sentence.
    pub summary: String,
    /// What the path sustains; `null` where no step went beyond it.
    pub capacity_bps: Option<f64>,
    /// What the steps allow of it.
    pub capacity_interval_bps: Option<[f64; 2]>,
    /// What happens to what exceeds it: `queue`, `short-queue`, `shaper` or `policer`.
    pub limit: Option<String>,
    /// Bytes that pass a shaper or policer faster at first, at least: what the load before left of its bucket.
    pub bucket_bytes: Option<f64>,
    /// The highest rate that the path kept up with.
    pub carried_bps: f64,
    /// The rate at which short bursts pass the idle path.
    pub burst_bps: Option<f64>,
    /// Least, median and 95th percentile of the idle round trip, microseconds.
    pub idle_rtt_us: Option<[f64; 3]>,
    /// Variation of the idle one-way delay above its least: 90th percentile, microseconds.
    pub jitter_us: f64,
    /// The longest queue that a step made, microseconds.
    pub queue_us: f64,
    /// Datagrams that were sent at rates that the path carries, and those of them that were lost.
    pub lost_below: [u64; 2],
    /// Of the datagrams that arrived, the part that came after a later one.
    pub reordered: f64,
    /// Of the datagrams that arrived, the part that came twice.
    pub duplicated: f64,
    /// The steps, by rate.
    pub steps: Vec<ProfileStepView>,
}

/// One step of a path profile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileStepView {
    /// What the sender put onto the path, on average.
    pub offered_bps: f64,
    /// What arrived of it over the later half of the step, or since the first loss or queue where that came later.
    pub delivered_bps: f64,
    /// Of the datagrams sent in the time of `delivered_bps`, the part that was lost.
    pub loss: f64,
    /// Delay at its end above the least, microseconds.
    pub queue_us: f64,
}

/// Both hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostsView {
    /// The host that asked.
    pub client: HostView,
    /// The other end.
    pub server: HostView,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostView {
    /// Its own name.
    pub name: String,
    /// What is known of it.
    pub facts: Vec<Fact>,
    /// What could not be read.
    pub absent: Vec<Absent>,
}

/// What was weighed for and against one cause at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Weighed {
    /// Where it would be.
    pub at: Place,
    /// What the evidence does: `speaks for it`, `speaks against it`, `does not tell`.
    pub word: String,
    /// Its sentences.
    pub says: Vec<String>,
    /// Goodput under this limit alone, where it could be given a value.
    pub ceiling: Option<Ceiling>,
    /// The facts that its rule reads, with their values where they were known.
    pub read: Vec<(String, Option<String>)>,
}

/// An experiment and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentView {
    /// Its id.
    pub id: String,
    /// What was done, in a sentence.
    pub what: String,
    /// The goodput it gave.
    pub goodput_bps: f64,
}

/// One round of `--try`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundView {
    /// From 0.
    #[serde(rename = "act")]
    pub round: u32,
    /// The cause that was named.
    pub cause: Option<String>,
    /// Where it is.
    pub at: Option<Place>,
    /// The verdict of this round.
    pub status: Status,
    /// In a sentence.
    pub headline: String,
    /// Goodput of this round's baseline.
    pub goodput_bps: f64,
    /// What was changed, and whether it is still in force.
    pub changes: Vec<Change>,
    /// The proof of this round's fix.
    pub proof: Option<ProofView>,
}

impl RoundView {
    /// Whether its fix helped.
    pub fn is_proven(&self) -> bool {
        self.proof.as_ref().is_some_and(|proof| proof.helped)
    }

    /// The rounds whose fix helped and is kept. What is in force of a run that did not come to its end was to be rolled back.
    pub fn kept<'a>(ending: &Ending, rounds: &'a [Self]) -> impl Iterator<Item = &'a Self> {
        let is_complete = *ending == Ending::Complete;
        let in_force = |round: &Self| round.changes.iter().any(|change| change.in_force);
        rounds.iter().filter(move |round| is_complete && round.is_proven() && in_force(round))
    }
}

/// What a fix gained, by trials made in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofView {
    /// Goodput of each trial without the fix.
    pub before_bps: Vec<f64>,
    /// Goodput of each trial with the fix.
    pub after_bps: Vec<f64>,
    /// Of UDP: the part of what was offered that did not arrive, in each trial without the fix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before_loss: Vec<f64>,
    /// The same with the fix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_loss: Vec<f64>,
    /// Ratio of the means, after to before; none where nothing arrived without the fix.
    pub gain: Option<f64>,
    /// 95 % interval of that ratio.
    pub gain_interval: Option<[f64; 2]>,
    /// The goodput that was predicted; 0 without a prediction.
    pub predicted_bps: f64,
    /// Where it should have lain; none where `predicted_bps` is a lower bound.
    pub predicted_interval_bps: Option<[f64; 2]>,
    /// Whether the gain is real: its interval lies above 1, or the 95 % interval of what arrived with the fix above 0 where nothing
    /// did without it. Of UDP also where less is lost, the 95 % interval of the difference
    /// lies below 0, and the goodput did not fall.
    pub helped: bool,
}

impl ProofView {
    /// The prediction, in words: `predicted 634 Mbit/s`, `predicted at least 1.25 Gbit/s`, or why there is none.
    pub fn predicted_words(&self) -> String {
        let bps = units::bps(self.predicted_bps);
        match self.predicted_interval_bps {
            // The record does not say why it has none.
            _ if self.predicted_bps <= 0.0 => "no prediction was possible".to_owned(),
            Some(_) => format!("predicted {bps}"),
            None => format!("predicted at least {bps}"),
        }
    }

    /// The gain that trials have to exclude before a fix is said not to help: half of what was foretold; a tenth where nothing was, by
    /// which two trials of one path differ anyway.
    pub fn gain_to_exclude(&self) -> f64 {
        let before = Self::mean(&self.before_bps).unwrap_or(0.0);
        if self.predicted_bps > before { 1.0 + 0.5 * (self.predicted_bps / before - 1.0) } else { 1.1 }
    }

    /// Whether the fix helped, in words.
    pub fn helped_words(&self) -> &'static str {
        match self.gain_interval {
            _ if self.helped => "It helped",
            Some([_, most]) if most >= self.gain_to_exclude() => "Whether it helped is not decided",
            _ => "It did not help",
        }
    }

    /// The gain in goodput, in words.
    pub fn gain_words(&self) -> String {
        match (self.gain, self.gain_interval) {
            (Some(gain), Some([low, high])) => {
                format!("{gain:.2} times the goodput (95 % interval {low:.2} to {high:.2})")
            }
            _ => {
                let after = Self::mean(&self.after_bps).map_or_else(|| "an unknown rate".to_owned(), units::bps);
                format!("nothing arrived without it, {after} with it")
            }
        }
    }

    /// The mean of what the trials of one side came to; `None` without trials.
    pub fn mean(trials: &[f64]) -> Option<f64> {
        let sound = !trials.is_empty() && trials.iter().all(|value| value.is_finite());
        sound.then(|| trials.iter().sum::<f64>() / crate::words::figures::float(trials.len() as u64))
    }
}
