//! Experiments with a load of UDP: the load of the baseline in other datagrams.

use crate::judge::{Baseline, Experiment, Plan};
use narrows_model::{DatagramSizes, LoadPlan, UdpPlan};

/// Whether a core is full for each datagram or for each byte.
pub static LARGER_DATAGRAMS: Experiment = Experiment {
    id: "larger-datagrams",
    words: "the same load in the largest datagrams that are not fragmented",
    plan: Plan::Path(|baseline| Some(LoadPlan::Udp(UdpPlan { sizes: DatagramSizes::Largest, ..load(baseline)? }))),
};

/// Whether the loss is one of fragments.
pub static UNFRAGMENTED: Experiment = Experiment {
    id: "unfragmented",
    words: "the same load in datagrams that are not fragmented",
    plan: Plan::Path(|baseline| {
        let load = load(baseline)?;
        Some(LoadPlan::Udp(UdpPlan { sizes: DatagramSizes::Largest, allow_fragments: false, ..load }))
    }),
};

/// A limit of each flow lets more of them carry more.
pub static MORE_FLOWS: Experiment = Experiment {
    id: "more-flows",
    words: "the same load, spread over four times the flows",
    plan: Plan::Path(|baseline| {
        let load = load(baseline)?;
        let streams = load.streams.saturating_mul(4).min(UdpPlan::MAX_STREAMS);
        let duration_ms = load.duration_ms.min(3_000);
        (streams > load.streams).then_some(LoadPlan::Udp(UdpPlan { streams, duration_ms, ..load }))
    }),
};

/// The load of the baseline, where it is one of UDP.
fn load(baseline: &Baseline<'_>) -> Option<UdpPlan> {
    let LoadPlan::Udp(load) = &baseline.load else { return None };
    Some(load.clone())
}
