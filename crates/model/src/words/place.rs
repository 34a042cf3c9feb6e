//! Where something is, and which way traffic flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// Where on the measured system something is.
    pub enum Place {
        /// The host that the user asked from.
        Client = "client",
        /// The host that runs `narrows serve`.
        Server = "server",
        /// Everything between the two hosts' network interfaces.
        Path = "path",
    }
}

words! {
    /// The direction that the user asks for. `up` is client to server.
    #[derive(Default)]
    pub enum Direction {
        /// Client to server.
        #[default]
        Up = "up",
        /// Server to client.
        Down = "down",
        /// Up and down at the same time.
        Both = "both",
    }
}

impl Direction {
    /// The flows that this direction is made of.
    pub const fn flows(self) -> &'static [Flow] {
        match self {
            Self::Up => &[Flow::Up],
            Self::Down => &[Flow::Down],
            Self::Both => &[Flow::Up, Flow::Down],
        }
    }
}

/// One way of data through the path: what a single stream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// Client to server.
    #[default]
    Up,
    /// Server to client.
    Down,
}

impl Flow {
    /// The end that sends.
    pub const fn sender(self) -> Place {
        match self {
            Self::Up => Place::Client,
            Self::Down => Place::Server,
        }
    }

    /// The end that receives.
    pub const fn receiver(self) -> Place {
        match self {
            Self::Up => Place::Server,
            Self::Down => Place::Client,
        }
    }

    /// The other way.
    pub const fn reversed(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }

    /// The direction that consists of this flow alone.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Up => Direction::Up,
            Self::Down => Direction::Down,
        }
    }
}

words! {
    /// The address family of the measured path.
    pub enum Family {
        /// IPv4: 20 bytes of header without options.
        Ipv4 = "ipv4",
        /// IPv6: 40 bytes of header without extensions.
        Ipv6 = "ipv6",
    }
}

impl Family {
    /// That of an address.
    pub const fn of(address: &std::net::IpAddr) -> Self {
        match address {
            std::net::IpAddr::V4(_) => Self::Ipv4,
            std::net::IpAddr::V6(_) => Self::Ipv6,
        }
    }

    /// Bytes of the IP header without options or extension headers.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}
