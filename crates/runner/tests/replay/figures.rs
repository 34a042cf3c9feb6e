//! What a report says more than once, and what two of its figures say of one thing: the same everywhere. Over the stored and the drawn runs
//! and over those of `fixtures/runs/read.jsonl.zst`, whose reports a reader found to contradict themselves.

use crate::{drawn, report, stored};
use narrows_model::run::RunPlan;
use narrows_model::run::report::{AccountsView, Queue};
use narrows_model::words::units::{bps, micros, percent};
use narrows_model::{Ledger, Report, Run};
use narrows_render::{Document as _, Format, Style};

/// The diagnoses, by name.
fn diagnoses() -> Vec<(String, Run)> {
    let packed = ["drawn.jsonl.zst", "read.jsonl.zst"].into_iter().flat_map(drawn::read);
    let packed = packed.map(|case| (case.name, serde_json::from_value(case.run).expect("a run")));
    stored().into_iter().filter(|(_, run)| matches!(run.plan, RunPlan::Diagnose(_))).chain(packed).collect()
}

/// The words behind the last label of a line that holds it.
fn behind<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    let words = text.lines().filter_map(|line| Some(line.rsplit_once(label)?.1.trim_matches([' ', '|', '*'])));
    words.collect()
}

#[test]
fn a_figure_that_is_said_twice_is_the_same() {
    let mut repeated = 0;
    for (name, run) in diagnoses() {
        let view = report(&run);
        let style = Style { full: true, wide: true, width: 160, ..Style::default() };
        let [text, markdown] = [Format::Text, Format::Markdown]
            .map(|format| view.write(format, style).expect("a report").expect("a format").replace("**", ""));
        let picture = narrows_render::picture::picture(&view);
        let got = bps(view.verdict.goodput_bps);
        let mut same = |what: &str, said: &[&str], figure: &str| {
            repeated += said.len();
            assert!(said.iter().all(|it| it.starts_with(figure)), "{name}: {what} is {figure}, and said as {said:?}");
        };
        same("goodput", &behind(&text, "  you got "), &got);
        same("goodput", &behind(&markdown, "| You got "), &got);
        assert!(picture.contains(&format!(">{got}<")), "{name}: the picture lacks {got}");
        if let Some(predicted) = view.verdict.causes.first().and_then(|cause| cause.predicted_bps).map(bps) {
            same("prediction", &behind(&text, "  you could get "), &predicted);
            same("prediction", &behind(&markdown, "| You could get "), &predicted);
        }
        if let Some(idle) = view.run.idle_rtt_us.map(micros) {
            let before: Vec<&str> = text
                .lines()
                .filter_map(|line| Some(line.split_once(" RTT when idle")?.0.rsplit_once(", ")?.1))
                .collect();
            same("idle RTT", &before, &idle);
            same("idle RTT", &behind(&markdown, "| RTT when idle "), &idle);
            let medians = behind(&text, "  idle RTT: minimum ");
            same(
                "idle RTT",
                &medians.iter().filter_map(|it| Some(it.split_once("median ")?.1)).collect::<Vec<_>>(),
                &idle,
            );
            let table: Vec<&str> =
                text.lines().filter_map(|line| Some(line.strip_prefix("  idle  ")?.trim_start())).collect();
            same("idle RTT", &table, &idle);
        }
        for ceiling in view
            .accounts
            .roofline
            .iter()
            .filter(|it| view.verdict.causes.first().is_some_and(|c| c.id == it.id && c.at == it.at))
        {
            let said = behind(&text, "its ceiling, ");
            let own: Vec<&str> = said.into_iter().take(1).collect();
            same("ceiling", &own, &bps(ceiling.bps));
        }
    }
    assert!(repeated > 40, "{repeated} figures were compared");
}

/// Every sentence of evidence.
fn sentences(view: &Report) -> Vec<String> {
    let of = |cause: &narrows_model::run::report::CauseView| {
        let witnesses = cause.witnesses.iter().map(|it| it.says.clone());
        witnesses.chain(cause.rejected.iter().map(|it| it.why.clone())).collect::<Vec<_>>()
    };
    view.verdict.causes.iter().flat_map(of).collect()
}

fn lost(ledger: &Ledger) -> (u64, String) {
    let lost = ledger.offered - ledger.delivered;
    (lost, percent(lost as f64 / ledger.offered.max(1) as f64))
}

