//! The reports of an end of a running trial, in bounded memory: the record of that end, should it be lost.

use narrows_model::Progress;

/// Samples that are kept.
const SAMPLES: usize = 1_600;
/// Reports that are kept, however many streams there are.
const LEAST: usize = 200;

/// Reports in the order of time. When there are too many, every other one is left out, and from then on only every other one is kept.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    kept: Vec<Progress>,
    /// The newest one, if it is not kept.
    newest: Option<Progress>,
    seen: usize,
    step: usize,
}

impl Reports {
    /// Takes the next one.
    pub(crate) fn push(&mut self, progress: Progress) {
        self.step = self.step.max(1);
        let nth = self.seen;
        self.seen += 1;
        if !nth.is_multiple_of(self.step) {
            self.newest = Some(progress);
            return;
        }
        self.newest = None;
        let most = SAMPLES / progress.streams.len().max(1);
        self.kept.push(progress);
        if self.kept.len() > most.max(LEAST) {
            let mut nth = 0..;
            let last = self.kept.len() - 1;
            self.newest = (last % 2 == 1).then(|| self.kept.pop()).flatten();
            self.kept.retain(|_| nth.next().is_some_and(|nth| nth % 2 == 0));
            self.step *= 2;
        }
    }

    /// All that are kept; the first and the newest are among them.
    pub(crate) fn into_kept(mut self) -> Vec<Progress> {
        self.kept.extend(self.newest);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_the_time_is_covered_evenly() {
        for count in [1, 2, 100, SAMPLES as u64 + 1, SAMPLES as u64 + 2, 50_001] {
            let mut reports = Reports::default();
            (0..count).for_each(|at_us| reports.push(Progress { at_us, streams: Vec::new() }));
            let kept: Vec<u64> = reports.into_kept().iter().map(|it| it.at_us).collect();
            assert!(kept.len() <= SAMPLES + 1, "{count}: {}", kept.len());
            assert_eq!((kept[0], kept[kept.len() - 1]), (0, count - 1), "{count}");
            let gaps: Vec<u64> = kept.windows(2).map(|two| two[1] - two[0]).collect();
            let most = gaps.iter().max().copied().unwrap_or(0);
            assert!(gaps.iter().rev().skip(1).all(|gap| *gap == most) && gaps.iter().all(|gap| *gap > 0), "{count}");
        }
    }
}
