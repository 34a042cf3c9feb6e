//! The run that a user's word names.

use super::Store;
use super::sql::values;
use crate::Filter;

impl Store {
    /// The id of the run that a word names: an id, the beginning of one id alone (four characters or more), `last` or `last~2` (the third
    /// newest). `None`: no run.
    /// Errors: the store cannot be read, or several ids begin so.
    pub fn named(&self, word: &str) -> Result<Option<String>, crate::Error> {
        if self.has(word)? {
            return Ok(Some(word.to_owned()));
        }
        let back = word.strip_prefix("last").and_then(|rest| match rest {
            "" => Some(0),
            _ => rest.strip_prefix('~')?.parse().ok(),
        });
        if let Some(back) = back {
            return Ok(self.list(&Filter::default(), back, 1)?.pop().map(|run| run.id));
        }
        // No character of a pattern is one of an id.
        if word.len() < 4 || !word.chars().all(|it| it.is_ascii_alphanumeric() || it == '-') {
            return Ok(None);
        }
        let sql = "SELECT id FROM runs WHERE id LIKE ? LIMIT 2";
        let mut found = self.database.rows(sql, values![format!("{word}%")]).map_err(self.failed("read"))?;
        let one = found.pop();
        if !found.is_empty() {
            return Err(crate::Error::Ambiguous(word.to_owned()));
        }
        one.map(|mut row| row.text()).transpose().map_err(self.failed("read"))
    }
}
