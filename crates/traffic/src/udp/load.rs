//! What a plan's rate means for one stream.

use narrows_model::{Flow, UdpPlan, UdpRate};

/// One stream's share of the load of its flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Load {
    /// What each datagram of the cycle of sizes takes, ns; `None`: as fast as possible.
    pub(crate) costs_ns: Option<Vec<f64>>,
    /// Bytes of a datagram, on average.
    pub(crate) mean_bytes: f64,
}

impl Load {
    /// The share of one of the plan's streams.
    pub(crate) fn of(plan: &UdpPlan, flow: Flow, sizes: &[u32]) -> Self {
        let streams = f64::from(plan.streams.max(1));
        let mean_bytes = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / sizes.len().max(1) as f64;
        let costs_ns = match plan.rate(flow) {
            UdpRate::Bps(bps) => {
                let ns_per_byte = 8e9 * streams / bps.max(1) as f64;
                Some(sizes.iter().map(|size| f64::from(*size) * ns_per_byte).collect())
            }
            UdpRate::Pps(pps) => Some(vec![1e9 * streams / pps]),
            UdpRate::Max => None,
        };
        Self { costs_ns, mean_bytes }
    }

    /// What a datagram takes on average, ns.
    pub(crate) fn mean_cost_ns(&self) -> Option<f64> {
        self.costs_ns.as_ref().map(|costs| costs.iter().sum::<f64>() / costs.len().max(1) as f64)
    }

    /// Datagrams a second.
    pub(crate) fn pps(&self) -> Option<f64> {
        self.mean_cost_ns().map(|cost| 1e9 / cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_the_rate_of_their_flow() {
        let plan = UdpPlan { streams: 4, rate_up: UdpRate::Bps(8_000_000), ..UdpPlan::default() };
        let load = Load::of(&plan, Flow::Up, &[1000, 500]);
        // 2 Mbit/s: 4 us a byte.
        assert_eq!(load.costs_ns, Some(vec![4_000_000.0, 2_000_000.0]));
        assert_eq!((load.mean_bytes, load.pps()), (750.0, Some(1e9 / 3_000_000.0)));
        let plan = UdpPlan { rate_down: UdpRate::Pps(100.0), ..plan };
        assert_eq!(Load::of(&plan, Flow::Down, &[64]).costs_ns, Some(vec![4e7]));
        let plan = UdpPlan { rate_down: UdpRate::Max, ..plan };
        assert_eq!(Load::of(&plan, Flow::Down, &[64]).pps(), None);
    }
}
