//! A search on a terminal: one line per trial with the bounds after it, then a table of the goals or of the loss curve.

use crate::doc::page::Page;
use crate::figures::{grouped, pps, precise, ratio};
use crate::style::{Style, Tone};
use crate::words::{clean, columns, fitting, left, millis, or_dash, plural, right};
use narrows_model::run::search::{GoalBounds, LoadTrial, Outcome, SearchMethod, SearchPlan};
use narrows_model::run::search_report::{GoalView, LoadView, SearchReport};
use narrows_model::words::units::{bps, micros, percent};
use narrows_model::{Ending, Flow, Target};

/// Width of a rate in a table.
const RATE: usize = 15;
/// Significant digits of a bound in the table and in a trial's line: bounds are close together.
const DIGITS: usize = 5;
const SHORT: usize = 4;

/// The output of a finished search.
pub fn report(report: &SearchReport, style: Style) -> String {
    let mut out = header(&report.run.target, report.flow, &report.plan, &report.unit.words(&report.sizes), style);
    for (at, it) in report.trials.iter().enumerate() {
        let bounds = report.history.get(at).map_or(&[][..], |at| at.bounds.as_slice());
        out += &trial(at + 1, it, bounds, style);
    }
    out + &summary(report, style)
}

/// The search plan; before the first trial.
pub fn header(target: &Target, flow: Flow, plan: &SearchPlan, datagrams: &str, style: Style) -> String {
    let mut page = Page::new(style);
    let (what, way) = match plan.method {
        SearchMethod::LossCurve { .. } => ("loss curve", way(flow)),
        SearchMethod::Mlr | SearchMethod::Bisection => ("search for the highest load", way(flow)),
    };
    let text = format!(
        "{what} {way} {} ({}), {}, from {} to {}",
        clean(&target.asked),
        clean(&target.address),
        datagrams,
        pps(plan.min_load_pps),
        pps(plan.max_load_pps)
    );
    page.labelled("", &text, Some(Tone::Strong));
    let method = match plan.method {
        SearchMethod::Mlr => "MLRsearch",
        SearchMethod::Bisection => "bisection",
        SearchMethod::LossCurve { .. } => "",
    };
    if let SearchMethod::LossCurve { step, trial_ms } = plan.method {
        let text = format!("steps of {}, {} each", percent(step), millis(trial_ms));
        page.labelled("  ", &text, Some(Tone::Faint));
    } else {
        for goal in &plan.goals {
            let loss = if goal.loss_ratio > 0.0 {
                format!("loss up to {}", ratio(goal.loss_ratio))
            } else {
                "no loss".to_owned()
            };
            let (first, last) = (millis(goal.initial_trial_ms), millis(goal.final_trial_ms));
            let trials = if first == last { first } else { format!("{first} to {last}") };
            let text = format!(
                "{}: {loss} ({method}; trials of {trials}, {} in total per load; at most {} of the trial time may exceed the loss limit)",
                clean(&goal.name),
                millis(goal.duration_sum_ms),
                percent(goal.exceed_ratio)
            );
            page.labelled("  ", &text, Some(Tone::Faint));
        }
    }
    page.finish()
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
    let word = format!("loss {}", or_dash(loss.map(ratio)));
    let unsent = if seen.unsent() > 0 { format!(" unsent {}", grouped(seen.unsent())) } else { String::new() };
    let mut used = columns(&lead) + 15;
    let mut line = lead + &style.paint(tone, &left(&word, 14)) + " ";
    for part in unsent_and_goals(&unsent, bounds) {
        if used + columns(&part) <= style.room() {
            used += columns(&part);
            line += &part;
        }
    }
    line.trim_end().to_owned() + "\n"
}

fn unsent_and_goals(unsent: &str, bounds: &[GoalBounds]) -> Vec<String> {
    let goal = |it: &GoalBounds| {
        let [low, high] = [it.lower_pps, it.upper_pps]
            .map(|pps| pps.map_or_else(|| "?".to_owned(), |pps| precise(pps, "pps", SHORT)));
        let unit = high.find(' ').map_or("", |at| &high[at..]);
        let mark = if it.settled { "✓" } else { "" };
        format!("  {} {}–{high}{mark}", clean(&it.goal), low.strip_suffix(unit).unwrap_or(&low))
    };
    let mut parts: Vec<String> = bounds.iter().map(goal).collect();
    // The bounds have priority: unsent packets appear again in the reasons.
    parts.extend((!unsent.is_empty()).then(|| format!(" {unsent}")));
    parts
}

