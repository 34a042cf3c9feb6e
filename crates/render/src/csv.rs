//! Rows of any report as comma-separated values (RFC 4180), with numbers as they are: no unit, no rounding.

use crate::history::csv::field;
use serde::Serialize;
use serde_json::Value;

/// A row for each of `rows`. A column is a path into the JSON form of a row, `seen/sent`, with another name before it where that says
/// more: `rtt_ms_min=rtt_ms/0`. What is not known is empty.
pub fn table<T: Serialize>(columns: &[&str], rows: impl IntoIterator<Item = T>) -> serde_json::Result<String> {
    let columns: Vec<(String, String)> = columns
        .iter()
        .map(|it| {
            it.split_once('=').map_or_else(|| (it.replace('/', "_"), *it), |(name, path)| (name.to_owned(), path))
        })
        .map(|(name, path)| (name, format!("/{path}")))
        .collect();
    let mut out = columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let row = serde_json::to_value(row)?;
        let cells: Vec<String> = columns.iter().map(|(_, path)| cell(row.pointer(path))).collect();
        out += &(cells.join(",") + "\n");
    }
    Ok(out)
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => field(text),
        Some(Value::Array(all)) => {
            let words: Vec<String> =
                all.iter().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned)).collect();
            field(&words.join(" "))
        }
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_numbers_and_words_stay_fields() {
        let rows = [
            serde_json::json!({"at": {"s": 0.1}, "who": "a,b", "all": ["!N", "!A"], "of": [1, -2.5]}),
            serde_json::json!({"at": null, "who": "=1+1", "all": []}),
        ];
        let csv = table(&["at/s", "who", "marks=all", "second=of/1"], rows).unwrap();
        assert_eq!(csv, "at_s,who,marks,second\n0.1,\"a,b\",!N !A,-2.5\n,'=1+1,,\n");
    }
}
