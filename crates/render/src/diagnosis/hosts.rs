//! Both hosts side by side: the important rows, and every row that differs.

use super::places::names;
use crate::doc::Doc;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use narrows_model::Report;
use narrows_model::host::side_by_side::{Group, Known, ROWS, RowSpec, differs};

pub(super) fn add(doc: Doc, report: &Report, full: bool) -> Doc {
    let hosts = &report.hosts;
    let (client, server) = (Known::from(&hosts.client), Known::from(&hosts.server));
    let [of_client, of_server] = names(report, usize::MAX);
    let names = [titled("client", &of_client), titled("server", &of_server)];
    let columns = [Column::words(""), Column::words(&names[0]), Column::words(&names[1])];
    let mut table = Table::new("", "", &columns).headless();
    for spec in ROWS {
        let cells = [client.cell(spec), server.cell(spec)];
        let differs = differs(spec, Some(&cells[0]), Some(&cells[1]));
        if cells.iter().all(|cell| cell.value.is_none()) || !(full || spec.brief || differs) {
            continue;
        }
        let [client, server] = cells.map(|cell| Cell::new(cell.text));
        let row = [Cell::new(format!("{} {}", if differs { "≠" } else { " " }, label(spec))), client, server];
        table.rows.push(Row::new(row.into_iter().map(|cell| cell.tone_if(differs, Tone::Mark)).collect()));
    }
    if table.rows.is_empty() {
        doc
    } else {
        doc.section("both hosts", &format!("{}; ≠ differs", names.join(", "))).table(table)
    }
}

/// `client (dct00)`, or `client` where it has no name.
pub(crate) fn titled(side: &str, name: &str) -> String {
    if name.is_empty() { side.to_owned() } else { format!("{side} ({name})") }
}

/// The parameter, with what it is of.
fn label(spec: &RowSpec) -> String {
    match spec.group {
        Group::Host | Group::Tcp | Group::Queueing | Group::Path | Group::Counters | Group::Udp => {
            spec.label.to_owned()
        }
        Group::Nic => format!("interface {}", spec.label.trim_start_matches("interface")).trim_end().to_owned(),
        Group::Pcie => format!("PCIe {}", spec.label),
    }
}
