//! The data hello: the first bytes of every data connection, of fixed length, and the line that answers it.
//!
//! ```text
//! 0       4         6      7      8           12                                  44
//! | magic | protocol | kind | flow | stream id | key of the trial                  |
//! ```
//!
//! Numbers are big-endian. The first six bytes never change their meaning, so that every version can identify another one.
//! The server answers with one line: `ok`, or `no: ` and a sentence. After `ok` the connection belongs to the engine. A
//! transaction is the exception: its hello is the beginning of the request itself, and the answer is the response, or the
//! line with the refusal.

use crate::version::{Mismatch, PROTOCOL, SPOKEN};
use narrows_model::Flow;
use std::fmt;
use std::ops::RangeInclusive;
use thiserror::Error;

/// What a data connection begins with: a byte that is neither TLS nor ASCII, then `nrw`.
pub const MAGIC: [u8; 4] = [0xF2, b'n', b'r', b'w'];
/// Bytes of a hello.
pub const LENGTH: usize = 44;
/// Bytes that identify the protocol, in every version.
pub const VERSION_LENGTH: usize = 6;
/// The longest answer, its end of line included.
pub const MAX_ANSWER_BYTES: usize = 512;

/// The key of a trial: authorises opening its data connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The purpose of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Closed at once: measures the connection's set-up time.
    Probe,
    /// A stream of a trial.
    Stream {
        /// From 0, unique within the trial.
        id: u32,
        /// Which way its data goes.
        flow: Flow,
    },
    /// One transaction of a request/response trial (`TCP_CRR`): the request continues after the hello up to its
    /// size, the response follows without a line before it, and the server closes.
    Transaction {
        /// The requesting stream: from 0, unique within the trial.
        id: u32,
    },
}

/// The hello of a data connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataHello {
    /// The trial that it belongs to; all zero for a probe.
    pub key: Key,
    pub wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HelloError {
    /// Not a narrows hello.
    #[error("not a data hello")]
    NotAHello,
    /// A protocol that is not spoken; its number.
    #[error("the hello is of protocol {0}, this is protocol {PROTOCOL}")]
    Protocol(u16),
    /// Shorter than a hello.
    #[error("the hello has {0} bytes, but needs {LENGTH}")]
    Short(usize),
    /// A kind or flow that this version does not know.
    #[error("the hello has an unknown request")]
    Unknown,
}

impl DataHello {
    pub const fn probe() -> Self {
        Self { key: Key([0; 32]), wanted: Wanted::Probe }
    }

    /// The bytes to send, of this program's own protocol.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&PROTOCOL.to_be_bytes());
        let (kind, flow, id) = match self.wanted {
            Wanted::Probe => (0, 0, 0),
            Wanted::Stream { id, flow: Flow::Up } => (1, 0, id),
            Wanted::Stream { id, flow: Flow::Down } => (1, 1, id),
            Wanted::Transaction { id } => (2, 0, id),
        };
        bytes[6] = kind;
        bytes[7] = flow;
        bytes[8..12].copy_from_slice(&id.to_be_bytes());
        bytes[12..].copy_from_slice(&self.key.0);
        bytes
    }

    /// Parses a received hello, of any protocol that is spoken; ignores bytes beyond it.
    /// Errors: the protocol is checked before the length, since one that is not spoken may have another length.
    pub fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        Self::decode_if(bytes, &SPOKEN)
    }

    fn decode_if(bytes: &[u8], spoken: &RangeInclusive<u16>) -> Result<Self, HelloError> {
        let protocol = protocol_of(bytes)?;
        if !spoken.contains(&protocol) {
            return Err(HelloError::Protocol(protocol));
        }
        let bytes: &[u8; LENGTH] = bytes.first_chunk().ok_or(HelloError::Short(bytes.len()))?;
        let [_, _, _, _, _, _, kind, flow, id0, id1, id2, id3, key @ ..] = *bytes;
        let id = u32::from_be_bytes([id0, id1, id2, id3]);
        let wanted = match (kind, flow) {
            (0, 0) if id == 0 => Wanted::Probe,
            (1, 0) => Wanted::Stream { id, flow: Flow::Up },
            (1, 1) => Wanted::Stream { id, flow: Flow::Down },
            (2, 0) => Wanted::Transaction { id },
            _ => return Err(HelloError::Unknown),
        };
        Ok(Self { key: Key(key), wanted })
    }
}

/// The protocol of a hello, from its first [`VERSION_LENGTH`] bytes.
/// Errors: too short, or not a hello.
pub fn protocol_of(bytes: &[u8]) -> Result<u16, HelloError> {
    let head: &[u8; VERSION_LENGTH] = bytes.first_chunk().ok_or(HelloError::Short(bytes.len()))?;
    if head[..4] != MAGIC {
        return Err(HelloError::NotAHello);
    }
    Ok(u16::from_be_bytes([head[4], head[5]]))
}

/// The server's answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The connection belongs to the engine now.
    Ok,
    /// The connection will be closed; the reason.
    No(String),
}

