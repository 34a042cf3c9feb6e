//! Which sequence numbers arrived, in what order: lost, duplicated, reordered and late are counted separately.
//!
//! A window of the last 65,536 numbers remembers each of them; a number that falls out without having arrived is lost. Reordering
//! and its extent are those of RFC 4737, sections 3 and 4.2; duplicates are those of RFC 5560 and do not count as reordered.

use std::collections::VecDeque;

const WORDS: u64 = 1024;
/// A number this far ahead is not of this stream.
const FARTHEST: u64 = 1 << 40;
/// No stream reaches this number: larger ones would overflow what is counted.
const LARGEST: u64 = 1 << 62;
/// Maximum number of in-order runs kept to compute the reordering extent.
const RUNS: usize = 1024;

/// A run of consecutive in-order arrivals: its first sequence number and its position among all arrivals.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u64,
    place: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Window {
    bits: Box<[u64]>,
    /// Index just past the newest word that the window has held.
    top: u64,
    /// The highest number that arrived, plus one.
    next: u64,
    distinct: u64,
    duplicates: u64,
    reordered: u64,
    extent_max: u64,
    late: u64,
    runs: VecDeque<Run>,
    /// Whether the next in order begins a new stretch.
    broken: bool,
    /// Losses in a row up to the window's lower end.
    losing: u64,
    bursts: u64,
    burst_max: u64,
}

impl Window {
    pub(crate) fn new() -> Self {
        let bits = vec![0; WORDS as usize].into_boxed_slice();
        Self { bits, runs: VecDeque::with_capacity(RUNS), broken: true, ..Self::default() }
    }

    /// Takes a number; false where it cannot be one of this stream.
    #[inline]
    pub(crate) fn arrive(&mut self, number: u64) -> bool {
        if number >= self.next {
            if number - self.next > FARTHEST || number > LARGEST {
                return false;
            }
            let word = number / 64;
            if word >= self.top {
                self.advance(word);
            }
            if self.broken || number != self.next {
                self.begin_run(number);
            }
            self.bits[(word % WORDS) as usize] |= 1 << (number % 64);
            self.next = number + 1;
            self.distinct += 1;
        } else {
            self.arrive_behind(number);
        }
        true
    }

    fn begin_run(&mut self, first: u64) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(Run { first, place: self.distinct });
        self.broken = false;
    }

    fn arrive_behind(&mut self, number: u64) {
        let word = number / 64;
        if word + WORDS < self.top {
            self.late += 1;
        } else {
            let slot = &mut self.bits[(word % WORDS) as usize];
            if *slot & 1 << (number % 64) != 0 {
                self.duplicates += 1;
                return;
            }
            *slot |= 1 << (number % 64);
        }
        self.reordered += 1;
        // Numbers grow from run to run, so the first run above it begins with the earliest that overtook it.
        let at = self.runs.partition_point(|run| run.first <= number);
        if let Some(run) = self.runs.get(at) {
            self.extent_max = self.extent_max.max(self.distinct - run.place);
        }
        self.distinct += 1;
        self.broken = true;
    }

    /// Makes `word` the newest.
    fn advance(&mut self, word: u64) {
        if word >= self.top + WORDS {
            // All that is remembered falls out, with a range that never arrived.
            for old in self.top.saturating_sub(WORDS)..self.top {
                self.settle(self.bits[(old % WORDS) as usize], 64);
            }
            self.losing += (word + 1 - WORDS - self.top) * 64;
            self.bits.fill(0);
            self.top = word + 1;
            return;
        }
        while self.top <= word {
            let slot = (self.top % WORDS) as usize;
            if self.top >= WORDS {
                self.settle(self.bits[slot], 64);
            }
            self.bits[slot] = 0;
            self.top += 1;
        }
    }

    /// Counts the losses of the `count` lowest numbers of a word that falls out.
    fn settle(&mut self, word: u64, count: u32) {
        if word == u64::MAX && count == 64 {
            self.end_burst();
            return;
        }
        let (mut rest, mut left) = (word, count);
        while left > 0 {
            let missing = rest.trailing_zeros().min(left);
            self.losing += u64::from(missing);
            left -= missing;
            rest = rest.checked_shr(missing).unwrap_or(0);
            let here = rest.trailing_ones().min(left);
            if here > 0 {
                self.end_burst();
                left -= here;
                rest = rest.checked_shr(here).unwrap_or(0);
            }
        }
    }

    fn end_burst(&mut self) {
        if self.losing > 0 {
            self.bursts += 1;
            self.burst_max = self.burst_max.max(self.losing);
            self.losing = 0;
        }
    }

    /// Ends the count: `total` numbers were sent, where that is known.
    pub(crate) fn finish(mut self, total: Option<u64>) -> Counted {
        let total = total.unwrap_or(0).max(self.next);
        for word in self.top.saturating_sub(WORDS)..self.top {
            let count = (self.next - word * 64).min(64) as u32;
            self.settle(self.bits[(word % WORDS) as usize], count);
        }
        self.losing += total - self.next;
        self.end_burst();
        Counted {
            distinct: self.distinct,
            duplicates: self.duplicates,
            lost: total.saturating_sub(self.distinct),
            reordered: self.reordered,
            extent_max: self.extent_max,
            late: self.late,
            bursts: self.bursts,
            burst_max: self.burst_max,
            next: self.next,
        }
    }

    /// Missing below the highest number so far; some may still arrive.
    #[inline]
    pub(crate) const fn missing(&self) -> u64 {
        self.next.saturating_sub(self.distinct)
    }

    #[inline]
    pub(crate) const fn distinct(&self) -> u64 {
        self.distinct
    }

    #[inline]
    pub(crate) const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    #[inline]
    pub(crate) const fn reordered(&self) -> u64 {
        self.reordered
    }
}

