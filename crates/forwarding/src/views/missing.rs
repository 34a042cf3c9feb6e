//! What was not measured, and why: what was not asked for, what has no result, and what a procedure says of it.

use super::Derived;
use super::procedures::ALL;
use super::size::word;
use crate::data::ForwardingRecord;
use crate::data::plan::Row;
use crate::data::report::{NotMeasured, TrafficView};
use crate::procedures::{self, Known, throughput};

/// The procedures that a row has none of, by their own rules. Of a row that was not searched nothing is known.
pub(super) fn reasons(record: &ForwardingRecord, row: Row) -> Vec<NotMeasured> {
    if record.search(row).is_none() {
        return Vec::new();
    }
    let throughput_pps = throughput::of_row(record, row).map(|(pps, _)| pps);
    let known = Known { throughput_pps, ..Known::default() };
    let reason = |entry: &procedures::Entry| {
        let about = entry.test.about().filter(|about| about.at_throughput)?;
        let why = (entry.set_up)(&record.plan, row, &known)?.err()?;
        Some(NotMeasured { what: format!("{}, {}", about.word, word(row.size)), why })
    };
    procedures::ALL.iter().filter_map(reason).collect()
}

pub(super) fn all(derived: &Derived, traffic: &[TrafficView]) -> Vec<NotMeasured> {
    let record = &derived.record;
    let mut list = derived.not_measured.clone();
    for entry in ALL {
        let name = entry.test.title();
        if !record.plan.tests.has(entry.test) {
            list.push(NotMeasured { what: name.to_owned(), why: "not requested".to_owned() });
            continue;
        }
        // What has a reason is not said again.
        if derived.not_measured.iter().any(|it| it.what.starts_with(name)) {
            continue;
        }
        if entry.some_rows && traffic.iter().flat_map(|it| &it.sizes).any(|size| (entry.has)(&size.results)) {
            continue;
        }
        for it in traffic {
            let missing: Vec<String> =
                it.sizes.iter().filter(|it| !(entry.has)(&it.results)).map(|it| word(it.size)).collect();
            if missing.is_empty() {
                continue;
            }
            let which = if missing.len() == it.sizes.len() { "all sizes".to_owned() } else { missing.join(", ") };
            let why = record
                .ended
                .as_ref()
                .map_or_else(|| "no result recorded".to_owned(), |why| format!("the benchmark ended first: {why}"));
            list.push(NotMeasured { what: format!("{name}, {}, {which}", it.name), why });
        }
    }
    list
}
