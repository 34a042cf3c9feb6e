//! The datagrams of a UDP trial. All begin with the same header:
//!
//! ```text
//! 0       1      2        4                 12                20
//! | magic | kind | stream | sequence number | time of sending |
//! ```
//!
//! Numbers are big-endian; the time is the sender's wall clock in nanoseconds since the Unix epoch. What follows:
//!
//! | kind | from | sequence number | body |
//! | --- | --- | --- | --- |
//! | data | sender | from 0 | filling |
//! | hello | client | of the attempt | protocol (2), flow (1), 0 (1), key of the trial (32), filling |
//! | ok | server | of the hello | bytes of the hello (4), largest datagram the server may send back (4), cookie (8), filling |
//! | no | server | of the hello | a sentence |
//! | go | client | 0 | datagram size to use (4); repeated while data arrives, as feedback |
//! | fin | sender | how many were sent | – |
//! | fin-ack | receiver | of the fin | – |
//! | note | both | 0 | see [`crate::profile`] |
//!
//! A hello is padded to the size that is probed, and its ok to the same size. A refusal is never longer than the hello, so
//! the port amplifies nothing. The client returns the cookie on the control connection when it starts the trial: that proves that it
//! receives at the address of the stream (RFC 9000, section 8.1). Before that the server sends nothing but answers to hellos.

use crate::hello::Key;
use crate::version::{PROTOCOL, SPOKEN};
use narrows_model::Flow;
use std::ops::RangeInclusive;
use thiserror::Error;

/// The first byte: neither TLS, nor ASCII, nor the first byte of a data hello.
pub const MAGIC: u8 = 0xF3;
pub const HEADER_BYTES: usize = 20;
/// Bytes of a hello without filling.
pub const HELLO_BYTES: usize = HEADER_BYTES + 36;
/// The minimum size of a client's hello, so that a refusal has room for its sentence.
pub const HELLO_FILLED_BYTES: usize = 256;
/// Bytes of an ok without filling.
pub const OK_BYTES: usize = HEADER_BYTES + 16;
/// Characters of a refusal's sentence that a client reads.
const MAX_SENTENCE: usize = 512;
pub const GO_BYTES: usize = HEADER_BYTES + 4;

/// The kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Data,
    /// Requests a stream, and probes whether datagrams of this size pass.
    Hello,
    /// The stream exists, and this size passes.
    Ok,
    /// The stream is refused.
    No,
    /// The client is ready to receive.
    Go,
    /// The sender has sent its last datagram.
    Fin,
    /// The receiver has seen the fin.
    FinAck,
    /// What the ends of a path profile say to each other; see [`crate::profile`].
    Note,
}

impl Kind {
    const ALL: [Self; 8] = [Self::Data, Self::Hello, Self::Ok, Self::No, Self::Go, Self::Fin, Self::FinAck, Self::Note];

    const fn number(self) -> u8 {
        self as u8
    }
}

/// The header of every datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    /// Its stream, the same at both ends.
    pub stream: u16,
    /// See the table of the module.
    pub sequence: u64,
    /// By the sender's wall clock, ns since the Unix epoch.
    pub time_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProbeError {
    /// Not a narrows datagram.
    #[error("not a datagram of a trial")]
    NotOurs,
    /// Shorter than its kind requires; its length and the required one.
    #[error("the datagram has {0} bytes, but needs {1}")]
    Short(usize, usize),
    /// A protocol that is not spoken; its number.
    #[error("the hello is of protocol {0}, this is protocol {PROTOCOL}")]
    Protocol(u16),
    /// A kind or flow that this version does not know.
    #[error("the datagram has an unknown request")]
    Unknown,
}

impl Header {
    /// The bytes to send.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = MAGIC;
        bytes[1] = self.kind.number();
        bytes[2..4].copy_from_slice(&self.stream.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes
    }

    /// Parses the header of a datagram.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, ProbeError> {
        let Some(head) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(ProbeError::Short(bytes.len(), HEADER_BYTES));
        };
        let [magic, kind, s0, s1, n0, n1, n2, n3, n4, n5, n6, n7, t0, t1, t2, t3, t4, t5, t6, t7] = *head;
        if magic != MAGIC {
            return Err(ProbeError::NotOurs);
        }
        Ok(Self {
            kind: *Kind::ALL.get(usize::from(kind)).ok_or(ProbeError::Unknown)?,
            stream: u16::from_be_bytes([s0, s1]),
            sequence: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
            time_ns: u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
        })
    }

    /// A datagram of the header alone: fin, fin-ack.
    pub fn alone(self) -> Vec<u8> {
        self.encode().to_vec()
    }
}

/// The first message of a client on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The trial that it belongs to.
    pub key: Key,
    /// Of the stream, unique within the trial.
    pub stream: u16,
    /// Which way its data will go.
    pub flow: Flow,
    /// From 0; the answer repeats it.
    pub attempt: u64,
    /// By the client's wall clock, ns; the answer repeats it.
    pub time_ns: u64,
}

