//! One frame size of one traffic: what of the record is its own.

use crate::data::plan::Row;
use crate::data::{ForwardingRecord, ForwardingTrial, Test};
use crate::procedures::throughput;
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::sweep::Spread;

pub(super) struct Of<'a> {
    /// The record, its counts corrected.
    pub(super) record: &'a ForwardingRecord,
    /// Why each of its trials is invalid, if so.
    pub(super) invalid: &'a [Option<String>],
    pub(super) row: Row,
}

impl<'a> Of<'a> {
    /// Whether something of the record is of this size.
    pub(super) fn is(&self, traffic: usize, size: Option<u32>) -> bool {
        (traffic, size) == (self.row.traffic, self.row.size)
    }

    /// The trials of a test, each with whether it is invalid.
    pub(super) fn trials(&self, test: Test) -> Vec<(&'a ForwardingTrial, bool)> {
        let all = self.record.trials.iter().zip(self.invalid);
        all.filter(|(it, _)| it.test == test && it.is_of(self.row) && !it.directions.is_empty())
            .map(|(it, invalid)| (it, invalid.is_some()))
            .collect()
    }

    /// The throughput, frames a second.
    pub(super) fn throughput_pps(&self) -> Option<f64> {
        throughput::of_row(self.record, self.row).map(|(pps, _)| pps)
    }

    pub(super) fn frame_bytes(&self) -> f64 {
        self.record.plan.frame_bytes(self.row).unwrap_or(0.0)
    }

    pub(super) fn rate(&self, pps: f64) -> FrameRate {
        FrameRate::new(pps, self.frame_bytes(), Some(self.record.plan.link_bps))
    }
}

pub(super) use crate::data::plan::size_word as word;

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// What the slower direction received, frames a second.
pub(super) fn slower(of: &ForwardingTrial) -> Option<f64> {
    of.directions.iter().map(|it| it.got.received_pps()).min_by(f64::total_cmp)
}

/// Frames lost in all directions.
pub(super) fn lost(of: &ForwardingTrial) -> f64 {
    of.directions.iter().map(|it| it.lost() as f64).sum()
}

pub(super) fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    Spread::of(&values.collect::<Vec<_>>())
}
