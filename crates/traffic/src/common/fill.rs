//! Payload without a pattern, so that nothing on the path compresses it.

/// Fills memory with the output of a xorshift generator (Marsaglia 2003).
pub fn fill(bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_ne_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_have_no_pattern() {
        let mut bytes = vec![0; 1 << 16];
        fill(&mut bytes);
        let mut counts = [0u32; 256];
        for &byte in &bytes {
            counts[usize::from(byte)] += 1;
        }
        // 256 expected of each value; a fair generator stays within 6 standard deviations of 16.
        assert!(counts.iter().all(|count| (160..352).contains(count)), "{counts:?}");
    }
}