/// The table of results, with the reasons where there is none.
pub fn summary(report: &SearchReport, style: Style) -> String {
    let mut page = Page::new(style);
    if report.curve.is_empty() {
        goals(&mut page, report);
    } else {
        curve(&mut page, report);
    }
    let invalid = report.trials.iter().filter(|trial| trial.seen.invalid.is_some()).count() as u64;
    let invalid = if invalid > 0 { format!(", {} of them invalid", grouped(invalid)) } else { String::new() };
    let took = report.trials.last().map_or(0, |trial| trial.ended_at_ms);
    page.blank();
    let trials = plural(report.trials.len() as u64, "trial");
    page.line(&format!("{trials}{invalid} in {}", millis(took)));
    if let Some(profile) = &report.path_profile {
        let queue = format!("; longest queue {}", micros(profile.queue_us.round() as u64));
        // What it sustains of packets, headers included, is less of payload; a result of the search is payload.
        let payload = profile.capacity_bps.map_or_else(String::new, |packets_bps| {
            format!(
                "; in {} that is about {} of payload",
                report.unit.words(&report.sizes),
                bps(report.unit.payload_of(packets_bps))
            )
        });
        page.labelled("path profile, IP packets: ", &(clean(&profile.summary) + &payload + &queue), None);
    }
    for remark in &report.remarks {
        page.labelled("! ", &clean(remark), Some(Tone::Mark));
    }
    match &report.run.ending {
        Ending::Complete => {}
        Ending::Interrupted => page.line("interrupted; results so far"),
        Ending::Failed(why) => page.labelled("failed: ", &clean(why), Some(Tone::Bad)),
    }
    format!("\n{}", page.finish())
}

fn goals(page: &mut Page, report: &SearchReport) {
    let name = report.goals.iter().map(|view| columns(&clean(&view.goal.name))).max().unwrap_or(0).clamp(4, 20);
    page.heading("highest load within each goal", "(payload and wire in bit/s; wire includes all Ethernet overhead)");
    let shown = shown_rates(page.room(), name).into_iter();
    let rates: String = shown.map(|at| right(["packets/s", "payload", "wire"][at], RATE)).collect();
    page.row(&format!("  {} {} {rates}", left("goal", name), left("", 22)), Some(Tone::Faint));
    for view in &report.goals {
        let found = matches!(view.result.outcome, Outcome::Found);
        let title = clean(&view.goal.name);
        row(page, name, &title, "lower bound (passes)", view.lower, found);
        row(page, name, "", "upper bound (fails)", view.upper, false);
        row(page, name, "", "conditional throughput", view.conditional_throughput, false);
        if let Some(why) = reason(view) {
            page.labelled(&format!("  {} ", left("", name)), &why, Some(Tone::Mark));
        }
    }
}

/// The rates for which there is room: the payload follows from the others.
fn shown_rates(width: usize, name: usize) -> Vec<usize> {
    fitting(&[(RATE, 0), (RATE, 1), (RATE, 0)], width.saturating_sub(2 + name + 1 + 22 + 1))
}

fn reason(view: &GoalView) -> Option<String> {
    view.why.as_deref().map(clean).or_else(|| view.lower.is_none().then(|| "no load passed".to_owned()))
}

fn row(page: &mut Page, name: usize, goal: &str, what: &str, load: Option<LoadView>, strong: bool) {
    let rates = load.map(|it| [(it.pps, "pps"), (it.payload_bps, "bit/s"), (it.wire_bps, "bit/s")]);
    let cell = |at: usize| or_dash(rates.map(|rates| precise(rates[at].0, rates[at].1, DIGITS)));
    let rates: String = shown_rates(page.room(), name).into_iter().map(|at| right(&cell(at), RATE)).collect();
    page.row(&format!("  {} {} {rates}", left(goal, name), left(what, 22)), strong.then_some(Tone::Strong));
}

fn curve(page: &mut Page, report: &SearchReport) {
    page.heading("loss at decreasing loads", "(loss includes unsent, the tester's part)");
    let wide = [(9, 0), (RATE, 0), (RATE, 3), (RATE, 2), (10, 0), (10, 1)];
    let shown = fitting(&wide, page.room());
    let words = ["load", "packets/s", "payload", "wire", "loss", "unsent"];
    let head: String = shown.iter().map(|at| right(words[*at], wide[*at].0)).collect();
    page.line(&page.style().paint(Tone::Faint, &head));
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
        let line: String = shown.iter().map(|at| right(&cells[*at], wide[*at].0)).collect();
        let room = page.width().saturating_sub(columns(&line) + 2).min(24);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // 0 to `room`
        let long = if highest > 0.0 { (point.loss_ratio / highest * room as f64).ceil() as usize } else { 0 };
        page.line(&format!("{line}  {}", page.style().paint(Tone::Bad, &"█".repeat(long.min(room)))));
    }
}