impl Hello {
    /// The bytes to send, of this program's own protocol, padded to `bytes`.
    pub fn encode(&self, bytes: usize) -> Vec<u8> {
        let Self { stream, attempt: sequence, time_ns, .. } = *self;
        let mut out = Header { kind: Kind::Hello, stream, sequence, time_ns }.alone();
        out.extend_from_slice(&PROTOCOL.to_be_bytes());
        out.extend_from_slice(&[u8::from(self.flow == Flow::Down), 0]);
        out.extend_from_slice(&self.key.0);
        out.resize(bytes.max(HELLO_BYTES), 0);
        out
    }

    /// Reads a hello, of any protocol that is spoken.
    /// Errors: what is wrong with it, or [`ProbeError::Unknown`] for another kind of datagram.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProbeError> {
        Self::decode_if(bytes, &SPOKEN)
    }

    fn decode_if(bytes: &[u8], spoken: &RangeInclusive<u16>) -> Result<Self, ProbeError> {
        let header = Header::decode(bytes)?;
        if header.kind != Kind::Hello {
            return Err(ProbeError::Unknown);
        }
        let short = ProbeError::Short(bytes.len(), HELLO_BYTES);
        let body = &bytes[HEADER_BYTES..];
        let protocol = body.first_chunk().map(|raw| u16::from_be_bytes(*raw)).ok_or(short)?;
        if !spoken.contains(&protocol) {
            return Err(ProbeError::Protocol(protocol));
        }
        let flow = match body.get(2).ok_or(short)? {
            0 => Flow::Up,
            1 => Flow::Down,
            _ => return Err(ProbeError::Unknown),
        };
        let key = body.get(4..36).and_then(|key| key.try_into().ok()).ok_or(short)?;
        let Header { stream, sequence: attempt, time_ns, .. } = header;
        Ok(Self { key: Key(key), stream, flow, attempt, time_ns })
    }

    /// The answer that opens the stream, as long as the hello. `largest`: the maximum size of a packet that the
    /// server may send back, 0 if unknown. `cookie`: what the client returns to prove that it receives.
    pub fn ok(&self, hello_bytes: usize, largest: u32, cookie: u64) -> Vec<u8> {
        let Self { stream, attempt: sequence, time_ns, .. } = *self;
        let mut out = Header { kind: Kind::Ok, stream, sequence, time_ns }.alone();
        out.extend_from_slice(&u32::try_from(hello_bytes).unwrap_or(u32::MAX).to_be_bytes());
        out.extend_from_slice(&largest.to_be_bytes());
        out.extend_from_slice(&cookie.to_be_bytes());
        out.resize(hello_bytes.max(OK_BYTES), 0);
        out
    }

    /// The answer that refuses it, no longer than the hello; `why` is truncated at a character boundary.
    pub fn no(&self, hello_bytes: usize, why: &str) -> Vec<u8> {
        refusal(
            Header { kind: Kind::No, stream: self.stream, sequence: self.attempt, time_ns: self.time_ns },
            hello_bytes,
            why,
        )
    }
}

/// A refusal to whatever had this header.
pub fn refusal(header: Header, request_bytes: usize, why: &str) -> Vec<u8> {
    let mut out = Header { kind: Kind::No, ..header }.alone();
    for c in why.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if out.len() + c.len_utf8() > request_bytes {
            break;
        }
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    out
}

/// The server's answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Ok {
        attempt: u64,
        /// Size of the hello that passed.
        hello_bytes: u32,
        /// The maximum size of a packet that the server may send back, by its own route; `None` if unknown.
        largest: Option<u32>,
        /// The proof of receipt, for the control connection.
        cookie: u64,
    },
    /// The stream is refused; the reason.
    No(String),
}

impl Reply {
    /// Parses an ok or a no for a stream.
    /// Errors: what is wrong with it, or [`ProbeError::Unknown`] for another kind of datagram or another stream.
    pub fn decode(bytes: &[u8], stream: u16) -> Result<Self, ProbeError> {
        let header = Header::decode(bytes)?;
        let body = &bytes[HEADER_BYTES..];
        match header.kind {
            Kind::Ok if header.stream == stream => {
                let Some([h0, h1, h2, h3, l0, l1, l2, l3, cookie @ ..]) = body.first_chunk::<16>() else {
                    return Err(ProbeError::Short(bytes.len(), OK_BYTES));
                };
                Ok(Self::Ok {
                    attempt: header.sequence,
                    hello_bytes: u32::from_be_bytes([*h0, *h1, *h2, *h3]),
                    largest: Some(u32::from_be_bytes([*l0, *l1, *l2, *l3])).filter(|bytes| *bytes > 0),
                    cookie: u64::from_be_bytes(*cookie),
                })
            }
            Kind::No if header.stream == stream => {
                let text = String::from_utf8_lossy(body);
                Ok(Self::No(text.chars().filter(|c| !c.is_control()).take(MAX_SENTENCE).collect()))
            }
            _ => Err(ProbeError::Unknown),
        }
    }
}

