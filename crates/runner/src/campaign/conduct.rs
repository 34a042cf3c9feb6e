//! The conduct of a campaign: sessions, settings, runs, and what is done where one fails.

use super::commands::NotSet;
use super::duration::{READY_MS, expected_ms};
use super::foreign;
use super::hold::{self, Hold};
use super::plan::{CampaignPlan, Load};
use super::schedule::Step;
use super::{steps, tag};
use crate::ends::{Ends, EndsError, On};
use crate::measure::{self, empty_run};
use crate::stored;
use narrows_model::run::command::CommandRecord;
use narrows_model::run::{Ending, RunPlan};
use narrows_model::{Change, Limit, LoadPlan, Place, Progress, Run, Target, TcpPlan, Trial};
use narrows_sys::clock;
use std::time::{Duration, Instant};

/// How often a host that is gone is tried again, and the pause before.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(3);
/// A run that fails so often while its host is there is recorded as failed.
const ATTEMPTS: u32 = 2;

/// What a campaign needs of its surroundings.
pub trait Surroundings {
    /// A new session with a server; without one where the plan needs none.
    fn connect(&mut self, host: &str) -> Result<(Box<dyn Ends>, Target), EndsError>;
    /// The RTT of a server without load, microseconds, to estimate times; `None`: it is not known.
    fn rtt_us(&mut self, host: &str) -> Option<u64> {
        let _ = host;
        None
    }
    /// Whether the user asked to stop.
    fn stopped(&self) -> bool;
    /// A line of progress.
    fn line(&mut self, text: &str);
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All steps are done.
    Complete,
    /// By the user.
    Interrupted,
    /// These hosts could not be reached any more; each with the reason.
    HostsLost(Vec<String>),
}

/// What one step gave.
enum Outcome {
    Run(Box<Run>),
    Command(Box<CommandRecord>),
}

impl Outcome {
    fn failed(&self) -> Option<&str> {
        match self {
            Self::Run(run) => match &run.ending {
                Ending::Failed(why) => Some(why),
                _ => None,
            },
            Self::Command(record) => record.failed.as_deref(),
        }
    }
}

/// A step that failed: whether it was its own fault is known once its host answers again.
struct Suspect {
    number: usize,
    /// How often it failed although its host was there.
    proven: u32,
    /// The latest failure, if it is not judged yet.
    last: Option<Outcome>,
}

/// Why a session ended before its steps.
enum Stop {
    Interrupted,
    /// The same step again in a new session.
    Again,
    Lost(String),
    Failed(String),
}

impl From<EndsError> for Stop {
    fn from(error: EndsError) -> Self {
        match error {
            EndsError::Interrupted => Self::Interrupted,
            EndsError::Lost(why) => Self::Lost(why),
            EndsError::Failed(why) => Self::Failed(why),
        }
    }
}

struct Conduct<'a> {
    plan: &'a CampaignPlan,
    left: &'a [Step],
    around: &'a mut dyn Surroundings,
    hold: Hold,
    total: usize,
    /// Of each host.
    rtt_us: Vec<u64>,
    /// Sessions that failed since the host was there.
    tries: u32,
    suspect: Option<Suspect>,
    began: Instant,
}

/// Makes the steps that are left, and keeps each run. First it rolls back what commands of killed campaigns set.
///
/// # Errors
/// The campaign runs already, a setting cannot be made or rolled back, or the store cannot be written.
pub fn perform(plan: &CampaignPlan, left: &[Step], around: &mut dyn Surroundings) -> Result<Ended, String> {
    let hold = Hold::take(&stored::plan_hash(plan))?;
    let mut conduct = Conduct {
        plan,
        left,
        around,
        hold,
        total: steps(plan).len(),
        rtt_us: Vec::new(),
        tries: 0,
        suspect: None,
        began: clock::now(),
    };
    conduct.recover()?;
    conduct.rtt_us = rtts(plan, conduct.around);
    conduct.began = clock::now();
    conduct.all()
}

/// The RTT of each host of a plan, microseconds; 0 where it is not known or of no account.
pub fn rtts(plan: &CampaignPlan, around: &mut dyn Surroundings) -> Vec<u64> {
    let mut known = |host: &String| if plan.needs_server() { around.rtt_us(host).unwrap_or(0) } else { 0 };
    plan.hosts.iter().map(&mut known).collect()
}

