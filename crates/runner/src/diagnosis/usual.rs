//! What a diagnosis and its load are like that nobody gave more words for: of a mesh, a fleet and the page.

use narrows_model::words::{figures::float, units};
use narrows_model::{DiagnosePlan, Direction, Limit, Place, Progress, TcpPlan};

/// As `narrows diagnose` has them.
pub(crate) const DIAGNOSIS_MS: u64 = 20_000;
const KNOWN_WITHIN: f64 = 0.05;

/// A load, in both directions the same.
pub(crate) fn load(streams: u32, direction: Direction, duration_ms: u64) -> TcpPlan {
    TcpPlan {
        streams,
        direction,
        limit: Limit::DurationMs(duration_ms),
        // Slow start is not what a path carries.
        omit_ms: (duration_ms / 5).min(1_000),
        ..TcpPlan::default()
    }
}

/// A diagnosis by this load.
pub(crate) fn plan(load: TcpPlan) -> DiagnosePlan {
    DiagnosePlan { budget_ms: DIAGNOSIS_MS, profile: true, known_within: KNOWN_WITHIN, ..DiagnosePlan::of(load.into()) }
}

/// What a load carries as it goes on, from one report of its client to the next.
#[derive(Debug, Default)]
pub struct Pace {
    /// Time in the trial and bytes of all streams at the last report.
    last: Option<(u64, u64)>,
}

impl Pace {
    /// `940 Mbit/s, 4 s left`, since the report before. The client always reports: one end is enough.
    pub fn take(&mut self, place: Place, progress: &Progress, planned_ms: Option<u64>) -> Option<String> {
        if place != Place::Client {
            return None;
        }
        let bytes: u64 = progress.streams.iter().map(|stream| stream.sample.bytes()).sum();
        let (at_us, before) =
            self.last.replace((progress.at_us, bytes)).filter(|(at_us, _)| progress.at_us > *at_us)?;
        let bps = float(bytes.saturating_sub(before)) * 8e6 / float(progress.at_us - at_us);
        let left = planned_ms.map(|ms| (ms * 1000).saturating_sub(progress.at_us));
        let left = left.map_or_else(String::new, |us| format!(", {} left", units::micros(us)));
        Some(format!("{}{left}", units::bps(bps)))
    }
}
