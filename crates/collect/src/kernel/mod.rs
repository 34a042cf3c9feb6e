//! Queries to the kernel that are not files: the queries, how to run them live, and the form in which a capture keeps the
//! answers.
//!
//! The forms are plain JSON, so that a capture can be written by hand.

mod ethtool;
pub(crate) mod fib;
mod forwarding;
pub(crate) mod links;
mod neighbours;
pub(crate) mod qdiscs;
mod routes;
pub(crate) mod rules;
mod sockets;
mod tunnels;
mod wifi;

pub use ethtool::{Ethtool, Reported, Statistics};
pub use forwarding::Forwarding;
pub use links::Link;
pub use neighbours::Neighbour;
pub use qdiscs::{Class, Qdisc, Qdiscs};
pub use routes::Route;
pub use rules::FilterDrops;
pub(crate) use sockets::Sockets;
pub use tunnels::Tunnel;
pub use wifi::Wifi;

use crate::Missing;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A network interface by its name.
    Link { device: String },
    /// The route to a peer; without a peer the default route.
    Route { peer: Option<IpAddr> },
    /// The route to the other end of a tunnel.
    Underlay { tunnel: String, remote: IpAddr },
    /// Where a bridge or VXLAN sends frames for an Ethernet address.
    Forwarding { device: String, address: String },
    /// The neighbour entry of an address.
    Neighbour {
        address: IpAddr,
        /// The interface that it is behind.
        device: String,
    },
    /// Queueing disciplines and classes.
    Qdiscs { device: String },
    /// The driver and its settings.
    Ethtool { device: String },
    /// The driver's own counters.
    Statistics { device: String },
    /// The station that a wireless interface talks to.
    Wifi { device: String },
    /// The number of `nf_tables` rules.
    FilterRules,
    /// The counters of the `nf_tables` rules that drop.
    FilterDrops,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Question::Link`].
    Link(Link),
    /// To [`Question::Route`] and [`Question::Underlay`].
    Route(Route),
    /// To [`Question::Forwarding`].
    Forwarding(Forwarding),
    /// To [`Question::Neighbour`].
    Neighbour(Neighbour),
    /// To [`Question::Qdiscs`].
    Qdiscs(Qdiscs),
    /// To [`Question::Ethtool`].
    Ethtool(Ethtool),
    /// To [`Question::Statistics`].
    Statistics(Statistics),
    /// To [`Question::Wifi`].
    Wifi(Wifi),
    /// To [`Question::FilterRules`].
    FilterRules(u64),
    /// To [`Question::FilterDrops`].
    FilterDrops(FilterDrops),
}

impl Question {
    /// The file name of the answer below `kernel/` in a capture. A capture has one peer, so peers are not part of
    /// the name.
    pub fn file(&self) -> String {
        match self {
            Self::Link { device } => format!("link-{device}.json"),
            Self::Route { .. } => "route.json".to_owned(),
            Self::Underlay { tunnel, .. } => format!("underlay-{tunnel}.json"),
            Self::Forwarding { device, .. } => format!("forwarding-{device}.json"),
            Self::Neighbour { .. } => "neighbour.json".to_owned(),
            Self::Qdiscs { device } => format!("qdiscs-{device}.json"),
            Self::Ethtool { device } => format!("ethtool-{device}.json"),
            Self::Statistics { device } => format!("statistics-{device}.json"),
            Self::Wifi { device } => format!("wifi-{device}.json"),
            Self::FilterRules => "filter-rules.json".to_owned(),
            Self::FilterDrops => "filter-drops.json".to_owned(),
        }
    }
}

/// Queries the kernel of this host.
pub(crate) fn ask(sockets: &Sockets, question: &Question) -> Result<Answer, Missing> {
    Ok(match question {
        Question::Link { device } => Answer::Link(links::by_name(sockets, device)?),
        Question::Route { peer } => Answer::Route(routes::towards(sockets, *peer)?),
        Question::Underlay { remote, .. } => Answer::Route(routes::towards(sockets, Some(*remote))?),
        Question::Forwarding { device, address } => Answer::Forwarding(forwarding::find(sockets, device, address)?),
        Question::Neighbour { address, device } => Answer::Neighbour(neighbours::find(sockets, *address, device)?),
        Question::Qdiscs { device } => Answer::Qdiscs(qdiscs::of(sockets, device)?),
        Question::Ethtool { device } => Answer::Ethtool(ethtool::ask(device)?),
        Question::Statistics { device } => Answer::Statistics(ethtool::statistics(device)?),
        Question::Wifi { device } => Answer::Wifi(wifi::of(sockets, device)?),
        Question::FilterRules => Answer::FilterRules(rules::count(sockets)?),
        Question::FilterDrops => Answer::FilterDrops(rules::drops(sockets)?),
    })
}

/// Decodes any bytes as each kind of the kernel's answers, for `fuzz/`.
#[doc(hidden)]
pub fn decode_any(bytes: &[u8]) {
    let message = narrows_sys::netlink::Message { kind: 0, payload: bytes.to_vec() };
    let _ = (links::decode(&message), neighbours::decode(&message), routes::decode(&message), wifi::decode(&message));
    let _ = (qdiscs::decode_qdisc(&message), qdiscs::decode_class(&message), rules::dropped(&message));
    let _ = forwarding::decode(&message);
    let _ = fib::is_entry(&message, std::net::Ipv4Addr::UNSPECIFIED, 0);
}
