//! How much the audit log may grow in a second. No clock: time is an argument.

/// Bytes per second of all lines.
pub(super) const MAX_BYTES: usize = 10_000;
/// Of those that strangers can cause, so that they cannot hide what others do.
const MAX_CHEAP_BYTES: usize = 4_000;
/// Kept for the line that counts the others.
pub(super) const RESERVE_BYTES: usize = 200;

/// What was written in this second, and what was left out since the last line that said so.
#[derive(Debug, Default)]
pub(super) struct Limit {
    second: u64,
    bytes: usize,
    cheap_bytes: usize,
    suppressed: u64,
}

impl Limit {
    /// Whether a line may be written; it is counted as suppressed if not.
    pub(super) fn admits(&mut self, second: u64, bytes: usize, cheap: bool) -> bool {
        self.begin(second);
        let fits = self.bytes + bytes + RESERVE_BYTES <= MAX_BYTES;
        if !fits || (cheap && self.cheap_bytes + bytes > MAX_CHEAP_BYTES) {
            self.suppress();
            return false;
        }
        self.bytes += bytes;
        if cheap {
            self.cheap_bytes += bytes;
        }
        true
    }

    /// Counts a line that was lost.
    pub(super) fn suppress(&mut self) {
        self.suppressed += 1;
    }

    /// Lines that were left out in earlier seconds, once.
    pub(super) fn take_suppressed(&mut self, second: u64) -> Option<u64> {
        if self.suppressed == 0 || second == self.second {
            return None;
        }
        self.begin(second);
        self.bytes += RESERVE_BYTES;
        Some(std::mem::take(&mut self.suppressed))
    }

    fn begin(&mut self, second: u64) {
        if second != self.second {
            (self.second, self.bytes, self.cheap_bytes) = (second, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_counted_and_hides_nothing() {
        let mut limit = Limit::default();
        let cheap = (0..1_000).filter(|_| limit.admits(1, 100, true)).count();
        assert_eq!(cheap, 40);
        let dear = (0..1_000).filter(|_| limit.admits(1, 100, false)).count();
        assert_eq!((cheap + dear) * 100 + RESERVE_BYTES, MAX_BYTES);
        assert_eq!(limit.take_suppressed(1), None, "not before the next second");
        assert_eq!(limit.take_suppressed(2), Some(2_000 - 98));
        assert_eq!(limit.take_suppressed(3), None, "once");
        let written = (0..1_000).filter(|_| limit.admits(2, 100, false)).count();
        assert!(written * 100 + 2 * RESERVE_BYTES <= MAX_BYTES + 100, "{written}");
    }
}
