//! What follows from a forwarding plan by arithmetic: its rows, the rates of the line, the smallest frames.

use crate::forwarding::{AddressPair, ForwardingPlan, TesterPort, Traffic};
use crate::load::frames::least_frame_bytes;
use crate::load::line_rate::frames_per_second;
use crate::run::search::Goal;
use crate::words::place::Family;

/// What the results are listed by: one frame size of one traffic, or its mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Row {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
}

/// Frames a second that a link carries: each takes its bytes with FCS and [`OVERHEAD_BYTES`] on the wire.
#[must_use]
pub fn line_rate_pps(link_bps: u64, frame_bytes: f64) -> f64 {
    frames_per_second(link_bps as f64, frame_bytes)
}

impl TesterPort {
    /// Its addresses of a family; `None` where it has none.
    #[must_use]
    pub fn of(&self, family: Family) -> Option<AddressPair> {
        let first = AddressPair { address: self.address, gateway: self.gateway };
        [Some(first), self.second].into_iter().flatten().find(|pair| Family::of(&pair.address) == family)
    }
}

impl Traffic {
    /// First source port of the flows.
    pub const FIRST_PORT: u16 = 2000;
    /// The most flows: source ports from [`Traffic::FIRST_PORT`] on.
    pub const MOST_FLOWS: u32 = 65_536 - Self::FIRST_PORT as u32;
    /// The most networks of destinations.
    pub const MOST_NETWORKS: u32 = 256;

    /// The smallest frame with FCS that holds the headers and the signature: 64 for IPv4 and UDP, 82 for IPv6 and UDP.
    #[must_use]
    pub const fn least_bytes(&self) -> u32 {
        least_frame_bytes(self.family, self.transport, false)
    }
}

impl ForwardingPlan {
    /// The rows of the results, in the order in which they are measured; the mix of a traffic comes last.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let of = |(traffic, frames): (usize, &Traffic)| {
            let sizes: Vec<Option<u32>> = frames.sizes.iter().copied().map(Some).collect();
            let mix = (!frames.mix.is_empty()).then_some(None);
            sizes.into_iter().chain(mix).map(move |size| Row { traffic, size }).collect::<Vec<_>>()
        };
        self.traffic.iter().enumerate().flat_map(of).collect()
    }

    /// Mean frame size of a row with FCS; `None` where the plan has no such row.
    #[must_use]
    pub fn frame_bytes(&self, row: Row) -> Option<f64> {
        let traffic = self.traffic.get(row.traffic)?;
        if let Some(size) = row.size {
            return traffic.sizes.contains(&size).then(|| f64::from(size));
        }
        let sum: u64 = traffic.mix.iter().map(|size| u64::from(*size)).sum();
        (!traffic.mix.is_empty()).then(|| sum as f64 / traffic.mix.len() as f64)
    }

    /// What the link carries of a row's frames in one direction, frames a second.
    #[must_use]
    pub fn line_pps(&self, row: Row) -> Option<f64> {
        Some(line_rate_pps(self.link_bps, self.frame_bytes(row)?))
    }

    /// The most that is offered of a row's frames: the line rate, or what the plan allows where that is less.
    #[must_use]
    pub fn most_pps(&self, row: Row) -> Option<f64> {
        let line = self.line_pps(row)?;
        Some(self.max_load_pps.map_or(line, |most| most.min(line)))
    }

    /// Whether frames are stamped and read by one clock: only then is there a latency.
    #[must_use]
    pub fn one_clock(&self) -> bool {
        self.generator.host == self.receiver.host
    }

    /// The goal that the results of other tests stand on: the first one of the throughput test.
    #[must_use]
    pub fn first_goal(&self) -> Option<&Goal> {
        self.tests.throughput.as_ref()?.goals.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::frames::{Transport, Walk};

    fn traffic(family: Family, transport: Transport) -> Traffic {
        Traffic {
            family,
            transport,
            flows: 1,
            networks: 1,
            walk: Walk::Odometer,
            sizes: vec![64],
            mix: Vec::new(),
            bidirectional: false,
            modifier: None,
        }
    }

    #[test]
    fn the_line_carries_what_the_tables_say() {
        // RFC 2544, appendix B counts 64 bytes at 14,880 frames a second for 10 Mbit/s.
        let at = |bytes: f64| line_rate_pps(1_000_000_000, bytes).floor();
        let table = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0].map(at);
        assert_eq!(table, [1_488_095.0, 844_594.0, 452_898.0, 234_962.0, 119_731.0, 96_153.0, 81_274.0]);
        assert_eq!(line_rate_pps(10_000_000, 64.0).floor(), 14_880.0);
    }

    #[test]
    fn the_smallest_frame_is_that_of_the_generator() {
        assert_eq!(traffic(Family::Ipv4, Transport::Udp).least_bytes(), 64);
        assert_eq!(traffic(Family::Ipv6, Transport::Udp).least_bytes(), 82);
        assert_eq!(traffic(Family::Ipv4, Transport::TcpSyn).least_bytes(), 74);
        assert_eq!(traffic(Family::Ipv6, Transport::TcpSyn).least_bytes(), 94);
    }
}
