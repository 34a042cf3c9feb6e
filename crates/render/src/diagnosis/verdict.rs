//! The verdict: the goodput measured, the goodput possible, the cause, and the command that fixes it.

use super::kept;
use super::places::on;
use crate::doc::{Doc, Pair, Sentence};
use crate::style::Tone;
use crate::words::{clean, or_dash, predicted, rounded, times};
use narrows_model::run::report::{CauseView, Layer, ProofView, UnderlayView};
use narrows_model::words::units::{bps, bytes, micros, percent};
use narrows_model::{Direction, Ending, Place, Report, Status};

/// Maximum number of further causes on one screen.
const FEW: usize = 3;

/// The status of a path whose fix is kept.
const WAS_LIMITED: &str = "was limited";

/// What a page and a ticket are called.
pub(super) fn name(report: &Report) -> String {
    let found = report.verdict.causes.first().map(|cause| (cause.id.as_str(), cause.at));
    let cause = if kept::is_kept(report) { kept::first_cause(report) } else { found };
    let cause = cause.map(|(id, at)| format!(": {id} on the {at}"));
    crate::doc::capitalised(word(report)) + &cause.unwrap_or_default()
}

/// The status in a word; after a fix that is kept, that it was another one.
pub(crate) fn word(report: &Report) -> &'static str {
    if kept::is_kept(report) { WAS_LIMITED } else { report.verdict.status.word() }
}

/// How that word is shown.
pub(crate) fn tone(report: &Report) -> Tone {
    if kept::is_kept(report) {
        return if kept::remains(report).is_some() { Tone::Mark } else { Tone::Good };
    }
    match report.verdict.status {
        Status::Limited => Tone::Bad,
        Status::Healthy => Tone::Good,
        Status::Suspected | Status::Unknown => Tone::Mark,
    }
}

pub(super) fn add(doc: Doc, report: &Report, full: bool) -> Doc {
    let verdict = &report.verdict;
    let is_kept = kept::is_kept(report);
    let doc = doc.verdict(&word(report).to_uppercase(), tone(report), &of_what(report));
    let doc = doc.plain(&kept::found_at_first(report));
    let doc =
        kept::rolled_back(report).into_iter().chain(kept::untried(report)).fold(doc, |doc, says| doc.plain(&says));
    let ended = match &report.run.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("The run was interrupted; this is what was measured until then.".to_owned()),
        Ending::Failed(why) => Some(format!("The run failed: {} This is what was measured until then.", sentence(why))),
    };
    let warnings = ended.into_iter().chain(kept::left_in_force(report));
    let doc = doc.warnings(warnings).pairs(figures(report));
    let doc = verdict.causes.iter().take(1).fold(doc, |doc, cause| {
        let doc = why(doc, cause, verdict.status, full);
        if is_kept { kept::undo(doc, report) } else { what_to_do(doc, report, cause) }
    });
    let doc = others(doc, report, full);
    let doc = list(doc, "not known", &verdict.missing, full);
    let hazards = match verdict.status {
        Status::Unknown => "worth fixing; whether it limits now is not known",
        _ => "worth fixing, but not limiting now",
    };
    list(doc, hazards, &verdict.hazards, full)
}

/// What the status is of.
fn of_what(report: &Report) -> String {
    if kept::is_kept(report) {
        return kept::headline(report);
    }
    match (report.verdict.status, report.verdict.causes.first()) {
        (Status::Healthy, Some(cause)) => format!("bounded by {} {}", cause.id, on(cause.at, report)),
        (Status::Healthy, None) => "nothing limits the path below the requested load".to_owned(),
        (_, Some(cause)) => format!("{} {} · confidence {}", cause.id, on(cause.at, report), percent(cause.confidence)),
        (_, None) => "the evidence does not name what limits the goodput".to_owned(),
    }
}

fn figures(report: &Report) -> Vec<Pair> {
    let verdict = &report.verdict;
    let rtt = report.run.idle_rtt_us.map(|rtt| format!(", {} idle RTT", micros(rtt))).unwrap_or_default();
    let way = match verdict.direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
        Direction::Both => "both ways",
    };
    let figure = |lead: &str, value: f64, says: &str| Pair::new(lead, says).figure(&bps(value));
    let with = report.congestion_control.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
    let mut all = vec![figure("you got", verdict.goodput_bps, &format!("{way}{with}{rtt}; {}", took(report)))];
    all.extend(report.accounts.underlay.as_ref().map(|underlay| {
        figure("the underlay", underlay.goodput_bps, &format!("by {}; {}", underlay.address, layer(underlay)))
    }));
    if let Some((cause, goodput)) = verdict.causes.first().and_then(|cause| Some((cause, cause.predicted_bps?))) {
        let then = cause.then.as_ref().map(|then| format!("then {then} binds"));
        let words: Vec<_> = std::iter::once(predicted(cause.predicted_interval_bps)).chain(then).collect();
        all.push(figure("you could get", goodput, &words.join("; ")));
        if let (Some(both), Some(second)) = (verdict.both_bps, verdict.causes.get(1)) {
            let within = predicted(verdict.both_interval_bps);
            all.push(figure("with both", both, &format!("{within}; after {} is fixed as well", second.id)));
        }
    }
    all.extend(report.proof.as_ref().map(|proof| {
        let mean = |runs: &[f64]| or_dash(ProofView::mean(runs).map(bps));
        let (before, after) = (mean(&proof.before_bps), mean(&proof.after_bps));
        Pair::new("tried", &format!("{before} before, {after} after ({}); {}", times(proof), kept::outcome(report)))
    }));
    all
}

