//! The verdict: the goodput measured, the goodput possible, the cause, and the command that fixes it.

use super::page::{Page, on};
use crate::style::Tone;
use crate::words::{clean, left, or_dash, predicted, right, rounded, times};
use narrows_model::run::report::{CauseView, Layer, ProofView, UnderlayView, VerdictView};
use narrows_model::words::units::{bps, bytes, micros, percent};
use narrows_model::{Direction, Ending, Report, Status};

/// Maximum number of further causes on one screen.
const FEW: usize = 3;

pub(super) fn write(page: &mut Page, report: &Report) {
    let verdict = &report.verdict;
    first_line(page, report);
    page.labelled("", &clean(&verdict.headline), None);
    match &report.run.ending {
        Ending::Complete => {}
        Ending::Interrupted => {
            page.labelled("! ", "The run was interrupted; this is what was measured until then.", None);
        }
        Ending::Failed(why) => {
            page.labelled(
                "! ",
                &format!("The run failed: {} This is what was measured until then.", sentence(why)),
                None,
            );
        }
    }
    figures(page, report);
    for cause in verdict.causes.iter().take(1) {
        why(page, cause, verdict.status);
        what_to_do(page, report, cause);
    }
    others(page, report);
    list(page, "not known", &verdict.missing);
    list(page, "worth fixing, but not limiting now", &verdict.hazards);
}

fn first_line(page: &mut Page, report: &Report) {
    let (word, tone) = match report.verdict.status {
        Status::Limited => ("LIMITED", Tone::Bad),
        Status::Healthy => ("HEALTHY", Tone::Good),
        Status::Suspected => ("SUSPECTED", Tone::Mark),
        Status::Unknown => ("UNKNOWN", Tone::Mark),
    };
    let rest = match (report.verdict.status, report.verdict.causes.first()) {
        (Status::Healthy, Some(cause)) => format!("bounded by {} {}", clean(&cause.id), on(cause.at, report)),
        (Status::Healthy, None) => "nothing limits the path below the requested load".to_owned(),
        (_, Some(cause)) => {
            format!("{} {} · confidence {}", clean(&cause.id), on(cause.at, report), percent(cause.confidence))
        }
        (_, None) => "the evidence does not name what limits the goodput".to_owned(),
    };
    page.painted_label(word, tone, &rest);
}

fn figures(page: &mut Page, report: &Report) {
    let verdict = &report.verdict;
    let rtt = report.run.idle_rtt_us.map(|rtt| format!(", {} RTT when idle", micros(rtt))).unwrap_or_default();
    let way = match verdict.direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
        Direction::Both => "both ways",
    };
    page.blank();
    let figure = |label: &str, value: f64| format!("  {} {}  ", left(label, 14), right(&bps(value), 12));
    page.labelled(&figure("you got", verdict.goodput_bps), &format!("{way}{rtt}; {}", took(report)), None);
    if let Some(underlay) = &report.accounts.underlay {
        let words = format!("by {}; {}", clean(&underlay.address), clean(&layer(underlay)));
        page.labelled(&figure("the underlay", underlay.goodput_bps), &words, None);
    }
    predictions(page, report, figure);
}

/// Where the limit of a load over a tunnel is, and why.
pub(crate) fn layer(underlay: &UnderlayView) -> String {
    let layer = match underlay.layer {
        Layer::Inside => "the limit is inside the tunnel",
        Layer::Below => "the limit is below the tunnel",
        Layer::Neither => "the limit is neither in the tunnel nor below it",
        Layer::Unknown => "where the limit is, is unknown",
    };
    format!("{layer}: {}", underlay.why)
}

/// What the diagnosis cost: time, and bytes on the path.
pub(crate) fn took(report: &Report) -> String {
    let time = micros(rounded(report.run.elapsed_s * 1e6));
    format!("{time}, {} in all", bytes(report.carried_bytes))
}

