//! The sentences and figures of a comparison.

use narrows_model::Unit;
use narrows_model::run::compare::{CompareReport, CompareSide, CompareVerdict, ComparedFigure, Comparison};
use narrows_model::words::show::plural;
use narrows_model::words::units::{bps, grouped};

/// A figure with its unit; plain numbers with six digits. Differences have their sign.
pub(crate) fn figure(unit: Unit, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match unit {
        Unit::BitsPerSecond => format!("{sign}{}", bps(value.abs())),
        Unit::Microseconds if value.abs() < 1000.0 => format!("{value:.1} us"),
        Unit::Microseconds => format!("{:.2} ms", value / 1000.0),
        Unit::Bytes => format!("{sign}{} B", grouped(crate::words::rounded(value.abs()))),
        Unit::Fraction => format!("{:.3} %", value * 100.0),
        _ => super::c_number::g(value, 6),
    }
}

pub(super) fn interval(unit: Unit, [low, high]: [f64; 2]) -> String {
    format!("{} to {}", figure(unit, low), figure(unit, high))
}

/// A change with its sign, two digits after the point below 1 %.
pub(crate) fn share(of: f64) -> String {
    let percent = of * 100.0;
    if percent.abs() < 1.0 { format!("{percent:+.2} %") } else { format!("{percent:+.1} %") }
}

/// A larger change is better read as a factor.
const PERCENT_MAX: f64 = 9.0;

/// A change as a share of a base of this sign: `+3.2 %`, or `461 times` the base.
pub(super) fn change(of: f64, base: f64) -> String {
    match 1.0 + of {
        _ if base <= 0.0 || of.is_nan() || of <= PERCENT_MAX => share(of),
        times if times < 100.0 => format!("{times:.1} times"),
        times => format!("{} times", grouped(crate::words::rounded(times))),
    }
}

pub(crate) fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// A share without the digits that it does not need.
pub(crate) fn plain(of: f64) -> String {
    format!("{} %", super::c_number::g(of * 100.0, 6))
}

/// What a side is.
pub(super) fn side(of: &CompareSide) -> String {
    match &of.runs[..] {
        [] => of.name.clone(),
        runs => format!("{} ({})", of.name, plural(runs.len() as u64, "run")),
    }
}

/// The verdict in a sentence.
pub(super) fn sentence(report: &CompareReport, of: &ComparedFigure, it: &Comparison) -> String {
    let margin = plain(report.margin);
    let level = plain(report.level);
    let verdict = match it.verdict {
        CompareVerdict::Different => match of.better {
            Some(better) => format!("different, {}", better.word(it.ranks.difference)),
            None => "different".to_owned(),
        },
        CompareVerdict::Same => format!("the same within {margin}"),
        CompareVerdict::CannotTell => "cannot tell".to_owned(),
    };
    let median = of.samples.first().map_or(0.0, |first| first.five_numbers[2]);
    let by = it.ratio.map_or_else(|| figure(of.unit, it.ranks.difference), |ratio| change(ratio, median));
    let interval = match (it.ratio_interval, it.ranks.interval) {
        (Some([low, high]), _) => format!(" ({level} interval {} to {})", change(low, median), change(high, median)),
        (None, Some(absolute)) => format!(" ({level} interval {})", interval(of.unit, absolute)),
        (None, None) => " (too few values for an interval)".to_owned(),
    };
    // Of the medians; what is decided by the means has another one.
    let mean = of.samples.first().map(|first| first.mean).filter(|mean| *mean != 0.0);
    let means = it.means.and_then(|it| it.interval).zip(mean).filter(|_| it.verdict == CompareVerdict::CannotTell);
    let means = means.map_or_else(String::new, |([low, high], mean)| {
        let of_mean = |bound: f64| change(bound / mean.abs(), mean);
        format!("; of the means {} to {}", of_mean(low), of_mean(high))
    });
    let more = match (it.verdict, it.runs_needed) {
        (CompareVerdict::CannotTell, Some(runs)) => {
            format!("; about {} per side would be needed to show a difference of {margin}", plural(runs, "run"))
        }
        (CompareVerdict::CannotTell, None) if of.samples.iter().all(|it| it.sd.is_some()) => {
            format!("; more than 100,000 runs per side would be needed to show a difference of {margin}")
        }
        _ => String::new(),
    };
    let p = it.p_margin_holm.filter(|_| it.verdict == CompareVerdict::Same).unwrap_or(it.p_holm);
    // Another p than the table's, which is that of no difference.
    let beyond =
        if it.verdict == CompareVerdict::Same { format!(" of a difference beyond {margin}") } else { String::new() };
    format!("{} against A: {verdict}, {by}{interval}, p {}{beyond}{means}{more}", it.side, probability(p))
}

/// How the verdicts come about.
pub(super) fn method(report: &CompareReport) -> String {
    let ranks = if report.paired { "Wilcoxon's signed-rank test of pairs" } else { "the Mann-Whitney test" };
    let holm = match report.comparisons {
        0 | 1 => String::new(),
        n => format!(", p corrected for {n} comparisons (Holm)"),
    };
    format!(
        "different: by {ranks} at {}{holm}; the same: any difference is within {} of A's mean, by two one-sided t-tests",
        plain(report.level),
        plain(report.margin)
    )
}
