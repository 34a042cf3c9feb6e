//! The audit for a ticket or a wiki.

use super::{is_alone, is_known, reasons};
use crate::markdown::{code, table, text};
use narrows_model::host::side_by_side::Cell;
use narrows_model::{Audit, AuditRow, Place};

/// The whole audit, hazards first: a page is read from the top.
pub fn audit(audit: &Audit) -> String {
    let mut out = String::from("# Audit\n");
    if !audit.hazards.is_empty() {
        out.push_str("\n## Hazards\n\n");
        let row = |hazard: &narrows_model::Hazard| {
            vec![
                hazard.severity.word().to_owned(),
                hazard.at.to_string(),
                format!("`{}`: {}", code(&hazard.id), text(&hazard.says)),
                text(&hazard.matters),
                text(&hazard.harmless),
                hazard.command.as_ref().map(|command| format!("`{}`", code(command))).unwrap_or_default(),
            ]
        };
        let mut rows: Vec<_> = audit.hazards.iter().map(row).collect();
        let mut head = vec!["Severity", "At", "What", "Why it matters", "When it does not", "Command"];
        if is_alone(audit) {
            head.remove(1);
            rows.iter_mut().for_each(|row| drop(row.remove(1)));
        }
        out += &table(&head, &rows);
    }
    let shown: Vec<&AuditRow> = audit.rows.iter().filter(|row| is_known(row)).collect();
    for group in shown.chunk_by(|a, b| a.group == b.group) {
        let Some(first) = group.first() else { continue };
        out += &format!("\n## {}\n\n", first.group.title());
        out += &rows(audit, group);
    }
    let reasons = reasons(audit);
    if !reasons.is_empty() {
        out.push_str("\n## Not known\n\n");
        for ((place, why), labels) in reasons {
            let whose = if is_alone(audit) { String::new() } else { format!("{place}: ") };
            out += &format!("- {whose}{}: {}\n", text(&labels.join(", ")), text(&why));
        }
    }
    out
}

fn rows(audit: &Audit, group: &[&AuditRow]) -> String {
    let name = |side: &str, name: &Option<String>| {
        name.as_ref().map(|name| if is_alone(audit) { text(name) } else { format!("{side} ({})", text(name)) })
    };
    let mut head = vec![String::new(), "Parameter".to_owned()];
    head.extend(name("Client", &audit.client));
    head.extend(name("Server", &audit.server));
    let cell = |name: &Option<String>, cell: &Option<Cell>| {
        name.as_ref().map(|_| cell.as_ref().map_or_else(|| "–".to_owned(), |cell| text(&cell.text)))
    };
    let row = |row: &&AuditRow| {
        let mut cells = vec![marks(audit, row).join(" "), text(&row.label)];
        cells.extend(cell(&audit.client, &row.client));
        cells.extend(cell(&audit.server, &row.server));
        cells
    };
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table(&head, &group.iter().map(row).collect::<Vec<_>>())
}

/// That the ends differ, and the ids of the row's hazards, with the end of those that are at one.
fn marks(audit: &Audit, row: &AuditRow) -> Vec<String> {
    let mut marks: Vec<String> = row.differs.then(|| "≠".to_owned()).into_iter().collect();
    for id in &row.hazards {
        let at = audit.hazards_of(row).filter(|hazard| hazard.id == *id && hazard.at != Place::Path);
        let at: Vec<&str> = at.map(|hazard| hazard.at.word()).collect();
        let at = if at.len() == 1 && !is_alone(audit) { format!(" ({})", at.concat()) } else { String::new() };
        marks.push(format!("`{}`{at}", code(id)));
    }
    marks
}
