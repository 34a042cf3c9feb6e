//! What a counter claims to have dropped: a number or, where it counts batches, a range that other counters close.

use narrows_model::Place;

/// A stage's claim, in datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Claim {
    /// At least so many.
    pub(super) low: u64,
    /// At most so many.
    pub(super) high: u64,
    /// How many above `low` were assigned to it when the accounting was closed.
    pub(super) given: u64,
    /// How many may be of other traffic that shares the counter.
    pub(super) shared: u64,
    /// Whether the range was closed by a counter rather than by what was missing.
    pub(super) closed: bool,
    /// Whether a counter of packets of the whole host closed it, in which a few of others may be: a handshake, a probe.
    pub(super) near: bool,
    /// Whether a counter says so at all.
    pub(super) counted: bool,
}

impl Claim {
    pub(super) const fn exactly(n: u64) -> Self {
        Self { low: n, high: n, given: 0, shared: 0, closed: true, near: false, counted: true }
    }

    pub(super) const fn unknown() -> Self {
        Self { low: 0, high: 0, given: 0, shared: 0, closed: true, near: false, counted: false }
    }

    /// So many batches of one to `most` datagrams each.
    pub(super) const fn batches(n: u64, most: u64) -> Self {
        let most = if most == 0 { 1 } else { most };
        let high = n.saturating_mul(most);
        Self { low: n, high, given: 0, shared: 0, closed: high == n, near: false, counted: true }
    }

    /// The part that other traffic has in the counter: of `ours + others` packets that passed, `others` were not ours.
    pub(super) fn shared_with(mut self, ours: u64, others: u64) -> Self {
        let all = u128::from(ours) + u128::from(others);
        let part = (u128::from(self.low) * u128::from(others)).checked_div(all).unwrap_or(0);
        self.shared = self.shared.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        self
    }

    /// Narrows the range to a number that another counter gives, as far as the range lets it.
    pub(super) fn close_at(&mut self, n: u64) {
        if !self.closed {
            self.given = n.clamp(self.low, self.high) - self.low;
            (self.closed, self.near) = (true, true);
        }
    }

    /// Shifts the claim by the small difference of two counts, within its range; returns the remainder.
    pub(super) fn move_by(&mut self, few: i128) -> i128 {
        let now = i128::from(self.dropped());
        let then = (now + few).clamp(i128::from(self.low), i128::from(self.high).max(now));
        let moved = then - now;
        self.given = u64::try_from(then).unwrap_or(u64::MAX).saturating_sub(self.low);
        self.shared = self.shared.saturating_add(u64::try_from(moved.unsigned_abs()).unwrap_or(u64::MAX));
        few - moved
    }

    /// So many were of other traffic, as that traffic itself shows.
    pub(super) const fn give_back(&mut self, others: u64) {
        self.low = self.low.saturating_sub(others);
        self.high = self.high.saturating_sub(others);
        self.shared = self.shared.saturating_sub(others);
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.low.saturating_add(self.given)
    }

    /// By how much it may be wrong.
    pub(super) const fn uncertainty(&self) -> u64 {
        let open = if self.closed { 0 } else { self.given };
        let sum = self.shared.saturating_add(open);
        if sum < self.dropped() { sum } else { self.dropped() }
    }

    /// How many more it could take.
    const fn room(&self) -> u64 {
        if self.closed { 0 } else { self.high.saturating_sub(self.low).saturating_sub(self.given) }
    }
}

/// What is said of one stage before the accounts are closed.
pub(super) struct Entry {
    pub(super) id: &'static str,
    pub(super) at: Place,
    pub(super) claim: Claim,
    pub(super) source: String,
}

/// Gives `extra` to the claims that are still open, in proportion to their room. What none of them has room for is returned.
pub(super) fn close<'a>(claims: impl Iterator<Item = &'a mut Claim>, extra: u64) -> u64 {
    let mut open: Vec<&mut Claim> = claims.filter(|claim| claim.room() > 0).collect();
    let room: u128 = open.iter().map(|claim| u128::from(claim.room())).sum();
    if room == 0 || extra == 0 {
        return extra;
    }
    let taken = u128::from(extra).min(room);
    let mut left = taken;
    let count = open.len();
    for (nth, claim) in open.iter_mut().enumerate() {
        let part = if nth + 1 == count { left } else { taken * u128::from(claim.room()) / room };
        let part = u64::try_from(part).unwrap_or(u64::MAX).min(claim.room());
        claim.given = claim.given.saturating_add(part);
        left -= u128::from(part);
    }
    // Rounding may leave a few that another one still has room for.
    for claim in open {
        let part = u64::try_from(left).unwrap_or(u64::MAX).min(claim.room());
        claim.given = claim.given.saturating_add(part);
        left -= u128::from(part);
    }
    u64::try_from(u128::from(extra) - taken).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn batches_are_a_range_that_another_counter_closes() {
        let mut claim = Claim::batches(10, 44);
        assert_eq!((claim.dropped(), claim.uncertainty()), (10, 0));
        claim.close_at(390);
        assert_eq!((claim.dropped(), claim.uncertainty()), (390, 0));
        let mut beyond = Claim::batches(10, 44);
        beyond.close_at(500);
        assert_eq!(beyond.dropped(), 440, "no more than the batches hold");
        assert!(Claim::batches(10, 1).closed);
    }

    #[test]
    fn what_is_missing_goes_to_those_with_room() {
        let mut claims = [Claim::batches(10, 44), Claim::exactly(5), Claim::batches(10, 2)];
        assert_eq!(close(claims.iter_mut(), 44), 0);
        assert_eq!(claims.map(|claim| claim.given), [43, 0, 1]);
        assert_eq!(claims.map(|claim| claim.uncertainty()), [43, 0, 1], "given by what was missing, not by a counter");
        assert_eq!(close([Claim::exactly(5)].iter_mut(), 7), 7);
    }

    #[test]
    fn other_traffic_makes_a_counter_uncertain_by_its_part() {
        assert_eq!(Claim::exactly(1000).shared_with(900, 100).uncertainty(), 100);
        assert_eq!(Claim::exactly(1000).shared_with(500_000, 20).uncertainty(), 0);
        assert_eq!(Claim::exactly(1000).shared_with(0, 0).uncertainty(), 0);
    }

    proptest! {
        #[test]
        fn nothing_is_given_twice_or_beyond_the_room(parts in proptest::collection::vec((0_u64..1000, 1_u64..64), 0..6), extra: u32) {
            let mut claims: Vec<Claim> = parts.iter().map(|(n, most)| Claim::batches(*n, *most)).collect();
            let left = close(claims.iter_mut(), extra.into());
            let given: u64 = claims.iter().map(|claim| claim.given).sum();
            prop_assert_eq!(given + left, u64::from(extra));
            prop_assert!(claims.iter().all(|claim| claim.dropped() <= claim.high));
        }
    }
}
