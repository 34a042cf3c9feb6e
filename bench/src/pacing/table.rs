//! The results of pacing as a table and as JSON.

use super::{AtRate, Paced};
use crate::claim::{Bound, Claim};
use crate::udp::trial::Trial;
use serde_json::{Value, json};
use std::fmt::Write as _;

impl AtRate {
    fn asked_pps(&self) -> f64 {
        self.load.bps as f64 / self.load.datagram_bits()
    }

    /// Achieved relative to requested, according to the observer.
    fn seen(&self, paced: &Paced) -> Option<f64> {
        Some(paced.seen.as_ref().ok()?.pps / self.asked_pps())
    }

    /// The same according to the tool.
    fn said(&self, paced: &Paced) -> Option<f64> {
        Some(paced.trial.as_ref().ok()?.heard.sent_bps? / self.load.bps as f64)
    }

    fn claim(&self) -> Option<Claim> {
        let own = self.tools.iter().find(|paced| paced.own)?;
        Some(Claim {
            what: format!("achieved of asked at {}, {}", rate(self.load.bps), own.tool),
            value: self.seen(own)?,
            bound: Bound::Within(0.999, 1.001),
        })
    }
}

fn rate(bps: u64) -> String {
    if bps >= 1_000_000_000 { format!("{} Gbit/s", bps / 1_000_000_000) } else { format!("{} Mbit/s", bps / 1_000_000) }
}

fn micro(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

pub(super) fn text(results: &[AtRate]) -> String {
    let mut out = String::new();
    let (bytes, seconds) = results.first().map_or((0, 0), |at| (at.load.bytes, at.load.seconds));
    let _ = writeln!(
        out,
        "Pacing of UDP, {bytes} B for {seconds} s: departures by the kernel's time stamps at the other end of the veth pair, one observer for\n\
         all tools. `burst`: the longest run of datagrams that each followed within half an even gap. `bucket`: datagrams\n\
         that a token bucket of that rate has to hold to let all pass at once; 1 is even. `says`: the tool's own word."
    );
    for at in results {
        let _ = writeln!(out, "\n{}: an even gap is {:.2} us", rate(at.load.bps), 1e6 / at.asked_pps());
        let _ = writeln!(
            out,
            "  {:<9}{:>12}{:>12}{:>12}{:>12}{:>9}{:>11}",
            "tool", "of asked", "says", "gap p50 us", "p99 us", "burst", "bucket"
        );
        for paced in &at.tools {
            let part = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.5}"));
            let _ = match &paced.seen {
                Ok(seen) => writeln!(
                    out,
                    "  {:<9}{:>12}{:>12}{:>12}{:>12}{:>9}{:>11.1}",
                    paced.tool,
                    part(at.seen(paced)),
                    part(at.said(paced)),
                    micro(seen.gap_p50_ns),
                    micro(seen.gap_p99_ns),
                    seen.burst,
                    seen.bucket
                ),
                Err(why) => writeln!(out, "  {:<9}{:>12}{:>12}   {why}", paced.tool, "-", part(at.said(paced))),
            };
            if let Some(said) = paced.trial.as_ref().ok().and_then(|trial| trial.heard.departures) {
                let _ = writeln!(
                    out,
                    "  {:<33}{:>12.2}{:>12.2}{:>9}",
                    "  it says itself",
                    said.gap_p50_ns / 1e3,
                    said.gap_p99_ns / 1e3,
                    said.burst
                );
            }
        }
    }
    let _ = writeln!(out);
    for claim in results.iter().filter_map(AtRate::claim) {
        out.push_str(&claim.line());
    }
    out
}

pub(super) fn json(results: &[AtRate]) -> Value {
    let tool = |at: &AtRate, paced: &Paced| {
        json!({
            "tool": paced.tool,
            "seen_of_asked": at.seen(paced),
            "said_of_asked": at.said(paced),
            "seen": paced.seen.as_ref().ok().map(|seen| json!({
                "packets": seen.packets, "pps": seen.pps, "gap_p50_ns": seen.gap_p50_ns, "gap_p99_ns": seen.gap_p99_ns,
                "burst": seen.burst, "bucket": seen.bucket,
            })),
            "unseen": paced.seen.as_ref().err(),
            "said": paced.trial.as_ref().ok().map(Trial::json),
            "failed": paced.trial.as_ref().err(),
        })
    };
    let one = |at: &AtRate| {
        json!({
            "asked_bps": at.load.bps, "bytes": at.load.bytes,
            "tools": at.tools.iter().map(|paced| tool(at, paced)).collect::<Vec<_>>(),
            "claim": at.claim().map(|claim| claim.json()),
        })
    };
    json!(results.iter().map(one).collect::<Vec<_>>())
}
