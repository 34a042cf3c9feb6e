//! The audit: the hazards, then both hosts side by side. As JSON it is [`crate::json::pretty`] of the view.

use crate::diagnosis::hosts::titled;
use crate::doc::{Doc, Pair};
use crate::format::document;
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use crate::words::plural;
use narrows_model::host::side_by_side::Cell as Value;
use narrows_model::{Audit, AuditRow, Hazard, Place, Severity};
use std::collections::BTreeMap;

document!(Audit, "an audit", doc);

/// Behind the value of the end that has the hazard.
const MARK: &str = " !";

/// Parameters that are not known are folded: so many are named for each reason.
const FEW: usize = 3;

/// Whether there is nothing to compare with.
const fn is_alone(audit: &Audit) -> bool {
    audit.client.is_none() || audit.server.is_none()
}

/// Whether a row has a value; the rows without are named with their reasons.
fn is_known(row: &AuditRow) -> bool {
    [&row.client, &row.server].into_iter().flatten().any(|cell| cell.value.is_some())
}

/// Whether one of the row's hazards is at this end, or about both.
fn has_hazard(audit: &Audit, row: &AuditRow, end: Place) -> bool {
    audit.hazards_of(row).any(|hazard| hazard.at == end || hazard.at == Place::Path)
}

/// What could not be read, and why: the labels of the rows for each end and reason.
fn reasons(audit: &Audit) -> BTreeMap<(Place, String), Vec<String>> {
    let mut reasons: BTreeMap<(Place, String), Vec<String>> = BTreeMap::new();
    for row in &audit.rows {
        for (place, cell) in [(Place::Client, &row.client), (Place::Server, &row.server)] {
            if let Some(why) = cell.as_ref().and_then(|cell| cell.why_missing.clone()) {
                reasons.entry((place, why)).or_default().push(row.label.clone());
            }
        }
    }
    reasons
}

/// On a terminal.
pub fn text(audit: &Audit, style: Style) -> String {
    doc(audit, style.full).text(style)
}

/// For a ticket or a wiki.
pub fn markdown(audit: &Audit) -> String {
    doc(audit, true).markdown()
}

pub(crate) fn doc(audit: &Audit, full: bool) -> Doc {
    let alone = is_alone(audit);
    let doc = hazards(Doc::new("Audit"), audit, full);
    let shown: Vec<&AuditRow> = audit.rows.iter().filter(|row| is_known(row)).collect();
    let legend = if alone { "! hazard" } else { "≠ differs, ! hazard" };
    let doc = doc.section("parameters", legend).table(parameters(audit, &shown));
    reasons(audit).into_iter().fold(doc, |doc, ((place, why), labels)| {
        let whose = if alone { String::new() } else { format!(" of the {place}") };
        let few = if full { labels.len() } else { FEW };
        let names = labels.iter().take(few).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more =
            if labels.len() > few { format!(" and {} more (--full)", labels.len() - few) } else { String::new() };
        doc.method(&format!("not known{whose}: {names}{more}: {why}"))
    })
}

fn parameters(audit: &Audit, rows: &[&AuditRow]) -> Table {
    let name = |side: &str, name: &Option<String>| {
        name.as_ref().map(|name| Column::words(&if is_alone(audit) { name.clone() } else { titled(side, name) }))
    };
    let ends = [name("client", &audit.client), name("server", &audit.server)];
    let columns: Vec<_> = std::iter::once(Column::words("")).chain(ends.into_iter().flatten()).collect();
    let mut table = Table::new("", "", &columns);
    for (at, row) in rows.iter().enumerate() {
        let first = at == 0 || rows[at - 1].group != row.group;
        let hazard = if row.hazards.is_empty() { ' ' } else { '!' };
        let name = Cell::new(format!("{}{hazard} {}", if row.differs { '≠' } else { ' ' }, row.label));
        let ends = [(Place::Client, &audit.client, &row.client), (Place::Server, &audit.server, &row.server)];
        let cells =
            ends.into_iter().filter(|(_, name, _)| name.is_some()).map(|(place, _, of)| value(audit, row, place, of));
        let row_of = Row::new(std::iter::once(name).chain(cells).collect());
        table.rows.push(row_of.group(first.then(|| row.group.title())));
    }
    table
}

/// The value of an end; of two hosts only the one that has the hazard is marked.
fn value(audit: &Audit, row: &AuditRow, place: Place, of: &Option<Value>) -> Cell {
    let hazard = has_hazard(audit, row, place);
    let mark = if hazard && !is_alone(audit) { MARK } else { "" };
    let cell = Cell::new(of.as_ref().map_or("–", |cell| &cell.text).to_owned() + mark);
    cell.tone_if(row.differs, Tone::Mark).tone_if(hazard, Tone::Bad)
}

fn hazards(doc: Doc, audit: &Audit, full: bool) -> Doc {
    if audit.hazards.is_empty() {
        return doc.plain("No hazard found. Only a diagnosis under load says whether something limits the path.");
    }
    let count = plural(audit.hazards.len() as u64, "hazard");
    let doc = doc.section(&count, "none is a verdict: narrows diagnose says what limits the path");
    audit.hazards.iter().fold(doc, |doc, hazard| {
        let doc = doc.pairs(of(hazard, is_alone(audit), full));
        hazard.command.iter().fold(doc, |doc, command| doc.commands("", [command.clone()]))
    })
}

fn of(hazard: &Hazard, alone: bool, full: bool) -> Vec<Pair> {
    let tone = match hazard.severity {
        Severity::Warning => Tone::Bad,
        Severity::Notice => Tone::Mark,
        Severity::Info => Tone::Faint,
    };
    let at = if alone { String::new() } else { format!(" ({})", hazard.at) };
    let mut all = vec![Pair::new(hazard.severity.word(), &format!("{}{at}: {}", hazard.id, hazard.says)).tone(tone)];
    if full || hazard.severity == Severity::Warning {
        all.push(Pair::new("", &format!("Why: {}", hazard.matters)));
        all.push(Pair::new("", &format!("Harmless: {}", hazard.harmless)));
    }
    all
}
