//! An overload that is cut to half of it at once, and how long frames are missing after that: the recovery's trial.

use super::error::ForwardingError;
use super::tester::{Load, Tester};
use narrows_model::forwarding_plan::Row;
use narrows_model::frames::{GeneratePlan, ReceivePlan};
use narrows_sys::clock;
use std::time::Duration;

/// What was lost around a cut of the load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cut {
    pub(super) overload_lost: u64,
    pub(super) after_lost: u64,
    /// From the cut to the last frame lost.
    pub(super) last_loss_ns: Option<u64>,
    pub(super) invalid: Option<String>,
}

impl Tester<'_> {
    /// An overload that becomes half of it at once: two generators, of which one ends. Frames of the second are missing after
    /// the cut as long as the device has not recovered; the receiver's looks say how long.
    pub(super) fn cut(
        &mut self,
        row: Row,
        order: &narrows_search::procedures::RecoveryPlan,
    ) -> Result<Cut, ForwardingError> {
        let Some(way) = self.ways.first().cloned() else { return Ok(Cut::default()) };
        let whole_ms = order.overload_ms + order.after_ms;
        let receive = ReceivePlan {
            interval_ms: 10,
            ..self.receive_plan(&way, Load::Rate { pps: order.after_pps, duration_ms: whole_ms })
        };
        let receiver = way.to.port.receive(&receive, true)?;
        let counting_since = clock::now();
        let base = self.generate_plan(&way, row, Load::Rate { pps: order.after_pps, duration_ms: whole_ms });
        let more = Load::Rate { pps: order.overload_pps - order.after_pps, duration_ms: order.overload_ms };
        let extra = GeneratePlan { first_stream: 32, ..self.generate_plan(&way, row, more) };
        let order_us = clock::micros_since(counting_since);
        let sent = way.from.port.generate(&[base, extra], &self.stop)?;
        let [base, extra] = sent.as_slice() else { return Err(way.from.unfit("a generator of two saw nothing")) };
        // The cut by the clock of the receiver's looks: as near as the way of a request is long.
        let cut_us = order_us + extra.over_us;
        clock::sleep(Duration::from_millis(self.plan.residue_ms));
        let got = receiver.finish()?;
        let sent = [&base.record, &extra.record];
        let streams = |from: u16, to: u16| {
            got.streams
                .iter()
                .filter(|stream| (from..to).contains(&stream.stream))
                .map(|stream| stream.received.saturating_sub(stream.duplicates))
                .sum::<u64>()
        };
        let lost = [sent[0].sent().saturating_sub(streams(0, 32)), sent[1].sent().saturating_sub(streams(32, 64))];
        let after = After {
            pps: order.after_pps,
            from_us: cut_us,
            to_us: cut_us + order.after_ms * 1000,
            jitter: u64::from(base.record.plan.burst) + base.record.unsent(),
        };
        let looks: Vec<Look> = got.intervals.iter().map(|it| Look { at_us: it.at_us, frames: it.frames }).collect();
        let (missing, last_loss_us) = after.lost(&looks);
        let after_lost = missing.min(lost[0]);
        let ended = sent.iter().find_map(|record| record.ended.clone());
        Ok(Cut {
            overload_lost: (lost[0] + lost[1]).saturating_sub(after_lost),
            after_lost,
            last_loss_ns: last_loss_us.map(|us| us * 1000),
            invalid: ended.map(|why| format!("the generator ended early: {why}")),
        })
    }
}

/// How many frames the receiver had counted at a time.
struct Look {
    at_us: u64,
    frames: u64,
}

/// The time after a cut: one load, looked at by the receiver.
struct After {
    pps: f64,
    /// By the clock of the looks.
    from_us: u64,
    to_us: u64,
    /// Frames that may be late in a look or were never sent, and are not lost.
    jitter: u64,
}

/// Looks are so far from the time that they say, and a load from its plan.
const LOOKS_JITTER_US: f64 = 2_000.0;
/// Before the end of the load: the last frames are under way, the generator was ready a little later than it was told.
const TAIL_US: u64 = 100_000;
/// Of a loss that goes on to the last look less than this is left to show it.
const UNSEEN_US: u64 = 100_000;

impl After {
    /// Frames lost, and the time from the cut to the look before which the last of them was.
    ///
    /// What is missing is counted back from the last look, in which all that came is: jitter does not add up there, a loss does.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // frames above none
    fn lost(&self, looks: &[Look]) -> (u64, Option<u64>) {
        let within = self.from_us..=self.to_us.saturating_sub(TAIL_US);
        let looks: Vec<&Look> = looks.iter().filter(|look| within.contains(&look.at_us)).collect();
        let Some(last) = looks.last() else { return (0, None) };
        let missing = |look: &Look| {
            let due = self.pps * (last.at_us - look.at_us) as f64 / 1e6;
            due - last.frames.saturating_sub(look.frames) as f64
        };
        let tolerance = self.jitter as f64 + self.pps * LOOKS_JITTER_US / 1e6;
        let Some(at) = looks.iter().rposition(|look| missing(look) > tolerance) else { return (0, None) };
        let most = looks.iter().map(|look| missing(look)).fold(0.0, f64::max) as u64;
        let ends_us = looks.get(at + 1).map_or(last.at_us, |look| look.at_us);
        // A loss that goes on to the last look has not ended.
        let still = ends_us + UNSEEN_US >= last.at_us;
        (most, Some(if still { self.to_us } else { ends_us } - self.from_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: After = After { pps: 10_000.0, from_us: 1_000_000, to_us: 3_000_000, jitter: 64 };

    /// Looks every 10 ms at 10,000 frames/s, of which `kept` says what part passes at a time.
    fn looks(kept: impl Fn(u64) -> f64) -> Vec<Look> {
        let mut frames = 0.0;
        let look = |at_us: u64| {
            frames += 100.0 * kept(at_us);
            Look { at_us, frames: frames as u64 }
        };
        (1..=310).map(|n| n * 10_000).map(look).collect()
    }

    #[test]
    fn a_device_that_recovers_is_timed_to_a_look() {
        // Nothing passes until 400 ms after the cut: 4,000 frames.
        let (lost, last_us) = AFTER.lost(&looks(|at| if at <= 1_400_000 { 0.0 } else { 1.0 }));
        assert_eq!(lost, 4_000);
        assert!((390_000..=410_000).contains(&last_us.expect("a loss")), "{last_us:?}");
    }

    #[test]
    fn a_queue_that_drains_and_jitter_are_no_loss() {
        assert_eq!(AFTER.lost(&looks(|at| if at <= 1_200_000 { 1.8 } else { 1.0 })), (0, None));
        assert_eq!(AFTER.lost(&looks(|at| if at % 20_000 == 0 { 1.3 } else { 0.7 })), (0, None));
        assert_eq!(AFTER.lost(&[]), (0, None));
    }

    #[test]
    fn a_loss_that_goes_on_has_not_ended() {
        let (lost, last_us) = AFTER.lost(&looks(|_| 0.8));
        assert!((3_000..4_000).contains(&lost), "a fifth of 19,000: {lost}");
        assert_eq!(last_us, Some(2_000_000));
    }

    #[test]
    fn an_outage_is_told_as_long_as_it_was() {
        for ms in (50..1_500).step_by(37) {
            let end = 1_000_000 + ms * 1000;
            let (_, last_us) = AFTER.lost(&looks(|at| if at <= end { 0.0 } else { 1.0 }));
            let told = last_us.expect("a loss");
            assert!(told.abs_diff(ms * 1000) <= 20_000, "{told} for {ms} ms");
        }
    }
}
