//! STAMP and TWAMP Light: the datagrams of a sender and its reflector (RFC 8762 section 4, RFC 5357 appendix I).
//!
//! Numbers are big-endian. A datagram is 44 bytes, or 112 with authentication (HMAC-SHA-256, first 16 bytes, over bytes 0 to 95);
//! what follows are extensions ([`tlv`], RFC 8972).

pub mod clock;
pub mod reflect;
pub mod tlv;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

/// The registered UDP port.
pub const PORT: u16 = 862;
/// Bytes of a datagram without authentication.
pub const OPEN: usize = 44;
pub const AUTHENTICATED: usize = 112;
/// Bytes of an authentication code.
const CODE: usize = 16;
/// Where the code is.
const CODE_AT: usize = AUTHENTICATED - CODE;

#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// From bytes; `None` where there are none.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty()).then(|| Self(bytes.to_vec()))
    }

    fn mac(&self, bytes: &[u8]) -> Hmac<Sha256> {
        // HMAC takes keys of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).unwrap_or_else(|_| Hmac::new(&Default::default()));
        mac.update(bytes);
        mac
    }

    fn code(&self, bytes: &[u8]) -> [u8; CODE] {
        let whole = self.mac(bytes).finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }

    fn verifies(&self, bytes: &[u8], code: &[u8]) -> bool {
        code.len() == CODE && self.mac(bytes).verify_truncated_left(code).is_ok()
    }
}

/// Bytes of a datagram before its extensions.
pub const fn base_bytes(key: Option<&Key>) -> usize {
    if key.is_some() { AUTHENTICATED } else { OPEN }
}

/// What a sender sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// From 0 on.
    pub sequence: u32,
    /// When it was sent, as [`clock::Clock::write`] has it.
    pub sent: u64,
    /// As [`clock::ClockError::write`] has it.
    pub error: u16,
    /// The session's id (RFC 8972 section 3); 0: none.
    pub session: u16,
}

/// What a reflector answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reply {
    /// Its own count, or that of the request where it keeps no state.
    pub sequence: u32,
    /// When it was sent.
    pub sent: u64,
    /// The error of the reflector's clock.
    pub error: u16,
    pub session: u16,
    /// When the request arrived.
    pub received: u64,
    pub of: Request,
    /// The TTL or hop limit with which the request arrived; 0 where the reflector does not tell.
    pub ttl: u8,
}

/// Why a datagram is none of STAMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StampError {
    #[error("the datagram has {0} bytes, but STAMP needs {1}")]
    Short(usize, usize),
    /// The code does not fit the key.
    #[error("the authentication code does not fit the key")]
    Forged,
}

/// Bytes at fixed places.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number<const N: usize>(&self, at: usize) -> u64 {
        self.0.get(at..at + N).unwrap_or_default().iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn u32(&self, at: usize) -> u32 {
        self.number::<4>(at) as u32
    }

    fn u16(&self, at: usize) -> u16 {
        self.number::<2>(at) as u16
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Where the fields are, without and with authentication.
struct Places {
    sent: usize,
    error: usize,
    session: usize,
    received: usize,
    of_sequence: usize,
    of_sent: usize,
    of_error: usize,
    ttl: usize,
}

const PLACES: [Places; 2] = [
    Places { sent: 4, error: 12, session: 14, received: 16, of_sequence: 24, of_sent: 28, of_error: 36, ttl: 40 },
    Places { sent: 16, error: 24, session: 26, received: 32, of_sequence: 48, of_sent: 64, of_error: 72, ttl: 80 },
];

fn places(key: Option<&Key>) -> &'static Places {
    &PLACES[usize::from(key.is_some())]
}

/// The fields of a datagram whose length and code are right, and its extensions.
fn opened<'a>(bytes: &'a [u8], key: Option<&Key>) -> Result<(Fields<'a>, &'a [u8]), StampError> {
    let least = base_bytes(key);
    let (base, rest) = bytes.split_at_checked(least).ok_or(StampError::Short(bytes.len(), least))?;
    let whole = key.is_none_or(|key| key.verifies(&base[..CODE_AT], &base[CODE_AT..]));
    if whole { Ok((Fields(base), rest)) } else { Err(StampError::Forged) }
}

/// A datagram with the fields that both kinds have.
fn headed(key: Option<&Key>, sequence: u32, sent: u64, error: u16, session: u16) -> Vec<u8> {
    let (at, mut bytes) = (places(key), vec![0; base_bytes(key)]);
    put(&mut bytes, 0, &sequence.to_be_bytes());
    put(&mut bytes, at.sent, &sent.to_be_bytes());
    put(&mut bytes, at.error, &error.to_be_bytes());
    put(&mut bytes, at.session, &session.to_be_bytes());
    bytes
}

fn sealed(mut base: Vec<u8>, key: Option<&Key>, extensions: &[u8]) -> Vec<u8> {
    if let Some(key) = key {
        let code = key.code(&base[..CODE_AT]);
        put(&mut base, CODE_AT, &code);
    }
    base.extend_from_slice(extensions);
    base
}

impl Request {
    pub fn encode(&self, key: Option<&Key>, extensions: &[u8]) -> Vec<u8> {
        sealed(headed(key, self.sequence, self.sent, self.error, self.session), key, extensions)
    }

    /// From a datagram, with its extensions.
    pub fn decode<'a>(bytes: &'a [u8], key: Option<&Key>) -> Result<(Self, &'a [u8]), StampError> {
        let (fields, rest) = opened(bytes, key)?;
        let at = places(key);
        let request = Self {
            sequence: fields.u32(0),
            sent: fields.number::<8>(at.sent),
            error: fields.u16(at.error),
            session: fields.u16(at.session),
        };
        Ok((request, rest))
    }
}