/// The result of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counted {
    pub(crate) distinct: u64,
    pub(crate) duplicates: u64,
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) extent_max: u64,
    pub(crate) late: u64,
    pub(crate) bursts: u64,
    pub(crate) burst_max: u64,
    /// The highest number that arrived, plus one.
    pub(crate) next: u64,
}

/// Numbers of any order, for `fuzz/`: what is counted must add up.
#[doc(hidden)]
pub fn count_any(numbers: impl Iterator<Item = u64>) {
    let mut window = Window::new();
    let taken = numbers.filter(|number| window.arrive(*number)).count() as u64;
    assert_eq!(window.distinct() + window.duplicates(), taken);
    let counted = window.finish(None);
    assert!(counted.lost <= counted.next && counted.reordered + counted.late <= 2 * taken);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: u64 = WORDS * 64;

    fn count(numbers: impl IntoIterator<Item = u64>, total: Option<u64>) -> Counted {
        let mut window = Window::new();
        for number in numbers {
            assert!(window.arrive(number));
        }
        window.finish(total)
    }

    #[test]
    fn in_order_nothing_is_wrong() {
        let counted = count(0..200_000, Some(200_000));
        assert_eq!(counted, Counted { distinct: 200_000, next: 200_000, ..Counted::default() });
    }

    #[test]
    fn losses_and_their_bursts() {
        // Missing: 0; 10 to 14; 63 to 65; 99,000 to 198,999 (beyond the window); the last two of 200,000.
        let missing =
            |n: &u64| *n == 0 || (10..15).contains(n) || (63..66).contains(n) || (99_000..199_000).contains(n);
        let counted = count((0..199_998).filter(|n| !missing(n)), Some(200_000));
        assert_eq!((counted.lost, counted.bursts, counted.burst_max), (100_011, 5, 100_000));
        assert_eq!((counted.reordered, counted.duplicates, counted.next), (0, 0, 199_998));
    }

    #[test]
    fn without_the_senders_word_the_tail_is_not_known() {
        assert_eq!(count(0..10, None).lost, 0);
        assert_eq!(count(0..10, Some(15)).lost, 5);
        // A total that contradicts the arrivals is ignored.
        assert_eq!(count(0..10, Some(5)), count(0..10, None));
        assert_eq!(count([], Some(7)), Counted { lost: 7, bursts: 1, burst_max: 7, ..Counted::default() });
    }

    #[test]
    fn a_duplicate_cancels_no_loss() {
        let counted = count([0, 1, 1, 3, 3, 3, 0], Some(4));
        assert_eq!((counted.distinct, counted.duplicates, counted.lost, counted.reordered), (3, 4, 1, 0));
    }

    #[test]
    fn reordering_as_rfc_4737_counts_it() {
        // Section 4.2.3: arrivals 1 2 3 7 8 9 4 5 6 have extents 3, 4 and 5.
        let counted = count([0, 1, 2, 6, 7, 8, 3, 4, 5], Some(9));
        assert_eq!((counted.reordered, counted.extent_max, counted.lost, counted.bursts), (3, 5, 0, 0));
        // One that comes 100 late among others in order.
        let counted = count((0..50).chain(51..151).chain([50]).chain(151..300), Some(300));
        assert_eq!((counted.reordered, counted.extent_max, counted.lost), (1, 100, 0));
        // Neighbours in turn: each second one is overtaken by one.
        let counted = count((0..1000).map(|n| n ^ 1), Some(1000));
        assert_eq!((counted.reordered, counted.extent_max), (500, 1));
    }

    #[test]
    fn who_comes_after_the_window_is_late() {
        let counted = count((1..=SLOTS + 128).chain([0]), None);
        assert_eq!((counted.late, counted.lost, counted.reordered, counted.distinct), (1, 0, 1, SLOTS + 129));
        let counted = count((1..=SLOTS - 64).chain([0]), None);
        assert_eq!((counted.late, counted.lost, counted.bursts), (0, 0, 0));
    }

    #[test]
    fn a_leap_is_a_loss_and_an_absurd_number_is_none() {
        let mut window = Window::new();
        assert!(window.arrive(3));
        assert!(window.arrive(1 << 30));
        assert!(!window.arrive(u64::MAX));
        assert_eq!(window.missing(), (1 << 30) - 1);
        let counted = window.finish(None);
        assert_eq!((counted.lost, counted.bursts, counted.burst_max), ((1 << 30) - 1, 2, (1 << 30) - 4));
    }

    #[test]
    fn any_order_adds_up() {
        // A permutation with losses and copies, by a small generator.
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for _ in 0..50 {
            let total = random() % 5000 + 1;
            let mut numbers: Vec<u64> = (0..total).filter(|_| random() % 10 > 0).collect();
            let distinct = numbers.len() as u64;
            for _ in 0..random() % 100 {
                if let Some(copy) = numbers.get(random() as usize % numbers.len().max(1)) {
                    numbers.push(*copy);
                }
            }
            for at in (1..numbers.len()).rev() {
                numbers.swap(at, at - (random() as usize % 20).min(at));
            }
            let counted = count(numbers.iter().copied(), Some(total));
            assert_eq!((counted.distinct, counted.lost), (distinct, total - distinct));
            assert_eq!(counted.duplicates, numbers.len() as u64 - distinct);
        }
    }
}
