//! A forwarding benchmark in words while it is planned and while it runs.

use crate::Event;
use narrows_forwarding::data::ab::{ForwardingAb, Side, SwitchStep};
use narrows_forwarding::data::plan::{Row, size_word};
use narrows_forwarding::data::{CounterSource, ForwardingPlan, Test};
use narrows_forwarding::procedures;

fn seconds(ms: u64) -> String {
    match ms {
        0..=99_999 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{:.1} min", ms as f64 / 60e3),
    }
}

/// Every trial that a plan leads to, with its time: what `--dry-run` prints.
pub fn schedule(plan: &ForwardingPlan) -> String {
    let (table, (expected, most)) = trials(plan);
    table + &format!("\nTotal: about {}, at most {}. Nothing was sent.\n", seconds(expected), seconds(most))
}

/// The trials of a plan as a table, and what they take all together.
fn trials(plan: &ForwardingPlan) -> (String, (u64, u64)) {
    let all = procedures::schedule(plan);
    let several = plan.traffic.len() > 1;
    let names = narrows_forwarding::views::words::names(&plan.traffic);
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(7);
    let name = |traffic: Option<usize>| match traffic {
        _ if !several => String::new(),
        None => format!("{:<wide$} ", "frames"),
        Some(at) => format!("{:<wide$} ", names.get(at).map_or("", String::as_str)),
    };
    let mut text =
        format!("{}{:<13} {:>7} {:>16} {:>12} {:>12}\n", name(None), "test", "size", "trials", "expected", "at most");
    for one in &all {
        let trials = if one.trials == one.most_trials {
            one.most_trials.to_string()
        } else {
            format!("{}, at most {}", one.trials, one.most_trials)
        };
        text += &format!(
            "{}{:<13} {:>7} {trials:>16} {:>12} {:>12}\n",
            name(Some(one.traffic)),
            one.test.word(),
            size_word(one.size),
            seconds(one.expected_ms),
            seconds(one.at_most_ms)
        );
    }
    if all.iter().any(|one| one.test == Test::Confirmation) {
        text += "Confirmation trials follow a search that found a rate in its time.\n";
    }
    text += &hosts(plan);
    let (lines, more_ms) = tables(plan);
    text += &lines;
    let (expected, most) = procedures::total(&all);
    (text, (expected.saturating_add(more_ms[0]), most.saturating_add(more_ms[1])))
}

/// A table that is filled with each number of entries takes so long: its entries, the check by traffic; and at most, where the device
/// needs the whole time to converge.
const ENTRY_US: u64 = 10;
const CHECK_MS: u64 = 2_500;

/// The tables of the device that are filled, and what that takes: expected and at most, ms.
fn tables(plan: &ForwardingPlan) -> (String, [u64; 2]) {
    let all: Vec<_> = (0..plan.traffic.len()).filter_map(|at| plan.table(at)).collect();
    let (mut text, mut took) = (String::new(), [0_u64; 2]);
    let within = plan.tables.as_ref().map_or(60_000, |it| it.within_ms.saturating_mul(2));
    for fill in &all {
        let expected = u64::from(fill.entries) * 2 * ENTRY_US / 1_000 + CHECK_MS;
        took = [took[0].saturating_add(expected), took[1].saturating_add(expected.saturating_add(within))];
        text += &format!(
            "Table: {fill} are added to the DUT, checked by traffic, and removed, in {}.\n",
            seconds(expected)
        );
    }
    (if all.is_empty() { text } else { format!("\n{text}") }, took)
}

