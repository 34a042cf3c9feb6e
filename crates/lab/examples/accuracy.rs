//! Prints the table of requested against measured values. Needs root.

use narrows_lab::{Row, Watch};

struct Table;

impl Watch for Table {
    fn begins(&mut self, _: &str) {}

    fn row(&mut self, row: &Row) -> bool {
        let met = if row.met { "kept" } else { "BROKEN" };
        println!(
            "{:<52} {:>10.3} {:>10.3} {:<8} {:<18} {met}",
            row.what, row.requested, row.measured, row.unit, row.tolerance
        );
        true
    }
}

fn main() -> narrows_lab::Result<()> {
    narrows_lab::accuracy(&mut Table)
}
