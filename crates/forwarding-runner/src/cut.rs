//! A load that drops abruptly: two generators on one port, one of which stops at the cut.

use narrows_forwarding::procedures::Load;
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceiveRecord};

/// The part that goes on and the part that ends with the cut; `None`: the load is not cut.
pub(super) fn loads(load: Load) -> Option<[Load; 2]> {
    let Load::Cut { pps, duration_ms, after_pps, after_ms } = load else { return None };
    let base = Load::Rate { pps: after_pps, duration_ms: duration_ms.saturating_add(after_ms) };
    Some([base, Load::Rate { pps: pps - after_pps, duration_ms }])
}

/// The plans of both parts, whose streams differ by their ids.
pub(super) fn plans([base, extra]: [GeneratePlan; 2]) -> Vec<GeneratePlan> {
    let base = GeneratePlan { workers: base.workers.min(Load::CUT_STREAM.into()), ..base };
    vec![base, GeneratePlan { first_stream: Load::CUT_STREAM, ..extra }]
}

/// Several generators as one: they send by one port.
pub(super) fn together(records: &[GenerateRecord]) -> Option<GenerateRecord> {
    let base = records.first()?;
    let end = |of: &GenerateRecord| of.first_ns.map(|first| first.saturating_add(of.elapsed_ns));
    let first_ns = records.iter().filter_map(|of| of.first_ns).min();
    let last_ns = records.iter().filter_map(end).max();
    Some(GenerateRecord {
        streams: records.iter().flat_map(|of| &of.streams).copied().collect(),
        // A counter of the port, which each generator has read over its own time.
        refused: records.iter().filter_map(|of| of.refused).max(),
        first_ns,
        elapsed_ns: first_ns.zip(last_ns).map_or(base.elapsed_ns, |(first, last)| last.saturating_sub(first)),
        ended: records.iter().find_map(|of| of.ended.clone()),
        ..base.clone()
    })
}

/// When the second generator stopped, on the receiver's clock. Between two hosts, the first frame sent and the first frame received
/// are taken as the same instant.
pub(super) fn cut_ns(got: &ReceiveRecord, parts: &[GenerateRecord], one_clock: bool) -> Option<u64> {
    let [base, extra] = parts else { return None };
    let cut_ns = extra.first_ns?.saturating_add(extra.elapsed_ns);
    if one_clock {
        return Some(cut_ns);
    }
    let after_ns = cut_ns.checked_sub(base.first_ns?.min(extra.first_ns?))?;
    Some(got.first_ns?.saturating_add(after_ns))
}
