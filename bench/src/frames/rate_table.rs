//! The results of the highest rate as a table and as JSON.

use super::own::{Both, FLOWS, Family};
use super::rate::{Contender, Figure, Rate, Row};
use super::setup::WORKERS;
use crate::args::Args;
use crate::claim::{Bound, Claim};
use crate::figures::{Ratio, median, ratio};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// 10-Gigabit Ethernet with minimum-size frames: 10^10 / (8 * (64 + 20)).
const LINE_PPS: f64 = 10e9 / (8.0 * 84.0);
/// Share of the empty programs' rate, if the machine is slower than that line rate.
const OF_EMPTY: f64 = 0.75;
const OF_TRAFGEN: f64 = 8.0;

impl Row {
    fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.rounds.iter().flatten()
    }

    fn median(&self, of: impl Fn(&Figure) -> Option<f64>) -> Option<f64> {
        median(&self.figures().filter_map(of).collect::<Vec<_>>())
    }

    fn pps(&self) -> Option<f64> {
        self.median(|figure| Some(figure.pps))
    }

    fn books(&self) -> impl Iterator<Item = &Both> {
        self.figures().filter_map(|figure| figure.books.as_ref())
    }

    /// Sum over all rounds; `None` for those that do not report it.
    fn sum(&self, of: impl Fn(&Both) -> u64) -> Option<u64> {
        self.books().map(of).reduce(|a, b| a + b)
    }

    fn lost(&self) -> Option<u64> {
        self.sum(|books| books.lost().unsigned_abs())
    }

    /// The ratio to another contender, computed within each round.
    fn to(&self, other: &Self) -> Option<Ratio> {
        let both = |(own, other): (&Option<Figure>, &Option<Figure>)| Some(own.as_ref()?.pps / other.as_ref()?.pps);
        ratio(&self.rounds.iter().zip(&other.rounds).filter_map(both).collect::<Vec<_>>())
    }
}

impl Rate {
    fn narrows(&self, family: Family) -> Option<&Row> {
        self.rows.iter().find(|row| matches!(&row.contender, Contender::Narrows(its) if *its == family))
    }

    fn empty(&self) -> Option<&Row> {
        self.rows.iter().find(|row| matches!(row.contender, Contender::Empty))
    }

    fn peer(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| matches!(&row.contender, Contender::Peer(peer) if peer.name == name))
    }

    /// narrows against each other contender.
    fn ratios(&self) -> Vec<(String, Ratio)> {
        let mut all = Vec::new();
        for family in [Family::Ipv4, Family::Ipv6] {
            let Some(own) = self.narrows(family) else { continue };
            let others = self.rows.iter().filter(|row| !matches!(row.contender, Contender::Narrows(_)));
            all.extend(others.filter_map(|other| {
                Some((format!("{} to {}", own.contender.name(), other.contender.name()), own.to(other)?))
            }));
        }
        all
    }

    fn claims(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        if let Some(own) = self.narrows(Family::Ipv4) {
            let name = own.contender.name();
            let limit = self.empty().and_then(Row::pps);
            // The machine may be slower than the line rate at the moment.
            if limit.is_some_and(|pps| pps < LINE_PPS) {
                let mpps = LINE_PPS / 1e6;
                let what = format!("{name}, of what the empty pair reaches, which is below {mpps:.2} Mpps here");
                let ratio = self.empty().and_then(|empty| own.to(empty));
                claims.extend(ratio.map(|ratio| Claim::at_least(what, ratio, OF_EMPTY)));
            } else {
                claims.extend(own.pps().map(|pps| Claim {
                    what: format!("{name} 64 B, Mpps received"),
                    value: pps / 1e6,
                    // As line rates are usually written.
                    bound: Bound::AtLeast((LINE_PPS / 1e4).floor() / 100.0),
                }));
            }
        }
        for own in [Family::Ipv4, Family::Ipv6].into_iter().filter_map(|family| self.narrows(family)) {
            let not_in_order = own.sum(|books| books.reordered + books.duplicates);
            claims.extend(own.lost().zip(not_in_order).map(|(lost, not_in_order)| Claim {
                what: format!("lost, reordered or duplicated in all rounds, {}", own.contender.name()),
                value: (lost + not_in_order) as f64,
                bound: Bound::Zero,
            }));
        }
        if let (Some(own), Some(trafgen)) = (self.narrows(Family::Ipv4), self.peer("trafgen")) {
            let what = format!("{} to trafgen", own.contender.name());
            claims.extend(own.to(trafgen).map(|ratio| Claim::at_least(what, ratio, OF_TRAFGEN)));
        }
        claims
    }
}

