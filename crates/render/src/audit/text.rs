//! The audit on a terminal.

use super::{has_hazard, is_alone, is_known, reasons};
use crate::style::{Style, Tone};
use crate::text::hosts::{NARROW, titled, widths};
use crate::text::page::Page;
use crate::words::{clean, columns, fit, left, plural};
use narrows_model::host::side_by_side::Cell;
use narrows_model::{Audit, AuditRow, Hazard, Place, Severity};

/// Behind the value of the end that has the hazard.
const MARK: &str = " !";

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
        cell = cells.map(|it| columns(&it.text) + 1 + MARK.len()).chain([cell]).max().unwrap_or(cell);
    }
    if audit.client.is_some() && audit.server.is_some() { (label, cell) } else { (label, 2 * cell) }
}

fn line(page: &mut Page, audit: &Audit, row: &AuditRow) {
    let (label, cell) = room(page, audit);
    let narrow = page.width() < NARROW;
    let differs = if row.differs { "≠" } else { " " };
    let hazard = if row.hazards.is_empty() { " " } else { "!" };
    let mark = if is_alone(audit) { hazard.to_owned() } else { format!("{differs}{hazard}") };
    let ends = [(Place::Client, &audit.client, &row.client), (Place::Server, &audit.server, &row.server)];
    let ends = ends.into_iter().filter(|(_, name, _)| name.is_some());
    if narrow {
        let lead = format!("{mark} {}: ", clean(&row.label));
        let cells: Vec<String> =
            ends.map(|(place, _, cell)| clean(text(cell)) + mark_of(audit, row, place).unwrap_or_default()).collect();
        return page.labelled(&lead, &cells.join(" | "), row.differs.then_some(Tone::Mark));
    }
    let style = page.style();
    let mut line = format!("{mark} {}", left(&clean(&row.label), label));
    for (place, _, of) in ends {
        let mark = mark_of(audit, row, place);
        let value = fit(&clean(text(of)), cell - 1 - mark.map_or(0, str::len)) + mark.unwrap_or_default();
        let blanks = " ".repeat(cell.saturating_sub(columns(&value)));
        line += &tone(row, mark).map_or_else(|| value.clone(), |tone| style.paint(tone, &value));
        line += &blanks;
    }
    page.line(&line);
}

fn text(cell: &Option<Cell>) -> &str {
    cell.as_ref().map_or("–", |cell| &cell.text)
}

/// The mark of an end's value: of two hosts only the one that has the hazard gets it.
fn mark_of(audit: &Audit, row: &AuditRow, place: Place) -> Option<&'static str> {
    has_hazard(audit, row, place).then_some(if is_alone(audit) { "" } else { MARK })
}

const fn tone(row: &AuditRow, mark: Option<&str>) -> Option<Tone> {
    match (mark, row.differs) {
        (Some(_), _) => Some(Tone::Bad),
        (None, true) => Some(Tone::Mark),
        (None, false) => None,
    }
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
