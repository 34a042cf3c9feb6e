//! How much the audit log may grow in a second. No clock: time is an argument.

/// Bytes per second of all lines.
pub(super) const MAX_BYTES: usize = 10_000;
/// Of those, what strangers can cause.
const MAX_STRANGERS: usize = 4_000;
/// Of those, what all that change nothing can cause.
const MAX_ALL_BUT_CHANGES: usize = 8_000;
/// Kept for the line that counts the others.
pub(super) const RESERVE_BYTES: usize = 200;

/// Who can cause a line as often as they like, so that none hides what others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Those without a token.
    Stranger,
    /// Token holders, whatever they may do.
    Holder,
    /// A change of the host, and the server's own lines.
    Changed,
}

/// What was written in this second, and what was left out since the last line that said so.
#[derive(Debug, Default)]
pub(super) struct Limit {
    second: u64,
    bytes: usize,
    /// Of the lines that change nothing, strangers' included.
    unchanging: usize,
    strangers: usize,
    suppressed: u64,
}

impl Limit {
    /// Whether a line may be written; it is counted as suppressed if not.
    pub(super) fn admits(&mut self, second: u64, bytes: usize, class: Class) -> bool {
        self.begin(second);
        let unchanging = if class == Class::Changed { 0 } else { bytes };
        let strangers = if class == Class::Stranger { bytes } else { 0 };
        if self.bytes + bytes + RESERVE_BYTES > MAX_BYTES
            || self.unchanging + unchanging > MAX_ALL_BUT_CHANGES
            || self.strangers + strangers > MAX_STRANGERS
        {
            self.suppress();
            return false;
        }
        self.bytes += bytes;
        self.unchanging += unchanging;
        self.strangers += strangers;
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
            *self = Self { second, suppressed: self.suppressed, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_counted_and_hides_nothing() {
        let mut limit = Limit::default();
        let mut written = |class| (0..1_000).filter(|_| limit.admits(1, 100, class)).count();
        let counts = [Class::Stranger, Class::Holder, Class::Changed].map(&mut written);
        assert_eq!(counts, [40, 40, 18]);
        assert_eq!(counts.iter().sum::<usize>() * 100 + RESERVE_BYTES, MAX_BYTES);
        assert_eq!(limit.take_suppressed(1), None, "not before the next second");
        assert_eq!(limit.take_suppressed(2), Some(3_000 - 98));
        assert_eq!(limit.take_suppressed(3), None, "once");
        let written = (0..1_000).filter(|_| limit.admits(2, 100, Class::Changed)).count();
        assert!(written * 100 + 2 * RESERVE_BYTES <= MAX_BYTES + 100, "{written}");
    }
}
