//! Experiments with TCP: the load of the baseline with one thing changed.

use crate::judge::{Baseline, Experiment, Plan};
use crate::layers::too_large;
use narrows_model::keys;
use narrows_model::load::tcp::{Application, Limit, TcpPlan, ZeroCopy};
use narrows_model::{LoadPlan, Snapshot};

/// A limit of each connection multiplies, a limit of the path does not.
pub static MORE_STREAMS: Experiment = Experiment {
    id: "more-streams",
    words: "the same load with four times the streams",
    plan: Plan::Path(|baseline| {
        let load = short(baseline)?;
        let streams = load.streams.saturating_mul(4).min(TcpPlan::MAX_STREAMS);
        (streams > load.streams).then_some(LoadPlan::Tcp(TcpPlan { streams, ..load }))
    }),
};

/// Whether a small difference is one of the load that was changed, or of the path from one time to the next.
pub static AGAIN: Experiment = Experiment {
    id: "again",
    words: "the same load once more, for a few seconds",
    plan: Plan::Path(|baseline| short(baseline).map(LoadPlan::Tcp)),
};

/// Whether what vanishes are full-size packets alone.
pub static SMALL_SEGMENTS: Experiment = Experiment {
    id: "small-segments",
    words: "the same load in segments of 536 bytes, which any path carries",
    plan: Plan::Path(|baseline| Some(LoadPlan::Tcp(TcpPlan { mss_bytes: Some(536), ..short(baseline)? }))),
};

/// Headers of IPv6 and of TCP without options, which the MSS does not count.
const IP_AND_TCP: u32 = 60;

/// Whether fragments below a tunnel cost goodput.
pub static FITTING_SEGMENTS: Experiment = Experiment {
    id: "fitting-segments",
    words: "the same load in segments that fit below the tunnel",
    plan: Plan::Path(|baseline| {
        let load = short(baseline)?;
        let mss = u16::try_from(tunnel_mtu(baseline.sender)?.checked_sub(IP_AND_TCP)?).ok()?;
        load.mss_bytes.is_none_or(|now| now > mss).then_some(LoadPlan::Tcp(TcpPlan { mss_bytes: Some(mss), ..load }))
    }),
};

/// The MTU with which the packets of a host's interface need no fragments below it. Where what is below is not known, that of
/// WireGuard over IPv6, 80 bytes, which is more than VXLAN (70) adds.
pub fn tunnel_mtu(host: &Snapshot) -> Option<u32> {
    let unknown = || host.number(keys::NIC_MTU).map(|mtu| (mtu as u32).saturating_sub(80));
    too_large(host).map(|found| found.fits).or_else(unknown)
}

/// Tells a limit of the tunnel from one below it. Made beside the baseline where the user wants it; no cause asks for it.
pub static UNDERLAY: Experiment = Experiment {
    id: "underlay",
    words: "the same load to the same server by its address below the tunnel",
    plan: Plan::Path(|baseline| short(baseline).map(LoadPlan::Tcp)),
};

/// Tells a limit of both ways from a limit of one.
pub static OTHER_DIRECTION: Experiment = Experiment {
    id: "other-direction",
    words: "the same load in the other direction",
    plan: Plan::Path(|baseline| {
        Some(LoadPlan::Tcp(TcpPlan { direction: baseline.flow.reversed().direction(), ..short(baseline)? }))
    }),
};

/// Whether a buffer that the application fixed was too small.
pub static LARGER_BUFFER: Experiment =
    Experiment {
        id: "larger-buffer",
        words: "the same load with buffers that the kernel tunes",
        plan: Plan::Path(|baseline| {
            let load = short(baseline)?;
            (load.send_buffer_bytes.is_some() || load.receive_buffer_bytes.is_some())
                .then_some(LoadPlan::Tcp(TcpPlan { send_buffer_bytes: None, receive_buffer_bytes: None, ..load }))
        }),
    };

/// Whether the cost of a call is what a sender of small writes spends its time on.
pub static LARGER_WRITES: Experiment = Experiment {
    id: "larger-writes",
    words: "the same load in writes of 128 KiB",
    plan: Plan::Path(|baseline| {
        let load = short(baseline)?;
        let message_bytes = TcpPlan::default().message_bytes;
        (load.message_bytes < message_bytes).then_some(LoadPlan::Tcp(TcpPlan {
            message_bytes,
            keeps_message_bytes: true,
            ..load
        }))
    }),
};

/// Whether small writes wait for the acknowledgement of the one before.
pub static NO_DELAY: Experiment = Experiment {
    id: "no-delay",
    words: "the same load with TCP_NODELAY",
    plan: Plan::Path(|baseline| {
        let load = short(baseline)?;
        (!load.no_delay).then_some(LoadPlan::Tcp(TcpPlan { no_delay: true, ..load }))
    }),
};

/// A congestion control that does not take loss for a sign of a full queue.
pub static OTHER_CONGESTION_CONTROL: Experiment = Experiment {
    id: "other-congestion-control",
    words: "the same load under BBR, which does not slow down at each loss",
    plan: Plan::Path(|baseline| {
        let available = baseline.sender.get(keys::TCP_CONGESTION_CONTROL_AVAILABLE)?;
        let has_bbr = available.value.to_string().split_whitespace().any(|name| name == "bbr");
        let in_use = baseline.congestion_control == Some("bbr");
        let load = TcpPlan { congestion_control: Some("bbr".into()), ..short(baseline)? };
        (has_bbr && !in_use).then_some(LoadPlan::Tcp(load))
    }),
};

