//! The packet ledger as a waterfall: a row with a bar for each stage that dropped packets.

use super::rows::{balances, count, dropped, missing, names, receiver, remainder_words, silent, stages};
use crate::doc::{Doc, Sentence};
use crate::figures::{float, grouped, grouped_signed, ratio, success};
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use narrows_model::{Ledger, Report, Stage};

/// The ledgers of a trial on a terminal, one for each flow. Stages that dropped nothing are folded unless `style.full`.
pub fn text(ledgers: &[Ledger], style: Style) -> String {
    ledgers.iter().fold(Doc::new(""), |doc, it| one(doc, it, style.full)).text(style)
}

/// The same for a ticket or a wiki.
pub fn markdown(ledgers: &[Ledger]) -> String {
    ledgers.iter().fold(Doc::new("Packet ledger"), |doc, it| one(doc, it, false)).markdown()
}

/// The ledgers of a diagnosis: with `full` all, else those with losses or of a load without a roofline.
pub(crate) fn add(doc: Doc, report: &Report, full: bool) -> Doc {
    let all = full || report.accounts.roofline.is_empty();
    let shown = report.accounts.ledger.iter().filter(|ledger| all || missing(ledger) > 0);
    shown.fold(doc, |doc, ledger| one(doc, ledger, full))
}

fn one(doc: Doc, ledger: &Ledger, full: bool) -> Doc {
    let missing = missing(ledger);
    let remark = match missing {
        0 => "% of offered".to_owned(),
        n => format!("% of offered; bars: {} not delivered", grouped(n)),
    };
    let columns = [
        Column::id("stage"),
        Column::words("at").spare(1),
        Column::figures("packets"),
        Column::figures("share"),
        Column::figures("left").on_paper(),
        Column::words("source").below(),
    ];
    let mut table = Table::new("", "", &columns).headless();
    let row = |cells: [&str; 6], tone: Option<Tone>| {
        Row::new(cells.iter().map(|cell| Cell { tone, ..Cell::new(cell) }).collect())
    };
    let offered = float(ledger.offered);
    let of_offered = |packets: u64, words: fn(f64) -> String| {
        if ledger.offered > 0 { words(float(packets) / offered) } else { "–".to_owned() }
    };
    let all = grouped(ledger.offered);
    table.rows.push(row(["offered", ledger.flow.sender().word(), &all, "", &all, ""], None));
    let drops = dropped(ledger);
    let quiet = |stage: &Stage| {
        row([&stage.id, stage.at.word(), if stage.counted { "0" } else { "–" }, "", "", &stage.source], None)
    };
    for stage in stages(ledger) {
        match drops.iter().find(|row| std::ptr::eq(row.stage, stage)) {
            Some(it) => {
                let after = grouped(ledger.offered.saturating_sub(it.before).saturating_sub(stage.dropped));
                let share = of_offered(stage.dropped, ratio);
                let cells = [&stage.id, stage.at.word(), &count(stage), &share, &after, &stage.source];
                let (before, dropped) = (it.before, stage.dropped);
                let bar = move |wide: usize| bar(before, dropped, missing, wide.min(BAR));
                table.rows.push(row(cells, Some(Tone::Bad)).bar(Some(Tone::Bad), bar));
            }
            None if full => table.rows.push(quiet(stage)),
            None => {}
        }
    }
    let (delivered, share) = (grouped(ledger.delivered), of_offered(ledger.delivered, success));
    let cells = ["delivered", receiver(ledger).word(), &delivered, &share, &delivered, ""];
    table.rows.push(row(cells, Some(Tone::Strong)));
    if ledger.duplicated > 0 {
        table.rows.push(row(["duplicates", receiver(ledger).word(), &grouped(ledger.duplicated), "", "", ""], None));
    }
    let left = format!("{} ± {}", grouped_signed(ledger.unexplained), grouped(ledger.uncertainty));
    let tone = if balances(ledger) { Tone::Good } else { Tone::Bad };
    table.rows.push(row(["unexplained", "", &left, "", "", remainder_words(ledger)], Some(tone)));
    let title = format!("packet ledger ({}), {}", ledger.unit, ledger.flow.direction());
    let (silent, blind) = if full { (Vec::new(), Vec::new()) } else { silent(ledger) };
    let folded = [("no drops", silent), ("not counted", blind)].into_iter().filter(|(_, stages)| !stages.is_empty());
    let folded = folded.map(|(word, stages)| Sentence::new(&format!("{word}: {}", names(&stages))).tone(Tone::Faint));
    let remarks = ledger.remarks.iter().map(|remark| Sentence::new(&format!("! {remark}")).tone(Tone::Mark));
    doc.section(&title, &remark).table(table).sentences(folded.chain(remarks))
}

/// The longest bar.
const BAR: usize = 24;

/// The bar of a stage: it begins where the one before ended, and is thick enough to be seen.
fn bar(before: u64, dropped: u64, missing: u64, wide: usize) -> String {
    let column =
        |packets: u64| (float(packets) / float(missing.max(1)) * wide as f64).round().min(wide as f64) as usize;
    let from = column(before).min(wide.saturating_sub(1));
    let to = column(before.saturating_add(dropped)).max(from + 1).min(wide);
    format!("{}{}{}", " ".repeat(from), "█".repeat(to - from), " ".repeat(wide - to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::columns;

    #[test]
    fn bars_follow_one_another_and_none_is_lost() {
        assert_eq!(bar(0, 12, 24, BAR), format!("{}{}", "█".repeat(12), " ".repeat(12)));
        assert_eq!(bar(12, 12, 24, BAR), format!("{}{}", " ".repeat(12), "█".repeat(12)));
        assert_eq!(bar(1_000_000, 1, 1_000_001, BAR).trim_start(), "█");
        assert_eq!(columns(&bar(u64::MAX, u64::MAX, 1, BAR)), BAR);
    }
}
