//! Traffics with a modifier beside the same frames without it (RFC 2544, section 11).

use super::super::sized::{Figure, frames, of_sizes};
use crate::data::report::{ForwardingReport, ModifiedView, ModifierView, SizeView};
use narrows_render::figures::{digits, grouped, nanos};
use narrows_render::style::Tone;
use narrows_render::table::{Cell, Column, Table};
use narrows_render::words::rounded;

/// One row for each size under a modifier.
pub(in super::super) fn modifiers(report: &ForwardingReport) -> Table {
    let figures: [Figure<'_, ModifiedView>; 4] = [
        (Column::figures("passes"), &|it| frames(it.modified).tone(Tone::Strong)),
        (Column::figures("without"), &|it| frames(it.unmodified)),
        (Column::figures("of that"), &|it| {
            Cell::maybe(it.ratio.map(|it| format!("{} %", digits(it * 100.0)))).tone(Tone::Strong)
        }),
        (Column::words("seen in the trials kept"), &|it| {
            Cell::maybe(it.seen.as_ref().map(seen_words)).tone_if(it.seen.as_ref().is_some_and(is_trouble), Tone::Bad)
        }),
    ];
    let words = ["Modifiers", "throughput with and without each modifier (RFC 2544, section 11)"];
    let notes = |it: &ModifiedView| [it.remark.clone(), it.seen.as_ref().and_then(why)].into_iter().flatten();
    of_sizes(report, words, other_than_table, &figures, notes)
}

/// Tables of the device have a section of their own.
fn other_than_table(of: &SizeView) -> Option<&ModifiedView> {
    of.modified.as_ref().filter(|it| !matches!(it.seen, Some(ModifierView::Table(_))))
}

fn seen_words(of: &ModifierView) -> String {
    match of {
        ModifierView::Broadcast { sent, received } => {
            format!("{} sent, {} received", grouped(*sent), grouped(*received))
        }
        ModifierView::Management { asked, answered, answer_ns, .. } => {
            let time = answer_ns.map(|it| format!(" in {}", nanos(rounded(it.median)))).unwrap_or_default();
            format!("{} of {} answered{time}", grouped(*answered), grouped(*asked))
        }
        ModifierView::Table(_) => String::new(),
        ModifierView::Routes { announced, withdrawn, learned, .. } => {
            let learned = learned.map_or_else(|| "number of learned routes unknown".to_owned(), grouped);
            format!("{} sent, {learned} learned", grouped(announced.saturating_add(*withdrawn)))
        }
    }
}

fn is_trouble(of: &ModifierView) -> bool {
    matches!(of, ModifierView::Management { asked, answered, .. } if answered < asked)
}

fn why(of: &ModifierView) -> Option<String> {
    match of {
        ModifierView::Broadcast { .. } | ModifierView::Table(_) => None,
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
            "none became a route: the device does not run RIP version 2 on that port, or accepts it from other \
            neighbours only"
                .to_owned(),
        ),
        ModifierView::Routes { why, .. } => why.clone(),
    }
}
