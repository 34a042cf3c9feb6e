//! The path profile as an experiment: what the path does by itself, whatever TCP and the hosts' settings make of it.

use crate::judge::{Experiment, Plan};
use narrows_model::load::udp::UdpRate;
use narrows_model::{LoadPlan, ProfilePlan};

/// Made after each first baseline, unless it was turned off.
pub static PATH_PROFILE: Experiment = Experiment {
    id: "path-profile",
    words: "a profile of the path: UDP in short steps until it no longer keeps up",
    plan: Plan::Path(|baseline| {
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

/// Whether the reverse path carries the acknowledgements of the load, which is measured without the load: a profile of that direction that
/// goes no further than to several times what they took.
pub static REVERSE_PROFILE: Experiment = Experiment {
    id: "reverse-profile",
    words: "a short profile of the reverse path: UDP up to several times the rate of the acknowledgements",
    plan: Plan::Path(|baseline| {
        let acks_bps = baseline.acks_bps?;
        let rtts_ms = ROUND_TRIPS * baseline.min_rtt_us? / 1e3;
        let limit_ms = (2_000.0 + rtts_ms).clamp(2_000.0, 10_000.0) as u64;
        let bits = |bps: f64| (bps as u64).clamp(ProfilePlan::MIN_BPS, ProfilePlan::MAX_BPS);
        Some(LoadPlan::Profile(ProfilePlan {
            direction: baseline.flow.reversed().direction(),
            start_bps: bits(acks_bps.max(COUNTS_BPS / 2.0)),
            max_bps: bits((SEVERAL * acks_bps).max(COUNTS_BPS)),
            limit_ms,
        }))
    }),
};

/// A reverse path that carries the acknowledgements so many times over has room for them, whatever a link adds to each: headers and
/// preamble of Ethernet make 90 bytes of 52, two ATM cells 106 (RFC 3449, section 2).
pub const SEVERAL: f64 = 4.0;

/// Beside a second of probes and another of steps: the trains and the first steps are answered after a round trip each.
const ROUND_TRIPS: f64 = 8.0;

/// Below this rate a step of a quarter of a second has fewer than a hundred datagrams to count losses by.
const COUNTS_BPS: f64 = 4.8e6;

/// The first rate, as a multiple of the goodput.
const BEYOND: f64 = 1.25;
