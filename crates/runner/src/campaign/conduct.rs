//! The conduct of a campaign: sessions, settings, runs, and what is done where one fails.

use super::duration::{READY_MS, expected_ms, run_us};
use super::hold::{self, Hold};
use super::plan::CampaignPlan;
use super::schedule::Step;
use super::step::{Making, Outcome, Stop};
use super::{steps, tag};
use crate::ends::{Ends, EndsError, On};
use crate::stored;
use narrows_model::run::live::CampaignStep;
use narrows_model::{Limit, Target, TcpPlan};
use narrows_sys::clock;
use std::time::Duration;

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
    fn begins(&mut self, step: &CampaignStep) {
        self.line(&step.to_string());
    }
    /// A run was kept: the results have changed.
    fn kept(&mut self) {}
}

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All steps are done.
    Complete,
    Interrupted,
    /// These hosts could not be reached any more; each with the reason.
    HostsLost(Vec<String>),
}

/// A step that failed: whether it was its own fault is known once its host answers again.
struct Suspect {
    number: usize,
    /// How often it failed although its host was there.
    proven: u32,
    /// The latest failure, if it is not judged yet.
    last: Option<Outcome>,
}

struct Conduct<'a> {
    plan: &'a CampaignPlan,
    left: &'a [Step],
    around: &'a mut dyn Surroundings,
    hold: Hold,
    total: usize,
    rtt_us: Vec<u64>,
    /// Sessions that failed since the host was there.
    tries: u32,
    suspect: Option<Suspect>,
    /// How long the runs of this process took, and how long they were expected to, microseconds.
    took_us: u64,
    expected_us: u64,
}

/// Makes the steps that are left, and keeps each run. First it rolls back what commands of killed campaigns set.
/// Errors: the campaign runs already, a setting cannot be made or rolled back, or the store cannot be written.
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
        took_us: 0,
        expected_us: 0,
    };
    conduct.recover()?;
    conduct.rtt_us = rtts(plan, conduct.around);
    conduct.all()
}

/// The RTT of each host of a plan, microseconds; 0 if unknown or not needed.
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
            let plan = self.plan;
            let begins = self.begins(step);
            self.around.begins(&begins);
            let (began, undo) = (clock::now(), &mut self.hold.undo);
            let outcome = Making { plan, step, ends: ends.as_mut(), target: &target, undo }.make()?;
            if let Some(why) = outcome.failed() {
                let why = why.to_owned();
                let proven = self.suspect.as_ref().filter(|it| it.number == step.number).map_or(0, |it| it.proven);
                self.suspect = Some(Suspect { number: step.number, proven, last: Some(outcome) });
                self.around.line(&format!("{}: {why}", begins.place()));
                return Err(Stop::Again);
            }
            self.keep(step, &outcome)?;
            self.around.kept();
            self.took_us += clock::micros_since(began);
            self.expected_us += run_us(plan, step, &self.rtt_us);
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

    fn begins(&self, step: &Step) -> CampaignStep {
        let at = self.left.iter().position(|it| it.number == step.number).unwrap_or(0);
        CampaignStep {
            number: step.number,
            of: self.total,
            done: self.total - self.left.len() + at,
            block: step.block,
            host: self.plan.hosts[step.host].clone(),
            cell: self.plan.words(&step.cell),
            left_s: self.left_ms(at).div_ceil(1000),
        }
    }

    /// What the step at this place of those that were left and those after it will take, by the pace so far.
    fn left_ms(&self, at: usize) -> u64 {
        let of = |steps| expected_ms(self.plan, steps, &self.rtt_us);
        // The session of this step is behind.
        let ahead = of(self.left).saturating_sub(of(&self.left[..at]));
        let pace = |ahead: u64| u128::from(ahead) * u128::from(self.took_us) / u128::from(self.expected_us.max(1));
        if at < 3 || self.took_us == 0 { ahead } else { u64::try_from(pace(ahead)).unwrap_or(ahead) }
    }

    fn keep(&self, step: &Step, outcome: &Outcome) -> Result<(), Stop> {
        let tags = [tag(self.plan), format!("step:{}", step.number)];
        let kept = match outcome {
            Outcome::Run(run) => stored::keep(&**run, &tags),
            Outcome::Command(record) => stored::keep(&**record, &tags),
        };
        kept.map_err(|error| Stop::Failed(error.to_string()))
    }
}
