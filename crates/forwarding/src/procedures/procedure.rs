//! What every procedure is made of: the trials that it asks for, what it sees of each, and the record that it writes into.

use crate::data::plan::Row;
use crate::data::{ForwardingPlan, ForwardingRecord, ForwardingTrial, Test};
use narrows_model::load::frames::FrameTrial;
use narrows_model::run::search::Observation;
use narrows_search::search::SearchError;
use std::time::Duration;

/// How far below the highest offered load a throughput must be to be the device's: beyond the rounding of loads.
pub(super) const BELOW_MAX: f64 = 1.0 - 1e-6;

/// What one trial offers, in each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// A rate for a time.
    Rate {
        /// Frames a second.
        pps: f64,
        duration_ms: u64,
    },
    /// So many frames at a rate.
    Burst {
        frames: u64,
        /// Frames a second.
        pps: f64,
    },
    /// A rate that falls to a lower one at once, in the first direction alone.
    Cut {
        /// Frames a second before the cut.
        pps: f64,
        /// How long the load before the cut lasts.
        duration_ms: u64,
        /// Frames a second after the cut.
        after_pps: f64,
        /// How long the load after the cut lasts.
        after_ms: u64,
    },
}

impl Load {
    /// The first stream of the part of a cut load that ends with the cut; those before go on.
    pub const CUT_STREAM: u16 = 32;

    /// Frames a second at the begin.
    pub const fn pps(self) -> f64 {
        match self {
            Self::Rate { pps, .. } | Self::Burst { pps, .. } | Self::Cut { pps, .. } => pps,
        }
    }

    /// How long it lasts, at least.
    pub fn millis(self) -> u64 {
        match self {
            Self::Rate { duration_ms, .. } => duration_ms,
            Self::Cut { duration_ms, after_ms, .. } => duration_ms.saturating_add(after_ms),
            Self::Burst { frames, pps } => (frames as f64 * 1e3 / pps.max(1.0)).ceil() as u64,
        }
    }
}

/// Which trials stay in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Always,
    /// A few of those that lost frames or are invalid: they tell where frames are lost.
    IfTelling,
}

/// A trial to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The test it belongs to.
    pub test: Test,
    /// From 0, of those that repeat it.
    pub repetition: u32,
    pub load: Load,
    /// Whether it stays in the record.
    pub keep: Keep,
    /// Receiver sampling interval, if the time of loss matters; otherwise the receiver is not disturbed.
    pub sample_ms: Option<u64>,
    /// A command of the user that runs meanwhile, and how long it may take.
    pub command: Option<Vec<String>>,
    /// What the user hears before it.
    pub note: Option<String>,
}

impl Request {
    /// A trial with default options.
    pub const fn new(test: Test, repetition: u32, load: Load, keep: Keep) -> Self {
        Self { test, repetition, load, keep, sample_ms: None, command: None, note: None }
    }
}

/// What was seen of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The trial, its counts corrected.
    pub trial: ForwardingTrial,
    /// Why it is invalid, if so.
    pub invalid: Option<String>,
    /// How long it took with everything around its load.
    pub effective_ms: u64,
    /// When a cut load was cut, by the clock of the receiver.
    pub cut_ns: Option<u64>,
    /// Why the user's command failed, if it did.
    pub command_failed: Option<String>,
}

impl Seen {
    /// The direction of which more is missing; of two that are alike the first. A load passes when it passes both ways.
    pub fn worse(&self) -> Option<(usize, &FrameTrial)> {
        worse(&self.trial)
    }

    /// What it says of its load.
    pub fn observation(&self, effective_ms: u64) -> Observation {
        Observation { invalid: self.invalid.clone(), ..observation(&self.trial, effective_ms) }
    }
}

fn worse(trial: &ForwardingTrial) -> Option<(usize, &FrameTrial)> {
    let missing = |(_, frames): &(usize, &FrameTrial)| frames.sent.due().saturating_sub(frames.got.distinct());
    trial.directions.iter().enumerate().rev().max_by_key(missing)
}

