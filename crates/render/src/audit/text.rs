//! The audit on a terminal.

use super::{is_alone, is_known, reasons};
use crate::style::{Style, Tone};
use crate::text::hosts::{NARROW, titled, widths};
use crate::text::page::Page;
use crate::words::{clean, columns, fit, left, plural};
use narrows_model::host::side_by_side::Cell;
use narrows_model::{Audit, AuditRow, Hazard, Severity};

/// Parameters that are not known are folded: so many are named for each reason.
const FEW: usize = 3;

/// The whole audit: the hazards, then the parameters in groups.
pub fn audit(audit: &Audit, style: Style) -> String {
    let mut page = Page::new(style);
    hazards(&mut page, audit);
    page.blank();
    head(&mut page, audit);
    let mut group = None;
    for row in audit.rows.iter().filter(|row| style.full && !is_alone(audit) || is_known(row)) {
        if group != Some(row.group) {
            page.heading(row.group.title(), "");
            group = Some(row.group);
        }
        line(&mut page, audit, row);
    }
    for ((place, why), labels) in reasons(audit) {
        page.blank();
        let (lead, whose) = if is_alone(audit) { ("", String::new()) } else { ("– ", format!(" of the {place}")) };
        let few = if style.full { labels.len() } else { FEW };
        let names = labels.iter().take(few).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more =
            if labels.len() > few { format!(" and {} more (--full)", labels.len() - few) } else { String::new() };
        let text = format!("not known{whose}: {}{more}: {}", clean(&names), clean(&why));
        page.labelled(lead, &text, Some(Tone::Faint));
    }
    page.finish()
}

fn head(page: &mut Page, audit: &Audit) {
    let (label, cell) = room(page, audit);
    let text = match (&audit.client, &audit.server) {
        (Some(client), Some(server)) => {
            let names = [titled("client", client), titled("server", server)].map(|name| left(&name, cell));
            left("≠ differs, ! hazard", label + 3) + &names.concat()
        }
        (Some(name), None) | (None, Some(name)) => left("! hazard", label + 2) + &clean(name),
        (None, None) => String::new(),
    };
    let text = page.style().paint(Tone::Strong, text.trim_end());
    page.line(&text);
}

/// Widths of the label and of each cell; a host alone gets the room of both.
fn room(page: &Page, audit: &Audit) -> (usize, usize) {
    let (label, mut cell) = widths(page.width() - 1);
    if page.style().wide {
        let cells = audit.rows.iter().flat_map(|row| [&row.client, &row.server]).flatten();
        cell = cells.map(|it| columns(&it.text) + 1).chain([cell]).max().unwrap_or(cell);
    }
    if audit.client.is_some() && audit.server.is_some() { (label, cell) } else { (label, 2 * cell) }
}

fn line(page: &mut Page, audit: &Audit, row: &AuditRow) {
    let (label, cell) = room(page, audit);
    let narrow = page.width() < NARROW;
    let differs = if row.differs { "≠" } else { " " };
    let hazard = if row.hazards.is_empty() { " " } else { "!" };
    let mark = if is_alone(audit) { hazard.to_owned() } else { format!("{differs}{hazard}") };
    if narrow {
        let lead = format!("{mark} {}: ", clean(&row.label));
        let of = |name: &Option<String>, cell: &Option<Cell>| {
            name.as_ref().map(|_| clean(cell.as_ref().map_or("–", |cell| &cell.text)))
        };
        let cells: Vec<String> =
            [of(&audit.client, &row.client), of(&audit.server, &row.server)].into_iter().flatten().collect();
        return page.labelled(&lead, &cells.join(" | "), row.differs.then_some(Tone::Mark));
    }
    let side = |name: &Option<String>, cell_of: &Option<Cell>| {
        let text = cell_of.as_ref().map_or("–", |cell| cell.text.as_str());
        name.as_ref().map(|_| left(&fit(&clean(text), cell - 1), cell))
    };
    let cells = [side(&audit.client, &row.client), side(&audit.server, &row.server)];
    let text = format!("{mark} {}{}", left(&clean(&row.label), label), cells.into_iter().flatten().collect::<String>());
    let tone = if row.hazards.is_empty() { row.differs.then_some(Tone::Mark) } else { Some(Tone::Bad) };
    let text = text.trim_end();
    page.line(&tone.map_or_else(|| text.to_owned(), |tone| page.style().paint(tone, text)));
}

fn hazards(page: &mut Page, audit: &Audit) {
    if audit.hazards.is_empty() {
        page.line("No hazard found. Only a diagnosis under load says whether something limits the path.");
        return;
    }
    let count = plural(audit.hazards.len() as u64, "hazard");
    page.heading(&count, "(none is a verdict: narrows diagnose says what limits the path)");
    for hazard in &audit.hazards {
        one_hazard(page, hazard, is_alone(audit));
    }
}

fn one_hazard(page: &mut Page, hazard: &Hazard, alone: bool) {
    let tone = match hazard.severity {
        Severity::Warning => Tone::Bad,
        Severity::Notice => Tone::Mark,
        Severity::Info => Tone::Faint,
    };
    let at = if alone { String::new() } else { format!("{} ", left(hazard.at.word(), 7)) };
    let lead = format!("{} {at}", left(hazard.severity.word(), 8));
    page.labelled(&lead, &format!("{}: {}", clean(&hazard.id), clean(&hazard.says)), Some(tone));
    let indent = " ".repeat(lead.len());
    if page.style().full || hazard.severity == Severity::Warning {
        page.labelled(&indent, &format!("Why: {}", clean(&hazard.matters)), None);
        page.labelled(&indent, &format!("Harmless: {}", clean(&hazard.harmless)), None);
    }
    if let Some(command) = &hazard.command {
        page.line(&format!("{indent}$ {}", clean(command)));
    }
}
