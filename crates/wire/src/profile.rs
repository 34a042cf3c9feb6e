//! What the two ends of a path profile say to each other, on the socket that carries the steps.
//!
//! The datagrams of a step are [`probe`](crate::probe) data whose sequence number holds the step (upper 32 bits) and the number in
//! it. Notes have the same header, the key of the trial, and a [`Note`] in JSON.
//!
//! ```text
//! 0         20    52
//! | header | key | JSON |
//! ```

use crate::hello::Key;
use crate::probe::{HEADER_BYTES, Header, Kind};
use narrows_model::{ProfileStep, StepReceived, StepSent};
use serde::{Deserialize, Serialize};

/// A longer note is not one of ours.
pub const MAX_NOTE_BYTES: usize = 4096;
/// Where the JSON begins.
const BODY: usize = HEADER_BYTES + 32;

/// A note. All may be lost, repeated or late: each says which step or probe it is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Note {
    /// Client: answer at once.
    Probe {
        /// Number of the probe.
        n: u32,
    },
    Echo {
        /// Number of the probe.
        n: u32,
        /// When the probe arrived, by the server's clock.
        arrived_ns: u64,
    },
    /// Client: send this step. Repeated until it arrives.
    Send { step: ProfileStep },
    /// Sender: the step is over.
    Sent {
        step: ProfileStep,
        /// What was sent of it.
        sent: StepSent,
    },
    /// Receiver: enough of this step was seen.
    Enough {
        /// Number of the step.
        id: u16,
    },
    /// Server: what arrived of a step, the answer to `sent`.
    Received {
        /// Number of the step.
        id: u16,
        #[serde(with = "account")]
        received: StepReceived,
    },
    /// Server: it does not send this step.
    Refused {
        /// Number of the step.
        id: u16,
        /// Why, in a sentence.
        why: String,
    },
    /// Client: the profile is over.
    End,
}

impl Note {
    /// The same without what a reader can do without, for paths that carry no datagram of its length.
    pub fn short(mut self) -> Self {
        if let Self::Received { received, .. } = &mut self {
            received.parts.clear();
        }
        self
    }
}

/// What arrived of a step, with its parts as bare numbers: under an MTU of 1,280 bytes, which each path of IPv6 has, it is one packet.
mod account {
    use narrows_model::{StepPart, StepReceived};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(received: &StepReceived, to: S) -> Result<S::Ok, S::Error> {
        let parts = received.parts.iter().map(|part| (part.from, part.received, part.last_ns, part.delay_ns));
        let parts: Vec<(u32, u32, u64, i64)> = parts.collect();
        (StepReceived { parts: Vec::new(), ..received.clone() }, parts).serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<StepReceived, D::Error> {
        let (received, parts) = <(StepReceived, Vec<(u32, u32, u64, i64)>)>::deserialize(from)?;
        let part = |(from, received, last_ns, delay_ns)| StepPart { from, received, last_ns, delay_ns };
        Ok(StepReceived { parts: parts.into_iter().map(part).collect(), ..received })
    }
}

/// Encodes a note, with the sender's clock in its header.
pub fn encode(note: &Note, key: &Key, time_ns: u64) -> Vec<u8> {
    let mut bytes = Header { kind: Kind::Note, stream: 0, sequence: 0, time_ns }.alone();
    bytes.extend_from_slice(&key.0);
    // A note is plain data: it always has a JSON form.
    bytes.extend(serde_json::to_vec(note).unwrap_or_default());
    bytes
}

/// Decodes a note of this trial and the sender's clock; `None` for anything else.
pub fn decode(bytes: &[u8], key: &Key) -> Option<(Note, u64)> {
    let header = Header::decode(bytes).ok()?;
    if header.kind != Kind::Note || bytes.len() > MAX_NOTE_BYTES || bytes.get(HEADER_BYTES..BODY)? != key.0 {
        return None;
    }
    Some((serde_json::from_slice(bytes.get(BODY..)?).ok()?, header.time_ns))
}

/// The header of a datagram of a step.
pub const fn data(step: u16, n: u32, time_ns: u64) -> Header {
    Header { kind: Kind::Data, stream: 0, sequence: (step as u64) << 32 | n as u64, time_ns }
}

/// The step and the number in it of a datagram's header; `None` where it is none of a step.
pub fn of_step(header: &Header) -> Option<(u16, u32)> {
    let step = u16::try_from(header.sequence >> 32).ok()?;
    (header.kind == Kind::Data).then_some((step, header.sequence as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notes_pass_with_their_key_only() {
        let step = ProfileStep { id: 3, datagrams: 100, datagram_bytes: 1472, gap_ns: 50, stop_above_us: 8_000 };
        let note = Note::Sent { step, sent: StepSent { datagrams: 90, span_ns: 5, late_ns: 1 } };
        let bytes = encode(&note, &Key([7; 32]), 42);
        assert_eq!(decode(&bytes, &Key([7; 32])), Some((note, 42)));
        assert_eq!(decode(&bytes, &Key([8; 32])), None);
        let full = StepReceived {
            parts: vec![
                narrows_model::StepPart { last_ns: u64::MAX / 2, delay_ns: i64::MIN / 2, ..Default::default() };
                16
            ],
            ..StepReceived::default()
        };
        let note = Note::Received { id: 9, received: full };
        let bytes = encode(&note, &Key([7; 32]), 42);
        assert!(bytes.len() < MAX_NOTE_BYTES);
        assert_eq!(decode(&bytes, &Key([7; 32])), Some((note, 42)));
    }

    #[test]
    fn the_account_of_a_step_is_one_packet_on_every_path_of_ipv6() {
        // A second of a step, between the clocks of two hosts of which one runs for years.
        let delay_ns = -100_000_000_000_000_000_i64;
        let part = narrows_model::StepPart { from: 50_000, received: 3_000, last_ns: 1_000_000_000, delay_ns };
        let received = StepReceived {
            datagrams: 50_000,
            span_ns: 1_000_000_000,
            first_missing: Some(10_000),
            min_delay_ns: delay_ns,
            delays_ns: [delay_ns; 3],
            parts: vec![part; StepReceived::PARTS as usize],
            ..StepReceived::default()
        };
        let note = Note::Received { id: 300, received };
        let long = encode(&note, &Key([7; 32]), 42).len();
        assert!(long <= 1_280 - 48, "{long}");
        // And on one of IPv4's least MTU without its parts (RFC 791: 576 bytes).
        let short = encode(&note.short(), &Key([7; 32]), 42).len();
        assert!(short <= 576 - 28, "{short}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, &Key([0; 32]));
        }

        #[test]
        fn any_json_behind_a_sound_header_is_decoded_or_not(json in r#"\{"(sent|send|received|probe|end)":.{0,200}\}?"#) {
            let mut bytes = encode(&Note::End, &Key([0; 32]), 1)[..BODY].to_vec();
            bytes.extend(json.into_bytes());
            if let Some((note, time_ns)) = decode(&bytes, &Key([0; 32])) {
                prop_assert_eq!(decode(&encode(&note, &Key([0; 32]), time_ns), &Key([0; 32])), Some((note, time_ns)));
            }
        }

        #[test]
        fn steps_and_numbers_survive(step in any::<u16>(), n in any::<u32>()) {
            prop_assert_eq!(of_step(&data(step, n, 1)), Some((step, n)));
        }
    }
}
