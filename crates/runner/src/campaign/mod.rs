//! A campaign: runs over a matrix of hosts and factors, in random order within blocks. Each run is stored with the campaign and
//! its step as tags, in one transaction, so that the store alone knows what is left after a crash.

pub mod effects;
pub mod plan;
pub mod results;
pub mod schedule;

use crate::ends::{Ends, EndsError, On};
use crate::measure::{self, empty_run};
use crate::stored::{self, StoreError};
use narrows_model::run::{Ending, RunPlan};
use narrows_model::{Limit, LoadPlan, Place, Progress, Run, Target, TcpPlan, Trial};
use narrows_sys::clock;
use plan::CampaignPlan;
use schedule::Step;
use std::time::Duration;

/// How often a host that is gone is tried again, and the pause before.
const RETRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(3);
/// What a run takes besides its load: session, inventories, settings.
const OVERHEAD_MS: u64 = 500;
/// The load that tests whether a host is ready.
const READY_MS: u64 = 300;

/// What a campaign needs of its surroundings.
pub trait Surroundings {
    /// A new session with a server.
    fn connect(&mut self, host: &str) -> Result<(Box<dyn Ends>, Target), EndsError>;
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

/// The tag of all runs of a campaign. The same plan is the same campaign.
#[must_use]
pub fn tag(plan: &CampaignPlan) -> String {
    format!("campaign:{}", stored::plan_hash(plan))
}

/// The schedule of a plan.
#[must_use]
pub fn steps(plan: &CampaignPlan) -> Vec<Step> {
    schedule::steps(plan.design, &plan.levels(), plan.hosts.len(), plan.repetitions, plan.seed)
}

/// What the steps will take, milliseconds.
#[must_use]
pub fn expected_ms(plan: &CampaignPlan, steps: &[Step]) -> u64 {
    let groups = steps.chunk_by(|a, b| (a.block, a.host) == (b.block, b.host)).count() as u64;
    let load_ms = match plan.load.limit {
        Limit::DurationMs(ms) => ms,
        Limit::BytesPerStream(_) => 0,
    };
    steps.len() as u64 * (load_ms + OVERHEAD_MS) + groups * (READY_MS + OVERHEAD_MS)
}

/// Makes the steps that are left, and keeps each run.
///
/// # Errors
/// A setting cannot be made or rolled back, a run fails although its host is there, or the store cannot be written.
pub fn perform(plan: &CampaignPlan, left: &[Step], around: &mut dyn Surroundings) -> Result<Ended, String> {
    let mut lost = Vec::new();
    let mut gone = Vec::new();
    let total = steps(plan).len();
    for group in left.chunk_by(|a, b| (a.block, a.host) == (b.block, b.host)) {
        let host = group[0].host;
        if gone.contains(&host) {
            continue;
        }
        let mut rest = group;
        let mut tries = 0;
        while !rest.is_empty() {
            if around.stopped() {
                return Ok(Ended::Interrupted);
            }
            let why = match session(plan, &mut rest, total, left, around) {
                Ok(()) => continue,
                Err(Stop::Interrupted) => return Ok(Ended::Interrupted),
                Err(Stop::Failed(why)) => return Err(why),
                Err(Stop::Lost(why)) => why,
            };
            tries += 1;
            if tries > RETRIES {
                lost.push(format!("{}: {why}", plan.hosts[host]));
                gone.push(host);
                break;
            }
            around.line(&format!("{}: {why}; attempt {tries} of {RETRIES} in {} s", plan.hosts[host], PAUSE.as_secs()));
            clock::sleep(PAUSE);
        }
    }
    Ok(if lost.is_empty() { Ended::Complete } else { Ended::HostsLost(lost) })
}

/// Why a session ended before its steps.
enum Stop {
    Interrupted,
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

/// Makes steps in one session; `rest` are those that are not done.
fn session(
    plan: &CampaignPlan,
    rest: &mut &[Step],
    total: usize,
    left: &[Step],
    around: &mut dyn Surroundings,
) -> Result<(), Stop> {
    let (mut ends, target) = around.connect(&plan.hosts[rest[0].host])?;
    let ready = TcpPlan { limit: Limit::DurationMs(READY_MS), interval_ms: 100, ..TcpPlan::default() };
    ends.trial(&ready.into(), On::Path, &mut |_, _| {}).map_err(|failed| Stop::from(failed.why))?;
    while let Some((step, after)) = rest.split_first() {
        let ahead = left.iter().position(|it| it.number == step.number).map_or(&[][..], |at| &left[at..]);
        around.line(&format!(
            "[{}/{total}] block {}, {}: {} ({} s left)",
            step.number,
            step.block,
            plan.hosts[step.host],
            plan.words(&step.cell),
            expected_ms(plan, ahead).div_ceil(1000)
        ));
        let run = one(plan, step, ends.as_mut(), &target)?;
        let tags = [tag(plan), format!("step:{}", step.number)];
        stored::keep_tagged(&run, &tags).map_err(|error: StoreError| Stop::Failed(error.to_string()))?;
        *rest = after;
    }
    Ok(())
}

/// One run, with the settings of its cell.
fn one(plan: &CampaignPlan, step: &Step, ends: &mut dyn Ends, target: &Target) -> Result<Run, Stop> {
    let load = LoadPlan::from(plan.load(&step.cell));
    let name = stored::new_name().map_err(|error| Stop::Failed(error.to_string()))?;
    let mut changes = Vec::new();
    let mut run = Ok(empty_run(RunPlan::Measure(load.clone()), target.clone(), name.clone()));
    for (place, setting) in plan.of_cell(&step.cell).flat_map(|(_, level)| &level.settings) {
        match ends.apply(*place, setting) {
            Ok(change) => changes.push(change),
            Err(error) => {
                run = Err(error);
                break;
            }
        }
    }
    if run.is_ok() {
        run = Ok(measure::measure(ends, &load, target.clone(), name, &mut Silent));
    }
    // All of them, also after a failure: a host that is gone rolls back by itself.
    let undone: Vec<_> = changes.iter().rev().map(|change| ends.undo(change)).collect();
    let run = run?;
    match &run.ending {
        Ending::Interrupted => return Err(Stop::Interrupted),
        Ending::Failed(why) => return Err(Stop::Lost(why.clone())),
        Ending::Complete => {}
    }
    undone.into_iter().collect::<Result<(), _>>()?;
    Ok(run)
}

/// The campaign shows its steps, not their progress.
struct Silent;

impl measure::Watch for Silent {
    fn begins(&mut self, _: &LoadPlan) {}
    fn progress(&mut self, _: Place, _: &Progress) {}
    fn ended(&mut self, _: &Trial) {}
}
