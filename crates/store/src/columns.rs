//! A run as columns: an array of like objects (samples) becomes one column for each key, whole numbers as differences. It says the
//! same in fewer bytes, which compress to about two thirds.
//!
//! A column is an array whose first element is its kind: `["=", v]` the same value in every row, `["d", first, difference…]`
//! whole numbers, `["o", {key: column}]` objects, `["?", [row…], column]` a key that only some rows have, `["v", value…]` any
//! values.

use serde_json::{Map, Value, json};

/// The key that an array in columns has instead of those of an object.
const MARK: &str = "~";
/// Shorter arrays stay rows.
const ROWS_MIN: usize = 3;
/// Larger runs stay as they are: their tree would take too much memory. Nothing that was written decodes to more, so what would is
/// damage or malice: a column of one value is short for any number of rows.
pub(crate) const TEXT_MAX: usize = 8 << 20;
/// Objects and values that may come of what is short for more than itself. Each takes more memory than its text, of which it has four
/// bytes at least.
const CELLS_MAX: usize = TEXT_MAX / 4;
/// The longest text that becomes a tree, and the most objects of one, each of which takes half a kilobyte.
pub(crate) const TREE_MAX: usize = 2 * TEXT_MAX;
const OBJECTS_MAX: usize = 1 << 20;

/// Parses text of a file or a shared store, which becomes a tree, within limits.
pub(crate) fn tree(text: &[u8]) -> Result<Value, String> {
    if text.len() > TREE_MAX || text.iter().filter(|byte| **byte == b'{').count() > OBJECTS_MAX {
        return Err(format!("it is too large: more than {} MiB or {OBJECTS_MAX} objects", TREE_MAX >> 20));
    }
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// The columnar form; `None` where a key of the value collides with the form's own.
pub(crate) fn encode(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(map) => {
            if map.contains_key(MARK) {
                return None;
            }
            Value::Object(map.into_iter().map(|(key, value)| Some((key, encode(value)?))).collect::<Option<_>>()?)
        }
        Value::Array(rows) if rows.len() >= ROWS_MIN && rows.iter().all(Value::is_object) => {
            let count = rows.len();
            json!({ MARK: [count, keys(rows)?] })
        }
        Value::Array(values) => Value::Array(values.into_iter().map(encode).collect::<Option<_>>()?),
        other => other,
    })
}

/// The columns of objects.
fn keys(rows: Vec<Value>) -> Option<Value> {
    let count = rows.len();
    let mut columns: Vec<(String, Vec<usize>, Vec<Value>)> = Vec::new();
    for (row, object) in rows.into_iter().enumerate() {
        let Value::Object(object) = object else { return None };
        for (at, (key, value)) in object.into_iter().enumerate() {
            // Rows have the same keys in the same order, nearly always.
            let found = match columns.get(at) {
                Some((name, ..)) if *name == key => Some(at),
                _ => columns.iter().position(|(name, ..)| *name == key),
            };
            let at = found.unwrap_or_else(|| {
                columns.push((key, Vec::new(), Vec::new()));
                columns.len() - 1
            });
            columns[at].1.push(row);
            columns[at].2.push(value);
        }
    }
    let mut map = Map::new();
    for (key, present, values) in columns {
        if key == MARK {
            return None;
        }
        let whole = present.len() == count;
        let column = column(values)?;
        map.insert(key, if whole { column } else { json!(["?", present, column]) });
    }
    Some(Value::Object(map))
}

fn column(values: Vec<Value>) -> Option<Value> {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return Some(json!(["=", encode(values.into_iter().next()?)?]));
    }
    if let Some(differences) = differences(&values) {
        return Some(differences);
    }
    if values.iter().all(Value::is_object) {
        return Some(json!(["o", keys(values)?]));
    }
    let mut column = vec![json!("v")];
    for value in values {
        column.push(encode(value)?);
    }
    Some(Value::Array(column))
}

/// Whole numbers; `None` where one is none, or a difference does not fit.
fn differences(values: &[Value]) -> Option<Value> {
    let mut column = vec![json!("d")];
    let mut last = 0i64;
    for value in values {
        let now = value.as_i64()?;
        column.push(now.checked_sub(last)?.into());
        last = now;
    }
    Some(Value::Array(column))
}

