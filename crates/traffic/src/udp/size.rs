//! The sizes of datagrams, and the largest that a path carries, where no ICMP reports it: a bounded search between a size that passed and one that
//! did not. Pure: the results of probes are arguments.

use narrows_model::{DatagramSizes, UdpPlan};

/// The sizes to send, one after another; `largest`: where the plan asks for the largest that the path carries.
pub(super) fn sizes(plan: &UdpPlan, largest: u32) -> Vec<u32> {
    match &plan.sizes {
        DatagramSizes::Largest => vec![largest],
        DatagramSizes::Sequence(sizes) => sizes.clone(),
    }
}

/// The largest of them.
pub(super) fn largest(sizes: &[u32]) -> u32 {
    sizes.iter().copied().max().unwrap_or(UdpPlan::MIN_BYTES)
}

/// Sizes that are tried at once.
const AT_ONCE: u32 = 8;
/// Rounds at most: 8 to the sixth is more than the largest datagram.
const ROUNDS: u32 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeSearch {
    works: u32,
    /// The largest that may pass.
    max: u32,
    rounds: u32,
}

impl SizeSearch {
    /// Between a size that works and one that vanishes.
    pub(crate) const fn new(works: u32, vanishes: u32) -> Self {
        Self { works, max: vanishes.saturating_sub(1), rounds: 0 }
    }

    /// The largest size that is known to work.
    pub(crate) const fn works(&self) -> u32 {
        self.works
    }

    /// The sizes to try next, ascending; `None`: it is over.
    pub(crate) fn sizes(&self) -> Option<Vec<u32>> {
        let left = self.max.saturating_sub(self.works);
        if left == 0 || self.rounds >= ROUNDS {
            return None;
        }
        let parts = left.min(AT_ONCE);
        Some(
            (1..=parts)
                .map(|part| self.works + (u64::from(left) * u64::from(part) / u64::from(parts)) as u32)
                .collect(),
        )
    }

    /// Takes the largest of the tried sizes that passed.
    pub(crate) fn tried(&mut self, largest: Option<u32>) {
        let sizes = self.sizes().unwrap_or_default();
        if let Some(largest) = largest {
            self.works = self.works.max(largest.min(self.max));
        }
        if let Some(above) = sizes.iter().find(|size| **size > self.works) {
            self.max = above - 1;
        }
        self.rounds += 1;
    }

    /// Takes the maximum that the kernel reports.
    pub(crate) fn bound(&mut self, max: u32) {
        self.max = self.max.min(max).max(self.works);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_found_in_a_few_rounds() {
        for vanishes in [1473, 8973, 65_508] {
            for truth in (256..vanishes).step_by(37) {
                let mut search = SizeSearch::new(256, vanishes);
                let mut rounds = 0;
                while let Some(sizes) = search.sizes() {
                    assert!(sizes.len() <= 8 && sizes.iter().all(|size| *size < vanishes));
                    search.tried(sizes.iter().copied().filter(|size| *size <= truth).max());
                    rounds += 1;
                }
                assert_eq!(search.works(), truth);
                assert!(rounds <= 6, "{rounds} for {truth} below {vanishes}");
            }
        }
    }

    #[test]
    fn it_ends_whatever_is_said() {
        let mut search = SizeSearch::new(256, 1473);
        search.bound(1400);
        for said in [Some(9000), None, None, Some(3)] {
            search.tried(said);
        }
        assert_eq!((search.works(), search.sizes()), (1400, None));
        assert_eq!(SizeSearch::new(256, 256).sizes(), None);
    }
}
