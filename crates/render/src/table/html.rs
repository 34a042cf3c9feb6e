//! A table on a page.

use super::Table;
use crate::html::escape;
use crate::style::Tone;

/// The table with its caption, in a box that scrolls by itself where the page is narrow; nothing where it has no rows.
pub(crate) fn html(table: &Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut out = String::from("<div class=\"table\"><table>\n");
    if !table.title.is_empty() || !table.remark.is_empty() {
        let remark =
            if table.remark.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(&table.remark)) };
        out += &format!("<caption>{}{remark}</caption>\n", escape(&table.title));
    }
    let side = |figures: bool| if figures { " class=\"n\"" } else { "" };
    let head: String = table
        .columns
        .iter()
        .map(|column| format!("<th scope=\"col\"{}>{}</th>", side(column.figures), escape(&column.name)))
        .collect();
    if table.columns.iter().any(|column| !column.name.is_empty()) {
        out += &format!("<thead><tr>{head}</tr></thead>\n");
    }
    out += "<tbody>\n";
    for row in &table.rows {
        let cells: String = table
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let Some(cell) = row.cells.get(at) else { return "<td></td>".to_owned() };
                let mut classes: Vec<&str> = Vec::new();
                classes.extend(column.figures.then_some("n"));
                classes.extend(cell.tone.map(class));
                let class =
                    if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
                format!("<td{class}>{}</td>", escape(&cell.text))
            })
            .collect();
        let noted = if row.notes.is_empty() { "" } else { " class=\"noted\"" };
        out += &format!("<tr{noted}>{cells}</tr>\n");
        for note in &row.notes {
            out += &format!("<tr class=\"note\"><td colspan=\"{}\">{}</td></tr>\n", table.columns.len(), escape(note));
        }
    }
    out + "</tbody></table></div>\n"
}

const fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Strong => "strong",
        Tone::Faint => "faint",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Mark => "mark",
    }
}
