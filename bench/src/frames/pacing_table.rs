//! The results of pacing frames as a table and as JSON.

use super::own::{Both, Quantiles};
use super::pacing::{AtRate, MODES};
use crate::args::Args;
use crate::claim::{Bound, Claim};
use serde_json::{Value, json};
use std::fmt::Write as _;

impl AtRate {
    /// Received relative to requested.
    fn achieved(&self, both: &Both) -> f64 {
        both.received_pps / self.pps
    }

    fn rows(&self) -> impl Iterator<Item = (&'static str, &Result<Both, String>)> {
        MODES.into_iter().zip(&self.modes)
    }

    /// For the best mode.
    fn claim(&self) -> Option<Claim> {
        let (mode, both) = self.rows().next()?;
        Some(Claim {
            what: format!("achieved of asked at {} Mpps, {mode}", self.pps / 1e6),
            value: self.achieved(both.as_ref().ok()?),
            bound: Bound::Within(0.999, 1.001),
        })
    }
}

/// Microseconds, or a dash.
fn micro(of: Option<Quantiles>, which: impl Fn(&Quantiles) -> f64) -> String {
    of.map_or_else(|| "-".to_owned(), |of| format!("{:.2}", which(&of) / 1e3))
}

pub(super) fn text(args: &Args, results: &[AtRate]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "Pacing of frames, 64 B for {} s, one trial each, in each mode of sending. `of asked`: frames received a second of those\n\
         asked for; `says`: frames sent, by the generator. Gaps are between arrivals, latency is from departure to arrival;\n\
         both are sampled. A mode that cannot reach a rate is shown with what it reached.",
        args.frame_seconds()
    );
    for at in results {
        let _ = writeln!(out, "\n{} Mpps: an even gap is {:.2} us", at.pps / 1e6, 1e6 / at.pps);
        let _ = writeln!(
            out,
            "  {:<13}{:>10}{:>10}{:>12}{:>8}{:>12}{:>10}{:>10}{:>16}{:>10}",
            "mode",
            "of asked",
            "says",
            "unsent",
            "lost",
            "gap p50 us",
            "p99 us",
            "p99.9 us",
            "latency p50 us",
            "p99 us"
        );
        for (mode, both) in at.rows() {
            let _ = match both {
                Ok(both) => writeln!(
                    out,
                    "  {mode:<13}{:>10.5}{:>10.5}{:>12}{:>8}{:>12}{:>10}{:>10}{:>16}{:>10}",
                    at.achieved(both),
                    both.sent_pps / at.pps,
                    both.unsent,
                    both.lost(),
                    micro(both.gaps, |gaps| gaps.p50),
                    micro(both.gaps, |gaps| gaps.p99),
                    micro(both.gaps, |gaps| gaps.p99_9),
                    micro(both.latency, |latency| latency.p50),
                    micro(both.latency, |latency| latency.p99),
                ),
                Err(why) => writeln!(out, "  {mode:<13}did not run: {why}"),
            };
        }
    }
    let _ = writeln!(out);
    for claim in results.iter().filter_map(AtRate::claim) {
        out.push_str(&claim.line());
    }
    out
}

pub(super) fn quantiles(of: Quantiles) -> Value {
    json!({"p50": of.p50, "p99": of.p99, "p99_9": of.p99_9})
}

pub(super) fn json(results: &[AtRate]) -> Value {
    let trial = |at: &AtRate, both: &Both| {
        json!({
            "mode": both.modes[0], "receiver": both.modes[1], "received_of_asked": at.achieved(both),
            "sent_of_asked": both.sent_pps / at.pps, "due": both.due, "sent": both.sent, "unsent": both.unsent,
            "received": both.received, "lost": both.lost(), "reordered": both.reordered, "duplicates": both.duplicates,
            "gaps_ns": both.gaps.map(quantiles), "latency_ns": both.latency.map(quantiles),
        })
    };
    let mode = |at: &AtRate, (mode, both): (&str, &Result<Both, String>)| match both {
        Ok(both) => trial(at, both),
        Err(why) => json!({"mode": mode, "failed": why}),
    };
    let one = |at: &AtRate| {
        json!({
            "asked_pps": at.pps, "modes": at.rows().map(|row| mode(at, row)).collect::<Vec<_>>(),
            "claim": at.claim().map(|claim| claim.json()),
        })
    };
    json!(results.iter().map(one).collect::<Vec<_>>())
}
