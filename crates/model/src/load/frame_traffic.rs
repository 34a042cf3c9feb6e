//! The frames that a device under test is measured with, and the conditions under which it is measured once more, beside the same frames
//! without them (RFC 2544, section 11).

use crate::host::snmp::SnmpAgent;
use crate::host::table::{TableFill, TableKind};
use crate::load::frames::{Transport, Walk, min_frame_bytes};
use crate::words::place::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames of one family through the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Of IP.
    pub family: Family,
    /// What follows IP.
    pub transport: Transport,
    /// Flows: source ports from 2000 on, one for each.
    pub flows: u32,
    /// Networks that the destinations lie in: 1, or up to 256 (RFC 2544, section 12).
    pub networks: u32,
    /// The order of the flows.
    pub walk: Walk,
    /// Frame sizes with FCS, each a row of the report.
    pub sizes: Vec<u32>,
    /// A mix measured beside them: a sequence of sizes (RFC 6985); empty: none.
    pub mix: Vec<u32>,
    /// Whether both directions are loaded at the same time.
    pub bidirectional: bool,
    /// What the device has to bear beside (RFC 2544, section 11); the same frames without it are a traffic of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifier: Option<Modifier>,
}

/// One condition. A traffic has one at most: each is measured by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Modifier {
    /// RFC 2544, 11.1: every so-manyth frame of the load goes to the hardware broadcast address. Its IP addresses are those of the
    /// others, so that no router may forward it (RFC 1812, section 5.3.4) and no host answers it.
    Broadcast {
        /// 100: one per cent, as the RFC has it.
        every: u32,
    },
    /// RFC 2544, 11.2: a management query at the begin of each second, answered in one frame that is verified.
    Management {
        /// Who is asked.
        agent: SnmpAgent,
    },
    /// RFC 2544, 11.3: a routing update at the begin of each trial and then after each such time; by turns one that announces
    /// networks and one that withdraws them. RIP version 2 (RFC 2453), so IPv4 alone.
    Routes {
        /// RIP's own time is 30 s.
        every_ms: u64,
        /// Networks of an update, at most 25 (RFC 2453, section 3.6). Nothing is sent to them.
        networks: u32,
    },
    /// RFC 3222: a table of the device is filled, and the frames go through its entries. It is filled before the first trial, checked
    /// by traffic, and emptied at the end.
    Table {
        /// Which.
        table: TableKind,
        /// Entries that are added.
        entries: u32,
    },
}

impl Modifier {
    /// Networks that a RIP message holds.
    pub const MAX_NETWORKS: u32 = 25;
    /// The least and the most that [`Modifier::Broadcast::every`] may be.
    pub const EVERY: [u32; 2] = [2, 10_000];

    /// The part of the load that goes to the hardware broadcast address.
    pub fn broadcast_share(&self) -> f64 {
        match self {
            Self::Broadcast { every } if *every > 0 => 1.0 / f64::from(*every),
            _ => 0.0,
        }
    }
}

impl Traffic {
    /// The table that it goes through, where it has one.
    pub const fn table(&self) -> Option<TableFill> {
        match self.modifier {
            Some(Modifier::Table { table, entries }) => Some(TableFill { table, family: self.family, entries }),
            _ => None,
        }
    }

    /// First source port of the flows.
    pub const FIRST_PORT: u16 = 2000;
    /// The most flows: source ports from [`Traffic::FIRST_PORT`] on.
    pub const MAX_FLOWS: u32 = 65_536 - Self::FIRST_PORT as u32;
    /// The most networks of destinations.
    pub const MAX_NETWORKS: u32 = 256;

    /// The smallest frame with FCS that holds the headers and the signature: 64 for IPv4 and UDP, 82 for IPv6 and UDP.
    pub const fn min_bytes(&self) -> u32 {
        min_frame_bytes(self.family, self.transport, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_hundredth_frame_is_one_per_cent() {
        assert_eq!(Modifier::Broadcast { every: 100 }.broadcast_share(), 0.01);
        assert_eq!(Modifier::Routes { every_ms: 30_000, networks: 25 }.broadcast_share(), 0.0);
    }

    #[test]
    fn the_smallest_frame_is_that_of_the_generator() {
        assert_eq!(traffic(Family::Ipv4, Transport::Udp).min_bytes(), 64);
        assert_eq!(traffic(Family::Ipv6, Transport::Udp).min_bytes(), 82);
        assert_eq!(traffic(Family::Ipv4, Transport::TcpSyn).min_bytes(), 74);
        assert_eq!(traffic(Family::Ipv6, Transport::TcpSyn).min_bytes(), 94);
    }
}
