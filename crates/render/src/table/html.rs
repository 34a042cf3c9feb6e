//! A table on an HTML page.

use super::{Row, Table};
use crate::style::Tone;
use maud::{Markup, html};

/// The table with its caption, in a box that scrolls by itself where the page is narrow; empty for a table without rows.
pub fn html(table: &Table) -> Markup {
    let has_caption = !table.title.is_empty() || !table.remark.is_empty();
    let has_head = table.columns.iter().any(|column| !column.name.is_empty());
    html! {
        @if !table.rows.is_empty() {
            div.table role="group" aria-label="table" tabindex="0" {
                table {
                    @if has_caption {
                        caption {
                            (table.title)
                            @if !table.remark.is_empty() { " " small { (table.remark) } }
                        }
                    }
                    @if has_head {
                        thead {
                            tr {
                                // A screen reader announces each head: one without words is none.
                                @for column in &table.columns {
                                    @if column.name.is_empty() { td {} }
                                    @else { th scope="col" class=[column.figures.then_some("n")] { (column.name) } }
                                }
                            }
                        }
                    }
                    tbody { @for row in &table.rows { (body(table, row)) } }
                }
            }
        }
    }
}

/// A row, and its notes below it.
fn body(table: &Table, row: &Row) -> Markup {
    html! {
        @if let Some(title) = &row.group {
            tr { th scope="rowgroup" colspan=(table.columns.len()) { (title) } }
        }
        tr id=[row.id.as_deref()] class=[(!row.notes.is_empty()).then_some("noted")] {
            @for (at, column) in table.columns.iter().enumerate() {
                @let cell = row.cells.get(at);
                td class=[cell.and_then(|cell| class(column.figures, cell.tone))] {
                    @if let Some(cell) = cell {
                        @if let Some(id) = &cell.link { a href={ "#" (id) } { (cell.text) } } @else { (cell.text) }
                    }
                }
            }
        }
        @for note in &row.notes {
            tr.note { td colspan=(table.columns.len()) { (note) } }
        }
    }
}

fn class(figures: bool, tone: Option<Tone>) -> Option<String> {
    let tone = tone.map(|tone| match tone {
        Tone::Strong => "strong",
        Tone::Faint => "faint",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Mark => "mark",
    });
    let classes: Vec<&str> = figures.then_some("n").into_iter().chain(tone).collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}