/// What a trial says of its load, which is that of each direction.
pub(super) fn observation(trial: &ForwardingTrial, effective_ms: u64) -> Observation {
    let Some((direction, frames)) = worse(trial) else {
        let invalid = Some("nothing was sent".to_owned());
        return Observation { effective_ms, invalid, ..Observation::default() };
    };
    // A DUT must not forward broadcast frames, so they do not count as lost.
    let to_all = trial.broadcast(direction);
    Observation {
        intended: frames.sent.due() + to_all.due,
        offered: handed(frames) + to_all.handed,
        sent: frames.sent.sent() + to_all.sent,
        received: frames.got.distinct() + to_all.sent,
        effective_ms,
        ..Observation::default()
    }
}

pub(super) fn handed(frames: &FrameTrial) -> u64 {
    frames.sent.streams.iter().map(|stream| stream.handed).sum()
}

/// What a procedure may use between trials.
pub struct Context<'a> {
    /// The time by any monotonic clock.
    pub now: Duration,
    /// What was measured so far; results go here.
    pub record: &'a mut ForwardingRecord,
    /// What the user hears.
    pub says: &'a mut dyn FnMut(&str),
}

/// A procedure at work on one row.
pub trait Procedure {
    /// The next trial; `None` when all are made.
    fn next(&mut self, context: &mut Context<'_>) -> Result<Option<Request>, SearchError>;

    /// Takes what was seen of the trial.
    fn take(&mut self, _seen: &Seen, _context: &mut Context<'_>) -> Result<(), SearchError> {
        Ok(())
    }

    /// Writes what it found, however far it came.
    fn finish(&mut self, _context: &mut Context<'_>) {}
}

/// What is known of a row before a procedure begins.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Known {
    /// Frames a second that the tester alone carries.
    pub tester_pps: Option<f64>,
    pub throughput_pps: Option<f64>,
}

/// A procedure that is ready to begin, or why the row has none.
pub type SetUp = Result<Box<dyn Procedure>, String>;

/// Some trials of the same load, whose record says all.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) test: Test,
    pub(super) load: Load,
    pub(super) repetitions: u32,
    pub(super) made: u32,
}

impl Repeated {
    pub(super) fn set_up(test: Test, pps: f64, duration_ms: u64, repetitions: u32) -> Box<dyn Procedure> {
        Box::new(Self { test, load: Load::Rate { pps, duration_ms }, repetitions, made: 0 })
    }
}

impl Procedure for Repeated {
    fn next(&mut self, _: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        let request = Request::new(self.test, self.made, self.load, Keep::Always);
        self.made += 1;
        Ok((request.repetition < self.repetitions).then_some(request))
    }
}

/// The throughput that other procedures of a row stand on, and the highest load that is offered of its frames.
pub(super) fn loads(plan: &ForwardingPlan, row: Row, known: &Known) -> Result<(f64, f64), String> {
    let max_pps = max_pps(plan, row)?;
    let found = known.throughput_pps.filter(|pps| pps.is_finite() && *pps > 0.0);
    let throughput_pps = found.ok_or("the test needs a throughput, and none was found")?;
    Ok((throughput_pps, max_pps))
}

/// The highest load that is offered of a row's frames.
pub(super) fn max_pps(plan: &ForwardingPlan, row: Row) -> Result<f64, String> {
    plan.max_pps(row).ok_or_else(|| "the plan has no such frames".to_owned())
}

/// Nanoseconds of a number of seconds, rounded; nothing where that is no time.
pub(super) fn nanos(seconds: f64) -> Option<u64> {
    let ns = (seconds * 1e9).round();
    // Up to 2^63: beyond it nothing here lasts.
    (0.0..9.2e18).contains(&ns).then_some(ns as u64)
}
