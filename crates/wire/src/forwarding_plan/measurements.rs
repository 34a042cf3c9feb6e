//! The tables of the tests: what is measured, and how long and how often.

use super::keys::{BACK_TO_BACK, GOAL, LATENCY, LOSS, RECOVERY, RESET, THROUGHPUT, WORST_CASE};
use super::preset::Preset;
use super::reader::{Item, Table};
use narrows_model::forwarding::{
    BackToBackTest, LatencyTest, LossTest, RecoveryTest, ResetTest, Tests, ThroughputTest, WorstCaseTest,
};
use narrows_model::run::search::{Goal, SearchPlan};
use std::ops::RangeInclusive;

/// Repetitions of anything.
const REPETITIONS: RangeInclusive<u32> = 1..=1_000;
/// Durations of a trial, ms.
const TRIAL_MS: RangeInclusive<u64> = 10..=SearchPlan::LONGEST_TRIAL_MS;
/// The longest burst: 30 s at 150 Mpps.
const MOST_BURST: u64 = 4_500_000_000;
/// Words of a command, and characters of each.
const WORDS_MOST: usize = 64;
const WORD_MOST: usize = 4_096;

/// A test that was named has its table; where none is named the preset says which are made.
pub(super) fn tests(root: &Table<'_>, preset: Preset, most_frames: u64) -> Tests {
    let names = ["throughput", "latency", "loss", "back-to-back", "recovery", "reset", "worst-case"];
    if !names.iter().any(|name| root.has(name)) {
        return Tests {
            throughput: Some(preset.throughput()),
            latency: Some(preset.latency()),
            loss: Some(preset.loss()),
            back_to_back: Some(BackToBackTest { most_frames, repetitions: preset.burst_repetitions() }),
            recovery: (preset == Preset::Rfc2544).then(|| preset.recovery()),
            reset: None,
            worst_case: None,
        };
    }
    // What stands on the throughput without a throughput test.
    for name in ["latency", "back-to-back", "recovery", "reset"] {
        if root.has(name) && !root.has("throughput") {
            root.note(
                name,
                format!("{name} is measured at or around the throughput, but there is no [throughput]; add it"),
            );
        }
    }
    Tests {
        throughput: root.table("throughput", &THROUGHPUT).map(|table| throughput(&table, preset)),
        latency: root.table("latency", &LATENCY).map(|table| latency(&table, preset)),
        loss: root.table("loss", &LOSS).map(|table| loss(&table, preset)),
        back_to_back: root.table("back-to-back", &BACK_TO_BACK).map(|table| BackToBackTest {
            most_frames: table.item("most-frames").and_then(|item| item.whole(1..=MOST_BURST)).unwrap_or(most_frames),
            repetitions: repetitions(&table).unwrap_or(preset.burst_repetitions()),
        }),
        recovery: root.table("recovery", &RECOVERY).map(|table| recovery(&table, preset)),
        reset: root.table("reset", &RESET).and_then(|table| reset(&table)),
        worst_case: root.table("worst-case", &WORST_CASE).map(|table| worst_case(&table, preset)),
    }
}

fn repetitions(table: &Table<'_>) -> Option<u32> {
    table.item("repetitions").and_then(|item| item.count(REPETITIONS))
}

fn duration(table: &Table<'_>, key: &'static str) -> Option<u64> {
    table.item(key).and_then(|item| item.duration_ms(TRIAL_MS))
}

fn latency(table: &Table<'_>, preset: Preset) -> LatencyTest {
    let preset = preset.latency();
    LatencyTest {
        duration_ms: duration(table, "duration").unwrap_or(preset.duration_ms),
        repetitions: repetitions(table).unwrap_or(preset.repetitions),
    }
}

fn loss(table: &Table<'_>, preset: Preset) -> LossTest {
    let preset = preset.loss();
    let step = table.item("step").and_then(|item| {
        let step = item.number(0.001..=0.5)?;
        if step > 0.1 {
            return item.refuse("from 0.001 to 0.1: RFC 2544, section 26.3 allows no steps above a tenth");
        }
        Some(step)
    });
    LossTest {
        step: step.unwrap_or(preset.step),
        duration_ms: duration(table, "duration").unwrap_or(preset.duration_ms),
    }
}

fn recovery(table: &Table<'_>, preset: Preset) -> RecoveryTest {
    let preset = preset.recovery();
    RecoveryTest {
        overload_ms: duration(table, "overload").unwrap_or(preset.overload_ms),
        after_ms: duration(table, "after").unwrap_or(preset.after_ms),
        repetitions: repetitions(table).unwrap_or(preset.repetitions),
    }
}

