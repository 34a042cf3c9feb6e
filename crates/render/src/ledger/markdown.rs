//! The packet ledger in Markdown: the waterfall as a table, each row with the packets that remain after it.

use super::rows::{count, dropped, missing, names, receiver, remainder_words, silent};
use crate::figures::{float, grouped, grouped_signed, ratio, success};
use crate::markdown::text;
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table, markdown};
use narrows_model::{Ledger, Report};

/// The ledgers of a diagnosis: those with losses, or those of a load without a roofline.
pub(crate) fn write(out: &mut String, report: &Report) {
    let all = report.accounts.roofline.is_empty();
    for ledger in report.accounts.ledger.iter().filter(|ledger| all || missing(ledger) > 0) {
        *out += &one(ledger);
    }
}

/// The ledger of a flow.
pub fn one(ledger: &Ledger) -> String {
    let way = ledger.flow.direction();
    let columns = [
        Column::words("Stage"),
        Column::words("At"),
        Column::figures("Dropped"),
        Column::figures("Share"),
        Column::figures("Left"),
        Column::words("Source"),
    ];
    let mut table = Table::new(format!("Packet ledger ({}), {way}", ledger.unit), "", &columns);
    let row = |cells: [&str; 6]| Row::new(cells.iter().map(Cell::new).collect());
    let offered = float(ledger.offered);
    let share = |packets: u64| if ledger.offered > 0 { ratio(float(packets) / offered) } else { "–".to_owned() };
    table.rows.push(row(["offered", ledger.flow.sender().word(), "", "", &grouped(ledger.offered), ""]));
    for it in dropped(ledger) {
        let after = ledger.offered.saturating_sub(it.before).saturating_sub(it.stage.dropped);
        let (dropped, part, after) = (count(it.stage), share(it.stage.dropped), grouped(after));
        table.rows.push(row([&it.stage.id, it.stage.at.word(), &dropped, &part, &after, &it.stage.source]));
    }
    let arrived = if ledger.offered > 0 { success(float(ledger.delivered) / offered) } else { String::new() };
    let delivered = [
        Cell::new("delivered").tone(Tone::Strong),
        Cell::new(receiver(ledger).word()),
        Cell::new(""),
        Cell::new(arrived),
        Cell::new(grouped(ledger.delivered)).tone(Tone::Strong),
        Cell::new(""),
    ];
    table.rows.push(Row::new(delivered.into_iter().collect()));
    if ledger.duplicated > 0 {
        table.rows.push(row(["duplicates", receiver(ledger).word(), "", "", &grouped(ledger.duplicated), ""]));
    }
    let left = format!("{} ± {}", grouped_signed(ledger.unexplained), grouped(ledger.uncertainty));
    table.rows.push(row(["unexplained", "", &left, "", "", remainder_words(ledger)]));
    let mut out = markdown(&table, 2);
    let (silent, blind) = silent(ledger);
    let mut lines: Vec<String> = Vec::new();
    if !silent.is_empty() {
        lines.push(format!("No drops: {}", text(&names(&silent))));
    }
    if !blind.is_empty() {
        lines.push(format!("Not counted: {}", text(&names(&blind))));
    }
    lines.extend(ledger.remarks.iter().map(|remark| text(remark)));
    if !lines.is_empty() {
        out.push('\n');
    }
    lines.iter().for_each(|line| out += &format!("- {line}\n"));
    out
}
