//! A table on a terminal. One that is too wide puts some columns beneath their rows, loses its spare columns, then the middle of its
//! widest words; then its rows are stacked, a line for each cell.

use super::{Bar, Cell, Column, Row, Table};
use crate::doc::page::Page;
use crate::style::Tone;
use crate::words::{columns, fit, left, right};

/// Blanks before a row, and between two columns.
const INDENT: usize = 2;
const GAP: usize = 2;
/// A column of words is cut to no less: what is left of a name below that is not recognised.
const MIN_WIDTH: usize = 12;

/// The table under its heading; empty for a table without rows.
pub(crate) fn text(page: &mut Page, table: &Table) {
    if table.rows.is_empty() {
        return;
    }
    if !table.title.is_empty() {
        page.heading(&fit(&table.title, page.width()), &table.remark);
    }
    let Some(layout) = Layout::new(table, page.room()) else {
        return table.rows.iter().for_each(|row| {
            group(page, row);
            stacked(page, table, row);
        });
    };
    if !table.headless {
        let head = layout.line(&table.columns.iter().map(|column| Cell::new(&column.name)).collect::<Vec<_>>());
        page.line(&page.style().paint(Tone::Faint, head.plain.trim_end()));
    }
    for row in &table.rows {
        group(page, row);
        body(page, &layout, row);
    }
    if !layout.left_out.is_empty() {
        let names: Vec<&str> = layout.left_out.iter().map(|column| column.name.as_str()).collect();
        let text = format!("not shown at this width: {}", names.join(", "));
        page.labelled("  ", &text, Some(Tone::Faint));
    }
}

/// The heading of the rows that begin here.
fn group(page: &mut Page, row: &Row) {
    if let Some(title) = &row.group {
        page.blank();
        let title = page.style().paint(Tone::Strong, title);
        page.line(&title);
    }
}

/// A row as lines `name: cell`, the first cell without its name.
fn stacked(page: &mut Page, table: &Table, row: &Row) {
    let shown = |cell: &Cell| !matches!(cell.text.as_str(), "" | "–");
    for (at, (column, cell)) in
        table.columns.iter().zip(&row.cells).enumerate().filter(|(at, it)| (*at == 0 || shown(it.1)) && !it.0.on_paper)
    {
        match at {
            0 if cell.text.is_empty() => {}
            0 => page.labelled("  ", &cell.text, cell.tone.or(Some(Tone::Strong))),
            _ if column.name.is_empty() => page.labelled("    ", &cell.text, cell.tone),
            _ => page.labelled(&format!("    {}: ", fit(&column.name, page.width() - 6)), &cell.text, cell.tone),
        }
    }
    if let Some(bar) = &row.bar {
        bar_below(page, bar);
    }
    for note in &row.notes {
        page.labelled("    ! ", note, Some(Tone::Mark));
    }
}

/// A shorter bar than a rate with its unit shows no difference between rows: it stands below its row.
const LEAST_BAR: usize = 11;

fn bar_below(page: &mut Page, bar: &Bar) {
    let text = (bar.draw)(page.width().saturating_sub(INDENT + GAP));
    let text = bar.tone.map_or_else(|| text.clone(), |tone| page.style().paint(tone, &text));
    page.line(&format!("    {text}"));
}

fn body(page: &mut Page, layout: &Layout, row: &Row) {
    let line = layout.line(&row.cells);
    let style = page.style();
    let painted: String =
        line.cells.iter().map(|(text, tone)| tone.map_or_else(|| text.clone(), |it| style.paint(it, text))).collect();
    let written = if style.color { &painted } else { &line.plain };
    let room = page.width().saturating_sub(columns(&line.plain) + GAP);
    match &row.bar {
        Some(bar) if room >= LEAST_BAR => {
            let text = (bar.draw)(room);
            let text = bar.tone.map_or_else(|| text.clone(), |tone| style.paint(tone, &text));
            page.line(&format!("{written}{}{text}", " ".repeat(GAP)));
        }
        bar => {
            page.line(written);
            bar.iter().for_each(|bar| bar_below(page, bar));
        }
    }
    for (at, column) in &layout.beneath {
        if let Some(cell) = row.cells.get(*at).filter(|cell| !cell.text.is_empty()) {
            let lead = if column.below { "        ".to_owned() } else { format!("      {}: ", column.name) };
            page.labelled(&lead, &cell.text, cell.tone.or(Some(Tone::Faint)));
        }
    }
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
    beneath: Vec<(usize, Column)>,
    left_out: Vec<Column>,
}

impl Layout {
    /// `None`: not even the columns that are always shown have room.
    fn new(table: &Table, room: usize) -> Option<Self> {
        let wide = |at: usize| {
            let cells = table.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| columns(&cell.text));
            cells.chain([columns(&table.columns[at].name)]).max().unwrap_or(0)
        };
        let mut shown: Vec<_> =
            table.columns.iter().enumerate().map(|(at, column)| (at, column.clone(), wide(at))).collect();
        shown.retain(|it| !it.1.on_paper);
        let (mut beneath, mut dropped): (Vec<_>, _) = (Vec::new(), Vec::new());
        beneath.extend(shown.extract_if(.., |it| it.1.below).map(|(at, column, _)| (at, column)));
        if total(&shown) > room {
            let low = |it: &mut (usize, Column, usize)| it.1.beneath;
            beneath.extend(shown.extract_if(.., low).map(|(at, column, _)| (at, column)));
        }
        while total(&shown) > room {
            let Some(at) = (0..shown.len()).filter(|at| shown[*at].1.spare > 0).max_by_key(|at| shown[*at].1.spare)
            else {
                break;
            };
            dropped.push(shown.remove(at));
        }
        // A wide one may have left room for narrower ones that went before it.
        let mut left_out = Vec::new();
        for column in dropped.into_iter().rev() {
            let place = shown.partition_point(|it| it.0 < column.0);
            shown.insert(place, column);
            if total(&shown) > room {
                left_out.push(shown.remove(place).1);
            }
        }
        left_out.reverse();
        while total(&shown) > room {
            let cut = |at: &usize| !shown[*at].1.whole && shown[*at].2 > MIN_WIDTH;
            let widest = (0..shown.len()).filter(cut).max_by_key(|at| shown[*at].2)?;
            shown[widest].2 -= 1;
        }
        Some(Self { shown, beneath, left_out })
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
        assert!(!text.contains("xxx") && text.contains("not shown at this width: reason"), "{text}");
    }

    #[test]
    fn words_lose_their_middle_before_figures_do() {
        let mut table = table();
        table.columns[2].spare = 0;
        let text = written(&table, 80);
        assert!(text.contains("1,234") && text.contains('…'), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
    }

    #[test]
    fn where_nothing_fits_rows_are_stacked_and_no_id_is_cut() {
        let columns_of =
            [Column::id("run"), Column::words("command"), Column::figures("value"), Column::words("tags").spare(1)];
        let mut table = Table::new("", "", &columns_of);
        let id = "20260101-120000-1a2b3c4d";
        table.rows.push(Row::new([id, "diagnose", "1.00 Gbit/s", "x y"].map(Cell::new).into()));
        let text = written(&table, 40);
        assert_eq!(text, format!("  {id}\n    command: diagnose\n    value: 1.00 Gbit/s\n    tags: x y\n"));
        let mut page = Page::new(Style { width: 40, wide: true, ..Style::default() });
        super::text(&mut page, &table);
        assert!(page.finish().ends_with(&format!("  {id}  diagnose  1.00 Gbit/s  x y\n")), "a pipe has all columns");
    }
}