/// Loss that a full queue or a policer makes ends, random loss stays.
pub static PACED_HALF: Experiment = Experiment {
    id: "paced-half",
    words: "the same load paced at half of the measured goodput",
    plan: Plan::Path(|baseline| {
        let load = short(baseline)?;
        let half = (baseline.goodput_bps / 2.0 / f64::from(load.streams)) as u64;
        // The first second may still drain what the pacing rate cannot know of; it is short all the same.
        (half >= 80_000).then_some(LoadPlan::Tcp(TcpPlan { pacing_bps: Some(half), omit_ms: 500, ..load }))
    }),
};

/// The kernel's tick sees what interrupts take only on cores that are awake.
pub static AWAKE_CORES: Experiment = Experiment {
    id: "awake-cores",
    words: "the same load while both ends keep their cores awake, so that the kernel sees what interrupts take",
    plan: Plan::Path(|baseline| Some(LoadPlan::Tcp(TcpPlan { awake: true, ..short(baseline)? }))),
};

/// What the tester itself can do.
pub static LOOPBACK: Experiment = Experiment {
    id: "loopback",
    words: "both ends of the engine on the client alone",
    plan: Plan::Loopback(|baseline| {
        let load = short(baseline)?;
        Some(LoadPlan::Tcp(TcpPlan {
            streams: load.streams,
            zero_copy: ZeroCopy::Auto,
            application: Application::default(),
            limit: Limit::DurationMs(1_000),
            omit_ms: 200,
            interval_ms: load.interval_ms,
            message_bytes: load.message_bytes,
            keeps_message_bytes: load.keeps_message_bytes,
            ..TcpPlan::default()
        }))
    }),
};

/// Slow start doubles the window each round trip (RFC 5681): what it needs is left out, and as many round trips are counted.
const SLOW_START_TRIPS: f64 = 12.0;
const COUNTED_TRIPS: f64 = 10.0;

/// Longer ones do not fit the time of a diagnosis.
const LONGEST_TRIP_MS: f64 = 300.0;

/// What is left out and what is counted at least over a path with that RTT.
fn trips_ms(min_rtt_us: Option<f64>) -> [u64; 2] {
    let trip_ms = (min_rtt_us.unwrap_or(0.0) / 1e3).clamp(0.0, LONGEST_TRIP_MS);
    [SLOW_START_TRIPS, COUNTED_TRIPS].map(|trips| (trips * trip_ms) as u64)
}

/// The load of the baseline for three seconds, longer over a long path, where it is one of TCP.
fn short(baseline: &Baseline<'_>) -> Option<TcpPlan> {
    let LoadPlan::Tcp(load) = &baseline.load else { return None };
    let [omit_ms, counted_ms] = trips_ms(baseline.min_rtt_us);
    let (omit_ms, counted_ms) = (omit_ms.max(1_000), counted_ms.max(2_000));
    Some(TcpPlan { limit: Limit::DurationMs(omit_ms + counted_ms), omit_ms, ..load.clone() })
}

/// A load for the pairs of a proof: shortened, and longer over a long path, as that of an experiment.
pub fn for_proof(load: &LoadPlan, min_rtt_us: Option<f64>) -> LoadPlan {
    let mut short = load.for_proof();
    if let LoadPlan::Tcp(TcpPlan { limit: Limit::DurationMs(lasts_ms), omit_ms, .. }) = &mut short {
        let [least_omit_ms, least_ms] = trips_ms(min_rtt_us);
        let counted_ms = lasts_ms.saturating_sub(*omit_ms).max(least_ms);
        *omit_ms = least_omit_ms.max(*omit_ms);
        *lasts_ms = omit_ms.saturating_add(counted_ms);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tcp::TcpEvidence;
    use crate::judge::Evidence as _;
    use crate::testing::Scene;

    #[test]
    fn over_a_long_path_slow_start_is_left_out_too() {
        let of = |min_rtt_us: u64| {
            let scene = Scene { min_rtt_us, rtt_us: min_rtt_us + 100, ..Scene::default() };
            let evidence = TcpEvidence::of(&scene.run(&[]), 0).expect("a baseline");
            let load = short(&evidence.baseline()).expect("a load of TCP");
            (load.limit, load.omit_ms)
        };
        assert_eq!(of(20_000), (Limit::DurationMs(3_000), 1_000));
        assert_eq!(of(250_000), (Limit::DurationMs(5_500), 3_000));
        assert_eq!(of(9_000_000), (Limit::DurationMs(6_600), 3_600));
    }

    #[test]
    fn a_proof_over_a_long_path_leaves_slow_start_out_too() {
        let load = TcpPlan { limit: Limit::DurationMs(8_000), omit_ms: 1_000, ..TcpPlan::default() };
        let of = |min_rtt_us| match for_proof(&load.clone().into(), min_rtt_us) {
            LoadPlan::Tcp(plan) => (plan.limit, plan.omit_ms),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(None), (Limit::DurationMs(4_000), 1_000));
        assert_eq!(of(Some(20_000.0)), (Limit::DurationMs(4_000), 1_000));
        assert_eq!(of(Some(250_000.0)), (Limit::DurationMs(6_000), 3_000));
    }
}
