//! The whole in a few sentences: throughput per size, where frames were lost and why, what is invalid.

use super::size::word;
use crate::data::report::{ForwardingVerdict, InvalidTrial, LossPlace, Reconciliation, SizeView, TrafficView};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::words::figures::{grouped, of_line, pps};

/// Places and invalid trials that are named; the rest is counted.
const FEW: usize = 4;

pub(super) fn verdict(
    traffic: &[TrafficView],
    losses: &[LossPlace],
    books: &Reconciliation,
    invalid: &[InvalidTrial],
) -> ForwardingVerdict {
    ForwardingVerdict {
        throughput: traffic.iter().filter_map(throughput).collect(),
        losses: lost(losses, books),
        invalid: said_nothing(books, invalid),
    }
}

fn throughput(of: &TrafficView) -> Option<String> {
    let (full, below): (Vec<&SizeView>, Vec<&SizeView>) = of.sizes.iter().partition(|size| at_line_rate(size));
    let mut found: Vec<String> = below.into_iter().filter_map(one).collect();
    if !full.is_empty() {
        let all = if full.len() > 1 && full.len() == of.sizes.len() { "all sizes".to_owned() } else { together(&full) };
        found.push(format!("line rate at {all}"));
    }
    let each = if of.traffic.bidirectional { " each way" } else { "" };
    (!found.is_empty()).then(|| format!("{}: throughput{each} {}", of.name, found.join(", ")))
}

fn at_line_rate(of: &SizeView) -> bool {
    let goal = of.results.throughput.search.as_ref().and_then(|it| it.goals.first());
    goal.and_then(|goal| goal.lower?.of_line).is_some_and(|part| part > 0.9999)
}

/// `64, 128 B and the mix`.
fn together(of: &[&SizeView]) -> String {
    let sizes: Vec<String> = of.iter().filter_map(|it| it.size).map(|size| size.to_string()).collect();
    let mix = of.iter().any(|it| it.size.is_none());
    match (sizes.is_empty(), mix) {
        (false, false) => format!("{} B", sizes.join(", ")),
        (false, true) => format!("{} B and the mix", sizes.join(", ")),
        (true, _) => "the mix".to_owned(),
    }
}

/// `64 B 1.02 Mpps (68.3 %)`; `≥` where the device may carry more.
fn one(of: &SizeView) -> Option<String> {
    let goal = of.results.throughput.search.as_ref()?.goals.first()?;
    let size = word(of.size);
    let line = |of: &FrameRate| of.of_line.map(|part| format!(" ({})", of_line(part))).unwrap_or_default();
    Some(match (&goal.lower, &goal.unproven) {
        (Some(lower), _) => {
            let more = if goal.is_at_least() { "≥ " } else { "" };
            format!("{size} {more}{}{}", pps(lower.pps), line(lower))
        }
        (None, Some(unproven)) => format!("{size} not finished, {} passed so far", pps(unproven.pps)),
        (None, None) => format!("{size} none ({})", goal.word),
    })
}

fn lost(losses: &[LossPlace], books: &Reconciliation) -> Vec<String> {
    if books.books == 0 {
        return vec!["place of loss unknown: no accounting".to_owned()];
    }
    if losses.is_empty() || books.lost == 0 {
        return vec![match books.lost {
            0 => "no frame was lost in any valid trial".to_owned(),
            n => format!("{} frames were lost; too few to name a hop, within the counters' error", grouped(n)),
        }];
    }
    let mut list: Vec<String> = losses
        .iter()
        .take(FEW)
        .map(|it| {
            let trials = if it.trials == 1 { "1 trial".to_owned() } else { format!("{} trials", grouped(it.trials)) };
            let frames = if it.frames == 1 { "frame" } else { "frames" };
            format!("{}: {} {frames} lost in {trials} of those kept, {}", it.hop, grouped(it.frames), it.reason)
        })
        .collect();
    if losses.len() > FEW {
        let rest = losses[FEW..].iter().fold(0u64, |sum, it| sum.saturating_add(it.frames));
        list.push(format!("elsewhere: {} frames lost for {} more reasons", grouped(rest), losses.len() - FEW));
    }
    list
}

fn said_nothing(books: &Reconciliation, invalid: &[InvalidTrial]) -> Vec<String> {
    let Some(first) = invalid.first() else { return Vec::new() };
    let all = grouped(books.trials);
    let mut list = vec![match invalid.len() {
        1 => format!("1 of the {all} trials kept is invalid: {}: {}", first.trial.name, first.why),
        n => format!("{} of the {all} trials kept are invalid", grouped(n as u64)),
    }];
    if invalid.len() > 1 {
        // Report each reason once, with the first trial affected.
        let mut told: Vec<&str> = Vec::new();
        for it in invalid {
            if !told.contains(&it.why.as_str()) && told.len() < FEW {
                told.push(&it.why);
                let times = invalid.iter().filter(|other| other.why == it.why).count();
                let more = if times > 1 { format!(" and {} more", times - 1) } else { String::new() };
                list.push(format!("{}{more}: {}", it.trial.name, it.why));
            }
        }
        let rest = invalid.iter().filter(|it| !told.contains(&it.why.as_str())).count();
        if rest > 0 {
            list.push(format!("{} more for other reasons", grouped(rest as u64)));
        }
    }
    list
}
