//! A forwarding benchmark in words while it is planned and while it runs.

use super::Event;
use narrows_model::forwarding::{CounterSource, ForwardingPlan, Test};
use narrows_model::forwarding_ab::{AbRow, ForwardingAb};
use narrows_model::forwarding_plan::Row;
use narrows_search::procedures;

const fn test_word(test: Test) -> &'static str {
    match test {
        Test::Qualification => "first look",
        Test::Throughput => "throughput",
        Test::Confirmation => "confirmation",
        Test::Latency => "latency",
        Test::Loss => "loss",
        Test::BackToBack => "back-to-back",
        Test::Recovery => "recovery",
        Test::Reset => "reset",
        Test::WorstCase => "worst case",
    }
}

fn row_word(size: Option<u32>) -> String {
    size.map_or_else(|| "mix".to_owned(), |size| format!("{size} B"))
}

fn seconds(ms: u64) -> String {
    match ms {
        0..=99_999 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{:.1} min", ms as f64 / 60e3),
    }
}

/// Every trial that a plan leads to, with its time: what `--dry-run` prints.
#[must_use]
pub fn schedule(plan: &ForwardingPlan) -> String {
    let all = procedures::schedule(plan);
    let mut text = format!("{:<13} {:>7} {:>16} {:>12} {:>12}\n", "test", "size", "trials", "expected", "at most");
    for one in &all {
        let trials = if one.trials == one.most_trials {
            one.most_trials.to_string()
        } else {
            format!("{} of {}", one.trials, one.most_trials)
        };
        text += &format!(
            "{:<13} {:>7} {trials:>16} {:>12} {:>12}\n",
            test_word(one.test),
            row_word(one.size),
            seconds(one.expected_ms),
            seconds(one.at_most_ms)
        );
    }
    let (expected, most) = procedures::total(&all);
    text += &hosts(plan);
    text + &format!("\nAll together: about {}, at most {}. Nothing was sent.\n", seconds(expected), seconds(most))
}

/// Which hosts a plan is made on, where there are others than this one.
fn hosts(plan: &ForwardingPlan) -> String {
    let (generator, receiver) = (&plan.generator, &plan.receiver);
    let read: Vec<String> = plan
        .hops
        .iter()
        .filter_map(|hop| match &hop.source {
            CounterSource::Narrows { host, .. } => Some(format!("counters of {} are read through {host}", hop.name)),
            CounterSource::Namespace { .. } | CounterSource::Snmp { .. } => None,
        })
        .collect();
    if generator.host.is_none() && receiver.host.is_none() && read.is_empty() {
        return String::new();
    }
    let place = |host: &Option<String>| host.clone().unwrap_or_else(|| "this host".to_owned());
    let mut text = format!(
        "\nFrames leave by {} of {} and are counted at {} of {}.\n",
        generator.device,
        place(&generator.host),
        receiver.device,
        place(&receiver.host)
    );
    read.iter().for_each(|line| text += &format!("The {line}.\n"));
    if plan.tests.latency.is_some() && !plan.one_clock() {
        text += &format!("No latency: {}.\n", procedures::latency::TWO_CLOCKS);
    }
    text
}

/// A line for each event.
#[derive(Debug)]
pub struct Lines {
    names: Vec<String>,
    row: Option<Row>,
}

impl Lines {
    /// Before the first event.
    #[must_use]
    pub fn new(plan: &ForwardingPlan) -> Self {
        let name = |traffic: &narrows_model::forwarding::Traffic| match traffic.family {
            narrows_model::Family::Ipv4 => "IPv4".to_owned(),
            narrows_model::Family::Ipv6 => "IPv6".to_owned(),
        };
        Self { names: plan.traffic.iter().map(name).collect(), row: None }
    }

    /// The line of an event, if it has one.
    pub fn next(&mut self, event: &Event<'_>) -> Option<String> {
        Some(match event {
            Event::Row(row) => {
                self.row = Some(*row);
                let name = self.names.get(row.traffic).map_or("", String::as_str);
                format!("{name}, {}", row_word(row.size))
            }
            Event::Tester(pps) => format!("  the tester alone carries {:.0} frames/s", pps),
            Event::Trial(pps, trial) => {
                let (sent, lost) = trial
                    .directions
                    .iter()
                    .fold((0, 0), |(sent, lost), frames| (sent + frames.sent.sent(), lost + frames.lost()));
                let unsent: u64 = trial.directions.iter().map(|frames| frames.sent.unsent()).sum();
                let invalid = trial.invalid.as_ref().map_or_else(String::new, |why| format!("; says nothing: {why}"));
                let unsent = if unsent > 0 { format!(", {unsent} unsent") } else { String::new() };
                format!("  {:<13} {pps:>12.0}/s: {sent} sent, {lost} lost{unsent}{invalid}", test_word(trial.test))
            }
            Event::Found(goal, Some(pps)) => format!("  {goal}: {pps:.0} frames/s"),
            Event::Found(goal, None) => format!("  {goal}: no rate passes"),
            Event::Says(words) => format!("  {words}"),
            Event::Line(line) => (*line).to_owned(),
        })
    }
}

/// How two configurations of a device compare.
#[must_use]
pub fn comparison(ab: &ForwardingAb, rows: &[AbRow]) -> String {
    let mut text = format!("A: {}\nB: {}\n\n", ab.a.name, ab.b.name);
    for row in rows {
        text += &format!("{}: {}\n", row_word(row.size), row.says);
        let list = |values: &[f64]| values.iter().map(|pps| format!("{pps:.0}")).collect::<Vec<_>>().join(" ");
        text += &format!("  A frames/s  {}\n  B frames/s  {}\n", list(&row.a_pps), list(&row.b_pps));
        if let Some(pooled) = &row.pooled {
            text += &format!(
                "  as ministat  {:+.0} ± {:.0} frames/s, {:+.2} ± {:.2} % (Student's t, pooled s = {:.0})\n",
                pooled.pps,
                pooled.half_pps,
                pooled.ratio * 100.0,
                pooled.half_ratio * 100.0,
                row.pooled_s.unwrap_or(0.0)
            );
        }
        if let Some(welch) = &row.welch {
            text += &format!(
                "  Welch        {:+.0} ± {:.0} frames/s, {:+.2} ± {:.2} %, at 95 %\n",
                welch.pps,
                welch.half_pps,
                welch.ratio * 100.0,
                welch.half_ratio * 100.0
            );
        }
        row.remarks.iter().for_each(|remark| text += &format!("  {remark}\n"));
    }
    text
}
