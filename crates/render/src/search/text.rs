//! A search on a terminal: one line per trial with the bounds after it, then a table of the goals or of the loss curve.

use crate::doc::{Doc, Sentence};
use crate::figures::{grouped, pps, precise, ratio};
use crate::style::{Style, Tone};
use crate::table::{Cell, Column, Row, Table};
use crate::words::{clean, columns, fitting, left, millis, or_dash, plural, right};
use narrows_model::run::search::{GoalBounds, LoadTrial, Outcome, SearchMethod, SearchPlan};
use narrows_model::run::search_report::{LoadView, SearchReport};
use narrows_model::words::units::{bps, micros, percent};
use narrows_model::{Ending, Flow, Target};

/// Significant digits of a bound in the table and in a trial's line: bounds are close together.
const DIGITS: usize = 5;
const SHORT: usize = 4;

pub(crate) fn doc(report: &SearchReport, full: bool) -> Doc {
    let (title, goals) = head(&report.run.target, report.flow, &report.plan, &report.unit.words(&report.sizes));
    let doc = Doc::new("Highest lossless rate").headline(&title).sentences(goals.iter().map(|it| Sentence::new(it)));
    let doc = doc.picture(Some(super::svg::picture(report))).table(trials(report));
    results(doc, report, full)
}

/// The output of a finished search.
pub fn report(report: &SearchReport, style: Style) -> String {
    doc(report, style.full).text(style)
}

/// The trials with the bounds after each.
fn trials(report: &SearchReport) -> Table {
    let columns = [
        Column::figures("trial"),
        Column::figures("ended").spare(2),
        Column::figures("load"),
        Column::figures("took").spare(3),
        Column::figures("loss"),
        Column::figures("queued").spare(3),
        Column::figures("unsent").spare(4),
        Column::words("bounds").spare(1),
    ];
    let mut table = Table::new("", "", &columns);
    for (at, trial) in report.trials.iter().enumerate() {
        let seen = &trial.seen;
        let bounds = report.history.get(at).map_or(&[][..], |at| at.bounds.as_slice());
        let loss = seen.loss_ratio();
        let tone = if loss.is_some_and(|loss| loss > 0.0) { Tone::Bad } else { Tone::Good };
        let unsent = (seen.unsent() > 0).then(|| grouped(seen.unsent()));
        let (lost, queued) = parts(trial);
        let row = Row::new(vec![
            Cell::new((at + 1).to_string()),
            Cell::new(millis(trial.ended_at_ms)),
            Cell::new(precise(trial.load_pps, "pps", SHORT)),
            Cell::new(millis(trial.duration_ms)),
            Cell::maybe(lost.map(ratio)).tone(tone),
            Cell::new(queued.map(ratio).unwrap_or_default()).tone(Tone::Bad),
            Cell::new(unsent.unwrap_or_default()),
            Cell::new(bounds.iter().map(goal).collect::<Vec<_>>().join("  ")),
        ]);
        table.rows.push(row.note(seen.invalid.as_ref().map(|why| format!("invalid: {why}"))));
    }
    table.trimmed()
}

/// What was lost or unsent, and what a queue took in, if anything.
fn parts(trial: &LoadTrial) -> (Option<f64>, Option<f64>) {
    let (loss, queued) = (trial.seen.loss_ratio(), trial.seen.queued_ratio().filter(|ratio| *ratio > 0.0));
    (loss.map(|loss| (loss - queued.unwrap_or(0.0)).max(0.0)), queued)
}

/// The search plan; before the first trial.
pub fn header(target: &Target, flow: Flow, plan: &SearchPlan, datagrams: &str, style: Style) -> String {
    let (title, goals) = head(target, flow, plan, datagrams);
    let goals = goals.iter().map(|it| Sentence::new(it).tone(Tone::Faint));
    Doc::new("").headline(&title).sentences(goals).text(style)
}

