//! Back-to-back frames (RFC 9004, which replaces RFC 2544, section 26.4): the longest burst at the maximum rate that loses
//! nothing, and the buffer that it tells of.
//!
//! Only sizes whose throughput is below the maximum rate are tested: where the device forwards as fast as frames come, no
//! burst fills a buffer. Mixes are not tested.
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
//! since the device forwards while the burst comes. Where the tester sends bursts slower than the
//! line, the rate at which they left takes the maximum's place: it is what filled the buffer.

use super::{BELOW_MOST, known};
use crate::search::SearchError;
use narrows_model::forwarding::{BackToBackTest, BurstOfSize, ForwardingPlan};
use narrows_model::forwarding_plan::Row;
use narrows_stats::summary;

/// The longest burst in time; the RFC wants 30 s to be possible.
pub const LONGEST_MS: u64 = 30_000;
/// Silence after a burst in which buffers empty; the RFC wants 2 s, after the last frame came.
pub const DEPLETION_MS: u64 = 2_000;
/// The first length of the first repetition.
const FIRST_FRAMES: u64 = 64;
/// Trials that must agree about a length.
const VOTES: u8 = 2;
/// `(upper − lower) ÷ upper` that is near enough.
const WIDTH: f64 = 0.01;
/// The largest step into the unknown.
const STEP_MOST: f64 = 4.0;
/// The first step away from what an earlier repetition found.
const STEP_AGAIN: f64 = 1.02;
/// How often the upper bound may turn out to pass when it is asked once more, in one repetition.
const CHECKS: u8 = 2;
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
    ///
    /// # Errors
    /// Why the row has no back-to-back value.
    pub fn of(
        plan: &ForwardingPlan,
        test: &BackToBackTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<Self, String> {
        if row.size.is_none() {
            return Err("RFC 9004 tests single frame sizes, not mixes".to_owned());
        }
        let (throughput_pps, max_pps) = known(plan, row, throughput_pps)?;
        if throughput_pps >= max_pps * BELOW_MOST {
            return Err("its throughput is the highest rate that is offered: no burst fills a buffer".to_owned());
        }
        // Frames of a time limit: far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let longest = (max_pps * LONGEST_MS as f64 / 1e3).floor().max(1.0) as u64;
        Ok(Self { most_frames: test.most_frames.clamp(1, longest), max_pps, repetitions: test.repetitions })
    }

    /// Trials of one repetition that it can take at most, invalid ones left out.
    #[must_use]
    pub fn most_trials(&self) -> u32 {
        // Eight small steps away from an earlier result, steps of four across the whole range, halving from a factor of four to
        // a percent, and the upper bound once more; all of it again where that passes.
        let lengths = 8 + self.most_frames.ilog2().div_ceil(2) + 10 + 1;
        lengths * (1 + u32::from(CHECKS)) * (2 * u32::from(VOTES) - 1)
    }
}

/// What was seen of a burst.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstSeen {
    /// Frames that left.
    pub sent: u64,
    /// Frames that came, each once, after waiting for those under way.
    pub received: u64,
    /// At which rate they left, frames a second.
    pub offered_pps: f64,
    /// Why it says nothing, if so.
    pub invalid: Option<String>,
}

/// The burst lengths of one repetition.
#[derive(Debug, Clone, Copy)]
struct Hunt {
    /// The longest that passes.
    lower: u64,
    /// The shortest that fails.
    upper: Option<u64>,
    at: u64,
    step: f64,
    passes: u8,
    fails: u8,
    invalid: u32,
    offered_pps: f64,
    /// Whether the upper bound is asked once more.
    checking: bool,
    /// How often it may still turn out to pass.
    checks: u8,
}

impl Hunt {
    const fn from(at: u64, step: f64) -> Self {
        Self {
            lower: 0,
            upper: None,
            at,
            step,
            passes: 0,
            fails: 0,
            invalid: 0,
            offered_pps: 0.0,
            checking: false,
            checks: CHECKS,
        }
    }

    const fn decided(&self) -> bool {
        self.passes >= VOTES || self.fails >= VOTES
    }

    /// Whether the bounds are near enough.
    fn is_near(&self) -> bool {
        self.upper.is_some_and(|upper| {
            upper - self.lower <= 1 || self.lower > 0 && (upper - self.lower) as f64 <= WIDTH * upper as f64
        })
    }

