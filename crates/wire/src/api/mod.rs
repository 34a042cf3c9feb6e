//! Requests, answers and events of the control API, version 1. `docs/api.md` describes them for users of curl.
//!
//! | Request | Answer |
//! | --- | --- |
//! | `GET /v1/hello` | [`Hello`] |
//! | `POST /v1/sessions` | a stream of [`Event`]s, one JSON object per line, as long as the session lives |
//! | `POST /v1/sessions/{id}/inventory` [`InventoryRequest`] | a [`narrows_model::Snapshot`] |
//! | `GET /v1/sessions/{id}/interfaces` | a list of [`narrows_model::InterfaceSample`]s |
//! | `POST /v1/sessions/{id}/trace` [`TraceRequest`] | a [`narrows_model::TraceRecord`] of the path back to the client |
//! | `POST /v1/sessions/{id}/connections` [`ConnectionsRequest`] | a list of [`narrows_model::ConnectionSample`]s |
//! | `POST /v1/sessions/{id}/trials` [`TrialRequest`] | [`TrialReady`] |
//! | `POST /v1/sessions/{id}/trials/begin` [`BeginRequest`] | nothing, when the server is ready: all streams are there, its counters are read |
//! | `POST /v1/sessions/{id}/trials/end` | nothing; the client has read its counters, the record comes as an event |
//! | `POST /v1/sessions/{id}/trials/stop` | nothing; the load ends early |
//! | `GET /v1/sessions/{id}/changes` | the session's [`narrows_model::Change`]s |
//! | `POST /v1/sessions/{id}/changes` [`ChangeRequest`] | the [`narrows_model::Change`] |
//! | `DELETE /v1/sessions/{id}/changes/{change}` | the [`narrows_model::Change`], undone |
//! | `POST /v1/sessions/{id}/changes/{change}/keep` | the [`narrows_model::Change`], which now outlives the session |
//!
//! What is refused is answered with an HTTP status and a [`Refusal`].

pub mod frames;

use narrows_model::{LoadPlan, LoadRecord, Progress, Setting, TracePlan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The largest body of a request.
pub const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The largest answer or event line that a client accepts: a long trial of many streams.
pub const MAX_ANSWER_BYTES: usize = 256 << 20;
/// The most connections of one request for their counters.
pub const MAX_CONNECTIONS: usize = 4096;
/// How often each side of a session sends a heartbeat: the client a newline in the request's body, the server an event.
/// Only the rhythm counts, not the round trip, so that a full queue on the path does not look like a failure.
pub const HEARTBEAT_MS: u64 = 250;
/// A client that was silent for longer, and of whose data nothing moves either, is gone: its session ends, its trial
/// stops, its changes are undone.
pub const CLIENT_SILENCE_MS: u64 = 6_000;
/// A server that was silent for longer, and of whose data nothing moves either, is gone. Longer than the client's, so
/// that the end that has changes to undo decides first.
pub const SERVER_SILENCE_MS: u64 = 9_000;

/// What the server permits this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Put load on the path.
    pub measure: bool,
    /// Read the whole inventory; without it, what a measurement needs.
    pub inventory: bool,
    /// Change settings of the host.
    pub tune: bool,
    /// The longest trial, in milliseconds.
    pub trial_most_ms: u64,
}

/// Who the server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    pub version: String,
    pub protocol: u16,
    /// The host's own name.
    pub host: String,
    /// The port of the data connections.
    pub data_port: u16,
    /// The address by which the client reached this host, where the server knows it (over ssh).
    #[serde(default)]
    pub data_address: Option<String>,
    /// What the client may do.
    pub permissions: Permissions,
    /// What this server can do, as words: `tcp`, `tune`, …
    pub capabilities: Vec<String>,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionUse {
    /// It puts load on the path and waits for its turn.
    #[default]
    Load,
    /// It only reads the inventory and does not wait.
    Look,
}

/// A pass: other hosts may measure with this server while the session lasts that asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassAnswer {
    /// Instead of that of the server's token.
    pub secret: String,
}

/// Asks for an inventory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryRequest {
    /// The peer's address as the client sees itself; used only where the server does not see it (over ssh).
    pub peer: Option<String>,
}

/// Asks for a trace of the path from the server to this client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRequest {
    /// As in [`InventoryRequest`].
    #[serde(default)]
    pub peer: Option<String>,
    /// The client's own plan; the target is the client, and what exceeds the server's limits is lowered.
    pub plan: TracePlan,
}

/// Asks for the counters of TCP connections between this client and the server's host, as that host has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsRequest {
    /// As in [`InventoryRequest`].
    pub peer: Option<String>,
    /// Which ones: of each the address of the client, then that of the server's host; at most [`MAX_CONNECTIONS`].
    pub connections: Vec<(SocketAddr, SocketAddr)>,
}

/// Asks for a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRequest {
    pub plan: LoadPlan,
    /// Whether of the server's host only the CPU times and the CPU quota are to be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub light: bool,
    /// The kernel and the CPUs of the client, as a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

