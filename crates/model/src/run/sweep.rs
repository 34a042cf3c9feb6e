//! The sweep: one trial for each size, protocol and direction. The record is raw and kept after each point, so that a sweep
//! that was interrupted goes on where it stood; the report is derived from it.

use crate::load::kind::{setting, within};
use crate::load::udp::{UdpPlan, UdpRate};
use crate::run::measure::{EndCpu, HostCpu};
use crate::run::report::RunView;
use crate::run::target::Ending;
use crate::words::place::{Direction, Flow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the report's JSON form.
pub const SCHEMA: &str = "narrows.sweep/1";

/// What carries the data of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SweepProtocol {
    /// The size is that of the datagram's payload.
    Udp,
    /// The size is that of the message handed over in one call, without delay (`TCP_NODELAY`).
    Tcp,
}

impl SweepProtocol {
    /// The word used in every format.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// One sweep, resolved and bounded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPlan {
    /// Datagram or message sizes, bytes of payload.
    pub sizes: Vec<u32>,
    /// In the order of the tables.
    pub protocols: Vec<SweepProtocol>,
    /// `both` loads the path both ways at the same time.
    pub directions: Vec<Direction>,
    /// Streams per flow.
    pub streams: u32,
    /// The load of UDP trials; TCP takes what it gets.
    pub rate: UdpRate,
    /// Trial duration.
    pub trial_ms: u64,
    /// The first part of each trial that is not counted.
    pub omit_ms: u64,
    /// How often each point is measured.
    pub repetitions: u32,
    /// Whether the highest rate without loss is searched for each UDP point.
    pub search_lossless: bool,
}

impl SweepPlan {
    /// The most sizes.
    pub const MAX_SIZES: usize = 256;
    /// The most points of a sweep.
    pub const MAX_CELLS: usize = 100_000;

    /// Every point, a repetition after the other, so that what drifts over time does not fall on one size.
    pub fn cells(&self) -> impl Iterator<Item = SweepCell> + '_ {
        (0..self.repetitions).flat_map(move |repetition| {
            self.protocols.iter().flat_map(move |&protocol| {
                self.directions.iter().flat_map(move |&direction| {
                    self.sizes.iter().map(move |&size_bytes| SweepCell { repetition, protocol, direction, size_bytes })
                })
            })
        })
    }

    /// What is wrong with the plan, if anything.
    /// Errors: one sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        within("number of sizes", self.sizes.len(), 1, Self::MAX_SIZES)?;
        within("number of protocols", self.protocols.len(), 1, 2)?;
        within("number of directions", self.directions.len(), 1, 3)?;
        within("streams", self.streams, 1, UdpPlan::MAX_STREAMS)?;
        within("repetitions", self.repetitions, 1, 1000)?;
        let cells = self.sizes.len() * self.protocols.len() * self.directions.len();
        within("points", (cells as u64).saturating_mul(self.repetitions.into()), 1, Self::MAX_CELLS as u64)?;
        within("trial in ms", self.trial_ms, 100, UdpPlan::LONGEST_MS)?;
        if self.omit_ms >= self.trial_ms {
            let [omit, trial] = [self.omit_ms, self.trial_ms].map(setting);
            return Err(format!("omit is {omit}, but a trial lasts only {trial}"));
        }
        let least = if self.protocols.contains(&SweepProtocol::Udp) { UdpPlan::MIN_BYTES } else { 1 };
        for (at, size) in self.sizes.iter().enumerate() {
            within("size", *size, least, UdpPlan::MAX_BYTES)?;
            if self.sizes[..at].contains(size) {
                return Err(format!("size {size} is given twice"));
            }
        }
        if (1..self.protocols.len()).any(|at| self.protocols[..at].contains(&self.protocols[at]))
            || (1..self.directions.len()).any(|at| self.directions[..at].contains(&self.directions[at]))
        {
            return Err("a protocol or direction is given twice".to_owned());
        }
        Ok(())
    }
}

impl Default for SweepPlan {
    /// UDP and TCP, up and down, from the smallest frame's payload to a jumbo frame's; ten seconds each, once.
    fn default() -> Self {
        Self {
            sizes: vec![64, 128, 256, 512, 1024, 1280, 1448, 2048, 4096, 8192, 8948],
            protocols: vec![SweepProtocol::Udp, SweepProtocol::Tcp],
            directions: vec![Direction::Up, Direction::Down],
            streams: 1,
            rate: UdpRate::Max,
            trial_ms: 10_000,
            omit_ms: 0,
            repetitions: 1,
            search_lossless: true,
        }
    }
}