/// The value of a columnar form.
pub(crate) fn decode(value: Value) -> Result<Value, &'static str> {
    Room { bytes: TEXT_MAX, cells: CELLS_MAX }.decode(value)
}

/// The least JSON that the value takes, in bytes, and its objects and values.
fn least(value: &Value) -> (usize, usize) {
    let sum = |all: (usize, usize), (bytes, cells): (usize, usize)| (all.0 + bytes, all.1 + cells);
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| sum((key.len() + 3, 0), least(value))).fold((2, 1), sum),
        Value::Array(values) => values.iter().map(least).fold((2, 1), sum),
        Value::String(text) => (2 + text.len(), 1),
        _ => (1, 1),
    }
}

/// How much may still come of what is short for more than itself.
struct Room {
    /// Of JSON.
    bytes: usize,
    cells: usize,
}

impl Room {
    /// So many times so many bytes and cells.
    fn take(&mut self, count: usize, (bytes, cells): (usize, usize)) -> Result<(), &'static str> {
        let left = |room: usize, each: usize| count.checked_mul(each).and_then(|all| room.checked_sub(all));
        let (Some(bytes), Some(cells)) = (left(self.bytes, bytes), left(self.cells, cells)) else {
            return Err("more than a run that is stored as columns can have");
        };
        (self.bytes, self.cells) = (bytes, cells);
        Ok(())
    }

    fn decode(&mut self, value: Value) -> Result<Value, &'static str> {
        Ok(match value {
            Value::Object(mut map) => match map.remove(MARK) {
                Some(Value::Array(mut parts)) => {
                    let columns = parts.pop().ok_or("an array without columns")?;
                    let count = parts.pop().and_then(|it| usize::try_from(it.as_u64()?).ok());
                    Value::Array(self.rows(columns, count.ok_or("an array without its length")?)?)
                }
                Some(_) => return Err("an array that is none"),
                None => Value::Object(
                    map.into_iter().map(|(key, value)| Ok((key, self.decode(value)?))).collect::<Result<_, _>>()?,
                ),
            },
            Value::Array(values) => {
                Value::Array(values.into_iter().map(|value| self.decode(value)).collect::<Result<_, _>>()?)
            }
            other => other,
        })
    }

    fn rows(&mut self, columns: Value, count: usize) -> Result<Vec<Value>, &'static str> {
        let Value::Object(columns) = columns else { return Err("columns without keys") };
        self.take(count, (2, 1))?;
        let mut rows: Vec<Map<String, Value>> = vec![Map::new(); count];
        for (key, column) in columns {
            let Value::Array(parts) = column else { return Err("a column that is none") };
            if parts.first().and_then(Value::as_str) == Some("?") {
                let [_, present, column]: [Value; 3] =
                    parts.try_into().map_err(|_| "a column of some rows without its rows")?;
                let (Value::Array(present), Value::Array(column)) = (present, column) else {
                    return Err("a column of some rows without its rows");
                };
                self.take(present.len(), (key.len() + 3, 1))?;
                let values = self.cells(column, present.len())?;
                for (at, value) in present.into_iter().zip(values) {
                    let row = at.as_u64().and_then(|at| rows.get_mut(usize::try_from(at).ok()?));
                    row.ok_or("a row that is not there")?.insert(key.clone(), value);
                }
                continue;
            }
            self.take(count, (key.len() + 3, 1))?;
            for (row, value) in rows.iter_mut().zip(self.cells(parts, count)?) {
                row.insert(key.clone(), value);
            }
        }
        Ok(rows.into_iter().map(Value::Object).collect())
    }

    /// The values of a column.
    fn cells(&mut self, column: Vec<Value>, count: usize) -> Result<Vec<Value>, &'static str> {
        let mut parts = column.into_iter();
        let kind = parts.next();
        let values: Vec<Value> = match kind.as_ref().and_then(Value::as_str) {
            Some("=") => {
                let value = self.decode(parts.next().ok_or("an empty column")?)?;
                // The room that its first row takes may be taken already.
                self.take(count.saturating_sub(1), least(&value))?;
                vec![value; count]
            }
            Some("o") => self.rows(parts.next().ok_or("an empty column")?, count)?,
            Some("v") => parts.map(|value| self.decode(value)).collect::<Result<_, _>>()?,
            Some("d") => {
                let mut now = 0i64;
                let mut next = |value: Value| {
                    now = now.checked_add(value.as_i64()?)?;
                    Some(Value::from(now))
                };
                parts.map(|value| next(value).ok_or("a difference that is none")).collect::<Result<_, _>>()?
            }
            _ => return Err("a column of an unknown kind"),
        };
        if values.len() == count { Ok(values) } else { Err("a column of another length") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_columns_and_samples_again() {
        let run = json!({"id": "a", "samples": [
            {"at": 1, "tcp": {"cwnd": 10, "state": 1}, "max": u64::MAX, "f": 0.5},
            {"at": 4, "tcp": {"cwnd": 12, "state": 1}, "max": u64::MAX, "f": 1.5, "extra": [1, "x"]},
            {"at": 9, "tcp": {"cwnd": 11, "state": 1}, "max": u64::MAX, "f": null},
        ], "few": [{"a": 1}, {"a": 2}], "none": [], "mixed": [{"a": 1}, 2, {"b": null}]});
        let columns = encode(run.clone()).unwrap();
        assert_eq!(columns["samples"][MARK][1]["at"], json!(["d", 1, 3, 5]));
        assert_eq!(columns["samples"][MARK][1]["tcp"], json!(["o", {"cwnd": ["d", 10, 2, -1], "state": ["=", 1]}]));
        assert_eq!(columns["samples"][MARK][1]["extra"], json!(["?", [1], ["=", [1, "x"]]]));
        assert_eq!(decode(columns).unwrap(), run);
    }

    #[test]
    fn what_is_short_for_more_than_a_run_is_refused() {
        let more = "more than a run that is stored as columns can have";
        let mut nested = json!(1);
        for _ in 0..20 {
            nested = json!({"~": [1000, {"a": ["=", nested]}]});
        }
        let keys: Map<String, Value> = (0..500).map(|at| (format!("key-{at}"), json!(["=", null]))).collect();
        for bomb in [
            json!({"~": [u64::MAX, {}]}),
            json!({"~": [60_000_000, {"a": ["=", 1]}]}),
            json!({"~": [10_000, {"a": ["=", "x".repeat(10_000)]}]}),
            json!({"~": [10_000, {"a": ["o", {"b": ["=", ["x".repeat(1_000)]]}]}]}),
            json!({"~": [10_000, keys]}),
            // Short as JSON, but long in memory.
            json!({"~": [300_000, {"a": ["=", 1], "b": ["=", 1], "c": ["=", 1], "d": ["=", [1, 1, 1]]}]}),
            json!([{"~": [3_000_000, {}]}, {"~": [3_000_000, {}]}]),
            nested,
        ] {
            assert_eq!(decode(bomb), Err(more));
        }
        // Whatever can be written can be read: the most that one value in every row can be short for.
        let rows = vec![json!({"a": {"b": "\u{1}"}, "c": null}); 200_000];
        let run = Value::Array(rows);
        assert!(serde_json::to_vec(&run).unwrap().len() <= TEXT_MAX);
        assert_eq!(decode(encode(run.clone()).unwrap()).unwrap(), run);
    }

    #[test]
    fn no_text_becomes_a_tree_that_is_too_large() {
        assert!(
            tree(&vec![b' '; TREE_MAX + 1]).expect_err("too long").starts_with("it is too large: more than 16 MiB")
        );
        let objects = format!("[{}{{}}]", "{},".repeat(OBJECTS_MAX));
        assert!(tree(objects.as_bytes()).expect_err("too many").contains("1048576 objects"));
        assert_eq!(tree(b"[{}]"), Ok(json!([{}])));
    }

    #[test]
    fn a_key_of_the_form_is_left_alone_and_a_damaged_form_is_an_error() {
        assert_eq!(encode(json!({"~": 1})), None);
        assert_eq!(encode(json!([{"~": 1}, {"~": 2}, {"~": 3}])), None);
        for bad in [
            json!({"~": 1}),
            json!({"~": [3]}),
            json!({"~": [1e9 as u64, {"a": ["=", 1]}]}),
            json!({"~": [3, {"a": ["d", 1]}]}),
            json!({"~": [3, {"a": ["d", 1, i64::MAX, i64::MAX]}]}),
            json!({"~": [3, {"a": ["?", [7], ["=", 1]]}]}),
            json!({"~": [3, {"a": ["x", 1]}]}),
        ] {
            assert!(decode(bad.clone()).is_err(), "{bad}");
        }
    }
}
