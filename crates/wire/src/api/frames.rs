//! Requests of a forwarding benchmark on several hosts: the counters of a hop, and the ports of a tester on another host.
//! Only a server that was started with `--frames` sends frames.
//!
//! | Request | Answer |
//! | --- | --- |
//! | `POST /v1/sessions/{id}/links` [`LinksRequest`] | [`LinksAnswer`] |
//! | `POST /v1/sessions/{id}/frames/look` [`PortRequest`] | [`PortState`] |
//! | `POST /v1/sessions/{id}/frames/qualify` [`QualifyRequest`] | [`Qualified`] |
//! | `POST /v1/sessions/{id}/frames` [`FramesOrder`] | [`FramesStarted`] |
//! | `POST /v1/sessions/{id}/frames/{job}/wait` [`FramesWait`] | [`FramesProgress`] |
//! | `POST /v1/sessions/{id}/frames/{job}/stop` | nothing; a generator ends early |
//! | `DELETE /v1/sessions/{id}/frames/{job}` | [`FramesRecord`]; the job is over |

use narrows_model::host::device_state::DeviceState;
use narrows_model::host::hop::DropCount;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, Mac, ReceivePlan, ReceiveRecord};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The maximum wait of one [`FramesWait`]: a client repeats it, and so notices the end of either side.
pub const MAX_WAIT_MS: u64 = 1_000;
/// The maximum number of generators per order: a load and one that ends before it.
pub const MAX_GENERATORS: usize = 2;

/// Requests the counters of two interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinksRequest {
    pub input: String,
    pub output: String,
    /// Whether to include the host's state: its boot, interrupts, CPUs and link changes.
    #[serde(default)]
    pub state: bool,
}

/// The counters of one interface since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPackets {
    pub rx_packets: u64,
    pub tx_packets: u64,
}

/// The counters of two interfaces, and the drop counters of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum LinksAnswer {
    Read {
        /// The interface towards the generator.
        input: LinkPackets,
        /// The interface towards the receiver.
        output: LinkPackets,
        /// By reason, since the host began to count.
        drops: Vec<DropCount>,
        /// Whether this session's own packets pass one of the two interfaces, and are counted there.
        #[serde(default)]
        counts_itself: bool,
        /// The host's state, if it was requested.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<Box<DeviceState>>,
    },
    /// They could not be read.
    Missing {
        /// Why, in a sentence.
        why: String,
    },
}

/// Requests an interface that frames leave or enter through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRequest {
    pub device: String,
    /// The address to resolve to an Ethernet address, if any.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
}

/// An interface that frames can leave or enter through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortState {
    /// The interface's own Ethernet address.
    pub own: Mac,
    /// The gateway's Ethernet address, if one was named.
    pub gateway: Option<Mac>,
    /// CPUs that its host permits for generators.
    pub cpus: u32,
}

/// Requests the rates that a host can send and count alone, over a veth pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualifyRequest {
    pub traffic: Traffic,
    /// Their sizes with FCS.
    pub sizes: Vec<u32>,
    /// Their source and destination.
    pub addresses: [IpAddr; 2],
}

/// The rates that a host can send and count alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Qualified {
    /// Frames a second.
    pub pps: f64,
    /// How they were measured.
    pub method: String,
}

/// Requests that frames be sent or counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum FramesOrder {
    /// Send frames, all plans at the same time and through one interface.
    Generate {
        /// At most [`MAX_GENERATORS`].
        plans: Vec<GeneratePlan>,
    },
    Receive {
        plan: ReceivePlan,
        /// Whether the plan's intervals are kept.
        watched: bool,
    },
}

/// Frames are being sent or counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesStarted {
    /// The job's number within the session.
    pub job: u32,
}

/// Waits for the end of a generator, or until a receiver has counted this many frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesWait {
    /// Frames of a receiver.
    #[serde(default)]
    pub least: u64,
    /// Not longer than this, nor than [`MAX_WAIT_MS`].
    pub within_ms: u64,
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesProgress {
    /// Frames that a receiver counted so far; 0 for a generator.
    pub frames: u64,
    /// Whether a generator is done, or a receiver has counted the requested frames.
    pub over: bool,
}

/// The result of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "job")]
pub enum FramesRecord {
    /// One for each plan.
    Generated {
        /// In the order of the plans.
        sent: Vec<GenerateRecord>,
    },
    Received {
        record: Box<ReceiveRecord>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_documented() {
        let wait: FramesWait = serde_json::from_str(r#"{"within_ms": 500}"#).expect("a request");
        assert_eq!(wait, FramesWait { least: 0, within_ms: 500 });
        let look: PortRequest = serde_json::from_str(r#"{"device": "eth1", "gateway": "198.18.0.1"}"#).expect("one");
        assert_eq!(look.gateway, Some(IpAddr::from([198, 18, 0, 1])));
        let answer = r#"{"is":"missing","why":"there is no device r9"}"#;
        let read: LinksAnswer = serde_json::from_str(answer).expect("an answer");
        assert_eq!(serde_json::to_string(&read).expect("json"), answer);
        assert!(serde_json::from_str::<FramesOrder>(r#"{"order": "explode"}"#).is_err());
    }
}