#[test]
fn what_evidence_says_of_loss_is_what_the_ledger_says() {
    let mut compared = 0;
    for (name, run) in diagnoses() {
        let view = report(&run);
        let Some(ledger) = view.accounts.ledger.first().filter(|it| it.unit == "segments") else { continue };
        let (lost, part) = lost(ledger);
        for says in sentences(&view).into_iter().filter(|says| !says.contains(" after the first ")) {
            let expected = [
                says.strip_prefix("TCP lost ").map(|rest| {
                    let of_all = rest.contains(" of its segments");
                    if of_all { format!("TCP lost {part} of its") } else { format!("TCP lost {lost} segments") }
                }),
                says.contains("but none of ").then(|| format!("none of {} segments", ledger.offered)),
                says.starts_with("only ").then(|| format!("only {lost} ")).filter(|_| says.ends_with(" were lost")),
            ];
            for expected in expected.into_iter().flatten() {
                compared += 1;
                assert!(says.contains(&expected), "{name}: {says:?} of {lost} lost of {}, {part}", ledger.offered);
            }
        }
    }
    assert!(compared > 10, "{compared} sentences were compared");
}

#[test]
fn a_ledger_accuses_no_place_of_what_all_its_counters_deny() {
    for (name, run) in diagnoses() {
        for ledger in report(&run).accounts.ledger.iter().filter(|ledger| ledger.unit == "segments") {
            let unexplained = ledger.unexplained.unsigned_abs();
            assert!(unexplained <= ledger.uncertainty, "{name}: {ledger:#?}");
        }
    }
}

/// Delivered at this part of what was offered is all of it, and so much of the loss is the grain of a few datagrams.
const GRAIN: f64 = 0.06;

#[test]
fn what_is_offered_and_not_delivered_is_lost_or_waits() {
    let mut compared = 0;
    for (name, run) in diagnoses() {
        for step in report(&run).accounts.path_profile.iter().flat_map(|profile| &profile.steps) {
            assert!(step.delivered_bps <= step.offered_bps, "{name}: {step:?}");
            let missing = 1.0 - step.delivered_bps / step.offered_bps;
            // Behind a queue the step goes on arriving when nothing is sent any more.
            let is_lost =
                (step.loss - missing).abs() < GRAIN || (step.queue_us > 1_000.0 && step.loss < missing + GRAIN);
            compared += 1;
            assert!(is_lost, "{name}: {missing:.3} is missing: {step:?}");
        }
    }
    assert!(compared > 300, "{compared} steps were compared");
}

#[test]
fn only_a_path_that_its_profile_shows_to_queue_makes_a_load_wait() {
    let mut waits = 0;
    for (name, run) in diagnoses() {
        let AccountsView { latency, path_profile, roofline, .. } = report(&run).accounts;
        let Some(latency) = latency else { continue };
        let limit = path_profile.and_then(|profile| profile.limit);
        let queues = matches!(limit.as_deref(), Some("queue" | "shaper"));
        assert!(latency.waits.iter().all(|wait| wait.queue != Queue::Path || queues), "{name}: {latency:?}");
        let policed = limit.as_deref() == Some("policer");
        assert!(!policed || roofline.iter().all(|it| !it.how.contains("queue of")), "{name}: {roofline:#?}");
        // What is said to be added is what the table shows.
        let rise = latency.loaded_us.zip(latency.idle_us).map_or(0.0, |(loaded, idle)| loaded.p50 - idle.p50);
        let added: f64 = latency.waits.iter().filter(|it| it.queue != Queue::Socket).map(|it| it.us).sum();
        assert!(added <= rise.max(0.0) + 1.0, "{name}: {latency:?}");
        waits += latency.waits.len();
    }
    assert!(waits > 50, "{waits}");
}

#[test]
fn a_load_of_which_nothing_arrived_has_no_round_trip() {
    let stuck: Vec<Report> =
        diagnoses().iter().map(|(_, run)| report(run)).filter(|it| it.verdict.goodput_bps <= 0.0).collect();
    assert!(!stuck.is_empty());
    for view in stuck {
        assert!(view.accounts.latency.is_none_or(|latency| latency.loaded_us.is_none()));
    }
}
