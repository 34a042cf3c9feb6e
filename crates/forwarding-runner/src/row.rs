//! Everything that is measured of one row: each procedure asks for trials, the tester makes them.

use crate::error::ForwardingError;
use crate::{Bench, Event, command};
use narrows_forwarding::data::plan::Row;
use narrows_forwarding::data::{ForwardingPlan, ForwardingTrial, Test};
use narrows_forwarding::judge::is_lost;
use narrows_forwarding::procedures::{self, Context, Keep, Known, Load, Procedure, Request, Seen, throughput};
use narrows_model::load::frames::FrameInterval;
use narrows_runner::port::PortError;
use narrows_runner::result_of;
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::time::{Duration, Instant};

/// Trials that are kept of those that only tell where frames are lost, a row.
const MAX_TELLING: usize = 6;
/// Samples that are kept with a trial, once it is known what they say.
const MAX_SAMPLES: usize = 200;
/// How often a lost device under test is probed.
const ASK: Duration = Duration::from_millis(500);
/// How often a lost host of the tester is reconnected in the whole benchmark, and the pause before each attempt.
pub(super) const MAX_RENEWALS: u32 = 5;
const BEFORE_RENEWAL: Duration = Duration::from_secs(1);
/// Time between the start of the load and the reset, to confirm that frames arrive.
const BEFORE_RESET: Duration = Duration::from_secs(1);

/// A trial as it was read, and when its load was cut.
type Made = (ForwardingTrial, Option<u64>);

