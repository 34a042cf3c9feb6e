//! What the network process asks of its helpers: a fixed list. Each order has a channel of its own, whose end is the end of what it
//! began.

use narrows_collect::Watched;
use narrows_model::Setting;
use narrows_model::load::frames::{GeneratePlan, ReceivePlan};
use narrows_sys::deputy::Wish;
use narrows_wire::api::frames::{LinksRequest, PortRequest, QualifyRequest};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;

/// Bytes of an order.
pub(super) const MAX_ORDER: usize = 256 << 10;
/// Bytes of an answer: records of long jobs.
pub(super) const MAX_ANSWER: usize = 256 << 20;
/// Orders at the same time; the server's own limits are below it.
pub(super) const MAX_ORDERS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Makes and undoes changes of this host.
    Tune,
    /// Reads what ordinary users may not, counts drops, forces socket buffers, and sends and counts raw frames.
    Watch,
}

impl Role {
    /// Its word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tune => "tune",
            Self::Watch => "watch",
        }
    }

    /// The role of a word.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Tune, Self::Watch].into_iter().find(|role| role.word() == word)
    }
}

/// What a helper may do, sent by the process that starts it before that one reads anything from the network.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// Where the journal is.
    pub(crate) state: PathBuf,
    /// Whether changes are allowed.
    pub(crate) allow_tune: bool,
    /// The devices that frames may use.
    pub(crate) frames: Vec<String>,
    pub(crate) port: u16,
    pub(crate) process: u32,
}

/// An order for [`Role::Tune`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TuneOrder {
    /// Makes a setting; answers with the change.
    Apply(Setting),
    /// Undoes a change of this helper; answers how it ended.
    Undo(String),
    /// Lets a change of this helper outlive it; answers with the change.
    Keep(String),
}

/// An order for [`Role::Watch`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WatchOrder {
    /// The inventory, for the route to a peer.
    Inventory(Option<IpAddr>),
    /// The counters, for the route to a peer.
    Counters(Option<IpAddr>),
    /// The interfaces with their traffic.
    Interfaces,
    /// The file of the named tokens, which has no secrets.
    Tokens,
    /// The counters of two interfaces; whether the peer's packets pass them.
    Links(LinksRequest, Option<IpAddr>),
    /// Counts until [`Word::Finish`].
    Count(Watched),
    /// Sets an option of the socket that comes with it, or the priority of a thread.
    Socket(Wish),
    /// Looks at an interface for frames.
    Look(PortRequest),
    /// What this host alone can send and count.
    Qualify(QualifyRequest),
    /// Sends frames until their plans or [`Word::Finish`] end it; not by the device that leads to the peer.
    Generate(Vec<GeneratePlan>, Option<IpAddr>),
    /// Counts frames until [`Word::Finish`].
    Receive(ReceivePlan, bool, Option<IpAddr>),
}

/// A word to an order that goes on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// Waits until so many frames were counted, or for so many milliseconds.
    Wait(u64, u64),
    /// Ends it; the last answer follows.
    Finish,
}

/// Why an order was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refusal {
    /// The order is not allowed.
    NotAllowed(String),
    Failed(String),
    /// There is no such change of this helper.
    NoSuchChange,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAllowed(why) | Self::Failed(why) => f.write_str(why),
            Self::NoSuchChange => f.write_str("there is no such change of this server"),
        }
    }
}