/// What is searched, and each goal or the steps.
fn head(target: &Target, flow: Flow, plan: &SearchPlan, datagrams: &str) -> (String, Vec<String>) {
    let (what, way) = match plan.method {
        SearchMethod::LossCurve { .. } => ("loss curve", way(flow)),
        SearchMethod::Mlr | SearchMethod::Bisection => ("search for the highest load", way(flow)),
    };
    let [from, to] = [plan.min_load_pps, plan.max_load_pps].map(pps);
    let title = format!("{what} {way} {} ({}), {datagrams}, from {from} to {to}", target.asked, target.address);
    let method = match plan.method {
        SearchMethod::Mlr => "MLRsearch",
        SearchMethod::Bisection => "bisection",
        SearchMethod::LossCurve { step, trial_ms } => {
            return (title, vec![format!("steps of {}, {} each", percent(step), millis(trial_ms))]);
        }
    };
    let goals = plan.goals.iter().map(|goal| {
        let loss =
            if goal.loss_ratio > 0.0 { format!("loss up to {}", ratio(goal.loss_ratio)) } else { "no loss".to_owned() };
        let (first, last) = (millis(goal.initial_trial_ms), millis(goal.final_trial_ms));
        let trials = if first == last { first } else { format!("{first} to {last}") };
        let agreed = plan.hint.and_then(|hint| hint.agreed_sum_ms).or(plan.agreed_sum_ms);
        let agreed = agreed.map(|ms| ms.max(goal.final_trial_ms)).filter(|ms| *ms < goal.duration_sum_ms);
        let agreed = agreed.map(|ms| format!(", or {} where a second witness agrees", millis(ms))).unwrap_or_default();
        format!(
            "{}: {loss} ({method}; trials of {trials}, up to {} in total per load{agreed}; at most {} of the trial time may exceed the loss \
             limit)",
            goal.name,
            millis(goal.duration_sum_ms),
            percent(goal.exceed_ratio)
        )
    });
    (title, goals.collect())
}

const fn way(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "to",
        Flow::Down => "from",
    }
}

/// The line of one trial with its line break. `bounds` are those after it; goals beyond the width are left out.
pub fn trial(number: usize, trial: &LoadTrial, bounds: &[GoalBounds], style: Style) -> String {
    let cells = [
        (format!("#{number}"), (5, 0)),
        (millis(trial.ended_at_ms), (8, 1)),
        (precise(trial.load_pps, "pps", SHORT), (12, 0)),
        (millis(trial.duration_ms), (8, 2)),
    ];
    let shown = fitting(&cells.each_ref().map(|cell| cell.1), style.room() - 16);
    let lead = shown.iter().map(|at| right(&cells[*at].0, cells[*at].1.0)).collect::<String>() + " ";
    if let Some(why) = &trial.seen.invalid {
        let room = style.room().saturating_sub(columns(&lead) + 9);
        return lead + &style.paint(Tone::Mark, &format!("invalid: {}", crate::words::fit(&clean(why), room))) + "\n";
    }
    let seen = &trial.seen;
    let loss = seen.loss_ratio();
    let tone = if loss.is_some_and(|loss| loss > 0.0) { Tone::Bad } else { Tone::Good };
    let (lost, queued) = parts(trial);
    let (word, also) = match queued.map(|queued| format!("queued {}", ratio(queued))) {
        Some(queued) if lost.is_none_or(|lost| lost <= 0.0) => (queued, String::new()),
        queued => {
            (format!("loss {}", or_dash(lost.map(ratio))), queued.map(|it| format!("  {it}")).unwrap_or_default())
        }
    };
    let unsent = if seen.unsent() > 0 { format!(" unsent {}", grouped(seen.unsent())) } else { String::new() };
    let mut used = columns(&lead) + 15;
    let mut line = lead + &style.paint(tone, &left(&word, 14)) + " ";
    for part in unsent_and_goals(&(also + &unsent), bounds) {
        if used + columns(&part) <= style.room() {
            used += columns(&part);
            line += &part;
        }
    }
    line.trim_end().to_owned() + "\n"
}

fn unsent_and_goals(unsent: &str, bounds: &[GoalBounds]) -> Vec<String> {
    let mut parts: Vec<String> = bounds.iter().map(|it| format!("  {}", goal(it))).collect();
    // The bounds have priority: unsent packets appear again in the reasons.
    parts.extend((!unsent.is_empty()).then(|| format!(" {unsent}")));
    parts
}

/// Both bounds of a goal.
fn goal(it: &GoalBounds) -> String {
    let [low, high] =
        [it.lower_pps, it.upper_pps].map(|pps| pps.map_or_else(|| "?".to_owned(), |pps| precise(pps, "pps", SHORT)));
    let unit = high.find(' ').map_or("", |at| &high[at..]);
    let mark = if it.settled { "✓" } else { "" };
    format!("{} {}–{high}{mark}", clean(&it.goal), low.strip_suffix(unit).unwrap_or(&low))
}

/// What was found, after the lines of the trials.
pub fn summary(report: &SearchReport, style: Style) -> String {
    format!("\n{}", results(Doc::new(""), report, style.full).text(style))
}

