//! Samples of a running generator.

use super::device::Device;
use super::pace::Share;
use super::tally::Counts;
use narrows_model::load::frames::{FrameInterval, OVERHEAD_BYTES, SentSoFar};

/// Turns the workers' counts into samples.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    device: &'a Device,
    shares: &'a [Share],
    sizes: &'a [u32],
    /// The device's counter of drops before the first frame; `None`: it has none.
    dropped: Option<u64>,
}

impl<'a> Samples<'a> {
    /// Before the first frame.
    pub(super) fn new(device: &'a Device, shares: &'a [Share], sizes: &'a [u32]) -> Self {
        Self { device, shares, sizes, dropped: device.dropped() }
    }

    /// Why nothing leaves any more, if so.
    pub(super) fn out_of_order(&self) -> Option<String> {
        self.device.out_of_order()
    }

    /// Frames handed over that the device dropped so far. Its counter includes frames that it refused
    /// before they were handed over.
    pub(super) fn refused(&self, counts: &[Counts]) -> Option<u64> {
        let now = self.device.dropped()?;
        let bounced: u64 = counts.iter().map(|counts| counts.bounced).sum();
        Some(now.saturating_sub(self.dropped?).saturating_sub(bounced))
    }

    /// While frames are sent, at this time after the first was due.
    pub(super) fn during(&self, since_ns: u64, counts: &[Counts]) -> FrameInterval {
        let due = |(share, counts): (&Share, &Counts)| share.due_so_far(since_ns, *counts);
        self.sample(since_ns / 1000, counts, self.shares.iter().zip(counts).map(due).sum(), self.refused(counts))
    }

    /// When all is over, and what was due and refused is known.
    pub(super) fn sample(&self, at_us: u64, counts: &[Counts], due: u64, refused: Option<u64>) -> FrameInterval {
        let wire_bytes = counts.iter().map(|counts| wire_bytes(self.sizes, counts.handed)).sum();
        FrameInterval {
            at_us,
            frames: counts.iter().map(|counts| counts.handed).sum(),
            sent: Some(SentSoFar {
                due,
                skipped: counts.iter().map(|counts| counts.skipped).sum(),
                refused,
                wire_bytes,
            }),
            got: None,
        }
    }
}

/// Bytes on the wire of the first `frames` frames of a worker, whose sizes take turns.
fn wire_bytes(sizes: &[u32], frames: u64) -> u64 {
    let of = |sizes: &[u32]| sizes.iter().map(|size| u64::from(size + OVERHEAD_BYTES)).sum::<u64>();
    let turn = sizes.len().max(1) as u64;
    let rest = usize::try_from(frames % turn).unwrap_or(0);
    (frames / turn).saturating_mul(of(sizes)).saturating_add(of(&sizes[..rest.min(sizes.len())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_counts_with_its_size() {
        assert_eq!(wire_bytes(&[64], 1_000), 84_000);
        assert_eq!(wire_bytes(&[64, 570, 1518], 4), 84 + 590 + 1538 + 84);
        assert_eq!(wire_bytes(&[64, 570, 1518], 0), 0);
        assert_eq!(wire_bytes(&[], 7), 0);
    }
}