impl Answer {
    /// The answer to a hello of another protocol. The program version of the client is not in a hello.
    pub fn mismatch(protocol: u16, own_version: &str) -> Self {
        let mismatch = Mismatch {
            client: "of another version".to_owned(),
            client_protocol: protocol,
            server: own_version.to_owned(),
            server_protocol: PROTOCOL,
        };
        Self::No(mismatch.to_string())
    }

    /// The line to send, its end included, never longer than [`MAX_ANSWER_BYTES`].
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Ok => b"ok\n".to_vec(),
            Self::No(why) => {
                let mut line = String::from("no: ");
                for c in why.chars().map(|c| if c.is_control() { ' ' } else { c }) {
                    if line.len() + c.len_utf8() >= MAX_ANSWER_BYTES {
                        break;
                    }
                    line.push(c);
                }
                line.push('\n');
                line.into_bytes()
            }
        }
    }

    /// Reads a line without its end; `None` where it is no answer.
    pub fn decode(line: &[u8]) -> Option<Self> {
        if line == b"ok" {
            return Some(Self::Ok);
        }
        let why = line.strip_prefix(b"no: ")?;
        let text = String::from_utf8_lossy(why);
        Some(Self::No(text.chars().filter(|c| !c.is_control()).take(MAX_ANSWER_BYTES).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hellos() -> impl Strategy<Value = DataHello> {
        let wanted = prop_oneof![
            Just(Wanted::Probe),
            (any::<u32>(), any::<bool>())
                .prop_map(|(id, up)| Wanted::Stream { id, flow: if up { Flow::Up } else { Flow::Down } }),
            any::<u32>().prop_map(|id| Wanted::Transaction { id }),
        ];
        (any::<[u8; 32]>(), wanted).prop_map(|(key, wanted)| DataHello { key: Key(key), wanted })
    }

    proptest! {
        #[test]
        fn encoding_round_trips(hello in hellos()) {
            prop_assert_eq!(DataHello::decode(&hello.encode()), Ok(hello));
        }

        #[test]
        fn whatever_is_decoded_encodes_to_the_same_bytes(bytes in any::<[u8; 32]>(), head in any::<[u8; 6]>()) {
            let mut whole = [0; LENGTH];
            whole[..4].copy_from_slice(&MAGIC);
            whole[4..6].copy_from_slice(&PROTOCOL.to_be_bytes());
            whole[6..12].copy_from_slice(&head);
            whole[12..].copy_from_slice(&bytes);
            // Small kinds and flows are the interesting ones.
            whole[6] %= 4;
            whole[7] %= 3;
            if let Ok(hello) = DataHello::decode(&whole) {
                prop_assert_eq!(hello.encode(), whole);
            }
        }

        #[test]
        fn arbitrary_bytes_never_pass_unless_they_begin_as_ours(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if DataHello::decode(&bytes).is_ok() {
                prop_assert!(bytes.len() >= LENGTH && bytes.starts_with(&MAGIC));
            }
        }

        #[test]
        fn an_answer_is_one_bounded_line_and_round_trips(why in "\\PC{0,700}") {
            let line = Answer::No(why.clone()).encode();
            prop_assert!(line.len() <= MAX_ANSWER_BYTES);
            prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
            let Some(Answer::No(back)) = Answer::decode(&line[..line.len() - 1]) else { panic!("no answer") };
            prop_assert!(why.starts_with(&back));
        }

        #[test]
        fn arbitrary_lines_do_not_panic(line in proptest::collection::vec(any::<u8>(), 0..600)) {
            if let Some(answer) = Answer::decode(&line) {
                prop_assert!(answer == Answer::Ok || line.starts_with(b"no: "));
            }
        }
    }

    #[test]
    fn a_hello_of_another_protocol_reports_its_number_even_when_short() {
        let mut bytes = DataHello::probe().encode();
        bytes[4..6].copy_from_slice(&9_u16.to_be_bytes());
        assert_eq!(DataHello::decode(&bytes[..VERSION_LENGTH]), Err(HelloError::Protocol(9)));
        let line = String::from_utf8(Answer::mismatch(9, "0.1.0").encode()).expect("text");
        assert!(line.contains("protocol 9") && line.contains("upgrade the server"), "{line}");
    }

    #[test]
    fn a_hello_of_the_protocol_before_is_accepted_while_it_is_spoken() {
        let decoded = [3_u16, 4, 5, 6].map(|protocol| {
            let mut bytes = DataHello::probe().encode();
            bytes[4..6].copy_from_slice(&protocol.to_be_bytes());
            DataHello::decode_if(&bytes, &(4..=5))
        });
        let (probe, refused) = (DataHello::probe, HelloError::Protocol);
        assert_eq!(decoded, [Err(refused(3)), Ok(probe()), Ok(probe()), Err(refused(6))]);
    }

    #[test]
    fn a_short_or_invalid_hello_is_an_error() {
        let bytes = DataHello::probe().encode();
        assert_eq!(DataHello::decode(&bytes[..20]), Err(HelloError::Short(20)));
        assert_eq!(DataHello::decode(b"GET / HTTP/1.1\r\n"), Err(HelloError::NotAHello));
        let mut strange = bytes;
        strange[6] = 9;
        assert_eq!(DataHello::decode(&strange), Err(HelloError::Unknown));
    }
}
