//! The optimiser: diagnose, apply the fix, measure in alternation without and with it, keep what gains, and diagnose again; then
//! safe settings; then each setting of the set is left out once. All changes are in the journal, and are rolled back.

mod candidates;
mod measure;
mod search;

use crate::ends::{Ends, EndsError};
use crate::measure::ending;
use candidates::At;
use narrows_model::run::optimise::{OptimiseGain, OptimiseReport, OptimiseTrial, OptimisedSetting, SCHEMA};
use narrows_model::{Change, Ending, Place, Progress, Setting, Snapshot, Target, TcpPlan};
use narrows_sys::clock;
use std::time::{Duration, Instant};

/// What is optimised, and how far.
#[derive(Debug, Clone, PartialEq)]
pub struct OptimisePlan {
    /// The load of each measurement: TCP, in one direction, of limited time.
    pub load: TcpPlan,
    /// The whole time.
    pub time: Duration,
    /// A change that gains less is not kept: 0.02 is 2 %.
    pub gain_min: f64,
    /// Whether the set stays in force.
    pub keep: bool,
    /// Whether the server may be changed.
    pub tune_server: bool,
}

/// Who hears how it goes.
pub trait Watch {
    /// A line of progress, and the time that is left.
    fn line(&mut self, text: &str, left: Duration);
    /// A load is running.
    fn progress(&mut self, place: Place, progress: &Progress, planned_ms: Option<u64>);
}

/// A setting of the current set and why it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    at: At,
    origin: String,
}

/// An optimisation under way.
struct Optimiser<'a> {
    ends: &'a mut dyn Ends,
    watch: &'a mut dyn Watch,
    plan: &'a OptimisePlan,
    target: Target,
    tag: String,
    began: Instant,
    /// What a measurement takes, milliseconds.
    trial_ms: u64,
    set: Vec<Member>,
    in_force: Vec<Change>,
    /// What was there before, by setting.
    before: Vec<(At, String)>,
    hosts: [Snapshot; 2],
    report: OptimiseReport,
}

/// Optimises the path between two ends. What went wrong on the way is in the report's ending; what was found is in the report.
/// `id`: of the tag.
pub fn optimise(
    ends: &mut dyn Ends,
    watch: &mut dyn Watch,
    plan: &OptimisePlan,
    target: Target,
    id: &str,
) -> OptimiseReport {
    let tag = format!("optimise:{id}");
    let report = OptimiseReport {
        schema: SCHEMA.to_owned(),
        server: target.asked.clone(),
        direction: plan.load.direction,
        tag: tag.clone(),
        runs: 0,
        elapsed_ms: 0,
        gain: None,
        settings: Vec::new(),
        tried: Vec::new(),
        advice: Vec::new(),
        verdict: None,
        kept: false,
        stopped: "nothing helps any more".to_owned(),
        ending: Ending::Complete,
    };
    let began = clock::now();
    let trial_ms = duration_ms(&plan.load) + 600;
    let hosts = [Snapshot::default(), Snapshot::default()];
    let mut optimiser = Optimiser {
        ends,
        watch,
        plan,
        target,
        tag,
        began,
        trial_ms,
        set: Vec::new(),
        in_force: Vec::new(),
        before: Vec::new(),
        hosts,
        report,
    };
    let outcome = optimiser.go();
    optimiser.finish(outcome)
}

fn duration_ms(load: &TcpPlan) -> u64 {
    narrows_model::LoadPlan::from(load.clone()).duration_ms().unwrap_or(0)
}

impl Optimiser<'_> {
    fn go(&mut self) -> Result<(), EndsError> {
        self.climb()?;
        if self.screen()? {
            // With them another limit may be in reach of a fix.
            self.climb()?;
        }
        self.leave_out()?;
        self.confirm()
    }

    /// Rolls everything back, or keeps the set, and closes the report.
    fn finish(mut self, outcome: Result<(), EndsError>) -> OptimiseReport {
        let wanted: Vec<At> = self.set.iter().map(|it| it.at.clone()).collect();
        let keep = self.plan.keep && outcome.is_ok() && !wanted.is_empty();
        let mut failed = Vec::new();
        if keep {
            let kept = self.reach(&wanted).and_then(|()| self.in_force.iter().try_for_each(|it| self.ends.keep(it)));
            failed.extend(kept.err().map(|why| format!("cannot keep the settings: {why}")));
        }
        self.report.kept = keep && failed.is_empty();
        if !self.report.kept {
            for change in std::mem::take(&mut self.in_force).iter().rev() {
                failed.extend(self.ends.undo(change).err().map(|why| {
                    format!(
                        "cannot roll back `{}` at {}: {why}; run `narrows tune undo all` there",
                        change.set, change.at
                    )
                }));
            }
        }
        self.report.settings = self.set.iter().map(|it| self.described(it)).collect();
        self.report.elapsed_ms = clock::micros_since(self.began) / 1000;
        self.report.ending = match outcome {
            Err(why) => ending(why),
            Ok(()) => Ending::Complete,
        };
        match &self.report.ending {
            Ending::Failed(why) => failed.insert(0, why.clone()),
            Ending::Interrupted => self.report.stopped = "interrupted".to_owned(),
            Ending::Complete => {}
        }
        if !failed.is_empty() {
            self.report.stopped = failed.join("; ");
            self.report.ending = Ending::Failed(self.report.stopped.clone());
        }
        self.report
    }

    fn described(&self, member: &Member) -> OptimisedSetting {
        let (at, set) = member.at.clone();
        let known = self.before.iter().find(|it| it.0 == member.at).map(|it| it.1.clone());
        // The note of a queueing discipline is not for people.
        let before = known.filter(|_| !matches!(set, Setting::RootQdisc { .. }));
        OptimisedSetting { at, set, before, origin: member.origin.clone() }
    }

    fn left(&self) -> Duration {
        self.plan.time.saturating_sub(self.began.elapsed())
    }

    fn say(&mut self, text: &str) {
        let left = self.left();
        self.watch.line(text, left);
    }

    /// Whether so many measurements fit, beside those that a set needs at the end. Notes that the time was short.
    fn fits(&mut self, trials: u64) -> bool {
        let fits = u128::from(trials * self.trial_ms) <= self.left().as_millis();
        if !fits {
            "the time is over".clone_into(&mut self.report.stopped);
        }
        fits
    }

    /// Measurements that remain to be made for the set: leave-one-out and the confirmation.
    fn reserve(&self) -> u64 {
        let (members, pairs) = (self.set.len() as u64, u64::from(search::PAIRS));
        2 * pairs * if members > 1 { members } else { 0 } + if members > 0 { 2 * measure::CONFIRM_PAIRS } else { 0 }
    }

    fn may(&self, place: Place) -> bool {
        place == Place::Client || (place == Place::Server && self.plan.tune_server)
    }

    fn note(&mut self, what: &[At], origin: &str, gain: Option<OptimiseGain>, outcome: &str) {
        let what: Vec<String> = what.iter().map(|(at, set)| format!("{at}: {set}")).collect();
        let gained = gain.as_ref().map_or_else(String::new, |it| {
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            let [low, high] = it.interval.map(percent);
            format!("{:+.1} % ({low:+.1} to {high:+.1} %), ", percent(it.ratio))
        });
        self.say(&format!("  {gained}{outcome}"));
        self.report.tried.push(OptimiseTrial { what, origin: origin.to_owned(), gain, outcome: outcome.to_owned() });
    }
}

/// Makes the directory of the files of a set, before anything is measured.
pub fn check_directory(path: &std::path::Path) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::make_directory(path)
}
