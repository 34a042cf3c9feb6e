//! The kernel's answers that are no files: what is asked, how it is asked live, and the form in which a capture keeps it.
//!
//! The forms are plain JSON that a person can write: a capture may be made by hand.

mod ethtool;
pub(crate) mod fib;
pub(crate) mod links;
mod neighbours;
pub(crate) mod qdiscs;
mod routes;
pub(crate) mod rules;

pub use ethtool::{Ethtool, Statistics, Told};
pub use links::Link;
pub use neighbours::Neighbour;
pub use qdiscs::{Class, Qdisc, Qdiscs};
pub use routes::Route;
pub use rules::FilterDrops;

use crate::Missing;
use narrows_sys::netlink::{self, Family, Message, Socket};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A network device by its name.
    Link {
        /// Its name.
        device: String,
    },
    /// The route to a peer; without a peer the default route.
    Route {
        /// Its address.
        peer: Option<IpAddr>,
    },
    /// The neighbour entry of an address.
    Neighbour {
        /// The next hop.
        address: IpAddr,
        /// The device that it is behind.
        device: String,
    },
    /// Queueing disciplines and classes.
    Qdiscs {
        /// The device's name.
        device: String,
    },
    /// The driver and its settings.
    Ethtool {
        /// The device's name.
        device: String,
    },
    /// The driver's own counters.
    Statistics {
        /// The device's name.
        device: String,
    },
    /// How many `nf_tables` rules there are.
    FilterRules,
    /// What the `nf_tables` rules that drop have counted.
    FilterDrops,
}

/// What the kernel said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Question::Link`].
    Link(Link),
    /// To [`Question::Route`].
    Route(Route),
    /// To [`Question::Neighbour`].
    Neighbour(Neighbour),
    /// To [`Question::Qdiscs`].
    Qdiscs(Qdiscs),
    /// To [`Question::Ethtool`].
    Ethtool(Ethtool),
    /// To [`Question::Statistics`].
    Statistics(Statistics),
    /// To [`Question::FilterRules`].
    FilterRules(u64),
    /// To [`Question::FilterDrops`].
    FilterDrops(FilterDrops),
}

impl Question {
    /// The name of the answer's file below `kernel/` in a capture. A capture is made towards one peer, so peers are not part of it.
    #[must_use]
    pub fn file(&self) -> String {
        match self {
            Self::Link { device } => format!("link-{device}.json"),
            Self::Route { .. } => "route.json".to_owned(),
            Self::Neighbour { .. } => "neighbour.json".to_owned(),
            Self::Qdiscs { device } => format!("qdiscs-{device}.json"),
            Self::Ethtool { device } => format!("ethtool-{device}.json"),
            Self::Statistics { device } => format!("statistics-{device}.json"),
            Self::FilterRules => "filter-rules.json".to_owned(),
            Self::FilterDrops => "filter-drops.json".to_owned(),
        }
    }
}

/// Netlink sockets, opened on first use: a socket costs more than a question.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    route: Mutex<Option<Socket>>,
    netfilter: Mutex<Option<Socket>>,
}

impl Sockets {
    /// One request; `what` names it in the reason why there is no answer.
    fn request(
        &self,
        family: Family,
        what: &str,
        kind: u16,
        flags: u16,
        payload: &[u8],
    ) -> Result<Vec<Message>, Missing> {
        self.exchange(family, kind, flags, payload).map_err(|error| Missing::netlink(what, &error))
    }

    fn exchange(&self, family: Family, kind: u16, flags: u16, payload: &[u8]) -> netlink::Result<Vec<Message>> {
        let slot = if family == Family::Netfilter { &self.netfilter } else { &self.route };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let socket = match slot.as_mut() {
            Some(socket) => socket,
            None => slot.insert(Socket::open(family)?),
        };
        socket.request(kind, flags, payload)
    }
}

/// Asks the kernel of this host.
pub(crate) fn ask(sockets: &Sockets, question: &Question) -> Result<Answer, Missing> {
    Ok(match question {
        Question::Link { device } => Answer::Link(links::by_name(sockets, device)?),
        Question::Route { peer } => Answer::Route(routes::towards(sockets, *peer)?),
        Question::Neighbour { address, device } => Answer::Neighbour(neighbours::find(sockets, *address, device)?),
        Question::Qdiscs { device } => Answer::Qdiscs(qdiscs::of(sockets, device)?),
        Question::Ethtool { device } => Answer::Ethtool(ethtool::ask(device)?),
        Question::Statistics { device } => Answer::Statistics(ethtool::statistics(device)?),
        Question::FilterRules => Answer::FilterRules(rules::count(sockets)?),
        Question::FilterDrops => Answer::FilterDrops(rules::drops(sockets)?),
    })
}