/// One point to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// From 0.
    pub repetition: u32,
    /// What carries the data.
    pub protocol: SweepProtocol,
    /// Which way the path is loaded.
    pub direction: Direction,
    /// Bytes of payload.
    pub size_bytes: u32,
}

/// One point, as it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// Which point.
    pub cell: SweepCell,
    /// Since the sweep began, its interruptions not counted.
    pub at_us: u64,
    /// How long it took, its search included.
    pub took_us: u64,
    /// What came of it.
    pub outcome: SweepOutcome,
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepOutcome {
    /// The figures of each flow.
    Measured(Vec<SweepFigures>),
    /// It cannot be measured, because …
    CannotRun(String),
}

/// What one flow of a point gave. What was not seen is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepFigures {
    /// Which way.
    pub flow: Flow,
    /// What the sender's sockets took, payload.
    pub sending_bps: Option<f64>,
    /// Datagrams a second; of TCP messages a second.
    pub sending_pps: Option<f64>,
    /// What the receiving application got, payload.
    pub receiving_bps: Option<f64>,
    /// Datagrams a second.
    pub receiving_pps: Option<f64>,
    /// Datagrams that the sender's sockets refused.
    pub unsent: Option<u64>,
    /// Datagrams that were sent and never arrived.
    pub lost: Option<u64>,
    /// Lost of all that should have arrived.
    pub loss: Option<f64>,
    /// By how much the one-way delay grew over the trial, microseconds: a queue that filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_growth_us: Option<i64>,
    /// The highest rate without loss, where it was searched for.
    pub lossless: Option<Lossless>,
    /// Whether datagrams were handed to the kernel in batches as one (`UDP_SEGMENT`): then the rates in datagrams are none of packets
    /// that a host handled one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation_offload: Option<bool>,
    /// What it cost the end that sends.
    pub sender: Option<EndCpu>,
    /// What it cost the end that receives.
    pub receiver: Option<EndCpu>,
}

/// The highest rate without loss: between these two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Lossless {
    /// The highest load that passed, payload; `None` where none did.
    pub lower_bps: Option<f64>,
    /// The same in datagrams a second.
    pub lower_pps: Option<f64>,
    /// The lowest load that failed; `None` where none did.
    pub upper_bps: Option<f64>,
    /// The same in datagrams a second.
    pub upper_pps: Option<f64>,
    /// Why a bound is missing, or what else must be known of them.
    pub remark: Option<String>,
}

/// A sweep as far as it got: what is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRecord {
    /// What was asked for.
    pub plan: SweepPlan,
    /// In the order in which they were measured.
    pub points: Vec<SweepPoint>,
    /// How it ended; an interrupted one can go on.
    pub ending: Ending,
}

impl SweepRecord {
    /// What is still to be measured.
    pub fn remaining(&self) -> Vec<SweepCell> {
        let done: std::collections::HashSet<SweepCell> = self.points.iter().map(|point| point.cell).collect();
        self.plan.cells().filter(|cell| !done.contains(cell)).collect()
    }

    /// How long the rest takes if its points take as long as those of their kind did so far, microseconds; `None` before the
    /// first point.
    pub fn remaining_us(&self) -> Option<u64> {
        let mean = |points: &[&SweepPoint]| {
            let sum = points.iter().fold(0u64, |sum, point| sum.saturating_add(point.took_us));
            sum.checked_div(points.len() as u64)
        };
        let overall = mean(&self.points.iter().collect::<Vec<_>>())?;
        let of = |protocol| {
            let alike: Vec<_> = self.points.iter().filter(|point| point.cell.protocol == protocol).collect();
            mean(&alike).unwrap_or(overall)
        };
        let each = [of(SweepProtocol::Udp), of(SweepProtocol::Tcp)];
        Some(self.remaining().iter().fold(0u64, |sum, cell| {
            sum.saturating_add(if cell.protocol == SweepProtocol::Udp { each[0] } else { each[1] })
        }))
    }
}

/// A sweep as its reader meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Which run it was.
    pub run: RunView,
    /// What was asked for.
    pub plan: SweepPlan,
    /// Points that were planned, over all repetitions.
    pub planned: u64,
    /// Points that were measured or could not be.
    pub done: u64,
    /// One for each protocol, direction, flow and size, in the plan's order; medians over the repetitions.
    pub rows: Vec<SweepRow>,
    /// Both directions compared, where both were measured.
    pub symmetry: Vec<Symmetry>,
}