impl Bench<'_> {
    pub(super) fn row(&mut self, plan: &ForwardingPlan, row: Row) -> Result<(), ForwardingError> {
        let tester = self.tester.qualify(row)?;
        (self.watch)(Event::Tester(tester.pps));
        let tester_pps = Some(tester.pps).filter(|pps| *pps > 0.0);
        self.record.tester.push(tester);
        // Not counted: fills caches, resolves neighbours and checks that anything passes at all.
        let load = Load::Burst { frames: 200, pps: 10_000.0 };
        let (first, _) = self.trial(row, &Request::new(Test::Qualification, 0, load, Keep::Always))?;
        if self.record.ended.is_some() {
            self.record.trials.push(first);
        }
        for entry in procedures::ALL {
            if self.over() {
                break;
            }
            let throughput_pps = throughput::of_row(&self.record, row).map(|(pps, _)| pps);
            match (entry.set_up)(plan, row, &Known { tester_pps, throughput_pps }) {
                None => {}
                Some(Ok(mut procedure)) => self.drive(row, procedure.as_mut())?,
                // That a row has no throughput was said before.
                Some(Err(why)) if entry.test.about().is_some_and(|about| !about.at_throughput) => {
                    (self.watch)(Event::Says(&why));
                }
                Some(Err(_)) => {}
            }
        }
        Ok(())
    }

    /// Makes the trials of a procedure until it has all or the benchmark is over.
    fn drive(&mut self, row: Row, procedure: &mut dyn Procedure) -> Result<(), ForwardingError> {
        let began = clock::now();
        while !self.over() {
            let Some(request) = self.with(began, |context| procedure.next(context))? else { break };
            if let Some(note) = &request.note {
                (self.watch)(Event::Says(note));
            }
            let (mut trial, seen) = self.trial(row, &request)?;
            if request.sample_ms.is_some() {
                trial.directions.iter_mut().for_each(|frames| thin(&mut frames.got.intervals));
            }
            let lost = seen.trial.directions.iter().any(|frames| frames.lost() != 0);
            let telling = (lost || seen.invalid.is_some()) && self.telling < MAX_TELLING;
            match request.keep {
                Keep::Always => self.record.trials.push(trial),
                Keep::IfTelling if telling => {
                    self.telling += 1;
                    self.record.trials.push(trial);
                }
                Keep::IfTelling => {}
            }
            self.with(began, |context| procedure.take(&seen, context))?;
        }
        self.with(began, |context| procedure.finish(context));
        Ok(())
    }

    /// One trial through the device, with its record and its observation. If the plan says so, waits for a lost device under test;
    /// reconnects to a lost host of the tester.
    fn trial(&mut self, row: Row, request: &Request) -> Result<(ForwardingTrial, Seen), ForwardingError> {
        let since = clock::now();
        if self.autosave.is_due() {
            self.keep();
        }
        clock::sleep(Duration::from_millis(self.record.plan.conditions.rest_ms));
        let (trial, cut_ns, command_failed) = match self.made(row, request) {
            (Ok((trial, cut_ns)), failed) => (trial, cut_ns, failed),
            (Err(error), failed) => (self.reconnect(row, request, error)?, None, failed),
        };
        let effective_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (corrected, _, invalid) = narrows_forwarding::views::judged(&self.record.plan, &trial);
        if is_lost(&corrected) && !self.stop.is_set() {
            self.await_dut(row)?;
        }
        (self.watch)(Event::Trial(request.load.pps(), &corrected, invalid.as_deref()));
        Ok((trial, Seen { trial: corrected, invalid, effective_ms, cut_ns, command_failed }))
    }

    /// The tester's trial, with the user's command run during it, if any; and why that command failed. The command is ended with
    /// the load, however the load ends.
    fn made(&mut self, row: Row, request: &Request) -> (Result<Made, PortError>, Option<String>) {
        let Some(words) = &request.command else { return (self.tester.trial(row, request), None) };
        let (over, within) = (Stop::new(), Duration::from_millis(request.load.millis()));
        std::thread::scope(|scope| {
            let user = scope.spawn(|| run_command(words, within, &over));
            let trial = self.tester.trial(row, request);
            over.stop();
            (trial, result_of(user.join()).err())
        })
    }

    /// After a failed trial: if a host of the tester is lost, marks the trial as incomplete and reconnects, a limited number of
    /// times.
    /// Errors: the trial failed otherwise, or the host cannot be reached any more.
    fn reconnect(&mut self, row: Row, request: &Request, error: PortError) -> Result<ForwardingTrial, PortError> {
        let Some(lost) = self.tester.lost().filter(|_| !self.stop.is_set()) else { return Err(error) };
        let why = lost.to_string();
        while self.renewals < MAX_RENEWALS && !self.stop.is_set() {
            self.renewals += 1;
            (self.watch)(Event::Says(&format!("{why}; reconnecting")));
            clock::sleep(BEFORE_RENEWAL);
            let watch = &mut self.watch;
            if self.tester.renew(&mut |words| watch(Event::Says(words))).is_ok() {
                return Ok(ForwardingTrial { incomplete: Some(why), ..self.tester.empty_trial(row, request) });
            }
        }
        Err(lost)
    }

    /// Probes a lost device under test with a few frames until it forwards again or the time limit is reached.
    fn await_dut(&mut self, row: Row) -> Result<(), ForwardingError> {
        let limit = Duration::from_millis(self.record.plan.lost_dut_wait_ms);
        let since = clock::now();
        (self.watch)(Event::Says("the DUT stopped forwarding"));
        let few = Load::Burst { frames: 10, pps: 1_000.0 };
        while since.elapsed() < limit && !self.stop.is_set() {
            clock::sleep(ASK);
            let (asked, _) = self.tester.trial(row, &Request::new(Test::Qualification, 0, few, Keep::IfTelling))?;
            if asked.directions.iter().all(|frames| frames.got.distinct() > 0) {
                (self.watch)(Event::Says("the DUT forwards again"));
                return Ok(());
            }
        }
        let waited =
            if limit.is_zero() { String::new() } else { format!(" and did not recover within {} s", limit.as_secs()) };
        self.record.ended = Some(format!("DUT lost: it stopped forwarding{waited}"));
        Ok(())
    }

    /// Calls a procedure with the record and the user's progress callback.
    fn with<T>(&mut self, began: Instant, act: impl FnOnce(&mut Context<'_>) -> T) -> T {
        let watch = &mut self.watch;
        let mut says = |words: &str| watch(Event::Says(words));
        act(&mut Context { now: began.elapsed(), record: &mut self.record, says: &mut says })
    }
}

/// Runs the user's command a moment after the load began.
fn run_command(words: &[String], within: Duration, over: &Stop) -> Result<(), String> {
    let since = clock::now();
    while since.elapsed() < BEFORE_RESET.min(within / 4) && !over.is_set() {
        clock::sleep(Duration::from_millis(5));
    }
    let program = words.first().map_or("", String::as_str);
    command::run(words, within, Some(over)).map_err(|why| format!("the reset command `{program}` {why}"))
}

/// Some of many samples, the last among them.
fn thin(samples: &mut Vec<FrameInterval>) {
    let every = samples.len().div_ceil(MAX_SAMPLES).max(1);
    let last = samples.len();
    let mut nth = 0;
    samples.retain(|_| {
        nth += 1;
        nth % every == 0 || nth == last
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_samples_keep_the_last() {
        let sample = |at_us| FrameInterval { at_us, ..FrameInterval::default() };
        let mut samples: Vec<_> = (1..=1_001).map(sample).collect();
        thin(&mut samples);
        assert_eq!((samples.len(), samples[0].at_us), (167, 6));
        assert_eq!(samples.last().map(|sample| sample.at_us), Some(1_001));
        let mut few: Vec<_> = (1..=3).map(sample).collect();
        thin(&mut few);
        assert_eq!(few.len(), 3);
    }
}
