//! Throughput, and what the tester carries by itself.

use super::super::words::size;
use super::sized::{bits, each, frames, row, share, sized};
use crate::figures::grouped;
use crate::style::Tone;
use crate::table::{Cell, Column, Table};
use narrows_model::forwarding::report::{ForwardingReport, GoalOfSize};
use narrows_model::run::search::Outcome;

/// Throughput per traffic, size and goal, with the lines that it is held against.
pub(in super::super) fn throughput(report: &ForwardingReport) -> Table {
    let goals = each(report).filter_map(|it| it.1.throughput.as_ref()).map(|it| it.goals.len()).max().unwrap_or(0);
    let mut columns = Vec::new();
    columns.extend((goals > 1).then(|| Column::words("goal")));
    columns.extend([
        Column::figures("passes"),
        Column::figures("of line"),
        Column::figures("on the wire"),
        Column::figures("fails").spare(3),
        Column::figures("line rate").spare(2),
        Column::words("outcome"),
        Column::figures("trials").spare(4),
    ]);
    let remark = "highest load within the goal; sizes with FCS";
    let mut table = sized(report, "Throughput", remark, &columns);
    for (traffic, view) in each(report) {
        let Some(search) = &view.throughput else { continue };
        for (at, goal) in search.goals.iter().enumerate() {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new(&goal.goal.name)));
            cells.extend([
                frames(goal.lower).tone(Tone::Strong),
                share(goal.lower),
                bits(goal.lower),
                frames(goal.upper),
                frames(Some(view.line)),
                Cell::new(&goal.word).tone(tone(goal)),
                if at == 0 { Cell::new(grouped(search.trials)) } else { Cell::new("") },
            ]);
            let first = if at == 0 { Cell::new(size(view.size)) } else { Cell::new("") };
            let row = row(report, &table, traffic, first, cells).note(goal.why.clone());
            let invalid = (at + 1 == search.goals.len() && search.invalid > 0).then(|| {
                let are = if search.invalid == 1 { "is" } else { "are" };
                format!("{} of its {} trials {are} invalid", grouped(search.invalid), grouped(search.trials))
            });
            table.rows.push(row.note(invalid));
        }
        if let Some(it) = &view.estimate {
            let mut cells = Vec::new();
            cells.extend((goals > 1).then(|| Cell::new("")));
            let rate = Some(it.rate);
            cells.extend([frames(rate), share(rate), bits(rate), Cell::new("–"), frames(Some(view.line))]);
            cells.push(Cell::new("estimate").tone(Tone::Mark));
            let row = row(report, &table, traffic, Cell::new("mix"), cells);
            table.rows.push(row.note(Some(format!("an estimate, not measured: {}", it.method))));
        }
    }
    table
}

fn tone(goal: &GoalOfSize) -> Tone {
    match goal.outcome {
        Outcome::Found => Tone::Good,
        Outcome::MaxLoadPasses if !goal.is_at_least() => Tone::Good,
        Outcome::MinLoadFails => Tone::Bad,
        Outcome::MaxLoadPasses | Outcome::Unfinished | Outcome::TesterLimited(_) => Tone::Mark,
    }
}

/// What the tester carries by itself.
pub(in super::super) fn tester(report: &ForwardingReport) -> Table {
    let columns = [
        Column::figures("carries"),
        Column::figures("of line"),
        Column::figures("on the wire"),
        Column::words("how it was found"),
    ];
    let mut table = sized(report, "The tester by itself", "a result at this limit is the tester's", &columns);
    for (traffic, view) in each(report) {
        let Some(it) = &view.tester else { continue };
        let rate = Some(it.rate);
        let cells = vec![frames(rate), share(rate), bits(rate), Cell::new(&it.method)];
        table.rows.push(row(report, &table, traffic, Cell::new(size(view.size)), cells));
    }
    table
}
