//! The path profile as an experiment: what the path does by itself, whatever TCP and the hosts' settings make of it.

use crate::judge::{Experiment, Plan};
use narrows_model::load::udp::UdpRate;
use narrows_model::{LoadPlan, ProfilePlan};

/// Made after each first baseline, unless it was turned off.
pub static PATH_PROFILE: Experiment = Experiment {
    id: "path-profile",
    words: "a profile of the path: UDP in short steps until it no longer keeps up",
    plan: Plan::Path(|baseline| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped
        let bits = |bps: f64| (bps as u64).clamp(ProfilePlan::MIN_BPS, ProfilePlan::MAX_BPS);
        let offered_bps = match &baseline.load {
            LoadPlan::Udp(plan) => match plan.rate_up {
                UdpRate::Bps(bps) => bps as f64,
                UdpRate::Pps(_) | UdpRate::Max => baseline.goodput_bps,
            },
            _ => baseline.goodput_bps,
        };
        // TCP carried the goodput and its headers: the first step goes a little beyond, so that a path at capacity shows at once.
        let start_bps = bits(BEYOND * baseline.goodput_bps.max(0.25 * offered_bps));
        Some(LoadPlan::Profile(ProfilePlan {
            direction: baseline.flow.direction(),
            start_bps,
            ..ProfilePlan::default()
        }))
    }),
};

/// The first rate, as a multiple of the goodput.
const BEYOND: f64 = 1.25;
