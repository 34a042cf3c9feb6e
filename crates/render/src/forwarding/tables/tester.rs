//! What the tester carries by itself.

use super::super::sized::{bits, each, frames, row, share, sized};
use super::super::words::size;
use crate::table::{Cell, Column, Table};
use narrows_model::forwarding::report::ForwardingReport;

/// What the tester carries by itself.
pub(in super::super) fn tester(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("carries"),
        Column::figures("of line"),
        Column::figures("on the wire"),
        Column::words("how it was found"),
    ];
    let mut table = sized(report, "The tester by itself", "a result at this limit is the tester's", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.tester else { continue };
        let rate = Some(it.rate);
        let cells = vec![frames(rate), share(rate), bits(rate), Cell::new(&it.method)];
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}
