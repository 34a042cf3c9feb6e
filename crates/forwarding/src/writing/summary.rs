//! Sentences of a report that every format has.

use crate::data::report::{BooksView, ForwardingReport};
use narrows_render::figures::{float, grouped};

/// How the accounts reconcile, in a sentence.
pub(super) fn reconciliation(report: &ForwardingReport) -> String {
    let it = &report.reconciliation;
    match (it.books, it.disagree) {
        (0, _) => "not available".to_owned(),
        (1, 0) => "the device counters of the one trial add up".to_owned(),
        (all, 0) => format!("the device counters add up to the loss in each of the {} trials kept", grouped(all)),
        (all, some) => {
            format!(
                "the device counters add up in {} of the {} trials kept; in {} they disagree",
                grouped(it.balanced),
                grouped(all),
                grouped(some)
            )
        }
    }
}

/// The heading of a trial's account.
pub(super) fn title(view: &BooksView) -> String {
    let way = if view.direction.is_empty() { String::new() } else { format!(", {}", view.direction) };
    format!("Accounting of {}{way}", view.trial.name)
}

/// What follows from the account of a trial, in sentences.
pub(super) fn findings(view: &BooksView) -> Vec<String> {
    let sent = view.books.lines.first().and_then(|line| line.output);
    let share = sent.filter(|sent| *sent > 0).map(|sent| {
        let part = view.books.lost as f64 / float(sent);
        format!(" ({})", narrows_render::figures::ratio(part))
    });
    let lost = match view.books.lost {
        0 => "nothing was lost".to_owned(),
        lost @ 1.. => format!("{}{} lost", grouped(lost.unsigned_abs()), share.unwrap_or_default()),
        more => format!("{} more received than sent", grouped(more.unsigned_abs())),
    };
    let mut list = vec![lost];
    list.extend(view.books.broadcast.map(|it| match it.received {
        0 => format!("{} to the broadcast MAC address were correctly not forwarded", grouped(it.sent)),
        came => format!("{} to the broadcast MAC address, of which {} were forwarded", grouped(it.sent), grouped(came)),
    }));
    list.extend(view.books.found.iter().cloned());
    list
}