fn mpps(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |pps| format!("{:.3}", pps / 1e6))
}

fn count(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

pub(super) fn text(args: &Args, rate: &Rate) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "Frames over a veth pair with {WORKERS} queues each way, {WORKERS} workers: {} interleaved rounds of {} s; rates are medians, counts\n\
         are sums. narrows sends {FLOWS} flows with sequence numbers and sampled stamps and counts them itself, each once; `empty\n\
         pair` are two XDP programs that do nothing but send and drop: what the machine can; all others by the counters of the\n\
         receiving device.\n",
        args.frame_rounds(),
        args.frame_seconds()
    );
    let _ = writeln!(
        out,
        "  {:<15}{:>8}{:>11}{:>15}{:>13}{:>10}{:>11}{:>12}",
        "contender", "frame B", "sent Mpps", "received Mpps", "unsent", "lost", "reordered", "duplicated"
    );
    for row in &rate.rows {
        let bytes =
            row.median(|figure| Some(figure.frame_bytes)).map_or_else(|| "-".into(), |bytes| format!("{bytes:.0}"));
        let _ = writeln!(
            out,
            "  {:<15}{bytes:>8}{:>11}{:>15}{:>13}{:>10}{:>11}{:>12}",
            row.contender.name(),
            mpps(row.median(|figure| Some(figure.books.as_ref()?.sent_pps))),
            mpps(row.pps()),
            count(row.sum(|books| books.unsent)),
            count(row.lost()),
            count(row.sum(|books| books.reordered)),
            count(row.sum(|books| books.duplicates)),
        );
    }
    let modes: BTreeSet<&str> =
        rate.rows.iter().flat_map(Row::books).flat_map(|books| &books.modes).map(String::as_str).collect();
    if !modes.is_empty() {
        let modes: Vec<&str> = modes.into_iter().collect();
        let _ = writeln!(out, "  modes of narrows: {}", modes.join(", "));
    }
    for (what, ratio) in rate.ratios() {
        let _ = writeln!(out, "  {what}: {ratio}");
    }
    for claim in rate.claims() {
        out.push_str(&claim.line());
    }
    for sentence in &rate.left_out {
        let _ = writeln!(out, "  left out: {sentence}");
    }
    out
}

pub(super) fn json(args: &Args, rate: &Rate) -> Value {
    let books = |books: &Both| {
        json!({
            "modes": books.modes, "due": books.due, "sent": books.sent, "unsent": books.unsent, "sent_pps": books.sent_pps,
            "received": books.received, "lost": books.lost(), "reordered": books.reordered,
            "duplicates": books.duplicates, "latency_ns": books.latency.map(super::pacing_table::quantiles),
        })
    };
    let figure = |figure: &Figure| {
        json!({
            "received_pps": figure.pps, "frame_bytes": figure.frame_bytes, "books": figure.books.as_ref().map(books),
        })
    };
    let row = |row: &Row| {
        let version = match &row.contender {
            Contender::Peer(peer) => Some(&peer.version),
            _ => None,
        };
        json!({
            "contender": row.contender.name(), "version": version, "received_pps": row.pps(),
            "rounds": row.rounds.iter().map(|round| round.as_ref().map(figure)).collect::<Vec<_>>(),
            "failure": row.failure,
        })
    };
    let one = |(what, ratio): (String, Ratio)| json!({"what": what, "median": ratio.median, "interval": ratio.interval, "coverage": ratio.coverage});
    json!({
        "rounds": args.frame_rounds(), "workers": WORKERS, "flows": FLOWS,
        "contenders": rate.rows.iter().map(row).collect::<Vec<_>>(),
        "ratios": rate.ratios().into_iter().map(one).collect::<Vec<_>>(),
        "claims": rate.claims().iter().map(Claim::json).collect::<Vec<_>>(),
        "left_out": rate.left_out,
    })
}