/// Where the limit of a load over a tunnel is, and why.
fn layer(underlay: &UnderlayView) -> String {
    let layer = match underlay.layer {
        Layer::Inside => "the limit is inside the tunnel",
        Layer::Below => "the limit is below the tunnel",
        Layer::Neither => "the limit is neither in the tunnel nor below it",
        Layer::Unknown => "where the limit is, is unknown",
    };
    format!("{layer}: {}", underlay.why)
}

/// What the diagnosis cost: time, and bytes on the path.
fn took(report: &Report) -> String {
    let time = micros(rounded(report.run.elapsed_s * 1e6));
    format!("{time}, {} in all", bytes(report.carried_bytes))
}

/// What the confidence of a cause means.
const CONFIDENCE: &str = "how often such evidence was right on test paths";
/// What the confidences of several causes mean together.
const OTHERS: &str = "they do not exclude each other; confidences do not sum to 100 %";

fn why(doc: Doc, cause: &CauseView, status: Status, full: bool) -> Doc {
    let meaning = if status == Status::Healthy {
        String::new()
    } else {
        format!("confidence {}: {CONFIDENCE}", percent(cause.confidence))
    };
    let mut all: Vec<Pair> = cause.witnesses.iter().map(|it| Pair::new(&it.kind, &it.says)).collect();
    if full {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for it in &cause.rejected {
            match reasons.iter_mut().find(|(why, _)| *why == it.why) {
                Some((_, ids)) => ids.push(&it.id),
                None => reasons.push((&it.why, vec![&it.id])),
            }
        }
        let not =
            |(why, ids): (&str, Vec<&str>)| Pair::new("not", &format!("{}: {why}", ids.join(", "))).tone(Tone::Faint);
        all.extend(reasons.into_iter().map(not));
    } else if !cause.rejected.is_empty() {
        let ids: Vec<_> = cause.rejected.iter().map(|rejected| rejected.id.as_str()).collect();
        all.push(Pair::new("not", &format!("{} (--full says why)", ids.join(", "))).tone(Tone::Faint));
    }
    doc.section("why", &meaning).paragraph(&cause.summary).pairs(all)
}

fn what_to_do(doc: Doc, report: &Report, cause: &CauseView) -> Doc {
    let fix = &cause.fix;
    if fix.advice.is_empty() && fix.commands.is_empty() {
        return doc;
    }
    let doc = doc.heading("what to do");
    let doc = if fix.advice.is_empty() { doc } else { doc.paragraph(&fix.advice) };
    let commands = |doc: Doc, all: Vec<(Place, String)>| {
        let places = all.chunk_by(|a, b| a.0 == b.0);
        places.fold(doc, |doc, all| doc.commands(&on(all[0].0, report), all.iter().map(|it| it.1.clone())))
    };
    let doc = commands(doc, fix.commands.iter().map(|it| (it.at, it.run.clone())).collect());
    // What was proven after it is needed for what was got in the end.
    let later = report.rounds.iter().skip(1).filter(|round| round.is_proven());
    later.fold(doc, |doc, round| {
        let cause = round.cause.as_deref().unwrap_or("the next limit");
        let doc = doc.paragraph(&format!("then {cause}, whose fix helped as well:"));
        commands(doc, round.changes.iter().map(|it| (it.at, it.set.to_string())).collect())
    })
}

fn others(doc: Doc, report: &Report, full: bool) -> Doc {
    let causes = &report.verdict.causes;
    if causes.len() < 2 {
        return doc;
    }
    let shown = if full { causes.len() - 1 } else { FEW };
    let of = |cause: &CauseView| {
        let (at, part) = (on(cause.at, report), percent(cause.confidence));
        Sentence::new(&format!("{} {at} ({part}): {}", cause.id, cause.summary))
    };
    let all = causes.iter().skip(1).take(shown).map(of);
    doc.section("other causes", OTHERS).sentences(all.chain(more(causes.len() - 1, shown)))
}

fn list(doc: Doc, title: &str, items: &[String], full: bool) -> Doc {
    if items.is_empty() {
        return doc;
    }
    let shown = if full { items.len() } else { FEW + 1 };
    let all = items.iter().take(shown).map(|item| Sentence::listed(item));
    doc.heading(title).sentences(all.chain(more(items.len(), shown)))
}

fn more(all: usize, shown: usize) -> Option<Sentence> {
    (all > shown).then(|| Sentence::new(&format!("… and {} more (--full shows them)", all - shown)).tone(Tone::Faint))
}

fn sentence(text: &str) -> String {
    let text = clean(text);
    if text.ends_with(['.', '!', '?']) { text } else { text + "." }
}