impl Reply {
    /// Whether a datagram that a reflector got is the reply of another one, which must not be answered: two would circulate it for ever.
    /// Where a request has zeros or random padding (RFC 5357 section 4.1.2), a reply has the time of its request's arrival, which is within
    /// seconds of its own time of sending (both formats have the seconds in the upper half).
    pub fn is_one(bytes: &[u8], key: Option<&Key>) -> bool {
        const APART_S: u64 = 10;
        Self::decode(bytes, key)
            .is_ok_and(|(reply, _)| reply.received != 0 && (reply.sent >> 32).abs_diff(reply.received >> 32) <= APART_S)
    }

    pub fn encode(&self, key: Option<&Key>, extensions: &[u8]) -> Vec<u8> {
        let mut bytes = headed(key, self.sequence, self.sent, self.error, self.session);
        let at = places(key);
        put(&mut bytes, at.received, &self.received.to_be_bytes());
        put(&mut bytes, at.of_sequence, &self.of.sequence.to_be_bytes());
        put(&mut bytes, at.of_sent, &self.of.sent.to_be_bytes());
        put(&mut bytes, at.of_error, &self.of.error.to_be_bytes());
        put(&mut bytes, at.ttl, &[self.ttl]);
        sealed(bytes, key, extensions)
    }

    /// From a datagram, with its extensions. A reflector of TWAMP Light that answers 41 bytes or more is understood, too.
    pub fn decode<'a>(bytes: &'a [u8], key: Option<&Key>) -> Result<(Self, &'a [u8]), StampError> {
        const LIGHT: usize = 41;
        let (fields, rest) = match key {
            None if (LIGHT..OPEN).contains(&bytes.len()) => (Fields(bytes), &[][..]),
            key => opened(bytes, key)?,
        };
        let at = places(key);
        let session = fields.u16(at.session);
        let of = Request {
            sequence: fields.u32(at.of_sequence),
            sent: fields.number::<8>(at.of_sent),
            error: fields.u16(at.of_error),
            session,
        };
        let reply = Self {
            sequence: fields.u32(0),
            sent: fields.number::<8>(at.sent),
            error: fields.u16(at.error),
            session,
            received: fields.number::<8>(at.received),
            of,
            ttl: fields.number::<1>(at.ttl) as u8,
        };
        Ok((reply, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> [Option<Key>; 2] {
        [None, Key::new(b"secret")]
    }

    /// Field by field as RFC 8762, figures 2 to 7, draw them.
    #[test]
    fn the_fields_are_where_the_rfc_has_them() {
        let of = Request { sequence: 0x0102_0304, sent: 0x1112_1314_1516_1718, error: 0x2122, session: 0x3132 };
        let reply = Reply {
            sequence: 0x4142_4344,
            sent: 0x5152_5354_5556_5758,
            error: 0x6162,
            session: of.session,
            received: 0x7172_7374_7576_7778,
            of,
            ttl: 0x81,
        };
        let open = reply.encode(None, &[]);
        let text: Vec<String> =
            open.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        assert_eq!(
            text.join(" "),
            "41424344 51525354 55565758 61623132 71727374 75767778 01020304 11121314 15161718 21220000 81000000"
        );
        let closed = reply.encode(Key::new(b"k").as_ref(), &[]);
        assert_eq!(closed.len(), AUTHENTICATED);
        for (at, length, from) in [
            (0, 4, 0),
            (16, 8, 4),
            (24, 2, 12),
            (26, 2, 14),
            (32, 8, 16),
            (48, 4, 24),
            (64, 8, 28),
            (72, 2, 36),
            (80, 1, 40),
        ] {
            assert_eq!(closed[at..at + length], open[from..from + length], "at {at}");
        }
        let zero = [4..16, 28..32, 40..48, 52..64, 74..80, 81..96];
        assert!(zero.into_iter().all(|range| closed[range].iter().all(|byte| *byte == 0)));
    }

    /// RFC 4231, test case 2, of which STAMP takes the first 16 bytes.
    #[test]
    fn the_code_is_hmac_sha_256() {
        let code = Key::new(b"Jefe").expect("a key").code(b"what do ya want for nothing?");
        assert_eq!(
            code,
            [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7]
        );
    }

    #[test]
    fn a_changed_byte_is_forged() {
        let key = Key::new(b"secret");
        let mut bytes = Request { sequence: 7, ..Request::default() }.encode(key.as_ref(), &[]);
        assert!(Request::decode(&bytes, key.as_ref()).is_ok());
        assert_eq!(Request::decode(&bytes, Key::new(b"other").as_ref()), Err(StampError::Forged));
        bytes[3] ^= 1;
        assert_eq!(Request::decode(&bytes, key.as_ref()), Err(StampError::Forged));
        assert_eq!(Request::decode(&bytes[..44], key.as_ref()), Err(StampError::Short(44, 112)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(sequence: u32, sent: u64, error: u16, session: u16, received: u64, ttl: u8, rest: Vec<u8>) {
            for key in keys() {
                let request = Request { sequence, sent, error, session };
                let bytes = request.encode(key.as_ref(), &rest);
                prop_assert_eq!(Request::decode(&bytes, key.as_ref()), Ok((request, &rest[..])));
                let reply = Reply { sequence, sent, error, session, received, of: request, ttl };
                let bytes = reply.encode(key.as_ref(), &rest);
                prop_assert_eq!(Reply::decode(&bytes, key.as_ref()), Ok((reply, &rest[..])));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            for key in keys() {
                let _ = Request::decode(&bytes, key.as_ref());
                let _ = Reply::decode(&bytes, key.as_ref());
            }
        }
    }
}
