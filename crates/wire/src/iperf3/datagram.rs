//! The datagrams of a UDP test: the two that open a stream, and the header of each that carries data.

/// What the client sends to open a stream, since 3.12: 4 bytes, little-endian.
const HELLO: u32 = 0x3637_3839;
/// And what the server replies.
const REPLY: u32 = 0x3938_3736;
/// The same before 3.12.
const OLD: (u32, u32) = (123_456_789, 987_654_321);

/// The smallest datagram: header and room for 64-bit counters.
pub const MIN_BYTES: u32 = 16;
/// The largest UDP payload over IPv4.
pub const MAX_BYTES: u32 = 65_507;

pub const fn hello() -> [u8; 4] {
    HELLO.to_le_bytes()
}

/// The reply to a datagram that opens a stream; `None`: it opens none.
pub fn reply(bytes: &[u8]) -> Option<[u8; 4]> {
    match u32::from_le_bytes(*bytes.first_chunk()?) {
        HELLO => Some(REPLY.to_le_bytes()),
        word if word == OLD.0 => Some(OLD.1.to_le_bytes()),
        _ => None,
    }
}

/// Whether this is the reply of a server, old or new.
pub fn is_reply(bytes: &[u8]) -> bool {
    bytes.len() == 4 && bytes.first_chunk().is_some_and(|word| [REPLY, OLD.1].contains(&u32::from_le_bytes(*word)))
}

/// The header of a datagram with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it was sent, by the sender's monotonic clock, in µs.
    pub sent_us: u64,
    /// From 1.
    pub sequence: u64,
}

impl Header {
    /// Bytes of a header.
    pub const fn bytes(wide: bool) -> usize {
        if wide { 16 } else { 12 }
    }

    /// Writes it; `wide`: the counter has 64 bits. A buffer that is too short stays as it is.
    #[inline]
    pub fn encode(&self, wide: bool, into: &mut [u8]) {
        let Some(into) = into.get_mut(..Self::bytes(wide)) else { return };
        {
            into[..4].copy_from_slice(&((self.sent_us / 1_000_000) as u32).to_be_bytes());
            into[4..8].copy_from_slice(&((self.sent_us % 1_000_000) as u32).to_be_bytes());
            match wide {
                true => into[8..].copy_from_slice(&self.sequence.to_be_bytes()),
                false => into[8..].copy_from_slice(&(self.sequence as u32).to_be_bytes()),
            }
        }
    }

    /// Reads it; `None`: too short.
    #[inline]
    pub fn decode(wide: bool, bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
        let sequence = if wide { u64::from_be_bytes(*bytes.get(8..)?.first_chunk()?) } else { word(8)? };
        Some(Self { sent_us: word(0)? * 1_000_000 + word(4)?, sequence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn old_and_new_clients_open_streams() {
        assert_eq!((&hello(), reply(b"9876")), (b"9876", Some(*b"6789")));
        assert_eq!(reply(&[0x15, 0xCD, 0x5B, 0x07]), Some([0xB1, 0x68, 0xDE, 0x3A]));
        assert!(is_reply(b"6789") && is_reply(&[0xB1, 0x68, 0xDE, 0x3A]));
        assert!(!is_reply(b"9876") && reply(b"98").is_none() && reply(b"6789").is_none());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(sent_us in 0..1_u64 << 40, sequence in 1..1_u64 << 31, wide: bool) {
            let header = Header { sent_us, sequence };
            let mut bytes = [0; 16];
            header.encode(wide, &mut bytes);
            prop_assert_eq!(Header::decode(wide, &bytes), Some(header));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..20), wide: bool) {
            prop_assert_eq!(Header::decode(wide, &bytes).is_some(), bytes.len() >= Header::bytes(wide));
        }
    }
}
