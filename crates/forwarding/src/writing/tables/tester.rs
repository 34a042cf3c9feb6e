//! What the tester carries by itself.

use super::super::sized::{Figure, bits, frames, of_sizes, share};
use crate::data::report::{ForwardingReport, TesterView};
use narrows_render::table::{Cell, Column, Table};

/// What the tester carries by itself.
pub(in super::super) fn tester(report: &ForwardingReport) -> Table {
    let figures: [Figure<'_, TesterView>; 4] = [
        (Column::figures("carries"), &|it| frames(Some(it.rate))),
        (Column::figures("of line"), &|it| share(Some(it.rate))),
        (Column::figures("on the wire"), &|it| bits(Some(it.rate))),
        (Column::words("method"), &|it| Cell::new(&it.method)),
    ];
    let words = ["Tester calibration", "a result at this limit is limited by the tester"];
    of_sizes(report, words, |it| it.tester.as_ref(), &figures, |_| None)
}
