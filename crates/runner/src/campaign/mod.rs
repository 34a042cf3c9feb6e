//! A campaign: runs over a matrix of hosts and factors, in random order within blocks. Each run is stored with the campaign and
//! its step as tags, in one transaction, so that the store alone knows what is left after a crash.

mod commands;
mod conduct;
mod duration;
mod foreign;
mod here;
mod hold;
pub mod plan;
pub mod results;
pub mod schedule;
mod step;

pub use conduct::{Ended, Surroundings, perform, rtts};
pub use duration::expected_ms;
pub use here::Here;
pub use hold::{Pending, recover};

use crate::stored;
use plan::CampaignPlan;
use schedule::Step;

/// The tag of all runs of a campaign. The same plan is the same campaign.
pub fn tag(plan: &CampaignPlan) -> String {
    format!("campaign:{}", stored::plan_hash(plan))
}

/// The schedule of a plan.
pub fn steps(plan: &CampaignPlan) -> Vec<Step> {
    schedule::steps(plan.design, &plan.levels(), plan.hosts.len(), plan.repetitions, plan.seed)
}
