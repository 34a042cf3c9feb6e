//! The messages between agents and the controller.
//!
//! All of it is level-triggered: an agent says what it has, the controller what it should have. So a message that is lost, repeated or late
//! costs time and nothing else, whatever carries it.

use crate::schedule::fnv;
use narrows_model::run::mesh::{MeshPath, MeshState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Most outcomes in one message of an agent; the others wait.
pub const OUTCOMES_MAX: usize = 64;

/// An agent says who it is, what it found, and asks for work.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Poll {
    pub agent: Agent,
    /// Not acknowledged yet; [`OUTCOMES_MAX`] at most.
    pub outcomes: Vec<Outcome>,
    /// Orders that it has, and those whose outcome is still to come.
    pub working: Vec<Ticket>,
    /// The [`Admits::version`] that is in force there.
    pub admitted: u64,
    #[serde(default)]
    pub clock: Option<Clock>,
    #[serde(default)]
    pub settings: Settings,
}

/// What a host is set to and made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Over all of them; 0: nothing is known.
    pub sum: u64,
    /// Only where the controller asked for them.
    pub all: Option<BTreeMap<String, String>>,
}

impl Settings {
    pub fn of(all: BTreeMap<String, String>) -> Self {
        let words = all.iter().flat_map(|(key, value)| [key, value]);
        Self { sum: fnv(words.flat_map(|word| word.bytes().chain([0]))).max(1), all: Some(all) }
    }
}

/// The clock of a host when its agent polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    pub at_unix_ms: u64,
    /// By how much it may be out, as its kernel says (adjtimex(2)); `None`: nothing sets it.
    pub error_us: Option<u64>,
}

/// How an agent is loaded by others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub version: String,
    pub port: u16,
    /// Of its key, as in a token.
    pub fingerprint: String,
    /// The port of its reflector.
    pub stamp: u16,
    /// Another one after each start.
    pub started: String,
}

/// A test with its lease, by names that hold whatever becomes of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket {
    pub mesh: String,
    pub test: String,
    pub slot: u64,
    pub from: String,
    pub to: String,
    pub fence: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub ticket: Ticket,
    pub found: Found,
}

/// What a test found. Hosts are those of its ticket, whatever places are in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    Load(MeshState),
    Probe(MeshPath),
    /// What a diagnosis says in a sentence, or why there is none.
    Diagnosis(Result<String, String>),
}

/// What the controller answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Outcomes that need not be sent again.
    pub taken: Vec<Ticket>,
    pub orders: Vec<Order>,
    /// `None`: as they are there.
    pub admits: Option<Admits>,
    /// The next poll should have all settings.
    #[serde(default)]
    pub wants_settings: bool,
}

/// A test to make, once, by who opens its connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub ticket: Ticket,
    pub what: What,
    /// From now.
    pub in_ms: u64,
    pub lasts_ms: u64,
    /// It must not go on longer than this, from now.
    pub ends_in_ms: u64,
    /// The other host and its token, for this test alone.
    pub to: SocketAddr,
    pub token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// `down`: the other host sends.
    Load { down: bool },
    /// The same, diagnosed.
    Diagnose { down: bool },
    /// Packets to the reflector at this port of the other host; with its routers, if so.
    Probe { stamp: u16, trace: bool },
}

/// Whom an agent lets in now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admits {
    /// A sum over all of it.
    pub version: u64,
    /// Secrets of loads that others make.
    pub passes: Vec<String>,
    /// Whose packets are reflected.
    pub peers: Vec<IpAddr>,
}

impl Admits {
    /// Sorts them, and sums them up.
    pub(crate) fn of(mut passes: Vec<String>, mut peers: Vec<IpAddr>) -> Self {
        passes.sort_unstable();
        peers.sort_unstable();
        peers.dedup();
        let words = passes.iter().cloned().chain(peers.iter().map(ToString::to_string));
        let version = fnv(words.flat_map(|word| word.into_bytes().into_iter().chain([0])));
        Self { version, passes, peers }
    }
}
