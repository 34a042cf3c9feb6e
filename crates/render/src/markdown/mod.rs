//! A diagnosis for a ticket or a wiki: GitHub-flavoured Markdown, tables where the terminal has columns.

use crate::ledger;
use crate::text::budget::{parts, phases, waits_behind};
use crate::text::roofline::{binds, method};
use crate::text::verdict::{CONFIDENCE, layer, took};
use crate::text::{hosts, latency, path_profile, rounds};
use crate::words::{clean, predicted, range, share};
use narrows_model::run::report::{CauseView, RoundView};
use narrows_model::words::units::{bps, micros, percent};
use narrows_model::{Ending, Report, Status};
use std::fmt::Write as _;

pub fn report(report: &Report) -> String {
    let mut out = String::new();
    verdict(&mut out, report);
    if let Some(cause) = report.verdict.causes.first() {
        first_cause(&mut out, cause);
    }
    list(&mut out, "Not known", &report.verdict.missing);
    list(&mut out, "Worth fixing, but not limiting now", &report.verdict.hazards);
    roofline(&mut out, report);
    profiled(&mut out, report);
    latency_of(&mut out, report);
    budget(&mut out, report);
    ledger::markdown::write(&mut out, report);
    experiments(&mut out, report);
    if !report.rounds.is_empty() {
        out.push_str("\n## What was tried\n");
        report.rounds.iter().for_each(|it| round(&mut out, it));
    }
    both_hosts(&mut out, report);
    let (id, by) = (code(&report.run.id), text(&report.run.made_by));
    let _ = writeln!(out, "\nRun `{id}` by {by}: {}.", took(report));
    out
}

/// A word in running text, with Markdown and HTML escaped.
pub fn text(word: &str) -> String {
    let mut out = String::new();
    for c in clean(word).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A word between backticks, without backticks of its own.
pub fn code(word: &str) -> String {
    clean(word).replace('`', "'").replace('|', "\\|")
}

/// A table; the cells are Markdown already.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(head.iter().map(|cell| (*cell).to_owned()).collect());
    out += &line(head.iter().map(|_| "---".to_owned()).collect());
    rows.iter().for_each(|row| out += &line(row.clone()));
    out
}

fn verdict(out: &mut String, report: &Report) {
    let verdict = &report.verdict;
    let word = match verdict.status {
        Status::Limited => "Limited",
        Status::Healthy => "Healthy",
        Status::Suspected => "Suspected",
        Status::Unknown => "Unknown",
    };
    let cause = verdict.causes.first().map(|cause| format!(": `{}` on the {}", code(&cause.id), cause.at));
    let _ = writeln!(out, "# {word}{}\n\n{}\n", cause.unwrap_or_default(), text(&verdict.headline));
    match &report.run.ending {
        Ending::Complete => {}
        Ending::Interrupted => out.push_str("**The run was interrupted; this is what was measured until then.**\n\n"),
        Ending::Failed(why) => {
            let _ = writeln!(out, "**The run failed: {}; this is what was measured until then.**\n", text(why));
        }
    }
    let mut rows = vec![vec!["You got".to_owned(), format!("**{}** {}", bps(verdict.goodput_bps), verdict.direction)]];
    if let Some(underlay) = &report.accounts.underlay {
        let words =
            format!("**{}** by {}; {}", bps(underlay.goodput_bps), text(&underlay.address), text(&layer(underlay)));
        rows.push(vec!["The underlay".into(), words]);
    }
    if let Some((cause, goodput)) = verdict.causes.first().and_then(|c| Some((c, c.predicted_bps?))) {
        let within = predicted(cause.predicted_interval_bps);
        let then = cause.then.as_ref().map(|then| format!("; then `{}` binds", code(then))).unwrap_or_default();
        rows.push(vec!["You could get".into(), format!("**{}** ({within}){then}", bps(goodput))]);
        if let (Some(both), Some(second)) = (verdict.both_bps, verdict.causes.get(1)) {
            rows.push(vec![
                "With both".into(),
                format!("**{}** after `{}` is fixed as well", bps(both), code(&second.id)),
            ]);
        }
    }
    rows.push(vec![
        "Between".into(),
        format!("{} and {}", text(&report.hosts.client.name), text(&report.run.target.asked)),
    ]);
    if let Some(rtt) = report.run.idle_rtt_us {
        rows.push(vec!["RTT when idle".into(), micros(rtt)]);
    }
    if let Some(cause) = verdict.causes.first().filter(|_| verdict.status != Status::Healthy) {
        rows.push(vec!["Confidence".into(), format!("{} ({CONFIDENCE})", percent(cause.confidence))]);
    }
    if let Some(proof) = &report.proof {
        rows.push(vec!["Tried".into(), text(&rounds::outcome(proof))]);
    }
    *out += &table(&["", ""], &rows);
}

fn first_cause(out: &mut String, cause: &CauseView) {
    let _ = writeln!(out, "\n## Why\n\n{}\n", text(&cause.summary));
    for witness in &cause.witnesses {
        let _ = writeln!(out, "- *{}*: {}", text(&witness.kind), text(&witness.says));
    }
    for rejected in &cause.rejected {
        let _ = writeln!(out, "- not `{}`: {}", code(&rejected.id), text(&rejected.why));
    }
    if cause.fix.advice.is_empty() && cause.fix.commands.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## What to do\n\n{}", text(&cause.fix.advice));
    for command in &cause.fix.commands {
        let fence = if command.run.contains("```") { "````" } else { "```" };
        let _ = writeln!(out, "\nOn the {}:\n\n{fence}sh\n{}\n{fence}", command.at, clean(&command.run));
    }
}

