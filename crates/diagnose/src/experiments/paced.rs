//! Paced UDP: at 10 % and at 50 % of the rate, evenly and in bursts, then above it. What is lost at which of them
//! tells random loss, a short queue, a policer and plain capacity apart.
//!
//! | What is lost | Then it is |
//! | --- | --- |
//! | the same part at 10 % and at 50 % | `random-loss`: whatever the rate |
//! | nothing at 50 % sent evenly, some in bursts | `shallow-queue` |
//! | nothing below the rate; above it the excess, and the delay stays | `path-policer` |
//! | nothing below the rate; above it the excess, behind a queue | `path-capacity` (or a shaper) |
//! | nothing even above it | none of them: the path has room |

use crate::judge::{Baseline, Experiment, Plan};
use narrows_model::LoadPlan;
use narrows_model::load::udp::{Batching, DatagramSizes, UdpPlan, UdpRate};

/// All of the trials below: the gentle ones first.
pub static PACED_UDP: Experiment = Experiment {
    id: "paced-udp",
    words: "UDP below and above the measured goodput, evenly spaced and in bursts",
    plan: Plan::Several(&PARTS),
};

/// The trials of [`PACED_UDP`], in the order in which they are made.
pub static PARTS: [Experiment; 5] = [
    Experiment {
        id: TENTH,
        words: "UDP at a tenth of the goodput, evenly paced",
        plan: Plan::Path(|baseline| Some(LoadPlan::Udp(UdpPlan { duration_ms: 2_000, ..at(baseline, 0.1)? }))),
    },
    Experiment {
        id: HALF,
        words: "UDP at half of the goodput, evenly paced",
        plan: Plan::Path(|baseline| at(baseline, 0.5).map(LoadPlan::Udp)),
    },
    Experiment {
        id: HALF_BURSTS,
        words: "UDP at half of the goodput, in bursts",
        // A batch that the kernel hands down as one is a burst.
        plan: Plan::Path(|baseline| {
            let plan = at(baseline, 0.5)?;
            Some(LoadPlan::Udp(UdpPlan { burst_datagrams: Some(BURST), segmentation: Batching::Auto, ..plan }))
        }),
    },
    // A little more than the path carried.
    Experiment {
        id: PLATEAU,
        words: "UDP a little above the goodput",
        plan: Plan::Path(|baseline| at(baseline, 1.05).map(LoadPlan::Udp)),
    },
    // TCP may stay a third below what a policer lets through.
    Experiment {
        id: ABOVE,
        words: "UDP at one and a half times the goodput",
        plan: Plan::Path(|baseline| at(baseline, 1.5).map(LoadPlan::Udp)),
    },
];

/// The id of the trial at a tenth of the rate.
pub const TENTH: &str = "paced-udp-tenth";
/// The id of the trial at half of the rate, evenly spaced.
pub const HALF: &str = "paced-udp-half";
/// The id of the trial at half of the rate, in bursts.
pub const HALF_BURSTS: &str = "paced-udp-half-bursts";
/// The id of the trial a little above the rate.
pub const PLATEAU: &str = "paced-udp-plateau";
/// The id of the trial well above the rate.
pub const ABOVE: &str = "paced-udp-above";

/// Datagrams of a burst: more than a short queue holds, less than a long one.
pub const BURST: u32 = 64;

/// Below this a tenth of the rate sends too few datagrams to count losses by.
const MIN_BPS: f64 = 1e6;

/// A second at a part of the goodput; `None` where that is too little to learn from.
fn at(baseline: &Baseline<'_>, part: f64) -> Option<UdpPlan> {
    let goodput_bps = baseline.goodput_bps;
    if !goodput_bps.is_finite() || goodput_bps < MIN_BPS {
        return None;
    }
    let rate = UdpRate::Bps(((goodput_bps * part) as u64).clamp(1, 1 << 50));
    Some(UdpPlan {
        direction: baseline.flow.direction(),
        rate_up: rate,
        rate_down: rate,
        sizes: DatagramSizes::Largest,
        duration_ms: 1_000,
        interval_ms: 100,
        segmentation: Batching::Off,
        ..UdpPlan::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Flow, Snapshot};

    fn plans(goodput_bps: f64, flow: Flow) -> Vec<UdpPlan> {
        let (load, sender) = (LoadPlan::Udp(UdpPlan::default()), Snapshot::default());
        let baseline = Baseline {
            load,
            flow,
            goodput_bps,
            sender: &sender,
            congestion_control: None,
            acks_bps: None,
            min_rtt_us: None,
            lost: None,
            carries_bps: None,
        };
        let plan = |part: &'static Experiment| match part.planned(&baseline)?.plan {
            LoadPlan::Udp(plan) => Some(plan),
            _ => None,
        };
        PACED_UDP.trials().iter().filter_map(plan).collect()
    }

    #[test]
    fn the_plans_are_sound_and_go_from_gentle_to_rough() {
        let plans = plans(100e6, Flow::Down);
        for plan in &plans {
            assert_eq!(narrows_model::Plan::check(plan), Ok(()), "{plan:?}");
            assert_eq!(plan.flows(), [Flow::Down]);
        }
        let rates: Vec<_> = plans.iter().map(|plan| plan.rate_down).collect();
        let bps = [10_000_000, 50_000_000, 50_000_000, 105_000_000, 150_000_000];
        assert_eq!(rates, bps.map(UdpRate::Bps));
        assert!(super::tests::plans(5e5, Flow::Up).is_empty() && super::tests::plans(f64::NAN, Flow::Up).is_empty());
    }
}