fn worst_case(table: &Table<'_>, preset: Preset) -> WorstCaseTest {
    let preset = preset.worst_case();
    WorstCaseTest {
        duration_ms: duration(table, "duration").unwrap_or(preset.duration_ms),
        repetitions: repetitions(table).unwrap_or(preset.repetitions),
    }
}

fn reset(table: &Table<'_>) -> Option<ResetTest> {
    let within_ms = duration(table, "within").unwrap_or(120_000);
    let command = table.required("command").and_then(|item| command(&item))?;
    Some(ResetTest { command, within_ms })
}

/// Words of a command.
pub(super) fn command(item: &Item<'_>) -> Option<Vec<String>> {
    let entries = item.list(1..=WORDS_MOST, "words of a command, the program first, like [\"reboot-it\", \"now\"]")?;
    let word = |(nth, entry): (usize, &Item<'_>)| {
        let text = entry.as_text().filter(|text| text.len() <= WORD_MOST && !text.contains('\0'));
        let text = text.filter(|text| nth > 0 || !text.trim().is_empty());
        text.map(str::to_owned).or_else(|| entry.refuse(&format!("a word of a command, at most {WORD_MOST} bytes")))
    };
    let words: Vec<Option<String>> = entries.iter().enumerate().map(word).collect();
    words.into_iter().collect()
}

fn throughput(table: &Table<'_>, preset: Preset) -> ThroughputTest {
    let default = preset.throughput();
    let goals = table.item("goals").and_then(|item| goals(&item)).unwrap_or(default.goals);
    let longest_ms = SearchPlan::LONGEST_MS;
    let max_search_ms = table.item("max-search").and_then(|item| item.duration_ms(10..=longest_ms));
    let max_search_ms = max_search_ms.unwrap_or(default.max_search_ms);
    if let Some(goal) = goals.iter().find(|goal| goal.final_trial_ms > max_search_ms) {
        let says = format!(
            "{} s are too short for a single final trial of the goal {}, which takes {} s",
            max_search_ms as f64 / 1e3,
            goal.name,
            goal.final_trial_ms as f64 / 1e3
        );
        table.note("max-search", says);
    }
    let confirm = table.item("confirm").and_then(|item| item.count(0..=1_000)).unwrap_or(default.confirm);
    ThroughputTest { goals, confirm, max_search_ms }
}

fn goals(item: &Item<'_>) -> Option<Vec<Goal>> {
    let entries =
        item.list(1..=SearchPlan::MOST_GOALS, "goals: \"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or tables")?;
    let mut goals: Vec<Goal> = Vec::new();
    for entry in &entries {
        let goal = match entry.as_text() {
            Some("ndr") => Goal::ndr(),
            Some("pdr") => Goal::pdr(),
            Some("rfc2544") => Goal::rfc2544(),
            Some("tst009") => Goal::tst009(),
            Some(_) => {
                entry.refuse::<()>("\"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or a table");
                continue;
            }
            None => match entry.clone().into_table(&GOAL).and_then(|table| goal(&table)) {
                Some(goal) => goal,
                None => continue,
            },
        };
        if goals.iter().any(|other| other.name == goal.name) {
            entry.note(format!("a goal is called {} already, but each has a name of its own", goal.name));
        }
        goals.push(goal);
    }
    (!goals.is_empty()).then_some(goals)
}

fn goal(table: &Table<'_>) -> Option<Goal> {
    let ratio = |key| table.item(key).and_then(|item| item.number(0.0..=0.99));
    let initial_trial_ms = duration(table, "initial-trial").unwrap_or(1_000);
    let final_trial_ms = duration(table, "final-trial").unwrap_or(1_000.max(initial_trial_ms));
    if final_trial_ms < initial_trial_ms {
        table.note("final-trial", "it is shorter than initial-trial, but must not be");
    }
    let sum_ms = table.item("duration-sum").and_then(|item| item.duration_ms(10..=SearchPlan::LONGEST_MS));
    let duration_sum_ms = sum_ms.unwrap_or(final_trial_ms);
    if duration_sum_ms < final_trial_ms {
        table.note("duration-sum", "it is shorter than final-trial, but must not be");
    }
    Some(Goal {
        loss_ratio: ratio("loss-ratio").unwrap_or(0.0),
        exceed_ratio: ratio("exceed-ratio").unwrap_or(0.0),
        width: table.item("width").and_then(|item| item.number(0.000_1..=0.5)).unwrap_or(0.005),
        name: table.required("name").and_then(|item| item.text(60, "a name"))?,
        final_trial_ms,
        duration_sum_ms,
        initial_trial_ms,
    })
}