/// The server waits for the trial's data connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialReady {
    /// The trial's number within the session.
    pub trial: u32,
    /// The key for the data hellos, in hexadecimal.
    pub key: String,
    /// The port of the data connections.
    pub data_port: u16,
    /// The plan as it will be run: the one asked for, within what this client may do.
    pub plan: LoadPlan,
    /// The kernel and the CPUs of the server: where they are those of the client, both ends can run on one core.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
}

/// Starts a trial whose streams are open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeginRequest {
    /// The cookie of each UDP stream, by its id: proves that this client receives where the server will send.
    pub cookies: BTreeMap<u32, u64>,
}

/// Asks for a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRequest {
    pub setting: Setting,
}

/// What happens in a session, one JSON object a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// Other sessions come first.
    Queued {
        /// From 1: how many turns to wait.
        position: u32,
        /// What it waits for, in a sentence.
        why: String,
    },
    /// The session may begin.
    Admitted {
        /// Its id: who knows it may use the session.
        session: String,
    },
    /// The server is alive.
    Beat,
    /// How far the server's end of a trial is.
    Progress { trial: u32, progress: Progress },
    /// What the server's end saw of a trial.
    Finished { trial: u32, record: Box<LoadRecord> },
    /// The server's end of a trial could not be done.
    Failed {
        trial: u32,
        /// Why, in a sentence.
        why: String,
    },
    /// The session is over; nothing follows.
    Ended {
        /// Why, in a sentence.
        why: String,
    },
}

impl Event {
    /// The line to send, its end included.
    /// Errors: where a number cannot be written as JSON.
    pub fn to_line(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line without its end. An event that a newer server may have added is `None`.
    /// Errors: where the line is no JSON object with an `event`, or a known event misses its fields.
    pub fn from_line(line: &[u8]) -> Result<Option<Self>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Tag {
            event: String,
        }
        const KNOWN: &[&str] = &["queued", "admitted", "beat", "progress", "finished", "failed", "ended"];
        let tag: Tag = serde_json::from_slice(line)?;
        if KNOWN.contains(&tag.event.as_str()) { serde_json::from_slice(line).map(Some) } else { Ok(None) }
    }
}

/// Why a request was refused, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No token came with the request.
    NoToken,
    /// A token came, but not this server's.
    WrongToken,
    /// The protocols do not meet.
    VersionMismatch,
    /// The queue is full, or this client may not have another session.
    Busy,
    /// The server does not let this client do that.
    NotAllowed,
    /// The request makes no sense.
    BadRequest,
    /// No such session, trial or change.
    NotFound,
    /// It was tried and did not work.
    Failed,
    /// A word of a newer server.
    #[serde(other)]
    Other,
}

/// A refused request: what every HTTP status but 200 carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: Reason,
    /// Why, and what to do, for users.
    pub message: String,
    /// The server's program version.
    pub version: String,
    pub protocol: u16,
}

/// Writes a trial's key for [`TrialReady`].
pub fn key_to_hex(key: &crate::Key) -> String {
    use std::fmt::Write as _;
    key.0.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads a trial's key.
pub fn key_from_hex(text: &str) -> Option<crate::Key> {
    // The digits are checked first: the parser of numbers would take a sign.
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(crate::Key(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_read_as_documented() {
        let line = Event::Queued { position: 2, why: "one load at a time".into() }.to_line().expect("json");
        assert_eq!(line, b"{\"event\":\"queued\",\"position\":2,\"why\":\"one load at a time\"}\n");
        assert_eq!(Event::from_line(b"{\"event\":\"beat\"}").expect("known"), Some(Event::Beat));
    }

    #[test]
    fn an_event_of_a_newer_server_is_ignored() {
        assert_eq!(Event::from_line(b"{\"event\":\"weather\",\"rain\":true}").expect("well formed"), None);
        assert!(Event::from_line(b"{\"event\":\"queued\"}").is_err());
        assert!(Event::from_line(b"not json").is_err());
    }

    #[test]
    fn a_refusal_of_a_newer_server_is_readable() {
        let text = r#"{"reason":"out-of-tea","message":"no tea","version":"9","protocol":9}"#;
        let refusal: Refusal = serde_json::from_str(text).expect("a refusal");
        assert_eq!(refusal.reason, Reason::Other);
    }

    proptest! {
        #[test]
        fn keys_round_trip(bytes in any::<[u8; 32]>()) {
            prop_assert_eq!(key_from_hex(&key_to_hex(&crate::Key(bytes))), Some(crate::Key(bytes)));
        }

        #[test]
        fn arbitrary_lines_never_panic(line in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Some(event)) = Event::from_line(&line) {
                prop_assert!(event.to_line().is_ok());
            }
        }

        #[test]
        fn arbitrary_text_is_a_key_only_if_it_is_hexadecimal(text in "\\PC{0,80}") {
            prop_assert_eq!(key_from_hex(&text).is_some(), text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()));
        }
    }
}
