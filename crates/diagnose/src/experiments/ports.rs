//! A load of many flows that differ in their ports alone. Routers and link aggregates select one of several equal paths by a hash of
//! addresses and ports (RFC 2992, IEEE 802.1AX), so a lossy path always hits the same flows and no others.
//!
//! The load is far below what the path carries: nothing overflows, and no policer of one flow is met. Datagrams are small, because losses
//! of packets are counted.

use crate::judge::{Experiment, Plan};
use narrows_model::LoadPlan;
use narrows_model::load::udp::{Batching, DatagramSizes, UdpPlan, UdpRate};

/// Whether loss depends on the ports.
pub static MANY_PORTS: Experiment = Experiment {
    id: "many-ports",
    words: "UDP in many flows with ports of their own, far below what the path carries",
    plan: Plan::Path(|baseline| {
        let lost = baseline.lost.filter(|lost| *lost > 0.0)?;
        let most_bps = PART * baseline.carries_bps.unwrap_or(baseline.goodput_bps);
        let packet_bytes = (most_bps / 8.0 / MAX_PPS).clamp(MIN_BYTES, MAX_BYTES).floor();
        let pps = (most_bps / 8.0 / packet_bytes).min(MAX_PPS);
        let seconds = (ENOUGH_FLOWS * EACH / lost / pps).clamp(2.0, 5.0);
        let losses = pps * seconds * lost;
        if losses.is_nan() || losses < LEAST_FLOWS * LEAST_EACH {
            return None;
        }
        let (streams, payload, bps) = (
            (losses / EACH).clamp(LEAST_FLOWS, FLOWS) as u32,
            (packet_bytes - HEADER_BYTES) as u32,
            (pps * (packet_bytes - HEADER_BYTES) * 8.0) as u64,
        );
        Some(LoadPlan::Udp(UdpPlan {
            streams,
            direction: baseline.flow.direction(),
            rate_up: UdpRate::Bps(bps),
            rate_down: UdpRate::Bps(bps),
            sizes: DatagramSizes::Sequence(vec![payload]),
            duration_ms: (seconds * 1e3) as u64,
            interval_ms: 500,
            segmentation: Batching::Off,
            coalescing: Batching::Off,
            ..UdpPlan::default()
        }))
    }),
};

/// Of what the path carries.
const PART: f64 = 0.25;
/// What one core of a slow host sends and receives of small datagrams without being full.
const MAX_PPS: f64 = 20_000.0;
/// Minimum IP packet size; fast paths get larger packets, which links with bit errors lose more often.
const MIN_BYTES: f64 = 92.0;
const MAX_BYTES: f64 = 512.0;
/// Of IP and UDP.
const HEADER_BYTES: f64 = 28.0;
/// Flows that are worth the time of their losses: of a group of eight members each has three of them or so.
const ENOUGH_FLOWS: f64 = 24.0;
/// Flows at most, where the shortest load has enough losses of each …
const FLOWS: f64 = 48.0;
/// … and at least: of a group of four each has three.
const LEAST_FLOWS: f64 = 12.0;
/// Losses to expect of a flow over a lossy member: then none of 1,000 such flows loses nothing.
const EACH: f64 = 8.0;
/// Fewer say nothing.
const LEAST_EACH: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Baseline;
    use narrows_model::{Flow, Plan as _, Snapshot};

    fn plan(carries_bps: f64, lost: f64) -> Option<UdpPlan> {
        let sender = Snapshot::default();
        let load = LoadPlan::Udp(UdpPlan::default());
        let baseline = Baseline {
            load,
            flow: Flow::Down,
            goodput_bps: 1e6,
            sender: &sender,
            congestion_control: None,
            acks_bps: None,
            min_rtt_us: None,
            lost: Some(lost),
            carries_bps: Some(carries_bps),
        };
        let LoadPlan::Udp(plan) = MANY_PORTS.planned(&baseline)?.plan else { return None };
        assert_eq!((plan.check(), plan.flows()), (Ok(()), &[Flow::Down][..]));
        Some(plan)
    }

    #[test]
    fn flows_are_as_many_as_lose_enough_each_far_below_what_the_path_carries() {
        for (carries_bps, lost) in [(20e6, 0.02), (100e6, 0.003), (1e9, 0.1), (10e9, 0.001)] {
            let plan = plan(carries_bps, lost).expect("enough losses");
            let UdpRate::Bps(bps) = plan.rate_down else { panic!("bits a second") };
            let DatagramSizes::Sequence(sizes) = &plan.sizes else { panic!("one size") };
            let (bps, bytes) = (bps as f64, f64::from(sizes[0]));
            let packets = bps / 8.0 / bytes;
            assert!(packets <= MAX_PPS && packets * 8.0 * (bytes + 28.0) <= 0.2501 * carries_bps, "{plan:?}");
            let each = packets * plan.duration_ms as f64 / 1e3 * lost / f64::from(plan.streams);
            assert!(each >= EACH * 0.8 && (12..=48).contains(&plan.streams), "{each} of {plan:?}");
        }
        // A slow path with rare losses would take minutes.
        assert_eq!((plan(2e6, 0.002), plan(100e6, 0.0)), (None, None));
    }
}