    /// Goes on to the next length; `false` where there is none.
    fn advance(&mut self, most: u64) -> bool {
        let failed = self.fails >= VOTES;
        (self.passes, self.fails, self.invalid) = (0, 0, 0);
        match (self.checking, failed) {
            (true, true) => return false,
            (true, false) => {
                // What failed was a hiccup: on from there.
                (self.lower, self.upper, self.step, self.checking) = (self.at, None, STEP_AGAIN, false);
                self.checks -= 1;
            }
            (false, true) => self.upper = Some(self.at),
            (false, false) => self.lower = self.at,
        }
        if self.lower >= most {
            return false;
        }
        if let Some(upper) = self.upper.filter(|_| self.is_near()) {
            self.checking = self.checks > 0;
            self.at = upper;
            return self.checking;
        }
        // Frames up to the plan's limit, far below 2^53.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let scaled = |by: f64| (self.at as f64 * by).round() as u64;
        self.at = match self.upper {
            None => scaled(self.step).max(self.at + 1).min(most),
            Some(upper) if self.lower == 0 => scaled(1.0 / self.step).min(upper - 1).max(1),
            Some(upper) => self.lower.midpoint(upper),
        };
        self.step = (self.step * self.step).min(STEP_MOST);
        true
    }
}

/// A back-to-back test under way.
#[derive(Debug, Clone)]
pub struct BackToBack {
    plan: BackToBackPlan,
    hunt: Hunt,
    found: Vec<(u64, f64)>,
    asked: bool,
    ended: Option<String>,
}

