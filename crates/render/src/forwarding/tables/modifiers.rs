//! Traffics with a modifier beside the same frames without it (RFC 2544, section 11).

use super::super::sized::{each, frames, row, sized};
use super::super::words::size;
use crate::figures::{digits, grouped, nanos};
use crate::style::Tone;
use crate::table::{Cell, Column, Table};
use crate::words::rounded;
use narrows_model::forwarding::report::{ForwardingReport, ModifierView};

/// One row for each size under a modifier.
pub(in super::super) fn modifiers(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("passes"),
        Column::figures("without"),
        Column::figures("of that"),
        Column::words("seen of it in the trials kept"),
    ];
    let mut table = sized(report, "Modifiers", "throughput with each, and without (RFC 2544, section 11)", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.modified else { continue };
        let cells = vec![
            frames(it.modified).tone(Tone::Strong),
            frames(it.unmodified),
            Cell::maybe(it.ratio.map(|it| format!("{} %", digits(it * 100.0)))).tone(Tone::Strong),
            Cell::maybe(it.seen.as_ref().map(told)).tone_if(it.seen.as_ref().is_some_and(is_trouble), Tone::Bad),
        ];
        let row = row(report, &table, traffic, Cell::new(size(view.size)), cells);
        table.rows.push(row.note(it.remark.clone()).note(it.seen.as_ref().and_then(why)));
    }
    table
}

fn told(of: &ModifierView) -> String {
    match of {
        ModifierView::Broadcast { sent, received } => {
            format!("{} sent, {} came out", grouped(*sent), grouped(*received))
        }
        ModifierView::Management { asked, answered, answer_ns, .. } => {
            let time = answer_ns.map(|it| format!(" in {}", nanos(rounded(it.median)))).unwrap_or_default();
            format!("{} of {} answered{time}", grouped(*answered), grouped(*asked))
        }
        ModifierView::Routes { announced, withdrawn, learned, .. } => {
            let learned = learned.map_or_else(|| "not known what was".to_owned(), grouped);
            format!("{} sent, {learned} learned", grouped(announced.saturating_add(*withdrawn)))
        }
    }
}

fn is_trouble(of: &ModifierView) -> bool {
    matches!(of, ModifierView::Management { asked, answered, .. } if answered < asked)
}

fn why(of: &ModifierView) -> Option<String> {
    match of {
        ModifierView::Broadcast { .. } => None,
        ModifierView::Management { asked, answered, wrong, why, .. } => {
            let silent = asked.saturating_sub(*answered).saturating_sub(*wrong);
            let counts = match (silent, wrong) {
                (0, 0) => return why.clone(),
                (silent, 0) => format!("{} not answered", grouped(silent)),
                (0, wrong) => format!("{} answered wrongly", grouped(*wrong)),
                (silent, wrong) => format!("{} not answered, {} answered wrongly", grouped(silent), grouped(*wrong)),
            };
            Some(why.as_ref().map_or_else(|| counts.clone(), |why| format!("{counts}: {why}")))
        }
        ModifierView::Routes { learned: Some(0), why: None, .. } => Some(
            "no route of them came up: it speaks no RIP version 2 there, or takes it from other neighbours".to_owned(),
        ),
        ModifierView::Routes { why, .. } => why.clone(),
    }
}
