//! Plain columns of numbers, one line per observation, as ministat reads them: one column by its number, comments after `#`.

use thiserror::Error;

/// The maximum number of values of one file.
pub const VALUES_MAX: usize = 1_000_000;

/// Which column to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The number of the column, from 1.
    pub column: usize,
    /// The characters between columns.
    pub delimiters: String,
}

impl Default for Columns {
    fn default() -> Self {
        Self { column: 1, delimiters: " \t".to_owned() }
    }
}

/// Why a file is no column of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnError {
    /// A line has something else in the column.
    #[error("line {line} has no number in column {column}: `{word}`")]
    NoNumber {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What stands there, 40 characters at most.
        word: String,
    },
    /// There are too many values.
    #[error("more than {VALUES_MAX} values")]
    TooMany,
}

impl Columns {
    /// The values in their order. Empty lines, and those without that column, are skipped.
    /// Errors: the first line that has no finite number there.
    pub fn read(&self, text: &str) -> Result<Vec<f64>, ColumnError> {
        let mut values = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let words = line.trim_end().split(|c| self.delimiters.contains(c)).filter(|word| !word.is_empty());
            let Some(word) = words.take_while(|word| !word.starts_with('#')).nth(self.column.saturating_sub(1)) else {
                continue;
            };
            let number = word.trim().parse::<f64>().ok().filter(|it| it.is_finite());
            values.push(number.ok_or_else(|| ColumnError::NoNumber {
                line: at + 1,
                column: self.column,
                word: word.chars().take(40).collect(),
            })?);
            if values.len() > VALUES_MAX {
                return Err(ColumnError::TooMany);
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_comments_and_delimiters() {
        let first = Columns::default();
        assert_eq!(first.read("1 # x\n#2\n\n 3\r\n4\t5\n1e3\n").unwrap(), [1.0, 3.0, 4.0, 1000.0]);
        let second = Columns { column: 2, delimiters: ",;".to_owned() };
        assert_eq!(second.read("a,-2\nb;;+3.5\nc\n").unwrap(), [-2.0, 3.5]);
        let error = first.read("1\nx 2\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2 has no number in column 1: `x`");
        assert!(first.read("inf").is_err() && first.read("nan").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9eE.+#,;x \\t\\n-]{0,200}", column in 0usize..4) {
            let columns = Columns { column, delimiters: " \t,".to_owned() };
            if let Ok(values) = columns.read(&text) {
                prop_assert!(values.len() <= text.lines().count() && values.iter().all(|it| it.is_finite()));
            }
        }
    }
}
