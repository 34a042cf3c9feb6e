//! The header of a request and of its response over UDP. The rest of either datagram is padding.
//!
//! ```text
//! 0       4      5          8           12         20
//! | magic | role | all zero | stream id | sequence |
//! ```
//!
//! Numbers are big-endian. A response repeats the stream and the sequence number of its request; its role distinguishes it
//! from a request that something on the path merely reflected.

use thiserror::Error;

/// The first bytes of each datagram: a byte that is not ASCII, then `nrq`.
pub const MAGIC: [u8; 4] = [0xF2, b'n', b'r', b'q'];
/// Bytes of the header.
pub const LENGTH: usize = 20;

/// The sender of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Request,
    Response,
}

/// The header of a request or response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub role: Role,
    pub stream: u32,
    /// The request's number, unique within its stream; requests may arrive in any order.
    pub sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// Shorter than a header.
    #[error("the datagram has {0} bytes, but a header needs {LENGTH}")]
    Short(usize),
    /// Not a narrows datagram.
    #[error("neither a request nor a response")]
    Foreign,
}

impl Header {
    /// The bytes to send.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = match self.role {
            Role::Request => 0,
            Role::Response => 1,
        };
        bytes[8..12].copy_from_slice(&self.stream.to_be_bytes());
        bytes[12..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// Parses the header of a datagram; ignores the rest.
    /// Errors: it is too short or not ours.
    pub fn decode(datagram: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; LENGTH] = datagram.first_chunk().ok_or(HeaderError::Short(datagram.len()))?;
        let [m0, m1, m2, m3, role, 0, 0, 0, s0, s1, s2, s3, sequence @ ..] = *bytes else {
            return Err(HeaderError::Foreign);
        };
        let role = match role {
            0 => Role::Request,
            1 => Role::Response,
            _ => return Err(HeaderError::Foreign),
        };
        if [m0, m1, m2, m3] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        Ok(Self { role, stream: u32::from_be_bytes([s0, s1, s2, s3]), sequence: u64::from_be_bytes(sequence) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn encoding_round_trips_with_trailing_bytes(
            response in any::<bool>(),
            stream in any::<u32>(),
            sequence in any::<u64>(),
            padding in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let role = if response { Role::Response } else { Role::Request };
            let header = Header { role, stream, sequence };
            let datagram = [header.encode().to_vec(), padding].concat();
            prop_assert_eq!(Header::decode(&datagram), Ok(header));
        }

        #[test]
        fn whatever_is_decoded_encodes_to_the_same_bytes(mut bytes in any::<[u8; LENGTH]>(), ours in any::<bool>()) {
            if ours {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4] %= 3;
                bytes[5..7].fill(0);
                bytes[7] %= 2;
            }
            match Header::decode(&bytes) {
                Ok(header) => prop_assert_eq!(header.encode(), bytes),
                Err(error) => prop_assert_eq!(error, HeaderError::Foreign),
            }
        }

        #[test]
        fn arbitrary_bytes_never_pass_unless_they_begin_as_ours(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if Header::decode(&bytes).is_ok() {
                prop_assert!(bytes.len() >= LENGTH && bytes.starts_with(&MAGIC));
            }
        }
    }

    #[test]
    fn short_and_foreign_datagrams_are_errors() {
        let bytes = Header { role: Role::Request, stream: 1, sequence: 2 }.encode();
        assert_eq!(Header::decode(&bytes[..19]), Err(HeaderError::Short(19)));
        assert_eq!(Header::decode(&[0; 20]), Err(HeaderError::Foreign));
    }
}
