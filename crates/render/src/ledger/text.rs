//! The packet ledger on a terminal: a row with a bar for each stage that dropped packets.

use super::rows::{Dropped, balances, count, dropped, missing, names, receiver, remainder_words, silent, stages};
use crate::figures::{float, grouped, grouped_signed, ratio, success};
use crate::style::{Style, Tone};
use crate::text::page::Page;
use crate::words::{clean, columns, left, right};
use narrows_model::{Ledger, Report, Stage};

const NAME: usize = 15;
const PLACE: usize = 7;
const COUNT: usize = 13;
const SHARE: usize = 8;
const BAR: usize = 24;
/// Everything before the bar, without the count.
const BEFORE_BAR: usize = 2 + NAME + 1 + PLACE + 2 + SHARE + 1;

/// The ledgers of a trial, one for each flow. Stages that dropped nothing are folded unless `style.full`.
pub fn ledgers(ledgers: &[Ledger], style: Style) -> String {
    let mut page = Page::new(style);
    for ledger in ledgers {
        one(&mut page, ledger);
    }
    page.finish()
}

/// The ledgers of a diagnosis: with `style.full` all, else those with losses or of a load without a roofline.
pub(crate) fn write(page: &mut Page, report: &Report) {
    let all = page.style().full || report.accounts.roofline.is_empty();
    for ledger in report.accounts.ledger.iter().filter(|ledger| all || missing(ledger) > 0) {
        one(page, ledger);
    }
}

fn one(page: &mut Page, ledger: &Ledger) {
    let way = ledger.flow.direction();
    let missing = missing(ledger);
    let unit = clean(&ledger.unit);
    let remark = match missing {
        0 => "(% of offered)".to_owned(),
        n => format!("(% of offered; bars: {} not delivered)", grouped(n)),
    };
    page.heading(&format!("packet ledger ({unit}), {way}"), &remark);
    let unexplained = format!("{} ± {}", grouped_signed(ledger.unexplained), grouped(ledger.uncertainty));
    // As wide as the widest, for a figure is whole.
    let counts = stages(ledger).map(count).chain([grouped(ledger.offered), unexplained.clone()]);
    let wide = counts.map(|text| columns(&text)).fold(COUNT, usize::max);
    let plain = |name: &str, at: &str, count: &str, share: &str| {
        format!("  {} {} {} {}", left(name, NAME), left(at, PLACE), right(count, wide), right(share, SHARE))
    };
    page.row(&plain("offered", ledger.flow.sender().word(), &grouped(ledger.offered), ""), None);
    if page.style().full {
        let rows = dropped(ledger);
        for stage in stages(ledger) {
            match rows.iter().find(|row| std::ptr::eq(row.stage, stage)) {
                Some(row) => drop_row(page, ledger, row, missing, wide),
                None => quiet_row(page, stage, wide),
            }
        }
    } else {
        dropped(ledger).iter().for_each(|row| drop_row(page, ledger, row, missing, wide));
    }
    let share =
        if ledger.offered > 0 { success(float(ledger.delivered) / float(ledger.offered)) } else { String::new() };
    let delivered = plain("delivered", receiver(ledger).word(), &grouped(ledger.delivered), &share);
    page.row(&delivered, Some(Tone::Strong));
    if ledger.duplicated > 0 {
        page.row(&plain("  duplicates", receiver(ledger).word(), &grouped(ledger.duplicated), ""), None);
    }
    let tone = if balances(ledger) { Tone::Good } else { Tone::Bad };
    let line = plain("unexplained", "", &unexplained, "");
    let words = remainder_words(ledger);
    if columns(&line) + 3 + columns(words) <= page.width() {
        page.line(&page.style().paint(tone, &format!("{line}   {words}")));
    } else {
        page.row(&line, Some(tone));
        page.labelled("      ", words, Some(tone));
    }
    if !page.style().full {
        let (silent, blind) = silent(ledger);
        if !silent.is_empty() {
            let text = format!("no drops: {}", names(&silent));
            page.labelled("  ", &text, Some(Tone::Faint));
        }
        if !blind.is_empty() {
            page.labelled("  ", &format!("not counted: {}", names(&blind)), Some(Tone::Faint));
        }
    }
    for remark in &ledger.remarks {
        page.labelled("  ! ", &clean(remark), Some(Tone::Mark));
    }
}

fn drop_row(page: &mut Page, ledger: &Ledger, row: &Dropped<'_>, missing: u64, wide: usize) {
    let stage = row.stage;
    let share = if ledger.offered > 0 { ratio(float(stage.dropped) / float(ledger.offered)) } else { "–".to_owned() };
    let lead = format!(
        "{} {} {} {} {}",
        left(&clean(&stage.id), NAME),
        left(stage.at.word(), PLACE),
        right(&count(stage), wide),
        right(&share, SHARE),
        bar(row.before, stage.dropped, missing, bar_columns(page, wide)),
    );
    source(page, &format!("  {lead}"), Some(Tone::Bad), stage, wide);
}

fn quiet_row(page: &mut Page, stage: &Stage, wide: usize) {
    let count = if stage.counted { "0".to_owned() } else { "–".to_owned() };
    let lead = format!(
        "  {} {} {} {} {}",
        left(&clean(&stage.id), NAME),
        left(stage.at.word(), PLACE),
        right(&count, wide),
        " ".repeat(SHARE),
        " ".repeat(bar_columns(page, wide)),
    );
    source(page, &lead, None, stage, wide);
}

/// The source of the count: beside the bar where there is room, else whole and below it.
fn source(page: &mut Page, lead: &str, tone: Option<Tone>, stage: &Stage, wide: usize) {
    let text = clean(&stage.source);
    if columns(&text) <= page.width().saturating_sub(BEFORE_BAR + wide + bar_columns(page, wide) + 1) {
        let lead = tone.map_or_else(|| lead.to_owned(), |tone| page.style().paint(tone, lead));
        page.line(&format!("{lead} {}", page.style().paint(Tone::Faint, &text)));
    } else {
        page.row(lead, tone);
        page.labelled("      ", &text, Some(Tone::Faint));
    }
}

/// A narrow page has a shorter bar.
fn bar_columns(page: &Page, wide: usize) -> usize {
    page.width().saturating_sub(BEFORE_BAR + wide).min(BAR)
}

/// The bar of a stage: it begins where the one before ended, and is thick enough to be seen.
fn bar(before: u64, dropped: u64, missing: u64, wide: usize) -> String {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to `wide`
    let column =
        |packets: u64| (float(packets) / float(missing.max(1)) * wide as f64).round().min(wide as f64) as usize;
    let from = column(before).min(wide.saturating_sub(1));
    let to = column(before.saturating_add(dropped)).max(from + 1).min(wide);
    format!("{}{}{}", " ".repeat(from), "█".repeat(to - from), " ".repeat(wide - to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_one_another_and_none_is_lost() {
        assert_eq!(bar(0, 12, 24, BAR), format!("{}{}", "█".repeat(12), " ".repeat(12)));
        assert_eq!(bar(12, 12, 24, BAR), format!("{}{}", " ".repeat(12), "█".repeat(12)));
        assert_eq!(bar(1_000_000, 1, 1_000_001, BAR).trim_start(), "█");
        assert_eq!(columns(&bar(u64::MAX, u64::MAX, 1, BAR)), BAR);
    }
}