impl Conduct<'_> {
    /// Its own commands, then those of other killed campaigns.
    fn recover(&mut self) -> Result<(), String> {
        let names = [self.hold.undo.restore()?, hold::recover()?].concat();
        if !names.is_empty() {
            self.around.line(&format!("rolled back what a killed campaign left: {}", names.join(", ")));
        }
        Ok(())
    }

    fn all(&mut self) -> Result<Ended, String> {
        let mut lost = Vec::new();
        let mut gone = Vec::new();
        for group in self.left.chunk_by(|a, b| (a.block, a.host) == (b.block, b.host)) {
            let host = group[0].host;
            if gone.contains(&host) {
                continue;
            }
            let mut rest = group;
            self.tries = 0;
            while !rest.is_empty() {
                if self.around.stopped() {
                    return Ok(Ended::Interrupted);
                }
                let why = match self.session(&mut rest) {
                    Ok(()) | Err(Stop::Again) => continue,
                    Err(Stop::Interrupted) => return Ok(Ended::Interrupted),
                    Err(Stop::Failed(why)) => return Err(why),
                    Err(Stop::Lost(why)) => why,
                };
                // The latest failure of the step was the host's.
                self.suspect.iter_mut().for_each(|it| it.last = None);
                self.tries += 1;
                let (name, tries) = (&self.plan.hosts[host], self.tries);
                if tries > RETRIES {
                    lost.push(format!("{name}: {why}"));
                    gone.push(host);
                    break;
                }
                let pause = PAUSE.as_secs();
                self.around.line(&format!("{name}: {why}; attempt {tries} of {RETRIES} in {pause} s"));
                clock::sleep(PAUSE);
            }
        }
        Ok(if lost.is_empty() { Ended::Complete } else { Ended::HostsLost(lost) })
    }

    /// Makes steps in one session; `rest` are those that are not done.
    fn session(&mut self, rest: &mut &[Step]) -> Result<(), Stop> {
        let (mut ends, target) = self.around.connect(&self.plan.hosts[rest[0].host])?;
        if self.plan.needs_server() {
            let ready = TcpPlan { limit: Limit::DurationMs(READY_MS), interval_ms: 100, ..TcpPlan::default() };
            ends.trial(&ready.into(), On::Path, &mut |_, _| {}).map_err(|failed| Stop::from(failed.why))?;
        }
        self.tries = 0;
        self.judge(rest)?;
        while let Some((step, after)) = rest.split_first() {
            let (plan, total) = (self.plan, self.total);
            let words = plan.words(&step.cell);
            let left = self.left_ms(step).div_ceil(1000);
            let at = format!("[{}/{total}] block {}, {}", step.number, step.block, plan.hosts[step.host]);
            self.around.line(&format!("{at}: {words} ({left} s left)"));
            let outcome = self.one(step, ends.as_mut(), &target)?;
            if let Some(why) = outcome.failed() {
                let why = why.to_owned();
                let proven = self.suspect.as_ref().filter(|it| it.number == step.number).map_or(0, |it| it.proven);
                self.suspect = Some(Suspect { number: step.number, proven, last: Some(outcome) });
                self.around.line(&format!("{at}: {why}"));
                return Err(Stop::Again);
            }
            self.keep(step, &outcome)?;
            *rest = after;
        }
        Ok(())
    }

    /// The host is there: the latest failure of its next step is the step's own. After the last attempt it is kept as failed.
    fn judge(&mut self, rest: &mut &[Step]) -> Result<(), Stop> {
        let Some((step, after)) = rest.split_first() else { return Ok(()) };
        let Some(suspect) = self.suspect.as_mut().filter(|it| it.number == step.number) else { return Ok(()) };
        let Some(outcome) = suspect.last.take() else { return Ok(()) };
        suspect.proven += 1;
        if suspect.proven < ATTEMPTS {
            return Ok(());
        }
        self.suspect = None;
        self.keep(step, &outcome)?;
        self.around.line(&format!("[{}/{}] recorded as failed", step.number, self.total));
        *rest = after;
        Ok(())
    }

    /// What this step and those after it will take, by the pace so far.
    fn left_ms(&self, step: &Step) -> u64 {
        let at = self.left.iter().position(|it| it.number == step.number).unwrap_or(0);
        let of = |steps| expected_ms(self.plan, steps, &self.rtt_us);
        // The session of this step is behind.
        let behind = of(&self.left[..at]);
        let ahead = of(self.left).saturating_sub(behind);
        if at < 3 || behind == 0 {
            return ahead;
        }
        let took = u128::from(clock::micros_since(self.began)) / 1000;
        u64::try_from(u128::from(ahead) * took / u128::from(behind)).unwrap_or(ahead)
    }

    fn keep(&self, step: &Step, outcome: &Outcome) -> Result<(), Stop> {
        let tags = [tag(self.plan), format!("step:{}", step.number)];
        let kept = match outcome {
            Outcome::Run(run) => stored::keep_tagged(run, &tags),
            Outcome::Command(record) => stored::keep_command(record, &tags),
        };
        kept.map_err(|error| Stop::Failed(error.to_string()))
    }

    /// One run, with the settings of its cell.
    fn one(&mut self, step: &Step, ends: &mut dyn Ends, target: &Target) -> Result<Outcome, Stop> {
        let name = stored::new_name().map_err(|error| Stop::Failed(error.to_string()))?;
        let mut changes = Vec::new();
        let outcome = match self.set(step, ends, &mut changes) {
            Ok(()) => self.measure(step, ends, target, name),
            Err(NotSet::Failed(why)) => Ok(self.unset(step, target, name, why)),
            Err(NotSet::Stopped) => Err(Stop::Interrupted),
            Err(NotSet::Fatal(why)) => Err(Stop::Failed(why)),
            Err(NotSet::Ends(error)) => Err(error.into()),
        };
        // All of them, also after a failure: a host that is gone rolls back by itself.
        let restored = self.hold.undo.restore().map_err(Stop::Failed);
        let undone: Vec<_> = changes.iter().rev().map(|change| ends.undo(change)).collect();
        restored?;
        let outcome = outcome?;
        for error in undone.into_iter().filter_map(Result::err) {
            if outcome.failed().is_none() || !matches!(error, EndsError::Lost(_)) {
                return Err(error.into());
            }
        }
        Ok(outcome)
    }

    fn set(&mut self, step: &Step, ends: &mut dyn Ends, changes: &mut Vec<Change>) -> Result<(), NotSet> {
        let plan = self.plan;
        for (place, setting) in plan.of_cell(&step.cell).flat_map(|(_, level)| &level.settings) {
            changes.push(ends.apply(*place, setting).map_err(NotSet::Ends)?);
        }
        for (factor, level) in plan.of_cell(&step.cell) {
            if let Some(to) = &level.command {
                let stopped = || ends.stopped();
                self.hold.undo.set(&factor.name, &plan.hosts[step.host], to, &stopped)?;
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        step: &Step,
        ends: &mut dyn Ends,
        target: &Target,
        name: (String, String),
    ) -> Result<Outcome, Stop> {
        match self.plan.load(&step.cell) {
            Load::Narrows(load) => {
                let run = measure::measure(ends, &load, target.clone(), name, &mut Silent);
                if run.ending == Ending::Interrupted { Err(Stop::Interrupted) } else { Ok(Outcome::Run(Box::new(run))) }
            }
            Load::Command(load) => {
                let record = foreign::run(&load, &self.plan.hosts[step.host], name, &|| ends.stopped());
                record.map(|it| Outcome::Command(Box::new(it))).ok_or(Stop::Interrupted)
            }
        }
    }

    /// A run whose settings could not be made.
    fn unset(&self, step: &Step, target: &Target, name: (String, String), why: String) -> Outcome {
        match self.plan.load(&step.cell) {
            Load::Narrows(load) => {
                let run = empty_run(RunPlan::Measure(load), target.clone(), name);
                Outcome::Run(Box::new(Run { ending: Ending::Failed(why), ..run }))
            }
            Load::Command(load) => {
                Outcome::Command(Box::new(foreign::not_run(&load, &self.plan.hosts[step.host], name, why)))
            }
        }
    }
}

/// The campaign shows its steps, not their progress.
struct Silent;

impl measure::Watch for Silent {
    fn begins(&mut self, _: &LoadPlan) {}
    fn progress(&mut self, _: Place, _: &Progress) {}
    fn ended(&mut self, _: &Trial) {}
}
