//! Back-to-back frames (RFC 9004, which replaces RFC 2544, section 26.4): the longest burst at the maximum rate that loses
//! nothing, and the buffer that it tells of.
//!
//! Only sizes whose throughput is below the maximum rate are tested: where the device forwards as fast as frames come, no
//! burst fills a buffer. Mixes are not tested.
//!
//! Buffers empty in the plan's residue and rest after each burst; the RFC wants 2 s at least, which its preset has.
//!
//! Each repetition is a search of its own over burst lengths: growing steps until one loses, then the interval is halved
//! until it is a percent wide, and the shortest length that failed is asked once more. A length is decided by two trials that
//! agree, of three at most, so that one hiccup neither ends a search nor makes a burst too long (the RFC's *search with loss
//! verification*). From the second repetition on the search begins where the one before ended.
//!
//! ```text
//! implied buffer time   = average burst ÷ maximum rate
//! corrected buffer time = implied × (1 − throughput ÷ maximum rate)
//! ```
//!
//! since the device forwards while the burst comes.

mod buffer;
mod hunt;

pub use buffer::{BufferTime, buffer_time};

use super::procedure::{
    BELOW_MAX, Context, Keep, Known, Load, Procedure, Request, Seen, SetUp, handed, loads, max_pps,
};
use super::schedule::{CARRIES, QUEUE_FRAMES, REHEARSALS, Scheduled, overhead_ms, scheduled};
use crate::data::plan::Row;
use crate::data::{BackToBackTest, BurstOfSize, ForwardingPlan, Test};
use hunt::{CHECKS, Hunt, STEP_AGAIN, STEP_MOST, VOTES};
use narrows_search::search::SearchError;

/// The longest burst in time; the RFC wants 30 s to be possible.
pub const LONGEST_MS: u64 = 30_000;
/// Trials after which a repetition is given up. A device that loses by the length of the burst needs about forty for the first
/// one and ten for each other; one that loses at random has no longest burst.
const MAX_TRIALS: u32 = 80;
/// The first length of the first repetition.
const FIRST_FRAMES: u64 = 64;
/// How often an invalid trial is made again.
const INVALID_RETRIES: u32 = 4;

/// The back-to-back test of one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackToBackPlan {
    /// The longest burst that is tried.
    pub most_frames: u64,
    /// At which rate bursts are sent: the line's, or the most that the plan offers.
    pub max_pps: f64,
    /// How often the longest burst is sought.
    pub repetitions: u32,
}

impl BackToBackPlan {
    /// The test of a row of which the throughput is known.
    /// Errors: why the row has no back-to-back value.
    pub fn of(
        plan: &ForwardingPlan,
        test: &BackToBackTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<Self, String> {
        if row.size.is_none() {
            return Err("RFC 9004 tests single frame sizes, not mixes".to_owned());
        }
        let (throughput_pps, max_pps) = loads(plan, row, &Known { throughput_pps, ..Known::default() })?;
        if throughput_pps >= max_pps * BELOW_MAX {
            return Err("its throughput is the maximum load: no burst fills a buffer".to_owned());
        }
        // Frames of a time limit: far below 2^53.
        let longest = (max_pps * LONGEST_MS as f64 / 1e3).floor().max(1.0) as u64;
        Ok(Self { most_frames: test.most_frames.clamp(1, longest), max_pps, repetitions: test.repetitions })
    }

    /// Trials of one repetition that it can take at most, invalid ones left out.
    pub fn most_trials(&self) -> u32 {
        // Eight small steps away from an earlier result, steps of four across the whole range, halving from a factor of four to
        // a percent, and the upper bound once more; all of it again where that passes.
        let lengths = 8 + self.most_frames.ilog2().div_ceil(2) + 10 + 1;
        (lengths * (1 + u32::from(CHECKS)) * (2 * u32::from(VOTES) - 1)).min(MAX_TRIALS)
    }
}

/// What was seen of a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstSeen {
    pub sent: u64,
    /// Frames that came, each once, after waiting for those under way.
    pub received: u64,
    /// Why it says nothing, if so.
    pub invalid: Option<String>,
}

/// A back-to-back test under way.
#[derive(Debug, Clone)]
pub struct BackToBack {
    plan: BackToBackPlan,
    hunt: Hunt,
    found: Vec<u64>,
    asked: bool,
    ended: Option<String>,
}

impl BackToBack {
    /// A test that has not begun.
    /// Errors: [`SearchError::Plan`] where the plan's numbers are none.
    pub fn new(plan: &BackToBackPlan) -> Result<Self, SearchError> {
        if plan.most_frames == 0 || !(plan.max_pps.is_finite() && plan.max_pps > 0.0) {
            return Err(SearchError::Plan(format!(
                "bursts of up to {} frames at {} frames/s are too short",
                plan.most_frames, plan.max_pps
            )));
        }
        let hunt = Hunt::from(FIRST_FRAMES.min(plan.most_frames), STEP_MOST);
        Ok(Self { plan: *plan, hunt, found: Vec::new(), asked: false, ended: None })
    }

    /// The frames of the next burst; `None` when the test is over. Until it is observed it says the same.
    pub fn ask(&mut self) -> Option<u64> {
        self.asked = self.ended.is_none() && self.found.len() < self.plan.repetitions as usize;
        self.asked.then_some(self.hunt.at)
    }

    /// The repetition of the next burst, from 0.
    pub fn repetition(&self) -> u32 {
        u32::try_from(self.found.len()).unwrap_or(u32::MAX)
    }

