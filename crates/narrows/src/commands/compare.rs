//! `narrows compare`: samples of runs, or of plain numbers, compared with the first one.

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, SvgArg, known, values};
use crate::output::printed;
use narrows_model::run::compare::CompareReport;
use narrows_render::compare::{ministat, svg};
use narrows_runner::compare::{self, Columns, CompareError, Options, SIDES_MAX};
use narrows_runner::stored;
use narrows_views::figures;
use std::io::IsTerminal as _;

/// Compare samples of runs or of numbers with statistics
///
/// A sample is a tag of stored runs (tag:NAME), run ids with commas, a file of runs, a file with a column of numbers, or - for standard
/// input. Each sample is compared with the first one. The unit is the run: a sample needs several.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a plot of the samples to this file (SVG)").conflicts_with("ministat")),
    after_help = "Examples:\n  \
    narrows compare tag:before tag:after\n  \
    narrows compare before.txt after.txt --margin 2%\n  \
    narrows compare tag:gro-on tag:gro-off --figure 'idle RTT' --paired\n  \
    narrows compare tag:main tag:branch --fail-if worse\n  \
    narrows compare --ministat -c 99 before.txt after.txt\n\
    Details: docs/compare.md."
)]
pub(crate) struct Args {
    /// Samples; the first is the reference
    #[arg(value_name = "SAMPLE", add = known::runs(), required_unless_present = "ministat")]
    samples: Vec<String>,
    /// Figure by name; repeatable (default: the first figure)
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "ministat",
        add = known::figures(),
        long_help = format!(
            "Figure by name; repeatable (default: the first figure). `narrows history show` lists those of a run, with direction, goal or \
             size behind the name:\n{}",
            figures::help()
        )
    )]
    figure: Vec<String>,
    /// Largest difference that is the same, in % of the mean
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = values::percent, conflicts_with = "ministat")]
    margin: f64,
    /// The values of two samples are pairs, in their order
    #[arg(long, conflicts_with = "ministat")]
    paired: bool,
    /// Confidence level in %, 50 to 99.9
    #[arg(short = 'c', long = "confidence", value_name = "PERCENT", default_value = "95", value_parser = level)]
    level_percent: f64,
    /// Column of the numbers in a file, from 1
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1, value_parser = column)]
    column: usize,
    /// Characters between columns (default: space and tab)
    #[arg(
        short = 'd',
        long = "delimiters",
        value_name = "CHARACTERS",
        default_value = " \t",
        hide_default_value = true,
        hide_short_help = true
    )]
    delimiters: String,
    /// Exit with 3 where such a difference from the first sample is proven; worse: lower goodput, longer RTT, more loss
    #[arg(long, value_name = "DIFFERENCE", value_enum, conflicts_with = "ministat")]
    fail_if: Option<FailIf>,
    #[command(flatten)]
    ministat: MinistatArgs,
    #[command(flatten)]
    svg: SvgArg,
    #[command(flatten)]
    format: FormatArg<CompareReport>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FailIf {
    Worse,
    Lower,
    Higher,
    Different,
}

impl FailIf {
    /// Whether the report has such a difference.
    /// Errors: which way is better is not known of a figure that differs.
    fn is_in(self, report: &CompareReport) -> Result<bool, Failure> {
        let sides = report.figures.iter().flat_map(|it| &it.comparisons);
        if sides.clone().any(|it| it.ranks.interval.is_none()) {
            let why = "cannot tell a difference: a sample has too few runs; it needs four at least, and more with several figures";
            return Err(Failure::run(why));
        }
        let mut all = report.differences();
        Ok(match self {
            Self::Different => all.next().is_some(),
            Self::Lower => all.any(|(difference, _)| difference < 0.0),
            Self::Higher => all.any(|(difference, _)| difference > 0.0),
            Self::Worse if report.figures.iter().any(|it| it.better.is_none()) => {
                let why = "which way is better is not known of these numbers: use --fail-if lower, higher or different";
                return Err(Failure::usage(why));
            }
            Self::Worse => all.any(|(_, is_better)| is_better == Some(false)),
        })
    }
}

