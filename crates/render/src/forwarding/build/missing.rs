//! What was not measured, and why: what was not asked for, what has no result, and what others say of it.

use super::words;
use narrows_model::forwarding::ForwardingRecord;
use narrows_model::forwarding::report::{Derived, NotMeasured, SizeView, TrafficView};

/// One test, whether it was asked for, and whether a size has its result.
type Asked = (&'static str, bool, fn(&SizeView) -> bool);

pub(super) fn all(record: &ForwardingRecord, derived: &Derived, traffic: &[TrafficView]) -> Vec<NotMeasured> {
    let tests = &record.plan.tests;
    let asked: [Asked; 7] = [
        ("throughput", tests.throughput.is_some(), |it| it.throughput.is_some()),
        ("latency", tests.latency.is_some(), |it| it.latency.is_some()),
        ("frame loss rate", tests.loss.is_some(), |it| !it.loss.is_empty()),
        ("back-to-back", tests.back_to_back.is_some(), |it| it.bursts.is_some()),
        ("recovery", tests.recovery.is_some(), |it| it.recovery_ns.is_some() || !it.recovery_notes.is_empty()),
        ("reset", tests.reset.is_some(), |it| it.reset_ns.is_some() || !it.reset_notes.is_empty()),
        ("worst case", tests.worst_case.is_some(), |it| it.worst_case.is_some()),
    ];
    let mut list = derived.not_measured.clone();
    for (name, wanted, has) in asked {
        if !wanted {
            list.push(NotMeasured { what: name.to_owned(), why: "it was not asked for".to_owned() });
            continue;
        }
        // What others gave a reason for is not said again.
        if derived.not_measured.iter().any(|it| it.what.starts_with(name)) {
            continue;
        }
        // Some tests are made at chosen sizes only.
        let chosen = matches!(name, "recovery" | "reset" | "worst case");
        if chosen && traffic.iter().flat_map(|it| &it.sizes).any(has) {
            continue;
        }
        for it in traffic {
            let missing: Vec<String> =
                it.sizes.iter().filter(|size| !has(size)).map(|size| words::size(size.size)).collect();
            if missing.is_empty() {
                continue;
            }
            let which = if missing.len() == it.sizes.len() { "all sizes".to_owned() } else { missing.join(", ") };
            let why = record.ended.as_ref().map_or_else(
                || "the record has no result of it".to_owned(),
                |why| format!("the benchmark ended before: {why}"),
            );
            list.push(NotMeasured { what: format!("{name}, {}, {which}", it.name), why });
        }
    }
    list
}