/// The table of results, with the reasons where there is none.
fn results(doc: Doc, report: &SearchReport, full: bool) -> Doc {
    let doc = if report.curve.is_empty() {
        doc.section("highest load within each goal", "payload and wire in bit/s; wire includes all Ethernet overhead")
            .table(goals(report))
    } else {
        doc.section("loss at decreasing loads", "loss includes unsent, the tester's part").table(curve(report))
    };
    let invalid = report.trials.iter().filter(|trial| trial.seen.invalid.is_some()).count() as u64;
    let invalid = if invalid > 0 { format!(", {} of them invalid", grouped(invalid)) } else { String::new() };
    let took = report.trials.last().map_or(0, |trial| trial.ended_at_ms);
    let doc = doc.method(&format!("{}{invalid} in {}", plural(report.trials.len() as u64, "trial"), millis(took)));
    let profile = report.path_profile.as_ref().map(|profile| {
        // What it sustains of packets, headers included, is less of payload; a result of the search is payload.
        let payload = profile.capacity_bps.map_or_else(String::new, |packets_bps| {
            let [least, most] = report.unit.payload_of(packets_bps);
            let sizes = report.unit.words(&report.sizes);
            let [low, high] = [least, most].map(bps);
            if least >= 0.99 * most {
                format!("; in {sizes} that is about {high} of payload")
            } else {
                format!("; in {sizes} that is {low} to {high} of payload, by how much of each frame the limit counts")
            }
        });
        let queue = micros(crate::words::rounded(profile.queue_us));
        format!("path profile, IP packets: {}{payload}; longest queue {queue}", profile.summary)
    });
    let ended = match &report.run.ending {
        Ending::Complete => None,
        Ending::Interrupted => Some("interrupted; results so far".to_owned()),
        Ending::Failed(why) => Some(format!("failed: {why}")),
    };
    let doc = profile.iter().fold(doc, |doc, says| doc.plain(says));
    let doc = if full { doc.section("time", "").table(time(report)) } else { doc };
    doc.warnings(report.remarks.iter().cloned().chain(ended))
}

/// What the search spent its time on.
fn time(report: &SearchReport) -> Table {
    let mut table = Table::new("", "", &[Column::id("spent on"), Column::figures("time")]);
    table.rows = report.spent.iter().map(|it| Row::new(vec![Cell::new(&it.what), Cell::new(millis(it.ms))])).collect();
    table
}

fn goals(report: &SearchReport) -> Table {
    let columns = [
        Column::id("goal"),
        Column::words(""),
        Column::figures("packets/s"),
        Column::figures("payload").spare(1),
        Column::figures("wire"),
    ];
    let mut table = Table::new("", "", &columns);
    for view in &report.goals {
        let found = matches!(view.result.outcome, Outcome::Found);
        table.rows.push(bound(&view.goal.name, "lower bound (passes)", view.lower, found));
        table.rows.push(bound("", "upper bound (fails)", view.upper, false));
        let last = bound("", "conditional throughput", view.conditional_throughput, false);
        let why = view.why.clone().or_else(|| view.lower.is_none().then(|| "no load passed".to_owned()));
        table.rows.push(last.note(why));
    }
    table
}

fn bound(goal: &str, what: &str, load: Option<LoadView>, strong: bool) -> Row {
    let rate = |of: fn(LoadView) -> f64, unit: &str| Cell::maybe(load.map(|it| precise(of(it), unit, DIGITS)));
    let rates = [rate(|it| it.pps, "pps"), rate(|it| it.payload_bps, "bit/s"), rate(|it| it.wire_bps, "bit/s")];
    let cells = [Cell::new(goal), Cell::new(what)].into_iter().chain(rates);
    Row::new(cells.map(|cell| cell.tone_if(strong, Tone::Strong)).collect())
}

fn curve(report: &SearchReport) -> Table {
    let columns = [
        Column::figures("load"),
        Column::figures("packets/s"),
        Column::figures("payload").spare(3),
        Column::figures("wire").spare(2),
        Column::figures("loss"),
        Column::figures("unsent").spare(1),
    ];
    let mut table = Table::new("", "", &columns);
    let highest = report.curve.iter().map(|point| point.loss_ratio).fold(0.0, f64::max);
    for point in &report.curve {
        let load = report.unit.load(point.load_pps);
        let cells = [
            format!("{:.1} %", point.load_percent),
            pps(load.pps),
            bps(load.payload_bps),
            bps(load.wire_bps),
            ratio(point.loss_ratio),
            ratio(point.unsent_ratio),
        ];
        let part = if highest > 0.0 { point.loss_ratio / highest } else { 0.0 };
        table.rows.push(Row::new(cells.map(Cell::new).into()).bar(Some(Tone::Bad), move |wide| {
            let room = wide.min(24);
            // 0 to `room`
            let long = (part * room as f64).ceil() as usize;
            "█".repeat(long.min(room))
        }));
    }
    table
}