/// Several runs of one figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// How many.
    pub n: u32,
    /// The middle one.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// That of some values; `None` of none, and where one is no finite number.
    pub fn of(values: &[f64]) -> Option<Self> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let [min, max] = [*sorted.first()?, *sorted.last()?];
        let middle = [(sorted.len() - 1) / 2, sorted.len() / 2].map(|at| sorted[at]);
        let n = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
        Some(Self { n, median: middle[0].midpoint(middle[1]), min, max })
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepRow {
    /// What carried the data.
    pub protocol: SweepProtocol,
    /// Which way the path was loaded.
    pub direction: Direction,
    /// Whose figures these are.
    pub flow: Flow,
    /// Bytes of payload.
    pub size_bytes: u32,
    /// What the sender's sockets took, bit/s of payload.
    pub sending_bps: Option<Spread>,
    /// Datagrams (messages) a second.
    pub sending_pps: Option<Spread>,
    /// What the receiving application got, bit/s of payload.
    pub receiving_bps: Option<Spread>,
    /// Datagrams a second.
    pub receiving_pps: Option<Spread>,
    /// The highest lossless rate: the lower bounds, bit/s of payload.
    pub lossless_bps: Option<Spread>,
    /// The same in datagrams a second.
    pub lossless_pps: Option<Spread>,
    /// The lowest load that failed in any repetition, datagrams a second.
    pub lossless_upper_pps: Option<f64>,
    /// Datagrams that the sender's sockets refused, all repetitions.
    pub unsent: Option<u64>,
    /// Datagrams that were lost, all repetitions.
    pub lost: Option<u64>,
    /// Lost of all that should have arrived, the median.
    pub loss: Option<f64>,
    /// Whether datagrams were handed to the kernel in batches as one (`UDP_SEGMENT`), in any repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation_offload: Option<bool>,
    /// CPU of the end that sends, in cores, the medians.
    pub sender: Option<HostCpu>,
    /// CPU of the end that receives.
    pub receiver: Option<HostCpu>,
    /// Why there are no figures, or what must be known of them.
    pub remarks: Vec<String>,
}

/// One size, both ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Symmetry {
    /// What carried the data.
    pub protocol: SweepProtocol,
    /// Whether both ways were loaded at the same time, or one after the other.
    pub at_once: bool,
    /// Bytes of payload.
    pub size_bytes: u32,
    /// What was compared: `receiving` or `lossless`.
    pub figure: String,
    /// Up, bit/s, the median.
    pub up_bps: f64,
    /// Down, bit/s, the median.
    pub down_bps: f64,
    /// Down over up.
    pub ratio: f64,
    /// 95 % interval of that ratio, where there were repetitions enough.
    pub interval: Option<[f64; 2]>,
    /// The two ways differ by more than the noise.
    pub differs: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_finite_values_only() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { n: 3, median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of(&[4.0, 1.0]).map(|it| it.median), Some(2.5));
    }

    fn record() -> SweepRecord {
        let plan = SweepPlan { sizes: vec![64, 1448], repetitions: 2, ..SweepPlan::default() };
        SweepRecord { plan, points: vec![], ending: Ending::Interrupted }
    }

    #[test]
    fn the_default_plan_is_sound_and_others_say_what_is_wrong() {
        assert_eq!(SweepPlan::default().check(), Ok(()));
        let plan = SweepPlan { sizes: vec![64, 64], ..SweepPlan::default() };
        assert_eq!(plan.check(), Err("size 64 is given twice".to_owned()));
        let plan = SweepPlan { sizes: vec![1], ..SweepPlan::default() };
        assert_eq!(plan.check(), Err("size is 1, but must be from 20 to 65507".to_owned()));
        let plan = SweepPlan { sizes: vec![1], protocols: vec![SweepProtocol::Tcp], ..SweepPlan::default() };
        assert_eq!(plan.check(), Ok(()));
        let plan = SweepPlan { directions: vec![Direction::Up, Direction::Up], ..SweepPlan::default() };
        assert!(plan.check().is_err());
    }

    #[test]
    fn what_was_measured_is_not_measured_again() {
        let mut record = record();
        assert_eq!(record.remaining().len(), 16);
        assert_eq!(record.remaining_us(), None);
        let cells = record.remaining();
        assert!(cells[..8].iter().all(|cell| cell.repetition == 0), "a repetition after the other");
        for (cell, took_us) in [(cells[0], 30_000_000), (cells[4], 10_000_000)] {
            let outcome = SweepOutcome::CannotRun("larger than the path MTU".into());
            record.points.push(SweepPoint { cell, at_us: 0, took_us, outcome });
        }
        assert_eq!((cells[0].protocol, cells[4].protocol), (SweepProtocol::Udp, SweepProtocol::Tcp));
        assert_eq!(record.remaining().len(), 14);
        assert_eq!(record.remaining_us(), Some(7 * 40_000_000));
    }
}
