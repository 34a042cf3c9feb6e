//! The results of UDP as a table and as JSON.

use super::search::Rules;
use super::trial::Trial;
use super::{Record, Sized};
use crate::claim::{Bound, Claim};
use crate::figures::median;
use crate::tools::{Load, Tool};
use serde_json::{Value, json};
use std::fmt::Write as _;

type Of = fn(&Trial) -> Option<f64>;

impl Record {
    fn lossless_pps(&self) -> Option<f64> {
        Some(self.search.confirmed()?.pps)
    }

    /// The median over the lossless trials of full length at the highest rate without loss.
    fn at_own_rate(&self, of: Of) -> Option<f64> {
        let asked_pps = self.search.confirmed()?.asked_pps;
        let longest = self.trials.iter().map(|trial| trial.load.seconds).max()?;
        let own = |trial: &&Trial| {
            let pps = trial.load.bps as f64 / trial.load.datagram_bits();
            trial.load.seconds == longest && trial.heard.lost <= 0.0 && (pps / asked_pps - 1.0).abs() < 0.01
        };
        median(&self.trials.iter().filter(own).filter_map(of).collect::<Vec<_>>())
    }

    fn at_common_rate(&self, of: Of) -> Option<f64> {
        median(&self.common.iter().filter_map(of).collect::<Vec<_>>())
    }
}

impl Sized {
    /// narrows against the best peer of that measure: the strictest comparison.
    fn claim(&self, tools: &[&Tool], word: &str, bound: f64, of: impl Fn(&Record) -> Option<f64>) -> Option<Claim> {
        let figures = || tools.iter().zip(&self.records).filter_map(|(tool, record)| Some((tool, of(record)?)));
        let (own, value) = figures().find(|(tool, _)| tool.own)?;
        let (peer, best) = figures().filter(|(tool, _)| !tool.own).max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Claim {
            what: format!("{word}, {} to {}", own.name, peer.name),
            value: value / best,
            bound: Bound::AtLeast(bound),
        })
    }

    fn claims(&self, tools: &[&Tool]) -> Vec<Claim> {
        // Batching gains more with a larger payload.
        let bound = if self.bytes >= 1000 { 3.0 } else { 2.0 };
        let ends: [(&str, Of); 2] = [("receiver", Trial::per_receiver_s), ("machine", Trial::per_machine_s)];
        let mut claims = vec![self.claim(tools, "rate without loss", bound, Record::lossless_pps)];
        claims.extend(ends.map(|(end, of)| {
            let what = format!("datagrams per CPU s of the {end}, each at its own rate");
            self.claim(tools, &what, 1.5, |record| record.at_own_rate(of))
        }));
        claims.extend(ends.map(|(end, of)| {
            let what = format!("datagrams per CPU s of the {end}, all at one rate");
            self.claim(tools, &what, 1.5, |record| record.at_common_rate(of))
        }));
        claims.into_iter().flatten().collect()
    }
}

/// Thousands, or a dash.
fn k(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}", value / 1e3))
}

pub(super) fn text(rules: &Rules, tools: &[&Tool], results: &[Sized]) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "UDP over a veth pair whose ends segment in software (each datagram is a packet); defaults everywhere. Each tool by its\n\
         own loss report, searched alike: the highest received rate of which {} of at most {} trials of {} s lost nothing, on\n\
         a ladder of 9 % steps. Thousands of datagrams; `own`: each tool at its own rate without loss; `common`: all tools at the\n\
         same rate, 70 % of the lowest rate without loss. `receiver` is the CPU time of the receiving process, `machine` that\n\
         of everything: both ends and the kernel between them.",
        rules.passes, rules.tries, rules.trial_seconds
    );
    for sized in results {
        let _ = writeln!(out, "\n{} B{}", sized.bytes, common(sized.common));
        let _ = writeln!(
            out,
            "  {:<9}{:>18}{:>9}{:>12}{:>26}{:>26}",
            "", "without loss", "", "most, lossy", "per receiver CPU s", "per machine CPU s"
        );
        let _ = writeln!(
            out,
            "  {:<9}{:>18}{:>9}{:>12}{:>13}{:>13}{:>13}{:>13}",
            "tool", "Gbit/s", "k/s", "k/s", "own k", "common k", "own k", "common k"
        );
        for (tool, record) in tools.iter().zip(&sized.records) {
            let pps = record.lossless_pps();
            let gbps = pps.map_or_else(|| "-".into(), |pps| format!("{:.3}", pps * f64::from(sized.bytes) * 8e-9));
            let _ = writeln!(
                out,
                "  {:<9}{gbps:>18}{:>9}{:>12}{:>13}{:>13}{:>13}{:>13}",
                tool.name,
                k(pps),
                k(record.search.most_pps()),
                k(record.at_own_rate(Trial::per_receiver_s)),
                k(record.at_common_rate(Trial::per_receiver_s)),
                k(record.at_own_rate(Trial::per_machine_s)),
                k(record.at_common_rate(Trial::per_machine_s)),
            );
        }
        for claim in sized.claims(tools) {
            out.push_str(&claim.line());
        }
    }
    out
}

fn common(load: Option<Load>) -> String {
    load.map_or_else(String::new, |load| {
        format!(", common rate {:.1} k/s", load.bps as f64 / load.datagram_bits() / 1e3)
    })
}

pub(super) fn json(tools: &[&Tool], sized: &Sized) -> Value {
    let all = |trials: &[Trial]| trials.iter().map(Trial::json).collect::<Vec<_>>();
    let tool = |(tool, record): (&&Tool, &Record)| {
        json!({
            "tool": tool.name,
            "lossless_pps": record.lossless_pps(),
            "lossless_asked_pps": record.search.confirmed().map(|confirmed| confirmed.asked_pps),
            "most_pps": record.search.most_pps(),
            "per_receiver_cpu_s": {
                "own": record.at_own_rate(Trial::per_receiver_s), "common": record.at_common_rate(Trial::per_receiver_s),
            },
            "per_machine_cpu_s": {
                "own": record.at_own_rate(Trial::per_machine_s), "common": record.at_common_rate(Trial::per_machine_s),
            },
            "search": all(&record.trials),
            "at_common_rate": all(&record.common),
        })
    };
    json!({
        "bytes": sized.bytes,
        "common_bps": sized.common.map(|load| load.bps),
        "tools": tools.iter().zip(&sized.records).map(tool).collect::<Vec<_>>(),
        "claims": sized.claims(tools).iter().map(Claim::json).collect::<Vec<_>>(),
    })
}