/// The client's message that it is ready to receive, with the datagram size to use.
pub fn go(stream: u16, datagram_bytes: u32) -> Vec<u8> {
    let mut out = Header { kind: Kind::Go, stream, sequence: 0, time_ns: 0 }.alone();
    out.extend_from_slice(&datagram_bytes.to_be_bytes());
    out
}

/// The size in a go.
pub fn go_bytes(bytes: &[u8]) -> Result<u32, ProbeError> {
    let body = bytes.get(HEADER_BYTES..).and_then(<[u8]>::first_chunk);
    body.map(|raw| u32::from_be_bytes(*raw)).ok_or(ProbeError::Short(bytes.len(), GO_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hellos() -> impl Strategy<Value = Hello> {
        (any::<[u8; 32]>(), any::<u16>(), any::<bool>(), any::<u64>(), any::<u64>()).prop_map(
            |(key, stream, up, attempt, time_ns)| Hello {
                key: Key(key),
                stream,
                flow: if up { Flow::Up } else { Flow::Down },
                attempt,
                time_ns,
            },
        )
    }

    proptest! {
        #[test]
        fn a_header_round_trips(kind in 0..8_usize, stream: u16, sequence: u64, time_ns: u64) {
            let header = Header { kind: Kind::ALL[kind], stream, sequence, time_ns };
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
        }

        #[test]
        fn a_hello_round_trips_with_any_padding(hello in hellos(), bytes in 0..9000_usize) {
            let encoded = hello.encode(bytes);
            prop_assert_eq!(encoded.len(), bytes.max(HELLO_BYTES));
            prop_assert_eq!(Hello::decode(&encoded), Ok(hello));
        }

        #[test]
        fn an_ok_is_as_long_as_the_hello_and_round_trips(hello in hellos(), bytes in HELLO_BYTES..9000, largest: u32, cookie: u64) {
            let ok = hello.ok(bytes, largest, cookie);
            prop_assert_eq!(ok.len(), bytes);
            let Ok(Reply::Ok { attempt, hello_bytes, largest: back, cookie: proof }) = Reply::decode(&ok, hello.stream) else {
                panic!("no ok");
            };
            prop_assert_eq!((attempt, hello_bytes as usize), (hello.attempt, bytes));
            prop_assert_eq!((back.unwrap_or(0), proof), (largest, cookie));
            prop_assert_eq!(Reply::decode(&ok, hello.stream.wrapping_add(1)), Err(ProbeError::Unknown));
        }

        #[test]
        fn a_refusal_is_never_longer_than_the_hello(hello in hellos(), bytes in HELLO_BYTES..600, why in "\\PC{0,400}") {
            let no = hello.no(bytes, &why);
            prop_assert!(no.len() <= bytes);
            let Ok(Reply::No(back)) = Reply::decode(&no, hello.stream) else { panic!("no refusal") };
            prop_assert!(why.starts_with(&back));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), kind in 0..9_u8) {
            let mut ours = bytes.clone();
            if let [magic, number, ..] = ours.as_mut_slice() {
                (*magic, *number) = (MAGIC, kind);
            }
            for bytes in [bytes, ours] {
                if let Ok(header) = Header::decode(&bytes) {
                    prop_assert_eq!(&header.encode()[..], &bytes[..HEADER_BYTES]);
                }
                if let Ok(hello) = Hello::decode(&bytes) {
                    prop_assert!(bytes.len() >= HELLO_BYTES);
                    prop_assert_eq!(Hello::decode(&hello.encode(bytes.len())), Ok(hello));
                }
                let _ = (Reply::decode(&bytes, 0), go_bytes(&bytes));
            }
        }
    }

    #[test]
    fn a_hello_of_another_protocol_reports_its_number_even_when_short() {
        let hello = Hello { key: Key([1; 32]), stream: 1, flow: Flow::Up, attempt: 0, time_ns: 0 };
        let mut bytes = hello.encode(0);
        bytes[20..22].copy_from_slice(&9_u16.to_be_bytes());
        assert_eq!(Hello::decode(&bytes[..22]), Err(ProbeError::Protocol(9)));
        assert_eq!(Hello::decode(&hello.encode(0)[..40]), Err(ProbeError::Short(40, HELLO_BYTES)));
    }

    #[test]
    fn a_hello_of_the_protocol_before_is_accepted_while_it_is_spoken() {
        let hello = Hello { key: Key([1; 32]), stream: 1, flow: Flow::Down, attempt: 2, time_ns: 3 };
        let decoded = [3_u16, 4, 5, 6].map(|protocol| {
            let mut bytes = hello.encode(0);
            bytes[20..22].copy_from_slice(&protocol.to_be_bytes());
            Hello::decode_if(&bytes, &(4..=5))
        });
        let refused = ProbeError::Protocol;
        assert_eq!(decoded, [Err(refused(3)), Ok(hello), Ok(hello), Err(refused(6))]);
    }

    #[test]
    fn a_go_carries_its_size() {
        assert_eq!(go_bytes(&go(3, 1472)), Ok(1472));
        assert_eq!(go_bytes(&go(3, 1472)[..22]), Err(ProbeError::Short(22, GO_BYTES)));
    }
}
