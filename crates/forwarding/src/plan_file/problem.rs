//! What is wrong with a plan file: all of it, each as a sentence with its place.

use narrows_wire::problem::Problem;
use std::fmt;
use thiserror::Error;

/// How a key that must be there and is not is told.
pub(super) const MISSING: &str = "it is missing";

/// Everything that is wrong with a plan file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct Problems {
    /// At most [`Problems::MOST`].
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub left_out: usize,
}

impl Problems {
    /// The most that are told: a file with more is no plan.
    pub const MOST: usize = 100;

    /// These, and so many more that were only counted.
    pub(super) fn of(mut problems: Vec<Problem>, more: usize) -> Self {
        problems.sort();
        problems.dedup();
        let left_out = problems.len().saturating_sub(Self::MOST) + more;
        problems.truncate(Self::MOST);
        Self { problems, left_out }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        if self.left_out > 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

/// Lines and columns of a text.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Line and column of a byte, from 1.
    pub(super) fn at(&self, byte: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= byte).max(1);
        let start = self.starts[line - 1];
        let column = self.text.get(start..byte).map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    /// The text of a line, from 1.
    pub(super) fn line(&self, line: usize) -> &'t str {
        let start = self.starts.get(line.wrapping_sub(1)).copied().unwrap_or(self.text.len());
        self.text.get(start..).unwrap_or_default().lines().next().unwrap_or_default()
    }
}

/// The known word that is nearest to an unknown one, if any is near: by edits of one character, swaps of neighbours included
/// (optimal string alignment).
pub(super) fn nearest<'w>(unknown: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    // What is longer than any key is near to none.
    let unknown: Vec<char> = unknown.to_lowercase().replace('_', "-").chars().take(64).collect();
    let allowed = (unknown.len() / 3).max(1);
    known
        .into_iter()
        .map(|word| (edits(&unknown, &word.chars().collect::<Vec<_>>()), word))
        .filter(|(edits, _)| *edits <= allowed)
        .min()
        .map(|(_, word)| word)
}

fn edits(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut least = (rows[i][j + 1] + 1).min(row[j] + 1).min(rows[i][j] + usize::from(from != to));
            if i > 0 && j > 0 && a[i - 1] == *to && *from == b[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let lines = Lines::of("ä = 1\nbc = 2\n");
        assert_eq!([0, 3, 6, 7, 8, 100].map(|byte| lines.at(byte)), [(1, 1), (1, 3), (1, 6), (2, 1), (2, 2), (3, 1)]);
        assert_eq!((lines.line(2), lines.line(9)), ("bc = 2", ""));
    }

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let known = ["sizes", "flows", "networks", "max-load"];
        assert_eq!(nearest("size", known), Some("sizes"));
        assert_eq!(nearest("max_load", known), Some("max-load"));
        assert_eq!(nearest("flwos", known), Some("flows"), "neighbours swapped");
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
