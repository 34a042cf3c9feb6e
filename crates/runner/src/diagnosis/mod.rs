//! One diagnosis from begin to end: inventory, baseline, experiments, and with `--try` the climb up the roofline.
//!
//! The [`Run`] grows step by step and is handed to [`Watch::save`] after each, so that nothing measured is lost.

mod climb;
pub(crate) mod usual;

pub use usual::Pace;

use crate::ends::{Ends, EndsError, On, TrialFailed};
use crate::measure;
use narrows_diagnose::experiments::tcp::UNDERLAY;
use narrows_diagnose::judge::Planned;
use narrows_diagnose::path::Wanted;
use narrows_diagnose::underlay;
use narrows_model::run::{DiagnosePlan, Purpose, RunPlan, TrialRecord};
use narrows_model::words::{figures::float, units};
use narrows_model::{
    Absent, Flow, Limit, LoadPlan, Place, ProfilePlan, Progress, Run, Status, Target, TcpPlan, Verdict,
};
use narrows_search::Steady;
use narrows_sys::clock;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// What a diagnosis tells its user while it goes on.
pub trait Watch {
    /// A new step begins: one short sentence.
    fn step(&mut self, _text: &str) {}
    /// A step brought something worth saying.
    fn result(&mut self, _text: &str) {}
    /// A trial goes on; `planned_ms` is how long it will take in all.
    fn progress(&mut self, _place: Place, _progress: &Progress, _planned_ms: Option<u64>) {}
    /// Something new was measured.
    fn save(&mut self, _run: &Run) {}
}

/// Shows nothing.
impl Watch for () {}

/// What an experiment takes beside its load, at least: set-up, tear-down and the grace for the last bytes.
const OVERHEAD_MS: u64 = 400;

/// The part of a time budget for the last reading of counters and the report: of 225 drawn diagnoses of 20 s four took up to 0.9 s more.
const ENDS: u64 = 20;

/// Round trips before the first that measures the RTT.
const GREETING: u64 = 3;

/// A profile with a shorter limit shows nothing. Its last steps may take as long again as the limit.
const LEAST_PROFILE_MS: u64 = 900;
/// A trace that locates an MTU or one of several parallel paths may take this long after the time budget: without it
/// the place of the fault stays unknown.
const TRACE_MS: u64 = 6_000;
/// A trace of the loss at each hop takes so long at least.
const LOSS_TRACE_MS: u64 = 3_000;
/// How far the deciding experiment for a proven cause may exceed the budget; at most a quarter of the budget.
const DECIDES_MS: u64 = 3_000;

/// A diagnosis under way.
pub(crate) struct Diagnosis<'a> {
    ends: &'a mut dyn Ends,
    watch: &'a mut dyn Watch,
    plan: DiagnosePlan,
    run: Run,
    began: Instant,
    /// The most that a trial took beside its load.
    overhead_ms: u64,
}

/// Diagnoses the path between two ends. What went wrong on the way is in the run's ending; what was measured is in the run.
pub fn diagnose(
    ends: &mut dyn Ends,
    watch: &mut dyn Watch,
    plan: &DiagnosePlan,
    target: Target,
    name: (String, String),
) -> Run {
    let began = clock::now();
    let run = measure::empty_run(RunPlan::Diagnose(plan.clone()), target, name);
    let mut diagnosis = Diagnosis { ends, watch, plan: plan.clone(), run, began, overhead_ms: OVERHEAD_MS };
    if let Err(why) = diagnosis.go() {
        diagnosis.run.ending = measure::ending(why);
    }
    diagnosis.run.elapsed_us = clock::micros_since(diagnosis.began);
    diagnosis.watch.save(&diagnosis.run);
    diagnosis.run
}

