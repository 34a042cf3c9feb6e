//! Samples of runs compared with each other: how far each differs from the first, and whether that is proven.

use crate::host::fact::Unit;
use crate::run::campaign::Better;
use crate::run::diff::DiffParameter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.compare/1";

/// A comparison of two or more sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Confidence level of the intervals and the verdicts: 0.95.
    pub level: f64,
    /// The margin of equivalence, as a share of the first side's mean.
    pub margin: f64,
    /// Whether the values of two sides are pairs, in their order.
    pub paired: bool,
    /// How many comparisons share the chance of a false alarm (Holm's correction).
    pub comparisons: u64,
    /// The sides; each is compared with the first.
    pub sides: Vec<CompareSide>,
    /// The figures.
    pub figures: Vec<ComparedFigure>,
    /// What limits the comparison, in sentences.
    pub warnings: Vec<String>,
    /// The parameters of either host that differ between the first side and another.
    pub inventory: Vec<CompareInventory>,
}

impl CompareReport {
    /// The proven differences of all figures and sides from the first side, each with whether it is better; `None`: which way is better is
    /// not known.
    pub fn differences(&self) -> impl Iterator<Item = (f64, Option<bool>)> {
        self.figures.iter().flat_map(|figure| {
            let proven = figure.comparisons.iter().filter(|it| it.verdict == CompareVerdict::Different);
            proven.map(|it| {
                let difference = it.ranks.difference;
                (difference, figure.better.map(|better| (difference > 0.0) == (better == Better::Higher)))
            })
        })
    }
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareSide {
    /// `A`, `B`, …
    pub label: String,
    /// What the user named: a file, a tag, run ids.
    pub name: String,
    /// The runs; empty for plain numbers.
    pub runs: Vec<CompareRun>,
}

/// One run of a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRun {
    /// Its id.
    pub id: String,
    /// When it began, microseconds since the Unix epoch.
    pub started_unix_us: u64,
}

/// One figure of all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedFigure {
    /// What it is: `goodput up`; `value` for plain numbers.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Which way it is better, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    /// The values of each side.
    pub samples: Vec<CompareSample>,
    /// The second side and those after it, each against the first.
    pub comparisons: Vec<Comparison>,
}

/// The values of a side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareSample {
    /// One per run, in the order of the runs.
    pub values: Vec<f64>,
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub five_numbers: [f64; 5],
    /// The mean.
    pub mean: f64,
    /// The standard deviation; `None` for one value.
    pub sd: Option<f64>,
    /// The trend from the first value to the last one, as a share of the mean, where one is proven.
    pub drift: Option<f64>,
    /// Positions of values far outside, from 0. They are not left out.
    pub outliers: Vec<u64>,
}

/// Whether two sides differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CompareVerdict {
    /// A difference is proven.
    Different,
    /// Any difference is smaller than the margin.
    Same,
    /// Neither is proven.
    CannotTell,
}

/// An estimate with its interval, in the unit of the figure, and the p of its test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareEstimate {
    /// The difference.
    pub difference: f64,
    /// Its interval at the level; `None` where the samples are too small for one.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p of *no difference*.
    pub p: f64,
}

/// A side against the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The label of the side.
    pub side: String,
    /// The verdict.
    pub verdict: CompareVerdict,
    /// The difference of the median runs (Hodges and Lehmann); p of Mann and Whitney, of pairs that of Wilcoxon.
    pub ranks: CompareEstimate,
    /// Whether the p of `ranks` is exact.
    pub exact: bool,
    /// The difference of the means; p of Welch's t-test, of pairs that of the paired t-test. `None` with fewer than two values.
    pub means: Option<CompareEstimate>,
    /// p of `ranks` after Holm's correction.
    pub p_holm: f64,
    /// p of *a difference above the margin* (two one-sided t-tests), after Holm's correction.
    pub p_margin_holm: Option<f64>,
    /// Difference as a share of the first side's median; `None` where that is zero.
    pub ratio: Option<f64>,
    /// The interval of `ratio`.
    pub ratio_interval: Option<[f64; 2]>,
    /// Runs a side that show a difference of the margin in four of five cases; `None` if more than 100,000.
    pub runs_needed: Option<u64>,
}

/// What differs in the inventories of two sides: those of their first runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareInventory {
    /// The label of the side that is compared with the first.
    pub side: String,
    /// What differs.
    pub parameters: Vec<DiffParameter>,
    /// Why it is not known, if so.
    pub missing: Option<String>,
}
