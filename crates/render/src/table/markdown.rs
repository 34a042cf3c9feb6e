//! A table in GitHub-flavoured Markdown. The notes on its rows follow below it.

use super::{Row, Table};
use crate::markdown::text;
use crate::style::Tone;

/// The table under a heading of that level; empty for a table without rows.
pub fn markdown(table: &Table, level: usize) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = String::new();
    if !table.title.is_empty() {
        out += &format!("\n{} {}\n\n", "#".repeat(level.clamp(1, 6)), text(&table.title));
    }
    if !table.remark.is_empty() {
        out += &format!("{}\n\n", text(&table.remark));
    }
    out += &line(table.columns.iter().map(|column| text(&column.name)).collect());
    out += &line(table.columns.iter().map(|it| if it.figures { "---:" } else { "---" }.to_owned()).collect());
    for row in &table.rows {
        if let Some(title) = &row.group {
            let rest = std::iter::repeat_n(String::new(), table.columns.len().saturating_sub(1));
            out += &line(std::iter::once(format!("**{}**", text(title))).chain(rest).collect());
        }
        out += &line(cells(row, table.columns.len()));
    }
    let notes: Vec<String> = table
        .rows
        .iter()
        .flat_map(|row| {
            let lead: Vec<String> =
                row.cells.iter().take(2).map(|cell| text(&cell.text)).filter(|it| !it.is_empty()).collect();
            row.notes.iter().map(move |note| format!("- {}: {}\n", lead.join(", "), text(note)))
        })
        .collect();
    if !notes.is_empty() {
        out.push('\n');
        out += &notes.concat();
    }
    out
}

fn cells(row: &Row, columns: usize) -> Vec<String> {
    (0..columns)
        .map(|at| match row.cells.get(at) {
            Some(cell) if cell.tone == Some(Tone::Strong) && !cell.text.is_empty() => {
                format!("**{}**", text(&cell.text))
            }
            Some(cell) => text(&cell.text),
            None => String::new(),
        })
        .collect()
}
