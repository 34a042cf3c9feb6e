//! How many samples of a trial are kept.

/// Keeps memory bounded: when too many samples are kept, every other one is dropped, and from then on only every other one is kept.
#[derive(Debug)]
pub(crate) struct Keep {
    max: usize,
    step: u64,
    seen: u64,
}

impl Keep {
    /// Samples of all streams together: about 1 KB each.
    const MAX_IN_ALL: usize = 40_000;
    /// Samples of one stream.
    const MAX: usize = 20_000;

    pub(crate) fn new(streams: usize) -> Self {
        // Even, so that after thinning the kept ones stay evenly spaced.
        let max = (Self::MAX_IN_ALL / streams.max(1)).clamp(200, Self::MAX) & !1;
        Self { max, step: 1, seen: 0 }
    }

    /// Whether the samples of this instant are kept; call it once per instant.
    pub(crate) fn keeps_next(&mut self) -> bool {
        let kept = self.seen.is_multiple_of(self.step);
        self.seen += 1;
        kept
    }

    /// Whether `kept` samples are too many; then call [`Keep::thin`] on each list.
    pub(crate) fn is_full(&mut self, kept: usize) -> bool {
        let full = kept >= self.max;
        if full {
            self.step *= 2;
        }
        full
    }

    /// One in this many instants is kept.
    pub(crate) const fn step(&self) -> u64 {
        self.step
    }

    /// Drops every other one, the first stays.
    pub(crate) fn thin<T>(list: &mut Vec<T>) {
        let mut index = 0;
        list.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_spacing_stays_even() {
        let mut keep = Keep { max: 8, step: 1, seen: 0 };
        let mut list = Vec::new();
        for at in 0..100 {
            if keep.keeps_next() {
                list.push(at);
                if keep.is_full(list.len()) {
                    Keep::thin(&mut list);
                }
            }
        }
        assert!(list.len() < 8);
        assert_eq!(list, (0..100).step_by(16).collect::<Vec<_>>());
        assert_eq!(keep.step(), 16);
        assert_eq!(Keep::new(1).max, 20_000);
        assert_eq!(Keep::new(256).max, 200);
    }
}