/// Every step of a benchmark with two configurations, and its time.
pub fn schedule_pair(ab: &ForwardingAb) -> String {
    let (table, (expected, most)) = trials(&ab.plan);
    let mut text = String::new();
    for side in [Side::A, Side::B] {
        let configuration = ab.configuration(side);
        text += &format!("{}: {}\n", side.word(), configuration.name);
        for step in &configuration.steps {
            text += &match step {
                SwitchStep::Command { words } => format!("   command  {}\n", words.join(" ")),
                SwitchStep::Fault { id, value } if value.is_empty() => format!("   fault    {id}\n"),
                SwitchStep::Fault { id, value } => format!("   fault    {id}={value}\n"),
            };
        }
        if configuration.steps.is_empty() {
            text += "   no command\n";
        }
        configuration.undo.iter().for_each(|words| text += &format!("   undo     {}\n", words.join(" ")));
    }
    let faults = ab.faults();
    if !faults.is_empty() {
        text += &format!("Faults removed before each switch and at the end: {}\n", faults.join(", "));
    }
    text += &format!("\nEach run:\n{table}\n{:<48} {:>12} {:>12}\n", "step", "expected", "at most");
    text += "switch to B and to A once, as a check\n";
    let (mut at, mut switches) = (None, 0_u64);
    let order = ab.order();
    for (nth, side) in (1..).zip(&order) {
        if at != Some(*side) {
            let rest = seconds(ab.settle_ms);
            text += &format!("{:<48} {rest:>12} {rest:>12}\n", format!("switch to {}, rest", side.word()));
            switches += 1;
            at = Some(*side);
        }
        let name = format!("run {nth} of {} with {}", order.len(), side.word());
        text += &format!("{name:<48} {:>12} {:>12}\n", seconds(expected), seconds(most));
    }
    text += "roll back the device\n";
    let whole =
        |each: u64| each.saturating_mul(order.len() as u64).saturating_add(switches.saturating_mul(ab.settle_ms));
    text + &format!(
        "\nTotal: about {}, at most {}, plus the time of the commands. Nothing was sent or changed.\n",
        seconds(whole(expected)),
        seconds(whole(most))
    )
}

/// Which hosts a plan is made on, where there are others than this one.
fn hosts(plan: &ForwardingPlan) -> String {
    let (generator, receiver) = (&plan.generator, &plan.receiver);
    let read: Vec<String> = plan
        .hops
        .iter()
        .filter_map(|hop| match &hop.source {
            CounterSource::Narrows { host, .. } => Some(format!("counters of {} from {host}", hop.name)),
            CounterSource::Namespace { .. } | CounterSource::Snmp(_) => None,
        })
        .collect();
    if generator.host.is_none() && receiver.host.is_none() && read.is_empty() {
        return String::new();
    }
    let place = |host: &Option<String>| host.clone().unwrap_or_else(|| "this host".to_owned());
    let mut text = format!(
        "\nGenerator: {} of {}. Receiver: {} of {}.\n",
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
    pub fn new(plan: &ForwardingPlan) -> Self {
        Self { names: narrows_forwarding::views::words::names(&plan.traffic), row: None }
    }

    /// The line of an event, if it has one.
    pub fn next(&mut self, event: &Event<'_>) -> Option<String> {
        Some(match event {
            Event::Row(row) => {
                self.row = Some(*row);
                let name = self.names.get(row.traffic).map_or("", String::as_str);
                format!("{name}, {}", size_word(row.size))
            }
            Event::Tester(pps) => format!("  tester calibration: {:.0} frames/s", pps),
            Event::Trial(pps, trial, invalid) => {
                let (sent, lost) = trial
                    .directions
                    .iter()
                    .fold((0, 0), |(sent, lost), frames| (sent + frames.sent.sent(), lost + frames.lost()));
                let unsent: u64 = trial.directions.iter().map(|frames| frames.sent.unsent()).sum();
                let invalid = invalid.map_or_else(String::new, |why| format!("; invalid: {why}"));
                let unsent = if unsent > 0 { format!(", {unsent} unsent") } else { String::new() };
                format!("  {:<13} {pps:>12.0}/s: {sent} sent, {lost} lost{unsent}{invalid}", trial.test.word())
            }
            Event::Says(words) => format!("  {words}"),
            Event::Line(line) => (*line).to_owned(),
        })
    }
}
