//! The optimiser: diagnose, apply the fix, measure in alternation without and with it, keep what gains, and diagnose again; then
//! safe settings; then each setting of the set is left out once. All changes are in the journal, and are rolled back.

mod candidates;
mod measure;
mod search;
mod state;

pub use state::{OptimisePlan, Watch};

use crate::conductor::{At, InForce};
use crate::ends::{Ends, EndsError};
use crate::measure::ending;
use narrows_model::run::optimise::{OptimiseReport, OptimisedSetting, SCHEMA};
use narrows_model::{Ending, Setting, Snapshot, Target};
use narrows_sys::clock;
use state::{Member, Optimiser, duration_ms};

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
        in_force: InForce::default(),
        hosts,
        report,
    };
    let outcome = optimiser.go();
    optimiser.finish(outcome)
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
            let reached = self.in_force.reach(self.ends, &wanted);
            failed.extend(reached.err().map(|why| format!("cannot keep the settings: {why}")));
        }
        if keep && failed.is_empty() {
            let left = self.in_force.end(self.ends, true);
            failed.extend(left.first().map(|(_, why)| format!("cannot keep the settings: {why}")));
        }
        self.report.kept = keep && failed.is_empty();
        failed.extend(self.in_force.end(self.ends, false).iter().map(|(change, why)| {
            format!("cannot roll back `{}` at {}: {why}; run `narrows tune undo all` there", change.set, change.at)
        }));
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
        let known = self.in_force.before(&member.at).map(str::to_owned);
        // The note of a queueing discipline is not for people.
        let before = known.filter(|_| !matches!(set, Setting::RootQdisc { .. }));
        OptimisedSetting { at, set, before, origin: member.origin.clone() }
    }
}

/// Makes the directory of the files of a set, before anything is measured.
pub fn check_directory(path: &std::path::Path) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::make_directory(path)
}