/// The flags of ministat.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "ministat")]
struct MinistatArgs {
    /// Print what Debian's ministat prints
    #[arg(long, conflicts_with_all = ["format", "json"])]
    ministat: bool,
    /// No plot
    #[arg(short = 'A', requires = "ministat")]
    without_plot: bool,
    /// Summary statistics only: no plot, no test
    #[arg(short = 'n', requires = "ministat")]
    numbers_only: bool,
    /// No names and column heads
    #[arg(short = 'q', requires = "ministat")]
    without_heads: bool,
    /// Bars of mean and median on a line each
    #[arg(short = 's', requires = "ministat")]
    bars_apart: bool,
    /// Width of the plot (default: the terminal, or 74)
    #[arg(short = 'w', value_name = "COLUMNS", requires = "ministat", value_parser = clap::value_parser!(u64).range(2..=10_000))]
    width: Option<u64>,
}

fn level(word: &str) -> Result<f64, String> {
    let number = word.trim_end_matches('%').parse::<f64>().ok().filter(|it| (50.0..=99.9).contains(it));
    number.ok_or_else(|| "must be from 50 to 99.9".to_owned())
}

fn column(word: &str) -> Result<usize, String> {
    word.parse().ok().filter(|it| (1..=10_000).contains(it)).ok_or_else(|| "must be from 1 to 10000".to_owned())
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let columns = Columns { column: self.column, delimiters: self.delimiters.clone() };
        if self.samples.iter().filter(|it| *it == "-").count() > 1 {
            return Err(Failure::usage("cannot read standard input twice: give - once"));
        }
        if self.ministat.ministat {
            return self.ministat.run(self.samples, &columns, self.level_percent);
        }
        if !(2..=SIDES_MAX).contains(&self.samples.len()) {
            return Err(Failure::usage(format!(
                "cannot compare {} samples: give 2 to {SIDES_MAX}",
                self.samples.len()
            )));
        }
        let options = Options {
            level: self.level_percent / 100.0,
            margin: self.margin,
            paired: self.paired,
            figures: self.figure,
        };
        let report = compare::compare(&self.samples, &columns, &options, KINDS).map_err(failure)?;
        if let Some(file) = &self.svg.svg {
            stored::write(file, &svg::picture(&report)).map_err(Failure::run)?;
        }
        let fails = self.fail_if.map(|it| it.is_in(&report)).transpose()?;
        printed(&self.format.write(&report, crate::output::style())?)?;
        Ok(if fails == Some(true) { 3 } else { 0 })
    }
}

impl MinistatArgs {
    fn run(&self, mut samples: Vec<String>, columns: &Columns, level_percent: f64) -> Outcome {
        if !compare::has_level(level_percent) {
            return Err(Failure::usage(format!(
                "cannot compare at {level_percent} %: ministat has 80, 90, 95, 98, 99 and 99.5"
            )));
        }
        if samples.is_empty() {
            samples.push("-".to_owned());
        }
        if samples.len() > compare::SETS {
            return Err(Failure::usage(format!("cannot compare {} sets: ministat takes 7 at most", samples.len())));
        }
        let report = compare::ministat(&samples, columns, level_percent).map_err(failure)?;
        let options = ministat::Options {
            plot: !self.numbers_only && !self.without_plot,
            differences: !self.numbers_only,
            heads: !self.without_heads,
            bars_apart: self.bars_apart,
            width: self.width.and_then(|it| usize::try_from(it).ok()).unwrap_or_else(width),
        };
        printed(&ministat::ministat(&report, options))
    }
}

/// The columns of a terminal without the frame; elsewhere those of ministat.
fn width() -> usize {
    if std::io::stdout().is_terminal() {
        crate::output::style().width.saturating_sub(2).max(2)
    } else {
        ministat::WIDTH
    }
}

/// What the user gave cannot be compared, or it cannot be read.
fn failure(error: CompareError) -> Failure {
    match error {
        CompareError::Invalid(_) => Failure::usage(error),
        _ => Failure::run(error),
    }
}
