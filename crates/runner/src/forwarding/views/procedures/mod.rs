//! The results of each procedure: a file and a line in the table for each.

mod back_to_back;
mod frmol;
mod latency;
mod loss;
mod outages;
mod throughput;

use super::size::Of;
use narrows_model::forwarding::Test;
use narrows_model::forwarding::procedures::Results;
use narrows_model::load::frames_report::FrameRate;

/// A forwarding rate among the results, and what it is.
type Rate = (fn(&Results) -> Option<FrameRate>, &'static str);

/// What a procedure makes of the record.
pub(super) struct Entry {
    /// Which.
    pub(super) test: Test,
    /// Fills in its results of a row; what must be known besides goes to the remarks.
    pub(super) fill: fn(&Of<'_>, &mut Results, &mut Vec<String>),
    /// Whether a row has results of it.
    pub(super) has: fn(&Results) -> bool,
    /// Whether results of some rows are enough.
    pub(super) some_rows: bool,
    /// A forwarding rate by which a modifier is compared where no throughput was asked for, and what it is.
    pub(super) rate: Option<Rate>,
}

impl Entry {
    const fn new(
        test: Test,
        fill: fn(&Of<'_>, &mut Results, &mut Vec<String>),
        has: fn(&Results) -> bool,
        some_rows: bool,
    ) -> Self {
        Self { test, fill, has, some_rows, rate: None }
    }
}

/// Every procedure, in the order of the manual.
pub(super) const ALL: &[Entry] = &[
    throughput::ENTRY,
    latency::ENTRY,
    loss::ENTRY,
    back_to_back::ENTRY,
    outages::RECOVERY,
    outages::RESET,
    frmol::ENTRY,
];
