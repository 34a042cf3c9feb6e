//! The loss curve of a row.

use super::super::size::Of;
use super::entry::Entry;
use crate::data::Test;
use crate::data::procedures::Results;
use narrows_search::loss_curve;

pub(super) const ENTRY: Entry = Entry::new(Test::Loss, fill, |it| !it.loss.curve.is_empty(), false);

fn fill(of: &Of<'_>, results: &mut Results, _: &mut Vec<String>) {
    let curve = of.record.curves.iter().find(|curve| of.is(curve.traffic, curve.size));
    results.loss.curve = curve.map(|it| loss_curve(&it.record.plan, &it.record.trials)).unwrap_or_default();
}
