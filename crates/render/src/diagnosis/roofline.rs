//! The roofline: every ceiling as a bar, with the binding one and the observed goodput marked.

use crate::doc::{Doc, Sentence};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::range;
use narrows_model::words::units::bps;
use narrows_model::{Ceiling, Report};

/// Maximum number of ceilings on one screen; the lowest are shown.
const SHOWN: usize = 7;

/// A limit so many times above what is to be seen binds nothing: its bar ends at the edge, else it would squash the others.
const FAR: f64 = 30.0;

/// Where the bars end: far above what was got and the lowest limit.
pub(crate) fn farthest(got: f64, ceilings: &[Ceiling]) -> f64 {
    FAR * ceilings.first().map_or(got, |lowest| lowest.bps.max(got))
}

/// The axis under the bars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    /// From zero to this.
    Linear(f64),
    /// From this power of ten to this value.
    Logarithmic(i32, f64),
}

impl Scale {
    /// Linear where all values are distinct on it, else logarithmic from a power of ten; `None` where no value is above zero.
    pub(crate) fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let sound = |value: &f64| value.is_finite() && *value >= 1.0;
        let (low, high) =
            values.filter(sound).fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        if high <= 0.0 {
            return None;
        }
        if high / low < 12.0 {
            return Some(Self::Linear(high));
        }
        Some(Self::Logarithmic(low.log10().floor() as i32, high))
    }

    /// The position of a value, in columns of `wide`.
    pub(crate) fn column(self, value: f64, wide: usize) -> usize {
        let span = wide as f64;
        let part = match self {
            Self::Linear(high) => value / high,
            Self::Logarithmic(low, high) => (value.max(1.0).log10() - f64::from(low)) / (high.log10() - f64::from(low)),
        };

        if part.is_nan() { 0 } else { (part.clamp(0.0, 1.0) * span).round() as usize }
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::Linear(high) => format!("linear to {}", bps(high)),
            Self::Logarithmic(_, high) => format!("log scale to {}", bps(high)),
        }
    }
}

pub(super) fn add(doc: Doc, report: &Report, full: bool) -> Doc {
    let ceilings = &report.accounts.roofline;
    let got = report.verdict.goodput_bps;
    let shown = if full { ceilings.len() } else { SHOWN.min(ceilings.len()) };
    let most = farthest(got, ceilings);
    let ends = ceilings.iter().take(shown).flat_map(|ceiling| [ceiling.bps, ceiling.interval_bps[1]]);
    let values = ends.map(|it| it.min(most)).chain([got]);
    let Some(scale) = Scale::over(values).filter(|_| shown > 0) else { return doc };
    let columns = [
        Column::id("limit"),
        Column::words("at"),
        Column::words("by").spare(1),
        Column::figures("goodput"),
        Column::words("interval").on_paper(),
        Column::words("how").below(),
    ];
    let mut table = Table::new("", "", &columns).headless();
    for ceiling in ceilings.iter().take(shown) {
        let tone = binds(ceiling, report).then_some(Tone::Strong);
        let cells = [
            format!("{} {}", if tone.is_some() { ">" } else { " " }, ceiling.id),
            ceiling.at.word().to_owned(),
            method(ceiling).to_owned(),
            bps(ceiling.bps),
            range(ceiling.interval_bps),
        ];
        let cells = cells.into_iter().map(|cell| Cell { tone, ..Cell::new(cell) });
        let how = Cell::new(if full { ceiling.how.as_str() } else { "" });
        let drawn = Limit { bps: ceiling.bps, interval_bps: ceiling.interval_bps };
        let row = Row::new(cells.chain([how]).collect());
        table.rows.push(row.bar(tone.map(|_| Tone::Bad), move |wide| bar(scale, &drawn, got, wide.saturating_sub(1))));
    }
    let more = ceilings.len() - shown;
    let more = (more > 0).then(|| Sentence::new(&format!("… and {more} higher ones")).tone(Tone::Faint));
    doc.drawn_section("roofline", "goodput under each limit", &format!("│ you got, ░ uncertain; {}", scale.words()))
        .table(table)
        .sentences(more)
}

/// Whether it is the ceiling of the first cause.
pub(crate) fn binds(ceiling: &Ceiling, report: &Report) -> bool {
    report.verdict.causes.first().is_some_and(|cause| cause.id == ceiling.id && cause.at == ceiling.at)
}

const fn method(ceiling: &Ceiling) -> &'static str {
    match ceiling.method {
        _ if ceiling.at_least => "at least",
        method => method.word(),
    }
}

/// What is drawn of a ceiling.
struct Limit {
    bps: f64,
    interval_bps: [f64; 2],
}

fn bar(scale: Scale, ceiling: &Limit, got: f64, wide: usize) -> String {
    let column = |value: f64| scale.column(value, wide);
    let (value, low, high) = (column(ceiling.bps), column(ceiling.interval_bps[0]), column(ceiling.interval_bps[1]));
    let got = column(got);
    (0..=wide)
        .map(|at| match at {
            at if at == got => '│',
            at if at < low.min(value) => '█',
            at if at < high.max(value) => '░',
            _ => ' ',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_when_close_and_logarithmic_when_far() {
        assert_eq!(Scale::over([100e6, 900e6].into_iter()), Some(Scale::Linear(900e6)));
        assert_eq!(Scale::over([37e6, 941e6].into_iter()), Some(Scale::Logarithmic(7, 941e6)));
        assert_eq!(Scale::over([0.0, f64::NAN, f64::INFINITY].into_iter()), None);
    }

    #[test]
    fn columns_stay_on_the_paper() {
        for scale in [Scale::Linear(1e9), Scale::Logarithmic(6, 1e10)] {
            for value in [0.0, -5.0, 1e6, 1e30, f64::NAN, f64::INFINITY] {
                assert!(scale.column(value, 40) <= 40);
            }
        }
        assert_eq!(Scale::Logarithmic(6, 1e10).column(1e8, 40), 20);
    }
}
