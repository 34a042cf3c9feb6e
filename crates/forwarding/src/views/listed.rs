//! What the store lists a benchmark with.

use crate::data::ForwardingRecord;
use crate::data::ab::AbRecord;
use narrows_model::run::history::StoredRun;
use narrows_views::figures;
use narrows_views::history::{cut, empty};

/// What a forwarding benchmark is listed with. `plan`, id, time and program are left empty.
pub fn of_forwarding(record: &ForwardingRecord) -> StoredRun {
    let report = super::report(record);
    let mut listed = Vec::new();
    for traffic in &report.traffic {
        for size in &traffic.sizes {
            let rate = size.results.throughput.search.as_ref();
            let rate = rate.and_then(|it| it.goals.first()?.lower);
            let bytes = size.size.map_or_else(|| "mix".to_owned(), |bytes| format!("{bytes} B"));
            let of = format!("{} {bytes}", traffic.name);
            listed.extend(rate.map(|it| figures::THROUGHPUT.at(of, it.pps)));
        }
    }
    StoredRun { server: report.name, verdict: cut(record.ended.is_some()), ..empty("rfc2544", listed) }
}

/// What a benchmark of two configurations is listed with, as [`of_forwarding`].
pub fn of_pair(record: &AbRecord) -> StoredRun {
    let name = super::report_pair(record).name;
    let first = record.measured.first().map(|it| of_forwarding(&it.record).figures).unwrap_or_default();
    StoredRun { server: name, verdict: cut(record.ended.is_some()), ..empty("rfc2544 a/b", first) }
}