fn predictions(page: &mut Page, report: &Report, figure: impl Fn(&str, f64) -> String) {
    let verdict = &report.verdict;
    let Some(cause) = verdict.causes.first() else { return };
    let Some(goodput) = cause.predicted_bps else { return };
    let then = cause.then.as_ref().map(|then| format!("then {} binds", clean(then)));
    let words: Vec<_> = std::iter::once(predicted(cause.predicted_interval_bps)).chain(then).collect();
    page.labelled(&figure("you could get", goodput), &words.join("; "), None);
    if let (Some(both), Some(second)) = (verdict.both_bps, verdict.causes.get(1)) {
        let within = predicted(verdict.both_interval_bps);
        page.labelled(
            &figure("with both", both),
            &format!("{within}; after {} is fixed as well", clean(&second.id)),
            None,
        );
    }
    if let Some(proof) = &report.proof {
        let mean = |runs: &[f64]| or_dash(ProofView::mean(runs).map(bps));
        let text = format!("{} before, {} after: {}", mean(&proof.before_bps), mean(&proof.after_bps), times(proof));
        let kept = report.rounds.iter().flat_map(|round| &round.changes).any(|change| change.in_force);
        let word = if kept { "; the changes are kept" } else { "; all changes are rolled back" };
        page.labelled("  tried           ", &(text + word), None);
    }
}

/// What the confidence of a cause means.
pub(crate) const CONFIDENCE: &str = "how often such evidence was right on test paths";
/// What the confidences of several causes mean together.
pub(crate) const OTHERS: &str = "(they do not exclude each other; confidences do not sum to 100 %)";

fn why(page: &mut Page, cause: &CauseView, status: Status) {
    let meaning = if status == Status::Healthy { String::new() } else { format!("(confidence: {CONFIDENCE})") };
    page.heading("why", &meaning);
    page.labelled("  ", &clean(&cause.summary), None);
    for witness in &cause.witnesses {
        page.labelled(&format!("  {} ", left(&clean(&witness.kind), 10)), &clean(&witness.says), None);
    }
    if page.style().full {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for it in &cause.rejected {
            match reasons.iter_mut().find(|(why, _)| *why == it.why) {
                Some((_, ids)) => ids.push(clean(&it.id)),
                None => reasons.push((&it.why, vec![clean(&it.id)])),
            }
        }
        for (why, ids) in reasons {
            let text = format!("{}: {}", ids.join(", "), clean(why));
            page.labelled("  not        ", &text, Some(Tone::Faint));
        }
    } else if !cause.rejected.is_empty() {
        let ids: Vec<_> = cause.rejected.iter().map(|rejected| clean(&rejected.id)).collect();
        page.labelled("  not        ", &format!("{} (--full says why)", ids.join(", ")), Some(Tone::Faint));
    }
}

fn what_to_do(page: &mut Page, report: &Report, cause: &CauseView) {
    if cause.fix.advice.is_empty() && cause.fix.commands.is_empty() {
        return;
    }
    page.heading("what to do", "");
    if !cause.fix.advice.is_empty() {
        page.labelled("  ", &clean(&cause.fix.advice), None);
    }
    let mut at = None;
    for command in &cause.fix.commands {
        if at != Some(command.at) {
            page.labelled("  ", &format!("{}:", on(command.at, report)), None);
            at = Some(command.at);
        }
        // Never wrapped or cut, so that it can be copied.
        let run = page.style().paint(Tone::Strong, &clean(&command.run));
        page.line(&format!("    {run}"));
    }
}

fn others(page: &mut Page, report: &Report) {
    let VerdictView { causes, .. } = &report.verdict;
    if causes.len() < 2 {
        return;
    }
    page.heading("other causes", OTHERS);
    let shown = if page.style().full { causes.len() - 1 } else { FEW };
    for cause in causes.iter().skip(1).take(shown) {
        let text = format!(
            "{} {} ({}): {}",
            clean(&cause.id),
            on(cause.at, report),
            percent(cause.confidence),
            clean(&cause.summary)
        );
        page.labelled("  ", &text, None);
    }
    more(page, causes.len() - 1, shown, "(--full shows them)");
}

fn list(page: &mut Page, title: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    page.heading(title, "");
    let shown = if page.style().full { items.len() } else { FEW + 1 };
    for item in items.iter().take(shown) {
        page.labelled("  - ", &clean(item), None);
    }
    more(page, items.len(), shown, "(--full shows them)");
}

fn more(page: &mut Page, all: usize, shown: usize, what: &str) {
    if all > shown {
        let text = page.style().paint(Tone::Faint, &format!("  … and {} more {what}", all - shown));
        page.line(&text);
    }
}

fn sentence(text: &str) -> String {
    let text = clean(text);
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}