    /// Takes what was seen of the burst that was asked for.
    /// Errors: [`SearchError::NoTrialPending`] where no burst is under way.
    pub fn observe(&mut self, seen: &BurstSeen) -> Result<(), SearchError> {
        if !std::mem::take(&mut self.asked) {
            return Err(SearchError::NoTrialPending);
        }
        let frames = self.hunt.at;
        let invalid = seen.invalid.clone().or_else(|| {
            if seen.sent != frames {
                Some(format!("{} frames sent, but the burst has {frames}", seen.sent))
            } else if seen.received > seen.sent {
                Some(format!("{} received, only {} sent", seen.received, seen.sent))
            } else {
                None
            }
        });
        if let Some(why) = invalid {
            self.hunt.invalid += 1;
            if self.hunt.invalid > INVALID_RETRIES {
                self.ended = Some(format!("bursts of {frames} frames stayed invalid: {why}"));
            }
            return Ok(());
        }
        self.hunt.trials += 1;
        if seen.received == seen.sent {
            self.hunt.passes += 1;
        } else {
            self.hunt.fails += 1;
        }
        let settled = self.hunt.decided() && !self.hunt.advance(self.plan.most_frames);
        if settled {
            let longest = self.hunt.lower;
            self.found.push(longest);
            self.hunt = Hunt::from(longest.max(1), STEP_AGAIN);
        } else if self.hunt.trials >= MAX_TRIALS {
            self.ended = Some(format!(
                "no result after {MAX_TRIALS} trials of one repetition: bursts of equal length pass and fail at random"
            ));
        }
        Ok(())
    }

    /// Why it ended before all repetitions were made, if it did.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// The longest burst of each repetition that came to its end.
    pub fn bursts(&self, row: Row) -> Vec<BurstOfSize> {
        let burst = |(repetition, frames): (u32, &u64)| BurstOfSize {
            traffic: row.traffic,
            size: row.size,
            repetition,
            frames: *frames,
            offered_pps: self.plan.max_pps,
            at_most: *frames >= self.plan.most_frames,
        };
        (0..).zip(&self.found).map(burst).collect()
    }
}

pub(super) fn set_up(plan: &ForwardingPlan, row: Row, known: &Known) -> Option<SetUp> {
    let test = plan.tests.back_to_back.as_ref()?;
    let begin = |plan| BackToBack::new(&plan).map_err(|error| error.to_string());
    let ready = BackToBackPlan::of(plan, test, row, known.throughput_pps).and_then(begin);
    Some(ready.map(|bursts| Box::new(OfRow { row, bursts }) as _))
}

/// Bursts on the device in numbers.
pub(super) fn schedule(plan: &ForwardingPlan, row: Row) -> Vec<Scheduled> {
    let carries = max_pps(plan, row).ok().map(|pps| pps * CARRIES);
    let bursts = plan.tests.back_to_back.as_ref().map(|test| BackToBackPlan::of(plan, test, row, carries));
    let Some(Ok(bursts)) = bursts else { return Vec::new() };
    let (mut trials, mut frames_sent) = (0_u32, 0.0);
    if let Ok(mut test) = BackToBack::new(&bursts) {
        while let Some(frames) = test.ask() {
            trials += 1;
            frames_sent += frames as f64;
            // Below the frames of the burst, or equal to them.
            let received = (QUEUE_FRAMES + frames as f64 * CARRIES).floor().min(frames as f64) as u64;
            let seen = BurstSeen { sent: frames, received, invalid: None };
            if trials >= REHEARSALS || test.observe(&seen).is_err() {
                break;
            }
        }
    }
    let most = bursts.repetitions.saturating_mul(bursts.most_trials());
    let longest_ms = bursts.most_frames as f64 / bursts.max_pps * 1e3;
    let ms = |load_ms: f64, trials: u32| {
        // A time of at most 30 s times a number of trials.
        let load_ms = load_ms.ceil() as u64;
        load_ms.saturating_add(u64::from(trials).saturating_mul(overhead_ms(plan)))
    };
    let expected_ms = ms(frames_sent / bursts.max_pps * 1e3, trials);
    let at_most = (most, ms(longest_ms * f64::from(most), most));
    vec![scheduled(Test::BackToBack, row, (trials, expected_ms), at_most)]
}

/// The bursts of a row.
struct OfRow {
    row: Row,
    bursts: BackToBack,
}

impl Procedure for OfRow {
    fn next(&mut self, _: &mut Context<'_>) -> Result<Option<Request>, SearchError> {
        let (repetition, pps) = (self.bursts.repetition(), self.bursts.plan.max_pps);
        let burst = |frames| Request::new(Test::BackToBack, repetition, Load::Burst { frames, pps }, Keep::IfTelling);
        Ok(self.bursts.ask().map(burst))
    }

    fn take(&mut self, seen: &Seen, _: &mut Context<'_>) -> Result<(), SearchError> {
        let none = || Some("nothing was sent".to_owned());
        let (sent, received) = seen.worse().map_or((0, 0), |(direction, worse)| {
            let own = seen.trial.broadcast(direction);
            (worse.sent.sent() + own.sent, worse.got.distinct() + own.sent)
        });
        let to_all = seen.trial.broadcasts();
        let gaps: u64 = seen.trial.directions.iter().map(|it| it.sent.due().saturating_sub(handed(it))).sum();
        let gaps = gaps + to_all.due.saturating_sub(to_all.handed);
        let stalled = (gaps > 0).then(|| format!("the burst has gaps of {gaps} frames: the generator stalled"));
        let invalid = seen.invalid.clone().or(stalled).or_else(|| seen.trial.directions.is_empty().then(none)?);
        self.bursts.observe(&BurstSeen { sent, received, invalid })
    }

    fn finish(&mut self, context: &mut Context<'_>) {
        if let Some(why) = self.bursts.ended() {
            (context.says)(why);
        }
        context.record.bursts.extend(self.bursts.bursts(self.row));
    }
}

#[cfg(test)]
mod tests;
