//! What the thread that decides for a fleet receives.

use narrows_fleet::protocol::{Poll, Reply};
use narrows_model::run::fleet::{FleetPaths, FleetStatus};
use narrows_sys::clock;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use tokio::sync::oneshot;

/// What the thread that decides receives.
pub(super) enum Event {
    Poll {
        host: String,
        from: Option<IpAddr>,
        poll: Poll,
        answer: oneshot::Sender<Reply>,
    },
    Command(Command, oneshot::Sender<Result<serde_json::Value, String>>),
    /// How the fleet is, and if asked for which paths are tested.
    Look(bool, oneshot::Sender<Result<Later, String>>),
}

/// What is still to be worked out, elsewhere.
pub(super) type Later = Box<dyn FnOnce() -> (FleetStatus, FleetPaths) + Send>;

/// What a user asks of a controller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Status,
    /// The file is read again.
    Apply,
    /// No test begins for so long; 0: they do.
    Pause {
        for_ms: u64,
    },
    /// A host gets no tests, or gets them again.
    Drain {
        host: String,
        back: bool,
    },
    /// Tests of a mesh, or of all, now.
    Run {
        mesh: Option<String>,
        /// Only those between two hosts.
        #[serde(default)]
        between: Option<[String; 2]>,
    },
    Acknowledge {
        incident: u64,
        who: String,
    },
    /// What the tests of a path found in the last so long.
    Series {
        from: String,
        to: String,
        last_ms: u64,
    },
    /// Of an element, or of names that begin so (`*`), nothing is reported for so long.
    Mute {
        element: String,
        for_ms: u64,
    },
}

impl Command {
    /// What it changes, in words; `None`: it only reads.
    pub(super) fn changes(&self) -> Option<String> {
        Some(match self {
            Self::Status | Self::Series { .. } => return None,
            Self::Apply => "apply".to_owned(),
            Self::Pause { for_ms } => format!("pause for {} s", for_ms / 1_000),
            Self::Drain { host, back } => format!("{} {host}", if *back { "drain --back" } else { "drain" }),
            Self::Run { mesh, between } => {
                let between = between.as_ref().map_or_else(String::new, |[a, b]| format!(" between {a} and {b}"));
                format!("run {}{between}", mesh.as_deref().unwrap_or("all"))
            }
            Self::Acknowledge { incident, who } => format!("acknowledge {incident} by {who}"),
            Self::Mute { element, for_ms } => format!("mute {element} for {} s", for_ms / 1_000),
        })
    }
}

/// Milliseconds since the epoch.
pub(super) fn now_ms() -> u64 {
    clock::unix_us() / 1_000
}
