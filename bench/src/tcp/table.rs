//! The result as a table and as JSON. Thresholds are printed as met or not met.

use crate::args::Args;
use crate::claim::{Bound, Claim};
use crate::figures::{Ratio, median, ratio};
use crate::tools::{Mode, Tool, Way, Work};
use serde_json::{Value, json};
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    /// Payload bits per second, by the receiving end.
    pub(super) goodput_bps: f64,
    /// CPU seconds of the whole machine per 10^9 payload bytes.
    pub(super) cpu_s_per_gb: f64,
}

/// One value per tool, in the tools' order; `None`: it did not run.
pub(super) type Round = Vec<Option<Figure>>;

type Results = [(Work, Vec<Round>)];

/// A load in a few words.
pub(super) fn title(Work { streams, mode, way, .. }: &Work) -> String {
    let mode = match mode {
        Mode::Usual => "as they come",
        Mode::Copying => "both ends copy",
        Mode::Uncopied => "neither end copies",
    };
    let way = match way {
        Way::Up => "up",
        Way::Down => "down",
        Way::Both => "both ways",
    };
    format!("{streams} stream{} {way}, {mode}", if *streams == 1 { "" } else { "s" })
}

/// The values of one tool over the rounds.
fn column(rounds: &[Round], tool: usize, of: fn(&Figure) -> f64) -> Vec<f64> {
    rounds.iter().filter_map(|round| round[tool].as_ref()).map(of).collect()
}

/// The ratio of two tools, computed within each round.
fn between(rounds: &[Round], tool: usize, to: usize, of: fn(&Figure) -> f64) -> Option<Ratio> {
    let ratios: Vec<f64> =
        rounds.iter().filter_map(|round| Some(of(round[tool].as_ref()?) / of(round[to].as_ref()?))).collect();
    ratio(&ratios)
}

/// The claims for the available tools, with the ratio of each.
fn claims(tools: &[&Tool], rounds: &[Round]) -> Vec<(Claim, Ratio)> {
    let by_name = |name: &str| tools.iter().position(|tool| tool.name == name);
    let goodput: fn(&Figure) -> f64 = |figure| figure.goodput_bps;
    let cpu: fn(&Figure) -> f64 = |figure| figure.cpu_s_per_gb;
    let ran = |index: &usize| !column(rounds, *index, goodput).is_empty();
    let peers = || (0..tools.len()).filter(|index| !tools[*index].own).filter(ran);
    let middle = |index: &usize, of| median(&column(rounds, *index, of)).unwrap_or(f64::NAN);
    let mut claims = Vec::new();
    let mut claim = |tool: Option<usize>, to: Option<usize>, of, word: &str, bound| {
        if let (Some(tool), Some(to)) = (tool, to)
            && let Some(ratio) = between(rounds, tool, to, of)
        {
            let what = format!("{word}, {} to {}", tools[tool].name, tools[to].name);
            claims.push((Claim { what, value: ratio.median, bound }, ratio));
        }
    };
    // The best peer of each measure: the strictest comparison.
    let fastest = peers().max_by(|a, b| middle(a, goodput).total_cmp(&middle(b, goodput)));
    let cheapest = peers().min_by(|a, b| middle(a, cpu).total_cmp(&middle(b, cpu)));
    claim(by_name("narrows"), fastest, goodput, "goodput", Bound::AtLeast(1.05));
    claim(by_name("narrows"), cheapest, cpu, "CPU s/GB", Bound::AtMost(0.95));
    claim(by_name("narrows, 100 ms"), by_name("narrows, bare"), goodput, "goodput", Bound::AtLeast(0.98));
    claim(by_name("narrows"), by_name("narrows, other build"), goodput, "goodput", Bound::AtLeast(0.97));
    claim(by_name("narrows"), by_name("narrows, other build"), cpu, "CPU s/GB", Bound::AtMost(1.05));
    claims
}

pub(super) fn text(args: &Args, tools: &[&Tool], results: &Results) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "TCP over a veth pair between two network namespaces: {} interleaved rounds of {} s; medians.\n\
         CPU is that of the whole machine, both ends and the kernel, per 10^9 payload bytes.",
        args.rounds(),
        args.seconds()
    );
    for (work, rounds) in results {
        let _ = writeln!(out, "\n{}", title(work));
        let _ = writeln!(out, "  {:<20} {:>14} {:>8} {:>10}", "tool", "goodput", "spread", "CPU s/GB");
        for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| tool.has(work)) {
            let all = column(rounds, index, |figure| figure.goodput_bps);
            let goodput = median(&all).unwrap_or(f64::NAN);
            let (least, most) = all.iter().fold((f64::MAX, 0.0_f64), |(low, high), it| (low.min(*it), high.max(*it)));
            let spread = 100.0 * (most - least) / goodput;
            let cpu = median(&column(rounds, index, |figure| figure.cpu_s_per_gb)).unwrap_or(f64::NAN);
            let _ = writeln!(out, "  {:<20} {:>7.2} Gbit/s {spread:>6.0} % {cpu:>10.3}", tool.name, goodput / 1e9);
        }
        for (claim, ratio) in claims(tools, rounds) {
            let _ = writeln!(out, "  {}: {ratio}, {}", claim.what, claim.judged());
        }
    }
    out
}

pub(super) fn json(args: &Args, tools: &[&Tool], results: &Results) -> Value {
    let series = |rounds: &[Round]| -> Vec<Value> {
        let figures = |index: usize| {
            json!({
                "tool": tools[index].name,
                "goodput_bps": column(rounds, index, |figure| figure.goodput_bps),
                "cpu_s_per_gb": column(rounds, index, |figure| figure.cpu_s_per_gb),
            })
        };
        (0..tools.len()).map(figures).collect()
    };
    let judged = |rounds: &[Round]| -> Vec<Value> {
        let one = |(claim, ratio): (Claim, Ratio)| {
            let (bound, at_most) = match claim.bound {
                Bound::AtMost(bound) => (bound, true),
                Bound::AtLeast(bound) | Bound::Within(bound, _) => (bound, false),
                Bound::Zero => (0.0, false),
            };
            json!({
                "what": claim.what, "median": ratio.median, "interval": ratio.interval, "coverage": ratio.coverage,
                "bound": bound, "at_most": at_most, "met": claim.met(),
            })
        };
        claims(tools, rounds).into_iter().map(one).collect()
    };
    json!({
        "rounds": args.rounds(),
        "results": results.iter().map(|(work, rounds)| json!({
            "load": title(work), "streams": work.streams, "tools": series(rounds), "claims": judged(rounds),
        })).collect::<Vec<_>>(),
    })
}
