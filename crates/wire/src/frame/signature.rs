//! The first 16 bytes of a frame's payload, which identify it. Big-endian:
//!
//! ```text
//! 0      2        4                 10                16
//! | mark | stream | sequence number | time of sending |
//! ```
//!
//! The stream word holds the stream's number, 0 to 63, in the lower six bits, and the clock id of the timestamp in the upper
//! ten: the same for all processes of one machine since boot, and rarely equal for two machines.
//!
//! Sequence number and timestamp have 48 bits each: at 148.8 million frames per second the number lasts for three weeks; the
//! timestamp is the sender's `CLOCK_MONOTONIC` in nanoseconds modulo 2^48, which is 78 hours. A timestamp of 0 means that
//! this frame was not stamped.

use narrows_model::load::frames::SIGNATURE_BYTES;

/// The first two bytes, `nw`.
pub const MARK: u16 = 0x6e77;
/// Bytes of a signature.
pub const BYTES: usize = SIGNATURE_BYTES as usize;
/// Bits of a stream's number; the rest of its word is the clock id.
const STREAM_BITS: u32 = 6;
/// The number of streams.
pub const STREAMS: u16 = 1 << STREAM_BITS;
/// The number of clock ids.
pub const CLOCKS: u16 = 1 << (16 - STREAM_BITS);
/// The maximum of a 48-bit field.
pub const MASK: u64 = (1 << 48) - 1;

/// The content of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Signature {
    /// Of the worker that sent it, below [`STREAMS`].
    pub stream: u16,
    /// The clock id of the timestamp, below [`CLOCKS`]; 0: unknown.
    pub clock: u16,
    /// Of the frame in its stream, from 0, modulo 2^48.
    pub sequence: u64,
    /// By the sender's `CLOCK_MONOTONIC`, ns modulo 2^48; 0: not stamped.
    pub time: u64,
}

impl Signature {
    /// The timestamp for an instant, never 0, which means "not stamped".
    #[inline]
    pub const fn stamp(now_ns: u64) -> u64 {
        let time = now_ns & MASK;
        if time == 0 { 1 } else { time }
    }

    /// Time from sending to `now_ns` of the same clock, ns; negative if the clocks of two CPUs disagree. `None`:
    /// not stamped.
    #[inline]
    pub const fn latency_ns(&self, now_ns: u64) -> Option<i64> {
        if self.time == 0 {
            return None;
        }
        // Shifting the 48 bits to the top and back gives the difference its sign.
        let difference = now_ns.wrapping_sub(self.time) << 16;
        Some(difference.cast_signed() >> 16)
    }

    /// The bytes to send; sequence number and time truncated to 48 bits, stream and clock to their fields.
    #[inline]
    pub const fn encode(&self) -> [u8; BYTES] {
        let word = self.clock << STREAM_BITS | self.stream & (STREAMS - 1);
        let head = ((MARK as u128) << 16 | word as u128) << 96;
        let numbers = ((self.sequence & MASK) as u128) << 48 | (self.time & MASK) as u128;
        (head | numbers).to_be_bytes()
    }

    /// Parses the beginning of a payload; `None`: too short, or not a signature.
    #[inline]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let word = u128::from_be_bytes(*payload.first_chunk::<BYTES>()?);
        if (word >> 112) as u16 != MARK {
            return None;
        }
        let stream = (word >> 96) as u16;
        Some(Self {
            stream: stream & (STREAMS - 1),
            clock: stream >> STREAM_BITS,
            sequence: (word >> 48) as u64 & MASK,
            time: word as u64 & MASK,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_as_documented() {
        let signature = Signature { stream: 0x02, clock: 0x04, sequence: 0x0304_0506_0708, time: 0x090a_0b0c_0d0e };
        let bytes = [0x6e, 0x77, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        assert_eq!(signature.encode(), bytes);
        assert_eq!(Signature::decode(&bytes), Some(signature));
        assert_eq!(Signature::decode(&bytes[..15]), None);
        assert_eq!(Signature::decode(&[0; 16]), None);
    }

    #[test]
    fn latency_survives_the_turn_of_the_clock_and_may_be_negative() {
        let sent = |time| Signature { time, ..Signature::default() };
        assert_eq!(sent(0).latency_ns(5), None);
        assert_eq!(sent(Signature::stamp(1_000)).latency_ns(1_700), Some(700));
        assert_eq!(sent(Signature::stamp(1_000)).latency_ns(990), Some(-10));
        assert_eq!(sent(MASK).latency_ns(MASK + 3), Some(3));
        assert_eq!(sent(2).latency_ns(MASK), Some(-3));
        assert_eq!(Signature::stamp(MASK + 1), 1);
    }

    proptest! {
        #[test]
        fn a_signature_round_trips(
            stream in 0..STREAMS, clock in 0..CLOCKS, sequence in 0..=MASK, time in 0..=MASK
        ) {
            let signature = Signature { stream, clock, sequence, time };
            prop_assert_eq!(Signature::decode(&signature.encode()), Some(signature));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let marked = [&MARK.to_be_bytes()[..], &bytes[..]].concat();
            for bytes in [bytes, marked] {
                if let Some(signature) = Signature::decode(&bytes) {
                    prop_assert_eq!(&signature.encode()[..], &bytes[..BYTES]);
                }
            }
        }
    }
}