impl Diagnosis<'_> {
    fn go(&mut self) -> Result<(), EndsError> {
        self.watch.step("inventory of both hosts");
        self.run.client = self.ends.inventory(Place::Client)?;
        self.run.server = self.ends.inventory(Place::Server)?;
        self.run.idle_rtt_us = self.ends.idle_rtt_us();
        self.save();
        let load = self.plan.load.clone();
        let first = self.round(0, &load)?;
        self.locate(&first);
        if self.plan.try_fixes {
            self.climb(first, load)?;
        }
        Ok(())
    }

    /// One round: the baseline, then the experiments that are still wanted while the time lasts.
    fn round(&mut self, round: u32, load: &LoadPlan) -> Result<Verdict, EndsError> {
        let began = if round == 0 { self.began } else { clock::now() };
        self.watch.step(&format!("load: {}", load.describe()));
        self.trial(Purpose::Baseline { round }, load, On::Path)?;
        self.known_within_bytes(load)?;
        if round == 0 && self.plan.profile {
            self.profile(round)?;
        }
        if round == 0 {
            self.underlay()?;
        }
        let can = |ends: &dyn Ends, next: &Planned| next.loopback || ends.refuses(&ends.fitted(&next.plan)).is_none();
        // An experiment that failed leaves its question open; it is not asked again.
        let mut failed: Vec<&'static str> = Vec::new();
        loop {
            let nothing = || EndsError::Failed("nothing arrived at the receiver".to_owned());
            let narrows_diagnose::Diagnosis { verdict, next, .. } =
                narrows_diagnose::diagnose(&self.run, round).ok_or_else(nothing)?;
            let left_ms = self.left_ms(began);
            let mut open = next.into_iter().filter(|next| !failed.contains(&next.id) && can(&*self.ends, next));
            let mut open = open.by_ref().filter(|next| next.loopback || self.affords(&next.plan, verdict.goodput_bps));
            let fits = |next: &Planned| {
                let left_ms = left_ms + if next.decides { DECIDES_MS.min(self.plan.budget_ms / 4) } else { 0 };
                next.plan.duration_ms().is_some_and(|cost| cost + self.overhead_ms <= left_ms)
            };
            let next = open.find(fits);
            let Some(next) = next else {
                self.watch.result(&verdict.headline);
                return Ok(verdict);
            };
            self.watch.step(&format!("experiment {}: {}", next.id, next.words));
            if self.experiment(round, &next, None)?.is_err() {
                failed.push(next.id);
            }
        }
    }

    /// Traces the path where that can locate a cause, and the time lasts.
    fn locate(&mut self, verdict: &Verdict) {
        let left_ms = self.left_ms(self.began);
        let Some(wanted) = narrows_diagnose::path::wanted(&self.run, verdict).filter(|_| !self.ends.stopped()) else {
            return;
        };
        if wanted == Wanted::Loss && left_ms < LOSS_TRACE_MS {
            return;
        }
        // What is left includes what follows the trace.
        let left_ms = left_ms.saturating_sub(OVERHEAD_MS);
        let limit = Duration::from_millis(if wanted == Wanted::Loss { left_ms } else { left_ms.max(TRACE_MS) });
        self.watch.step("trace: where on the path");
        self.run.path = self.ends.trace(&wanted, limit).map(Box::new);
        self.save();
        if let Some(diagnosis) = narrows_diagnose::diagnose(&self.run, 0).filter(|_| self.run.path.is_some()) {
            self.watch.result(&diagnosis.verdict.headline);
        }
    }

    /// A profile of no more than the user's rate.
    fn bounded(&self, plan: &LoadPlan) -> LoadPlan {
        match (plan, self.plan.max_bps) {
            (LoadPlan::Profile(plan), Some(most)) => {
                let max_bps = plan.max_bps.min(most.max(ProfilePlan::MIN_BPS));
                LoadPlan::Profile(ProfilePlan { max_bps, start_bps: plan.start_bps.min(max_bps), ..plan.clone() })
            }
            _ => plan.clone(),
        }
    }

    /// Measures the same load below the tunnel, where the user wants it: what was not measured is in the run with the reason.
    fn underlay(&mut self) -> Result<(), EndsError> {
        let Some(address) = underlay::address(&self.run) else { return Ok(()) };
        while let Some(planned) = underlay::next(&self.run) {
            let left_ms = self.left_ms(self.began);
            let goodput_bps = narrows_diagnose::diagnose(&self.run, 0).map_or(0.0, |it| it.verdict.goodput_bps);
            let cost_ms = planned.plan.duration_ms().unwrap_or(0) + self.overhead_ms;
            let why = match &address {
                Err(why) => Some(why.clone()),
                Ok(_) if cost_ms > left_ms => Some("no time was left for it (--budget)".to_owned()),
                Ok(_) if !self.affords(&planned.plan, goodput_bps) => {
                    Some("no bytes were left for it (--budget-bytes)".to_owned())
                }
                Ok(_) => None,
            };
            if let Some(why) = why {
                self.left_out(planned.id, planned.words, why);
                return Ok(());
            }
            self.watch.step(&format!("experiment {}: {}", planned.id, planned.words));
            let below = address.as_ref().ok().copied().filter(|_| planned.id == UNDERLAY.id);
            if let Err(why) = self.experiment(0, &planned, below)? {
                let why = format!("{why}; does `narrows serve` listen on that address, too?");
                self.absent(planned.id, why);
                return Ok(());
            }
        }
        let accounts = narrows_diagnose::diagnose(&self.run, 0).map(|it| it.accounts);
        if let Some(view) = accounts.and_then(|it| it.underlay) {
            self.watch.result(&format!("{} by {}: {}", units::bps(view.goodput_bps), view.address, view.why));
        }
        Ok(())
    }

    fn left_out(&mut self, id: &str, words: &str, why: String) {
        self.watch.result(&format!("left out: {words} ({why})"));
        self.absent(id, why);
    }

    fn absent(&mut self, id: &str, why: String) {
        let absent = Absent { collector: "diagnosis".to_owned(), what: id.to_owned(), why };
        self.run.server.absent.push(absent);
    }

    /// Makes the trial of an experiment, to another address of the server if there is one; why it failed.
    fn experiment(
        &mut self,
        round: u32,
        planned: &Planned,
        underlay: Option<IpAddr>,
    ) -> Result<Result<(), String>, EndsError> {
        let purpose = Purpose::Experiment { round, id: planned.id.to_owned() };
        let before = self.run.trials.len();
        let (plan, on) = match planned.loopback {
            true => (planned.plan.clone(), On::Loopback),
            false => (self.ends.fitted(&self.bounded(&planned.plan)), underlay.map_or(On::Path, On::Underlay)),
        };
        match self.trial(purpose, &plan, on) {
            Err(EndsError::Failed(why)) => {
                // What came of it would be taken for the whole.
                self.run.trials.truncate(before);
                self.watch.result(&format!("the experiment failed: {why}"));
                Ok(Err(why))
            }
            other => other.map(Ok),
        }
    }

    /// Profiles the path, as far as the time lasts, and once more from a lower rate if it showed nothing; without it the diagnosis knows
    /// less, and goes on.
    fn profile(&mut self, round: u32) -> Result<(), EndsError> {
        for part in [1, 8] {
            let left_ms = self.left_ms(self.began);
            let Some(mut planned) = narrows_diagnose::path_profile(&self.run, round) else { return Ok(()) };
            planned.plan = self.bounded(&planned.plan);
            if let LoadPlan::Profile(plan) = &mut planned.plan {
                let fits_ms = left_ms.saturating_sub(self.overhead_ms) / 2 / self.ends.profile_takes();
                if fits_ms < LEAST_PROFILE_MS && part == 1 {
                    self.left_out(planned.id, planned.words, "no time was left for it (--budget)".to_owned());
                    return Ok(());
                }
                plan.limit_ms = plan.limit_ms.min(fits_ms);
                plan.start_bps = (plan.start_bps / part).max(ProfilePlan::MIN_BPS).min(plan.max_bps);
                let takes_ms = plan.limit_ms.saturating_mul(self.ends.profile_takes());
                if part > 1 && takes_ms.saturating_add(self.overhead_ms) > left_ms {
                    return Ok(());
                }
            }
            let spent = self.left_bytes() == Some(0);
            let spent = spent.then(|| "no bytes were left for it (--budget-bytes)".to_owned());
            if let Some(why) = spent.or_else(|| self.ends.refuses(&planned.plan)) {
                self.left_out(planned.id, planned.words, why);
                return Ok(());
            }
            self.watch.step(planned.words);
            if self.experiment(round, &planned, None)?.is_err() {
                return Ok(());
            }
            let Some(profile) = narrows_diagnose::evidence::profile::of_run(&self.run, round) else { continue };
            self.watch.result(&profile.words());
            let shape = &profile.shape;
            // A host that others keep from sending is late at a lower rate, too: time is left for experiments of TCP then.
            let late = shape.host_limited && shape.steps.iter().all(|step| step.lost == 0);
            if late || shape.carried_bps > 0.0 || shape.capacity.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What the time budget leaves of a round that began then, ms. The connecting before the first took round trips as well: of TCP, TLS
    /// and the greeting, and those that measured the RTT.
    fn left_ms(&self, began: Instant) -> u64 {
        let trips_us = self.run.idle_rtt_us.iter().copied().fold(0, u64::saturating_add);
        let connecting_us = trips_us.saturating_add(GREETING * self.run.idle_rtt_us.first().copied().unwrap_or(0));
        let connecting_us = if began == self.began { connecting_us } else { 0 };
        let lasts_ms = self.plan.budget_ms - self.plan.budget_ms / ENDS;
        lasts_ms.saturating_sub(clock::micros_since(began).saturating_add(connecting_us) / 1000)
    }

    /// Bytes of load that may still be put on the path; `None`: any number.
    fn left_bytes(&self) -> Option<u64> {
        Some(self.plan.budget_bytes?.saturating_sub(narrows_diagnose::carried_bytes(&self.run)))
    }

    /// Whether so many bytes are left that an experiment at the goodput of the baseline tells something.
    fn affords(&self, plan: &LoadPlan, goodput_bps: f64) -> bool {
        let counted_ms = plan.duration_ms().unwrap_or(0);
        let least_ms = match plan {
            LoadPlan::Tcp(tcp) => counted_ms.min(tcp.omit_ms + Known::EXPERIMENT_MS),
            _ => counted_ms,
        };
        self.left_bytes().is_none_or(|left| float(left) * 8e3 >= goodput_bps * float(least_ms))
    }

    /// Fails where the bytes did not last for a second of load after its slow start: that shows no limit of the path.
    fn known_within_bytes(&self, load: &LoadPlan) -> Result<(), EndsError> {
        let (LoadPlan::Tcp(TcpPlan { omit_ms, limit: Limit::DurationMs(_), .. }), Some(0), Some(record)) =
            (load, self.left_bytes(), self.run.trials.last())
        else {
            return Ok(());
        };
        let needed_ms = omit_ms + 1_000;
        if record.trial.elapsed_us / 1000 >= needed_ms {
            return Ok(());
        }
        let (of, lasted) = (self.plan.budget_bytes.unwrap_or(0), units::micros(record.trial.elapsed_us));
        Err(EndsError::Failed(format!(
            "the {} of --budget-bytes were used in {lasted}; a diagnosis of this path needs {} of load at least",
            units::bytes(of),
            units::micros(needed_ms * 1000)
        )))
    }

    /// Makes a trial and puts it into the run, whole or as far as it came.
    fn trial(&mut self, purpose: Purpose, plan: &LoadPlan, on: On) -> Result<(), EndsError> {
        if self.ends.stopped() {
            return Err(EndsError::Interrupted);
        }
        let at_us = clock::micros_since(self.began);
        let left = self.left_bytes().filter(|_| on != On::Loopback);
        let (planned_ms, watch) = (plan.duration_ms(), &mut *self.watch);
        let mut known = Known::of(&purpose, plan, self.plan.known_within, self.run.idle_rtt_us.first().copied());
        let began = clock::now();
        let outcome = self.ends.trial_until(plan, on, &mut |place, progress| {
            watch.progress(place, progress, planned_ms);
            let carried = progress.streams.iter().map(|stream| stream.sample.bytes()).fold(0, u64::saturating_add);
            let is_known = known.as_mut().is_some_and(|known| known.hear(place, progress));
            is_known || left.is_some_and(|left| carried >= left)
        });
        // A control connection over a path that loses much takes its time.
        let took_ms = clock::micros_since(began) / 1000;
        if outcome.is_ok() && !matches!(plan, LoadPlan::Profile(_)) {
            self.overhead_ms = self.overhead_ms.max(took_ms.saturating_sub(planned_ms.unwrap_or(took_ms)));
        }
        let (trial, result) = match outcome {
            Ok(trial) => (Some(trial), Ok(())),
            Err(TrialFailed { why, partial }) => (partial.map(|trial| *trial), Err(why)),
        };
        self.run.trials.extend(trial.map(|trial| TrialRecord { purpose, at_us, trial }));
        self.save();
        if result.is_ok() && self.ends.stopped() { Err(EndsError::Interrupted) } else { result }
    }

    /// What there is until now: a run that is not over is listed as interrupted, and is if this process is killed.
    fn save(&mut self) {
        self.run.elapsed_us = clock::micros_since(self.began);
        let ending = std::mem::replace(&mut self.run.ending, narrows_model::Ending::Interrupted);
        self.watch.save(&self.run);
        self.run.ending = ending;
    }
}

/// The load of a baseline or an experiment whose goodput may be known before its time.
struct Known {
    flow: Flow,
    steady: Steady,
}

impl Known {
    /// Minimum counted time of a load, ms: the baseline's rules need more than its goodput.
    const BASELINE_MS: u64 = 2_000;
    const EXPERIMENT_MS: u64 = 1_200;

    /// `None` of a load that takes its whole time: proofs, loads of UDP and those that end by bytes.
    fn of(purpose: &Purpose, plan: &LoadPlan, within: f64, idle_rtt_us: Option<u64>) -> Option<Self> {
        let LoadPlan::Tcp(tcp) = plan else { return None };
        let least_ms = match purpose {
            Purpose::Baseline { .. } => Self::BASELINE_MS,
            Purpose::Experiment { .. } => Self::EXPERIMENT_MS,
            _ => return None,
        };
        let [flow] = *tcp.flows() else { return None };
        let by_time = matches!(tcp.limit, Limit::DurationMs(_)) && within > 0.0;
        let steady = Steady::new(within, tcp.omit_ms * 1000, least_ms * 1000, idle_rtt_us.unwrap_or(0));
        by_time.then_some(Self { flow, steady })
    }

    /// Records the progress of one end; returns whether the goodput is known.
    fn hear(&mut self, place: Place, progress: &Progress) -> bool {
        if place != self.flow.receiver() {
            return false;
        }
        let bytes = progress.streams.iter().map(|stream| stream.sample.bytes()).fold(0, u64::saturating_add);
        self.steady.observe(progress.at_us, bytes);
        self.steady.is_known()
    }
}

/// The exit code of a run: 0 healthy, suspected or unknown, 3 a limiting cause was found or the goodput falls short of what was expected, 1
/// nothing was measured.
pub fn exit_code(run: &Run) -> u8 {
    let Some(report) = narrows_diagnose::report(run) else { return 1 };
    let (verdict, last) = (&report.verdict, report.rounds.last());
    let (status, goodput_bps) =
        last.map_or((verdict.status, verdict.goodput_bps), |round| (round.status, round.goodput_bps));
    if status == Status::Limited || narrows_diagnose::falls_short(&run.plan, goodput_bps).is_some() { 3 } else { 0 }
}

/// The status that a run ends with: that of its last round.
pub fn final_status(run: &Run) -> Option<Status> {
    let report = narrows_diagnose::report(run)?;
    Some(report.rounds.last().map_or(report.verdict.status, |round| round.status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{StreamProgress, TcpPlan, TcpSample, UdpPlan};

    const BASELINE: Purpose = Purpose::Baseline { round: 0 };

    fn load() -> TcpPlan {
        TcpPlan { limit: Limit::DurationMs(8_000), omit_ms: 2_000, ..TcpPlan::default() }
    }

    #[test]
    fn only_loads_of_tcp_that_end_by_time_may_end_sooner_and_no_proof() {
        let known =
            |purpose: &Purpose, plan: LoadPlan, within| Known::of(purpose, &plan, within, Some(1_000)).is_some();
        assert!(known(&BASELINE, load().into(), 0.03));
        assert!(known(&Purpose::Experiment { round: 0, id: "more-streams".to_owned() }, load().into(), 0.03));
        assert!(!known(&Purpose::Proof { round: 0, pair: 0, fixed: true }, load().into(), 0.03));
        assert!(!known(&BASELINE, load().into(), 0.0), "the user wants the whole time");
        assert!(!known(&BASELINE, TcpPlan { limit: Limit::BytesPerStream(1 << 30), ..load() }.into(), 0.03));
        assert!(!known(&BASELINE, UdpPlan::default().into(), 0.03));
    }

    #[test]
    fn the_receiver_tells_when_its_goodput_is_known() {
        let hears = |place| {
            let mut known = Known::of(&BASELINE, &load().into(), 0.03, Some(1_000)).expect("a load by time");
            (0..80_u64).find(|n| {
                let sample = TcpSample { at_us: n * 100_000, bytes: n * 1_000_000, ..TcpSample::default() };
                let stream = StreamProgress { id: 0, flow: Flow::Up, sample: sample.into() };
                known.hear(place, &Progress { at_us: n * 100_000, streams: vec![stream] })
            })
        };
        assert_eq!((hears(Place::Server), hears(Place::Client)), (Some(40), None));
    }
}
