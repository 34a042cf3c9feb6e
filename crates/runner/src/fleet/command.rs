//! What the thread that decides for a fleet receives.

use narrows_fleet::protocol::{Poll, Reply};
use narrows_sys::clock;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use tokio::sync::oneshot;

/// What the thread that decides receives.
pub(super) enum Event {
    Poll { host: String, from: Option<IpAddr>, poll: Poll, answer: oneshot::Sender<Reply> },
    Command(Command, oneshot::Sender<Result<serde_json::Value, String>>),
}

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
    /// What was found from one host to another in the last so long.
    History {
        from: String,
        to: String,
        last_ms: u64,
    },
    /// Tests of a mesh, or of all, now.
    Run {
        mesh: Option<String>,
    },
    Acknowledge {
        incident: u64,
        who: String,
    },
    /// Of an element, or of names that begin so (`*`), nothing is reported for so long.
    Mute {
        element: String,
        for_ms: u64,
    },
}

/// Milliseconds since the epoch.
pub(super) fn now_ms() -> u64 {
    clock::unix_us() / 1_000
}
