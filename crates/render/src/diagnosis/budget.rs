//! The time budget of the sender: one stacked bar and its legend.

use super::places::on;
use crate::doc::{Doc, Sentence};
use crate::style::Tone;
use crate::table::{Cell, Column, Row, Table};
use crate::words::{clean, rounded, share, wrap};
use narrows_model::run::report::PhaseView;
use narrows_model::words::units::{bps, grouped, micros};
use narrows_model::{Report, Status, TimeBudget};

/// The parts in the order of the budget: their fill and their name.
pub(crate) fn parts(budget: &TimeBudget) -> [(char, &'static str, f64); 6] {
    [
        ('█', "receiver's window full", budget.receive_window),
        ('▓', "send buffer full", budget.send_buffer),
        ('▒', "congestion window, pacing or queue", budget.congestion_window),
        ('░', "recovering from loss", budget.recovery),
        ('·', "application idle", budget.app_idle),
        ('?', "unexplained", budget.unexplained),
    ]
}

/// The phases of the load and the account of each, in sentences.
fn phases(report: &Report) -> Vec<String> {
    let words = |phase: &PhaseView| {
        let rate = format!("{} from {:.1} to {:.1} s", bps(phase.goodput_bps), phase.from_s, phase.to_s);
        let rtt = phase.rtt_us.map(|us| format!("RTT {}", micros(rounded(us))));
        let lost = phase.retransmitted.zip(phase.sent);
        let lost = lost.map(|(again, sent)| format!("{} of {} segments retransmitted", grouped(again), grouped(sent)));
        let time = phase.shares.map(|it| {
            let [window, buffer, rest] = [it.receive_window, it.send_buffer, it.rest].map(share);
            format!("receiver's window full {window}, send buffer full {buffer}, rest {rest}")
        });
        [Some(rate), rtt, lost, time].into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    report.accounts.phases.iter().map(words).collect()
}

pub(super) fn add(doc: Doc, report: &Report) -> Doc {
    let doc = if report.accounts.phases.is_empty() {
        doc
    } else {
        let all: Vec<_> = phases(report).iter().map(|phase| Sentence::new(phase)).collect();
        doc.heading("the rate changed during the load").sentences(all)
    };
    let Some(budget) = report.accounts.time_budget else { return doc };
    let columns = [Column::words("Part"), Column::figures("Share")];
    let mut table = Table::new("", "", &columns);
    table.rows.extend(parts(&budget).map(|(_, name, part)| Row::new(vec![Cell::new(name), Cell::new(share(part))])));
    doc.section("where the sender's time went", "what its TCP waited for, as shares of the time")
        .drawing(move |wide| drawn(&budget, wide - 2))
        .on_paper(table)
        .sentences(waits_behind(report).map(|words| Sentence::new(&words).tone(Tone::Faint)))
}

/// A stacked bar, and its legend below it.
fn drawn(budget: &TimeBudget, wide: usize) -> Vec<String> {
    let parts = parts(budget);
    let shares = apportion(parts.map(|(_, _, part)| part), wide);
    let bar = parts.iter().zip(shares).flat_map(|((fill, ..), share)| std::iter::repeat_n(*fill, share)).collect();
    let mut named: Vec<_> = parts.into_iter().filter(|(_, _, part)| *part >= 0.0005).collect();
    named.sort_by(|a, b| b.2.total_cmp(&a.2));
    let legend: Vec<_> = named
        .iter()
        .map(|(fill, name, part)| format!("{fill} {} {name}", share(*part)).replace(' ', "\u{a0}"))
        .collect();
    let legend = wrap(&legend.join(" "), wide).into_iter().map(|line| line.replace(' ', "   ").replace('\u{a0}', " "));
    std::iter::once(bar).chain(legend).collect()
}

/// Why a cause that is not in the budget is none the less the cause: most of the time went on waiting for acknowledgements, and TCP does
/// not see what delays them.
fn waits_behind(report: &Report) -> Option<String> {
    let budget = report.accounts.time_budget.as_ref()?;
    let cause = report.verdict.causes.first()?;
    let limited = matches!(report.verdict.status, Status::Limited | Status::Suspected);
    // A window, a buffer or an application has a share of its own.
    let own = budget.receive_window + budget.send_buffer + budget.app_idle;
    (limited && budget.congestion_window > 0.5 && own < 0.2).then(|| {
        format!(
            "TCP sees only that it waits (for ACKs, pacing or a local queue), not why; {} {} appears in this share.",
            clean(&cause.id),
            on(cause.at, report)
        )
    })
}

/// Whole columns for fractions that sum to about 1, by the largest remainder method.
fn apportion<const N: usize>(parts: [f64; N], wide: usize) -> [usize; N] {
    let parts = parts.map(|part| if part.is_finite() { part.max(0.0) } else { 0.0 });
    let total: f64 = parts.iter().sum();
    if total <= 0.0 {
        return [0; N];
    }
    let exact = parts.map(|part| part / total * wide as f64);
    let mut columns = exact.map(|x| x.floor() as usize);
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let left = wide.saturating_sub(columns.iter().sum());
    for &at in order.iter().take(left) {
        columns[at] += 1;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_sum_to_the_width() {
        for parts in [[0.97, 0.01, 0.02, 0.0, 0.0, 0.0], [1.0 / 6.0; 6], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]] {
            assert_eq!(apportion(parts, 76).iter().sum::<usize>(), 76);
        }
        assert_eq!(apportion([0.0; 6], 76), [0; 6]);
        assert_eq!(apportion([f64::NAN, 1.0], 10), [0, 10]);
    }
}
