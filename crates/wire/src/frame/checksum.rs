//! The Internet checksum (RFC 1071) in parts: the ones' complement sum does not depend on the order of its words, so the
//! constant part of a frame is summed once, and the variable part is added per frame.
//!
//! All sums are over big-endian 16-bit words, held as plain integers.

/// The sum of the words of `bytes`; an odd last byte counts as the upper half of a word. At most 0xffff, so that a caller may
/// add 65,536 more words to it before it overflows.
#[inline]
pub fn partial(bytes: &[u8]) -> u32 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    let mut sum = sum + last;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u32
}

/// The sum of eight words at once, held as one number: since 2^16 is 1 in this arithmetic, two words may be added as one of
/// 32 bits.
#[inline]
pub const fn wide(bits: u128) -> u32 {
    let low = (bits as u64 & 0xffff_ffff) + (bits as u64 >> 32);
    let high = ((bits >> 64) as u64 & 0xffff_ffff) + (bits >> 96) as u64;
    let sum = low + high;
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum as u32
}

/// A sum with its carries added back, as 16 bits. The checksum is its complement.
#[inline]
pub const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// What UDP's field holds: 0 would say that there is no checksum (RFC 768; RFC 8200, section 8.1).
#[inline]
pub const fn udp(sum: u32) -> u16 {
    match !fold(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the words 0001 f203 f4f5 f6f7 sum up to 2ddf0, which folds to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(0x2ddf0), 0xddf2);
        assert_eq!(fold(partial(&bytes)), 0xddf2);
        assert_eq!(partial(&[0x12]), 0x1200);
        assert_eq!(partial(&[]), 0);
        assert_eq!((wide(0), fold(wide(u128::MAX))), (0, 0xffff));
    }

    #[test]
    fn a_udp_checksum_is_never_zero() {
        assert_eq!(udp(0xffff), 0xffff);
        assert_eq!(udp(0x1234), !0x1234);
        assert_eq!(fold(u32::MAX), 0xffff);
    }

    proptest! {
        #[test]
        fn eight_words_at_once_are_eight_words(bits: u128) {
            prop_assert_eq!(fold(wide(bits)), fold(partial(&bits.to_be_bytes())));
        }

        #[test]
        fn parts_sum_up_to_the_whole(words in proptest::collection::vec(any::<[u8; 2]>(), 0..400), cut in 0..400_usize) {
            let bytes = words.as_flattened();
            let (head, tail) = bytes.split_at(2 * cut.min(words.len()));
            prop_assert_eq!(fold(partial(head) + partial(tail)), fold(partial(bytes)));
        }
    }
}
