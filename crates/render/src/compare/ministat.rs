//! A comparison as Debian's ministat prints it, byte for byte: names, plot, table, differences.

use super::c_number::g;
use narrows_model::run::ministat::{MinistatReport, MinistatSet};

/// The symbol of a set, from 1; where sets meet, that of the sum of their bits.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];
/// Columns of the plot on no terminal.
pub const WIDTH: usize = 74;

/// What is printed, and how wide.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub plot: bool,
    pub differences: bool,
    /// The names of the sets, and the heads of the columns.
    pub heads: bool,
    /// The bars of means and medians on a line each.
    pub bars_apart: bool,
    /// Columns of the plot, at least 2.
    pub width: usize,
}

pub fn ministat(report: &MinistatReport, options: Options) -> String {
    let mut out = String::new();
    let sets = || report.sets.iter().zip(&SYMBOLS[1..]);
    if options.heads {
        sets().for_each(|(set, symbol)| out += &format!("{symbol} {}\n", set.name));
    }
    if options.plot {
        out += &plot(&report.sets, options);
    }
    if options.heads {
        out += "    N           Min           Max        Median           Avg        Stddev\n";
    }
    for (at, (set, symbol)) in sets().enumerate() {
        let (min, max) = ends(set);
        out += &format!("{symbol} {:3}", set.sorted.len());
        [min, max, set.median, set.mean, set.sd].iter().for_each(|it| out += &format!(" {:>13}", g(*it, 8)));
        out.push('\n');
        if at > 0 && options.differences {
            out += &difference(report, set);
        }
    }
    out
}

fn difference(report: &MinistatReport, set: &MinistatSet) -> String {
    let level = report.level_percent;
    let Some(it) = set.difference else { return format!("No difference proven at {level:.1}% confidence\n") };
    let first = report.sets[0].mean;
    let [by, half] = [it.by, it.half].map(|it| g(it, 6));
    let [by_percent, half_percent] = [it.by, it.half].map(|it| g(it * 100.0 / first, 6));
    format!(
        "Difference at {level:.1}% confidence\n\t{by} +/- {half}\n\t{by_percent}% +/- {half_percent}%\n\t(Student's t, pooled s = {})\n",
        g(it.pooled, 6)
    )
}

fn ends(set: &MinistatSet) -> (f64, f64) {
    (set.sorted.first().copied().unwrap_or(0.0), set.sorted.last().copied().unwrap_or(0.0))
}

/// The plot: points that stack up, and the bars of mean ± standard deviation below.
struct Plot {
    low: f64,
    step: f64,
    width: usize,
    /// Rows of points from the bottom; the bits say which sets are there.
    rows: Vec<Vec<usize>>,
    bars: Vec<Vec<char>>,
}

fn plot(sets: &[MinistatSet], options: Options) -> String {
    let marks = sets.iter().flat_map(|set| {
        let (min, max) = ends(set);
        [min, max, set.mean - set.sd, set.mean + set.sd]
    });
    let (low, high) = marks.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)));
    if high <= low {
        return "[no plot, span is zero width]\n".to_owned();
    }
    let step = (high - low) / (options.width as f64 - 1.0);
    let bars = if options.bars_apart { sets.len() } else { 1 };
    let mut plot = Plot { low, step, width: options.width, rows: vec![], bars: vec![vec![' '; options.width]; bars] };
    for (at, set) in sets.iter().enumerate() {
        plot.points(set, at + 1);
        plot.bar(set, at.min(bars - 1));
    }
    plot.text()
}

impl Plot {
    fn column(&self, value: f64) -> usize {
        let at = ((value - (self.low - self.step * 0.5)) / self.step) as usize;
        at.min(self.width - 1)
    }

    fn points(&mut self, set: &MinistatSet, bits: usize) {
        let columns: Vec<usize> = set.sorted.iter().map(|it| self.column(*it)).collect();
        let stacks = || columns.chunk_by(|a, b| a == b);
        let high = stacks().map(<[usize]>::len).max().unwrap_or(0);
        // Also downwards: the plot is as high as the last set needs it.
        self.rows.resize(high, vec![0; self.width]);
        for stack in stacks() {
            self.rows.iter_mut().take(stack.len()).for_each(|row| row[stack[0]] |= bits);
        }
    }

    fn bar(&mut self, set: &MinistatSet, line: usize) {
        let [mean, median] = [set.mean, set.median].map(|it| self.column(it));
        let ends = [set.mean - set.sd, set.mean + set.sd];
        let columns = ends.map(|it| self.column(it));
        let bar = &mut self.bars[line];
        if ends.iter().all(|it| !it.is_nan()) {
            let within = bar.iter_mut().take(columns[1]).skip(columns[0]);
            within.filter(|it| **it == ' ').for_each(|it| *it = '_');
            columns.iter().for_each(|at| bar[*at] = '|');
        }
        bar[median] = 'M';
        bar[mean] = 'A';
    }

    fn text(&self) -> String {
        let frame = format!("+{}+\n", "-".repeat(self.width));
        let points = self.rows.iter().rev().map(|row| row.iter().map(|bits| SYMBOLS[*bits]).collect::<String>());
        let bars = self.bars.iter().map(|bar| bar.iter().collect::<String>());
        let lines: String = points.chain(bars).map(|line| format!("|{line}|\n")).collect();
        format!("{frame}{lines}{frame}")
    }
}
