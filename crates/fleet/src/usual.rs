//! What a path usually does, from its own past. A fault that slows down all paths alike, or the only one, shows in no comparison with others.

use narrows_mesh::blame::SLOW;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Values that are kept.
const KEPT: usize = 32;
/// Fewer tell nothing.
const LEAST: usize = 8;
/// They are no closer, so that they are not all of one moment.
const APART_MS: u64 = 600_000;
/// What is otherwise for so long is usual now.
const NEW_MS: u64 = 3 * 24 * 3_600_000;

/// The last values of a path while it was well.
#[derive(Debug, Default)]
pub(crate) struct Usual {
    values: VecDeque<f64>,
    last_ms: u64,
    /// Since when it is worse.
    odd_since_ms: Option<u64>,
}

/// That a path is worse than usual.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Odd {
    since_ms: u64,
    last_ms: u64,
    usual: f64,
}

impl Usual {
    /// Takes a value. `is_worse`: than what was usual.
    pub(crate) fn take(&mut self, at_ms: u64, value: f64, is_worse: bool) {
        if is_worse {
            let since_ms = *self.odd_since_ms.get_or_insert(at_ms);
            if at_ms < since_ms + NEW_MS {
                return;
            }
            self.values.clear();
        }
        self.odd_since_ms = None;
        if self.values.is_empty() || at_ms >= self.last_ms + APART_MS {
            self.last_ms = at_ms;
            self.values.push_back(value);
            if self.values.len() > KEPT {
                self.values.pop_front();
            }
        }
    }

    /// Since when it is worse, and a quantile of what was usual; `None`: it is not.
    pub(crate) fn odd(&self, part: f64) -> Option<Odd> {
        Some(Odd { since_ms: self.odd_since_ms?, last_ms: self.last_ms, usual: self.quantile(part)? })
    }

    /// As it was when it became worse, as far as its edge tells.
    pub(crate) fn restored(odd: Odd) -> Self {
        Self { values: VecDeque::from([odd.usual; LEAST]), last_ms: odd.last_ms, odd_since_ms: Some(odd.since_ms) }
    }

    /// A quantile of its values; `None`: there are too few.
    pub(crate) fn quantile(&self, part: f64) -> Option<f64> {
        if self.values.len() < LEAST {
            return None;
        }
        narrows_stats::quantile(&self.values.iter().copied().collect::<Vec<_>>(), part)
    }
}

/// Whether a round trip takes longer than before: by half, and by more than a millisecond, which a busy host may take.
pub(crate) fn is_late(us: f64, before_us: f64) -> bool {
    due_us(before_us) < SLOW * us
}

/// No round trip that took so long before should take longer now.
pub(crate) fn due_us(before_us: f64) -> f64 {
    1.2 * before_us + 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_does_not_become_usual_for_days() {
        let mut usual = Usual::default();
        let take = |usual: &mut Usual, hour: u64, value: f64| {
            let is_worse = usual.quantile(0.1).is_some_and(|low| value < 0.8 * low);
            usual.take(hour * 3_600_000, value, is_worse);
            is_worse
        };
        assert!((0..20).all(|hour| !take(&mut usual, hour, 900.0 + hour as f64)));
        assert!((20..90).all(|hour| take(&mut usual, hour, 500.0)));
        assert_eq!(usual.quantile(0.0), Some(900.0));
        (90..93).for_each(|hour| _ = take(&mut usual, hour, 500.0));
        assert!((93..130).all(|hour| !take(&mut usual, hour, 500.0)));
        assert_eq!(usual.quantile(1.0), Some(500.0));
    }

    #[test]
    fn values_of_one_moment_count_once() {
        let mut usual = Usual::default();
        (0..100).for_each(|second| usual.take(second * 1_000, 1.0, false));
        assert_eq!(usual.quantile(0.5), None);
    }
}