fn list(out: &mut String, title: &str, items: &[String]) {
    if !items.is_empty() {
        let _ = writeln!(out, "\n## {title}\n");
        items.iter().for_each(|item| out.push_str(&format!("- {}\n", text(item))));
    }
}

fn roofline(out: &mut String, report: &Report) {
    if report.accounts.roofline.is_empty() {
        return;
    }
    out.push_str("\n## Roofline\n\nGoodput under each limit alone.\n\n");
    let rows: Vec<_> = report
        .accounts
        .roofline
        .iter()
        .map(|ceiling| {
            let mark = if binds(ceiling, report) { "**binding**" } else { "" };
            vec![
                format!("`{}`", code(&ceiling.id)),
                ceiling.at.to_string(),
                bps(ceiling.bps),
                range(ceiling.interval_bps),
                format!("{}: {}", method(ceiling), text(&ceiling.how)),
                mark.to_owned(),
            ]
        })
        .collect();
    *out += &table(&["Ceiling", "At", "Goodput", "Interval", "How", ""], &rows);
}

fn profiled(out: &mut String, report: &Report) {
    let Some(profile) = &report.accounts.path_profile else { return };
    let _ = write!(out, "\n## Path profile\n\n{}.\n\n", path_profile::COLUMNS);
    path_profile::sentences(profile).iter().for_each(|sentence| out.push_str(&format!("- {}\n", text(sentence))));
    out.push('\n');
    let row = |step: &narrows_model::run::report::ProfileStepView| {
        vec![bps(step.offered_bps), bps(step.delivered_bps), share(step.loss), format!("{:.1} ms", step.queue_us / 1e3)]
    };
    *out += &table(&["Offered", "Delivered", "Lost", "Queue"], &profile.steps.iter().map(row).collect::<Vec<_>>());
}

fn latency_of(out: &mut String, report: &Report) {
    let Some(of) = &report.accounts.latency else { return };
    let _ = writeln!(out, "\n## Latency\n\nRound trips ({}; {}).\n", latency::way(of), latency::MEANING);
    let row = |(name, [p50, p95, p99], count): (&str, [String; 3], String)| vec![name.to_owned(), p50, p95, p99, count];
    let [name, p50, p95, p99] = latency::HEAD;
    *out += &table(&[name, p50, p95, p99, "of"], &latency::rows(of).into_iter().map(row).collect::<Vec<_>>());
    latency::waits(of).iter().for_each(|words| out.push_str(&format!("\n{}.\n", text(words))));
}

fn budget(out: &mut String, report: &Report) {
    if !report.accounts.phases.is_empty() {
        out.push_str("\n## The rate changed during the load\n\n");
        phases(report).iter().for_each(|phase| out.push_str(&format!("- {phase}\n")));
    }
    let Some(budget) = &report.accounts.time_budget else { return };
    out.push_str("\n## Where the sender's time went\n\nWhat its TCP waited for, as shares of the time.");
    out.push_str(&waits_behind(report).map_or_else(String::new, |words| format!(" {}", text(&words))));
    out.push_str("\n\n");
    let rows: Vec<_> = parts(budget).iter().map(|(_, name, part)| vec![(*name).to_owned(), share(*part)]).collect();
    *out += &table(&["Part", "Share"], &rows);
}

fn experiments(out: &mut String, report: &Report) {
    if report.experiments.is_empty() {
        return;
    }
    out.push_str("\n## Experiments\n\n");
    let row = |it: &narrows_model::run::report::ExperimentView| {
        vec![format!("`{}`", code(&it.id)), bps(it.goodput_bps), text(&it.what)]
    };
    *out += &table(&["Experiment", "Goodput", "What"], &report.experiments.iter().map(row).collect::<Vec<_>>());
}

fn round(out: &mut String, round: &RoundView) {
    let _ = writeln!(out, "\n{}. **{}**. {}", round.round + 1, bps(round.goodput_bps), text(&round.headline));
    for change in &round.changes {
        let kept = if change.in_force { "in force" } else { "rolled back" };
        let _ = writeln!(out, "   - on the {}: `{}` ({kept})", change.at, code(&change.set.to_string()));
    }
    if let Some(proof) = &round.proof {
        let _ = writeln!(out, "   - {}", text(&rounds::outcome(proof)));
        let _ = writeln!(out, "   - {}", text(&rounds::prediction(proof)));
    }
}

fn both_hosts(out: &mut String, report: &Report) {
    let rows = hosts::rows(report, true);
    if rows.is_empty() {
        return;
    }
    out.push_str("\n## Both hosts\n\n");
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let mark = if row.differs { "≠" } else { "" };
            vec![
                mark.to_owned(),
                format!("{}: {}", row.spec.group.title(), row.spec.label),
                text(&row.client.text),
                text(&row.server.text),
            ]
        })
        .collect();
    let name =
        |side: &str, name: &str| if name.is_empty() { side.to_owned() } else { format!("{side} ({})", text(name)) };
    let (client, server) = (name("Client", &report.hosts.client.name), name("Server", &report.hosts.server.name));
    *out += &table(&["", "Parameter", &client, &server], &cells);
}
