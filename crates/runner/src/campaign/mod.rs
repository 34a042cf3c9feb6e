//! A campaign: runs over a matrix of hosts and factors, in random order within blocks. Each run is stored with the campaign and
//! its step as tags, in one transaction, so that the store alone knows what is left after a crash.

mod commands;
mod conduct;
mod foreign;
mod here;
mod hold;
pub mod plan;
pub mod results;
pub mod schedule;

pub use conduct::{Ended, Surroundings, perform};
pub use here::Here;
pub use hold::recover;

use crate::stored;
use plan::CampaignPlan;
use schedule::Step;

/// What a run takes besides its load: session, inventories, settings. Another program needs none of them.
const OVERHEAD_MS: u64 = 500;
const COMMAND_MS: u64 = 30;
/// The load that tests whether a host is ready.
pub(crate) const READY_MS: u64 = 300;

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
    let load_ms = plan.load.duration_ms();
    let (overhead_ms, ready_ms) =
        if plan.needs_server() { (OVERHEAD_MS, READY_MS + OVERHEAD_MS) } else { (COMMAND_MS, 0) };
    steps.len() as u64 * (load_ms + overhead_ms) + groups * ready_ms
}