impl BackToBack {
    /// A test that has not begun.
    ///
    /// # Errors
    /// [`SearchError::Plan`] where the plan's numbers are none.
    pub fn new(plan: &BackToBackPlan) -> Result<Self, SearchError> {
        if plan.most_frames == 0 || !(plan.max_pps.is_finite() && plan.max_pps > 0.0) {
            return Err(SearchError::Plan(format!(
                "bursts of up to {} frames at {} frames/s are none",
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
    #[must_use]
    pub fn repetition(&self) -> u32 {
        u32::try_from(self.found.len()).unwrap_or(u32::MAX)
    }

    /// Takes what was seen of the burst that was asked for; the answer says why it counts for nothing, if so.
    ///
    /// # Errors
    /// [`SearchError::NothingAsked`] where no burst is under way.
    pub fn observe(&mut self, seen: &BurstSeen) -> Result<Option<String>, SearchError> {
        if !std::mem::take(&mut self.asked) {
            return Err(SearchError::NothingAsked);
        }
        let frames = self.hunt.at;
        let invalid = seen.invalid.clone().or_else(|| {
            if seen.sent != frames {
                Some(format!("{} frames left, but the burst is of {frames}", seen.sent))
            } else if seen.received > seen.sent {
                Some(format!("{} received, but only {} sent", seen.received, seen.sent))
            } else {
                None
            }
        });
        if let Some(why) = &invalid {
            self.hunt.invalid += 1;
            if self.hunt.invalid > INVALID_RETRIES {
                self.ended = Some(format!("bursts of {frames} frames stayed invalid: {why}"));
            }
            return Ok(invalid);
        }
        if seen.received == seen.sent {
            self.hunt.passes += 1;
            if seen.offered_pps.is_finite() && seen.offered_pps > 0.0 {
                self.hunt.offered_pps = seen.offered_pps;
            }
        } else {
            self.hunt.fails += 1;
        }
        if self.hunt.decided() && !self.hunt.advance(self.plan.most_frames) {
            let longest = self.hunt.lower;
            let rate = if self.hunt.offered_pps > 0.0 { self.hunt.offered_pps } else { self.plan.max_pps };
            self.found.push((longest, rate));
            self.hunt = Hunt::from(longest.max(1), STEP_AGAIN);
        }
        Ok(None)
    }

    /// Why it ended before all repetitions were made, if it did.
    #[must_use]
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// The longest burst of each repetition that came to its end.
    #[must_use]
    pub fn bursts(&self, row: Row) -> Vec<BurstOfSize> {
        let burst = |(repetition, (frames, offered_pps)): (u32, &(u64, f64))| BurstOfSize {
            traffic: row.traffic,
            size: row.size,
            repetition,
            frames: *frames,
            offered_pps: *offered_pps,
            at_most: *frames >= self.plan.most_frames,
        };
        (0..).zip(&self.found).map(burst).collect()
    }
}

/// The buffer that bursts tell of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferTime {
    /// The average burst, frames: the RFC's back-to-back value.
    pub mean_frames: f64,
    /// The shortest and the longest of the repetitions.
    pub range_frames: [f64; 2],
    /// Standard deviation over the repetitions; `None` of a single one.
    pub sd_frames: Option<f64>,
    /// At which rate the bursts left, frames a second: the maximum rate of the formulas.
    pub rate_pps: f64,
    /// Average burst ÷ rate.
    pub implied_ns: f64,
    /// Implied × (1 − throughput ÷ rate).
    pub corrected_ns: f64,
    /// The same for the throughput's upper and lower bound: near the maximum rate a small error of the throughput is a large
    /// one of the buffer. `None` where the throughput has no upper bound.
    pub corrected_range_ns: Option<[f64; 2]>,
    /// Corrected time × rate: frames that the buffer holds.
    pub buffer_frames: f64,
    /// Whether the longest burst that was tried passed, once or more: the buffer is at least so large.
    pub at_least: bool,
}

/// The buffer by the bursts of one row, its throughput and, where there is one, the throughput's upper bound.
///
/// `None` without a burst or with a rate or a throughput that is none.
#[must_use]
pub fn buffer_time(bursts: &[BurstOfSize], throughput_pps: f64, upper_pps: Option<f64>) -> Option<BufferTime> {
    let frames: Vec<f64> = bursts.iter().map(|burst| burst.frames as f64).collect();
    let rates: Vec<f64> = bursts.iter().map(|burst| burst.offered_pps).collect();
    let (frames, rate_pps) = (summary(&frames)?, narrows_stats::median(&rates)?);
    if !(rate_pps > 0.0 && throughput_pps.is_finite() && throughput_pps >= 0.0) {
        return None;
    }
    let implied_ns = frames.mean / rate_pps * 1e9;
    let corrected = |pps: f64| implied_ns * (1.0 - (pps / rate_pps).clamp(0.0, 1.0));
    let corrected_ns = corrected(throughput_pps);
    Some(BufferTime {
        mean_frames: frames.mean,
        range_frames: [frames.min, frames.max],
        sd_frames: frames.sd,
        rate_pps,
        implied_ns,
        corrected_ns,
        corrected_range_ns: upper_pps.map(|upper| [corrected(upper), corrected_ns]),
        buffer_frames: corrected_ns * rate_pps / 1e9,
        at_least: bursts.iter().any(|burst| burst.at_most),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procedures::device::{Queue, plan, row};
    use crate::sim::Dice;
    use proptest::prelude::*;

    const MAX_PPS: f64 = 1_488_095.0;

    fn test_of(most_frames: u64, repetitions: u32) -> BackToBackPlan {
        BackToBackPlan { most_frames, max_pps: MAX_PPS, repetitions }
    }

    /// Runs a test to its end; how many trials it took.
    fn run(plan: &BackToBackPlan, mut burst: impl FnMut(u64) -> BurstSeen) -> (BackToBack, u32) {
        let mut test = BackToBack::new(plan).expect("a sound plan");
        let mut trials = 0;
        while let Some(frames) = test.ask() {
            assert_eq!(test.ask(), Some(frames), "the same until something is observed");
            assert!((1..=plan.most_frames).contains(&frames), "{frames} is out of the range");
            test.observe(&burst(frames)).expect("asked for");
            trials += 1;
            assert!(trials <= plan.repetitions * (plan.most_trials() * (INVALID_RETRIES + 1)), "does not end");
        }
        (test, trials)
    }

    #[test]
    fn the_formulas_of_the_rfc() {
        // 26,000 frames at 14.88 Mpps are 1.747 ms; with a throughput of 12.2 Mpps 18 % of that are the buffer: 315 µs.
        let burst = |frames| BurstOfSize {
            traffic: 0,
            size: Some(64),
            repetition: 0,
            frames,
            offered_pps: 14_880_952.0,
            at_most: false,
        };
        let time = buffer_time(&[burst(25_000), burst(27_000)], 12.2e6, Some(12.3e6)).expect("bursts");
        assert!((time.implied_ns - 1_747_200.0).abs() < 1.0, "{}", time.implied_ns);
        assert!((time.corrected_ns - 314_775.5).abs() < 1.0, "{}", time.corrected_ns);
        let [low, high] = time.corrected_range_ns.expect("bounds");
        assert!(low < time.corrected_ns && high == time.corrected_ns, "a higher throughput leaves less to the buffer");
        assert_eq!((time.mean_frames, time.range_frames), (26_000.0, [25_000.0, 27_000.0]));
        assert_eq!(buffer_time(&[], 1.0, None), None);
    }

    #[test]
    fn a_size_at_the_line_rate_and_a_mix_have_no_value_and_say_why() {
        let test = BackToBackTest { most_frames: 1_000_000, repetitions: 3 };
        let why = |row, pps| BackToBackPlan::of(&plan(), &test, row, pps).expect_err("no value");
        assert!(why(row(64), Some(14_880_952.380_952_38)).contains("the highest rate that is offered"));
        assert!(why(row(64), None).contains("no throughput"));
        assert!(why(Row { traffic: 0, size: None }, Some(1e6)).contains("not mixes"));
        assert!(BackToBackPlan::of(&plan(), &test, row(64), Some(12e6)).is_ok());
    }

    #[test]
    fn a_burst_that_always_passes_is_at_least() {
        let (test, _) =
            run(&test_of(1_000, 2), |frames| Queue { queue: 10_000, drain_pps: 0.0 }.burst(frames, MAX_PPS));
        let bursts = test.bursts(row(64));
        assert!(bursts.iter().all(|burst| burst.frames == 1_000 && burst.at_most), "{bursts:?}");
        assert!(buffer_time(&bursts, 1e5, None).expect("bursts").at_least);
    }

    #[test]
    fn a_device_without_a_buffer_has_a_burst_of_nothing() {
        let lost = |frames| BurstSeen { sent: frames, received: 0, offered_pps: MAX_PPS, invalid: None };
        let (test, _) = run(&test_of(100_000, 3), lost);
        assert!(test.bursts(row(64)).iter().all(|burst| burst.frames == 0));
    }

    #[test]
    fn a_tester_that_never_sends_a_whole_burst_ends_the_test_with_a_reason() {
        let short = |frames| BurstSeen { sent: frames - 1, received: 0, offered_pps: MAX_PPS, invalid: None };
        let (test, trials) = run(&test_of(100_000, 3), short);
        assert_eq!((trials, test.bursts(row(64)).len()), (5, 0));
        let why = test.ended().expect("a reason");
        assert_eq!(why, "bursts of 64 frames stayed invalid: 63 frames left, but the burst is of 64");
    }

    #[test]
    fn later_repetitions_are_short() {
        let queue = Queue { queue: 3_000, drain_pps: 200_000.0 };
        let burst = |frames| queue.burst(frames, MAX_PPS);
        let (_, once) = run(&test_of(5_000_000, 1), burst);
        let (_, ten) = run(&test_of(5_000_000, 10), burst);
        assert!(ten < once * 7, "{once} trials once, {ten} trials ten times");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_queue_is_found_within_five_percent(
            queue in 50_u64..200_000,
            part in 0.0..0.7_f64,
            hiccup in 0.0..0.01_f64,
            error in -0.005..0.0_f64,
            seed in any::<u64>(),
        ) {
            let device = Queue { queue, drain_pps: MAX_PPS * part };
            let mut dice = Dice::new(seed);
            let (test, _) = run(&test_of(2_976_190, 10), |frames| {
                let mut seen = device.burst(frames, MAX_PPS);
                if dice.unit() < hiccup {
                    seen.received = seen.received.saturating_sub(1);
                }
                seen
            });
            let bursts = test.bursts(row(64));
            prop_assert_eq!(bursts.len(), 10);
            let longest = device.longest(MAX_PPS);
            // The throughput is known as well as a search finds it: half a percent too low.
            let time = buffer_time(&bursts, device.drain_pps * (1.0 + error), None).expect("bursts");
            prop_assert!((time.mean_frames / longest - 1.0).abs() < 0.05, "{} of {longest}", time.mean_frames);
            let found = time.buffer_frames / queue as f64;
            prop_assert!((0.95..=1.05).contains(&found), "{} of {queue}", time.buffer_frames);
        }

        #[test]
        fn it_ends_whatever_is_observed(
            most in 1_u64..10_000_000,
            repetitions in 0_u32..6,
            choices in prop::collection::vec(0_u8..5, 1..40),
        ) {
            let mut nth = 0;
            let (test, _) = run(&test_of(most, repetitions), |frames| {
                nth += 1;
                let sound = BurstSeen { sent: frames, received: frames, offered_pps: MAX_PPS, invalid: None };
                match choices[nth % choices.len()] {
                    0 | 1 => sound,
                    2 => BurstSeen { received: frames - 1, ..sound },
                    3 => BurstSeen { received: frames + 1, offered_pps: f64::NAN, ..sound },
                    _ => BurstSeen { invalid: Some("no".to_owned()), ..sound },
                }
            });
            prop_assert!(test.ended().is_some() || test.bursts(row(64)).len() == repetitions as usize);
        }

        #[test]
        fn it_takes_no_more_trials_than_the_schedule_says(
            most in 1_u64..10_000_000,
            choices in prop::collection::vec(any::<bool>(), 1..60),
        ) {
            let plan = test_of(most, 3);
            let mut nth = 0;
            let (_, trials) = run(&plan, |frames| {
                nth += 1;
                let received = if choices[nth % choices.len()] { frames } else { 0 };
                BurstSeen { sent: frames, received, offered_pps: MAX_PPS, invalid: None }
            });
            prop_assert!(trials <= 3 * plan.most_trials(), "{trials}, at most {}", 3 * plan.most_trials());
        }
    }
}
