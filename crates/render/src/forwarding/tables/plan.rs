//! What was asked for.

use super::super::words;
use crate::figures::{grouped, pps, ratio};
use crate::table::{Cell, Column, Row, Table};
use crate::words::{clean, plural};
use narrows_model::forwarding::report::ForwardingReport;
use narrows_model::forwarding::{TesterPort, Tests};
use narrows_model::run::search::Goal;
use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, micros, percent};

/// The plan, a line each.
pub(in super::super) fn plan(report: &ForwardingReport) -> Table {
    let plan = &report.plan;
    let mut table = Table::new("What was asked for", "", &[Column::words(""), Column::words("")]);
    let mut line = |name: &str, text: String| table.rows.push(Row::new(vec![Cell::new(name), Cell::new(text)]));
    #[allow(clippy::cast_precision_loss)]
    let link = nominal(&bps(plan.link_bps as f64));
    let most = plan.max_load_pps.map(|most| format!(", at most {} offered", pps(most))).unwrap_or_default();
    line("link", format!("{link} on the wire is 100 %{most}"));
    line("tester sends", port(&plan.generator));
    line("tester counts", port(&plan.receiver));
    for hop in &plan.hops {
        let what = if hop.under_test { "device under test" } else { "switch" };
        line(what, format!("{}, in by {}, out by {}, counters: {}", hop.name, hop.input, hop.output, hop.counters));
    }
    for it in &report.traffic {
        let sizes: Vec<String> = it.traffic.sizes.iter().map(u32::to_string).collect();
        let mix =
            if it.traffic.mix.is_empty() { String::new() } else { format!("; a mix of {}", words::mix(&it.traffic)) };
        line(&it.name, format!("{}; {} B{mix}", it.what, sizes.join(", ")));
    }
    for (name, text) in tests(&plan.tests) {
        line(name, text);
    }
    let learning = if plan.learning_frames > 0 {
        format!("{} learning frames before it, ", grouped(plan.learning_frames.into()))
    } else {
        String::new()
    };
    line(
        "each trial",
        format!("{learning}{} for frames under way after it, {} of rest", time(plan.residue_ms), time(plan.rest_ms)),
    );
    table
}

fn port(of: &TesterPort) -> String {
    let place = of.host.as_ref().map(|host| format!(" of {}", clean(host))).unwrap_or_default();
    let second = of.second.map(|pair| format!(", as {} by {}", pair.address, pair.gateway)).unwrap_or_default();
    format!("on {}{place} as {} by {}{second}", of.device, of.address, of.gateway)
}

fn time(ms: u64) -> String {
    micros(ms.saturating_mul(1000))
}

fn times(n: u32) -> String {
    plural(n.into(), "time")
}

fn tests(of: &Tests) -> Vec<(&'static str, String)> {
    let mut list = Vec::new();
    if let Some(it) = &of.throughput {
        let goals: Vec<String> = it.goals.iter().map(goal).collect();
        list.push(("throughput", format!("{}; confirmed {}", goals.join("; "), times(it.confirm))));
    }
    list.extend(
        of.latency.as_ref().map(|it| ("latency", format!("{} of {}", times(it.repetitions), time(it.duration_ms)))),
    );
    list.extend(
        of.loss
            .as_ref()
            .map(|it| ("frame loss rate", format!("steps of {}, {} each", percent(it.step), time(it.duration_ms)))),
    );
    list.extend(of.back_to_back.as_ref().map(|it| {
        ("back-to-back", format!("{}, bursts of at most {} frames", times(it.repetitions), grouped(it.most_frames)))
    }));
    list.extend(of.recovery.as_ref().map(|it| {
        let text =
            format!("{}: {} of 110 %, {} of half", times(it.repetitions), time(it.overload_ms), time(it.after_ms));
        ("recovery", text)
    }));
    list.extend(of.reset.as_ref().map(|it| {
        ("reset", format!("by `{}`, within {}", it.command.first().map_or("", String::as_str), time(it.within_ms)))
    }));
    list.extend(
        of.worst_case
            .as_ref()
            .map(|it| ("worst case", format!("{} of {}", times(it.repetitions), time(it.duration_ms)))),
    );
    list
}

fn goal(of: &Goal) -> String {
    let loss = if of.loss_ratio > 0.0 { format!("loss up to {}", ratio(of.loss_ratio)) } else { "no loss".to_owned() };
    format!("{}: {loss} in trials of {}, bounds within {}", of.name, time(of.final_trial_ms), percent(of.width))
}
