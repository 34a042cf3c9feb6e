//! Both hosts side by side: the important rows, and every row that differs.

use super::page::Page;
use crate::style::Tone;
use crate::words::{clean, columns, left};
use narrows_model::Report;
use narrows_model::host::side_by_side::{Cell, Group, Known, ROWS, RowSpec, differs};

/// One row with both cells, cleaned.
pub(crate) struct Row {
    pub(crate) spec: &'static RowSpec,
    pub(crate) client: Cell,
    pub(crate) server: Cell,
    pub(crate) differs: bool,
}

/// The rows of a report; with `full` every row that is known on either side.
pub(crate) fn rows(report: &Report, full: bool) -> Vec<Row> {
    let (client, server) = (Known::from(&report.hosts.client), Known::from(&report.hosts.server));
    ROWS.iter()
        .map(|spec| {
            let (client, server) = (client.cell(spec), server.cell(spec));
            Row { differs: differs(spec, Some(&client), Some(&server)), spec, client, server }
        })
        .filter(|row| row.client.value.is_some() || row.server.value.is_some())
        .filter(|row| full || row.spec.brief || row.differs)
        .collect()
}

pub(super) fn write(page: &mut Page, report: &Report) {
    let rows = rows(report, page.style().full);
    if rows.is_empty() {
        return;
    }
    let (label, mut cell) = widths(page.width());
    if page.style().wide {
        let cells = rows.iter().flat_map(|row| [&row.client, &row.server]);
        cell = cells.map(|it| columns(&clean(&it.text)) + 1).chain([cell]).max().unwrap_or(cell);
    }
    let title = if page.style().full { "both hosts" } else { "both hosts (≠ differs)" };
    let hosts = [("client", &report.hosts.client.name), ("server", &report.hosts.server.name)];
    let hosts = hosts.map(|(side, name)| titled(side, name));
    if page.room() < NARROW {
        page.heading(title, &hosts.join(" | "));
    } else {
        page.blank();
        let [client, server] = hosts.map(|host| left(&host, cell));
        let title = format!("{}{client}{server}", left(title, label + 2));
        page.line(&page.style().paint(Tone::Strong, title.trim_end()));
    }
    for row in &rows {
        if page.room() < NARROW {
            let lead = format!("{} {}: ", if row.differs { "≠" } else { " " }, row.spec.label);
            let cells = [&row.client, &row.server].map(|cell| clean(&cell.text)).join(" | ");
            page.labelled(&lead, &cells, row.differs.then_some(Tone::Mark));
        } else {
            page.line(&line(page, (label, cell), row));
        }
    }
}

/// `client (dct00)`, or `client` where it has no name.
pub(crate) fn titled(side: &str, name: &str) -> String {
    if name.is_empty() { side.to_owned() } else { format!("{side} ({})", clean(name)) }
}

/// Below this width labels and cells have no columns: `label: client | server`.
pub(crate) const NARROW: usize = 60;

/// Columns of the label and of each cell.
pub(crate) fn widths(width: usize) -> (usize, usize) {
    let label = if width < NARROW { width / 3 } else { 30 };
    (label, (width - label - 2) / 2)
}

fn line(page: &Page, (label, cell): (usize, usize), row: &Row) -> String {
    let Row { spec, client, server, differs } = row;
    let name = match spec.group {
        Group::Host | Group::Tcp | Group::Queueing | Group::Path | Group::Counters => spec.label.to_owned(),
        Group::Nic => format!("interface {}", spec.label.trim_start_matches("interface")).trim_end().to_owned(),
        Group::Pcie => format!("PCIe {}", spec.label),
        Group::Udp => spec.label.to_owned(),
    };
    // At least one blank between the columns.
    let text = format!(
        "{} {}{} {}",
        if *differs { "≠" } else { " " },
        left(&name, label),
        left(&clean(&client.text), cell - 1),
        crate::words::fit(&clean(&server.text), cell - 1),
    );
    if *differs { page.style().paint(Tone::Mark, text.trim_end()) } else { text }
}
