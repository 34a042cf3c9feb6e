//! A table on a terminal. One that is too wide loses its spare columns first, then the middle of its widest words.

use super::{Cell, Column, Row, Table};
use crate::style::Tone;
use crate::text::page::Page;
use crate::words::{columns, fit, left, right};

/// Blanks before a row, and between two columns.
const INDENT: usize = 2;
const GAP: usize = 2;
/// Minimum width of a column of words.
const MIN_WIDTH: usize = 6;

/// The table under its heading; empty for a table without rows.
pub(crate) fn text(page: &mut Page, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    let layout = Layout::new(table, page.width());
    if !table.title.is_empty() {
        page.heading(&fit(&table.title, page.width()), &table.remark);
    }
    let head = layout.line(&table.columns.iter().map(|column| Cell::new(&column.name)).collect::<Vec<_>>());
    page.line(&page.style().paint(Tone::Faint, head.plain.trim_end()));
    for row in &table.rows {
        body(page, &layout, row);
    }
    if !layout.left_out.is_empty() {
        let names: Vec<&str> = layout.left_out.iter().map(|column| column.name.as_str()).collect();
        let text = format!("without room here: {}", names.join(", "));
        page.labelled("  ", &text, Some(Tone::Faint));
    }
}

fn body(page: &mut Page, layout: &Layout, row: &Row) {
    let line = layout.line(&row.cells);
    let style = page.style();
    let painted: String =
        line.cells.iter().map(|(text, tone)| tone.map_or_else(|| text.clone(), |it| style.paint(it, text))).collect();
    page.line(if style.color { &painted } else { &line.plain });
    for note in &row.notes {
        page.labelled("    ! ", note, Some(Tone::Mark));
    }
}

/// One line, plain and as pieces with their tones.
struct Line {
    plain: String,
    cells: Vec<(String, Option<Tone>)>,
}

/// The columns shown and their widths.
struct Layout {
    shown: Vec<(usize, Column, usize)>,
    left_out: Vec<Column>,
}

impl Layout {
    fn new(table: &Table, room: usize) -> Self {
        let wide = |at: usize| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| columns(&cell.text));
            cells.chain([columns(&table.columns[at].name)]).max().unwrap_or(0)
        };
        let mut shown: Vec<_> =
            table.columns.iter().enumerate().map(|(at, column)| (at, column.clone(), wide(at))).collect();
        let mut left_out = Vec::new();
        while total(&shown) > room {
            let Some(at) = (0..shown.len()).filter(|at| shown[*at].1.spare > 0).max_by_key(|at| shown[*at].1.spare)
            else {
                break;
            };
            left_out.push(shown.remove(at).1);
        }
        while total(&shown) > room {
            // Words are cut before numbers, the widest first.
            let widest = |figures: bool| {
                (0..shown.len())
                    .filter(|at| shown[*at].1.figures == figures)
                    .max_by_key(|at| shown[*at].2)
                    .filter(|at| shown[*at].2 > MIN_WIDTH)
            };
            let Some(at) = widest(false).or_else(|| widest(true)) else { break };
            shown[at].2 -= 1;
        }
        Self { shown, left_out }
    }

    fn line(&self, cells: &[Cell]) -> Line {
        let mut line = Line { plain: String::new(), cells: Vec::new() };
        let mut push = |text: String, tone: Option<Tone>| {
            line.plain += &text;
            line.cells.push((text, tone));
        };
        for (n, (at, column, wide)) in self.shown.iter().enumerate() {
            push(" ".repeat(if n == 0 { INDENT } else { GAP }), None);
            let Some(cell) = cells.get(*at) else {
                push(" ".repeat(*wide), None);
                continue;
            };
            let text = if column.figures { right(&cell.text, *wide) } else { left(&cell.text, *wide) };
            push(text, cell.tone);
        }
        line
    }
}

fn total(shown: &[(usize, Column, usize)]) -> usize {
    let gaps = INDENT + GAP * shown.len().saturating_sub(1);
    gaps + shown.iter().map(|it| it.2).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    fn table() -> Table {
        let columns = [Column::words("hop"), Column::figures("frames"), Column::words("reason").spare(1)];
        let mut table = Table::new("losses", "frames", &columns);
        let cells = ["r\x1b[31m", "1,234", &"x".repeat(70)].map(Cell::new);
        table.rows.push(Row::new(cells.into()).note(Some("a note".into())));
        table
    }

    fn written(table: &Table, width: usize) -> String {
        let mut page = Page::new(Style { width, ..Style::default() });
        text(&mut page, table);
        page.finish()
    }

    #[test]
    fn a_spare_column_leaves_where_there_is_no_room() {
        let text = written(&table(), 100);
        assert!(text.contains("r?[31m   1,234  xxx") && text.contains("    ! a note"), "{text}");
        let text = written(&table(), 80);
        assert!(!text.contains("xxx") && text.contains("without room here: reason"), "{text}");
    }

    #[test]
    fn words_lose_their_middle_before_figures_do() {
        let mut table = table();
        table.columns[2].spare = 0;
        let text = written(&table, 80);
        assert!(text.contains("1,234") && text.contains('…'), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    }
}
