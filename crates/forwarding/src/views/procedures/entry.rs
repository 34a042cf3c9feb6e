//! What a procedure makes of the record.

use super::super::size::Of;
use crate::data::Test;
use crate::data::procedures::Results;
use narrows_model::load::frames_report::FrameRate;

/// A forwarding rate among the results, and what it is.
type Rate = (fn(&Results) -> Option<FrameRate>, &'static str);

pub(in super::super) struct Entry {
    pub(in super::super) test: Test,
    /// Fills in its results of a row; what must be known besides goes to the remarks.
    pub(in super::super) fill: fn(&Of<'_>, &mut Results, &mut Vec<String>),
    /// Whether a row has results of it.
    pub(in super::super) has: fn(&Results) -> bool,
    /// Whether results of some rows are enough.
    pub(in super::super) some_rows: bool,
    /// A forwarding rate by which a modifier is compared where no throughput was asked for, and what it is.
    pub(in super::super) rate: Option<Rate>,
}

impl Entry {
    pub(super) const fn new(
        test: Test,
        fill: fn(&Of<'_>, &mut Results, &mut Vec<String>),
        has: fn(&Results) -> bool,
        some_rows: bool,
    ) -> Self {
        Self { test, fill, has, some_rows, rate: None }
    }
}
