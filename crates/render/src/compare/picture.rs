//! The samples of a figure as rows on one scale: dots where they are few, else a box of the quartiles.

use super::words::figure;
use crate::words::{columns, left};
use narrows_model::run::compare::{CompareSample, ComparedFigure};

/// Values up to which a sample is drawn as dots.
const DOTS_MAX: usize = 9;
/// Columns of the widest picture.
const WIDTH_MAX: usize = 72;

/// A line for each sample, and the scale; nothing where all values are equal.
pub(super) fn rows(of: &ComparedFigure, width: usize) -> Vec<String> {
    let ends = of.samples.iter().map(|it| (it.five_numbers[0], it.five_numbers[4]));
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), it| (low.min(it.0), high.max(it.1)));
    let width = width.saturating_sub(4).clamp(20, WIDTH_MAX);
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return Vec::new();
    }
    let column = |value: f64| (((value - low) / span * (width - 1) as f64).round() as usize).min(width - 1);
    let mut lines: Vec<String> = (b'A'..)
        .zip(&of.samples)
        .map(|(label, sample)| format!("{}  {}", char::from(label), line(sample, width, &column).trim_end()))
        .collect();
    let [low, high] = match [low, high].map(|it| figure(of.unit, it)) {
        // If both labels round to the same value, the upper one shows the difference.
        [same, high] if same == high => [same, format!("+{}", figure(of.unit, span))],
        both => both,
    };
    let room = width.saturating_sub(columns(&high));
    lines.push(format!("   {}{high}", left(&low, room)));
    lines
}

fn line(sample: &CompareSample, width: usize, column: &impl Fn(f64) -> usize) -> String {
    let mut line = vec![' '; width];
    if sample.values.len() <= DOTS_MAX {
        for at in sample.values.iter().map(|it| column(*it)) {
            line[at] = match line[at] {
                ' ' => '•',
                '•' => '2',
                it => char::from_digit(it.to_digit(10).map_or(9, |n| (n + 1).min(9)), 10).unwrap_or('9'),
            };
        }
        return line.into_iter().collect();
    }
    let [min, q1, median, q3, max] = sample.five_numbers.map(column);
    line[min..=max].fill('─');
    line[q1..=q3].fill('▒');
    line[min] = '├';
    line[max] = '┤';
    line[median] = '█';
    line.into_iter().collect()
}
