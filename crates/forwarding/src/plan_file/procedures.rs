//! The tables of the procedures, read by what each declares of its keys (`narrows_wire::data::procedures`).

use super::reader::{Item, Table};
use super::section::{Key, Section};
use crate::data::procedures::Made;
use crate::data::settings::{Default, Kind, Preset, Settings, in_a_sentence};
use crate::data::{Test, Tests, settings};
use narrows_model::run::search::{Goal, SearchPlan};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Durations of a trial, ms.
const TRIAL_MS: RangeInclusive<u64> = 10..=SearchPlan::LONGEST_TRIAL_MS;
/// Words of a command, and bytes of each.
const MAX_WORDS: usize = 64;
const MAX_WORD_BYTES: usize = 4_096;

/// The tables of the procedures, and that of a goal behind the throughput's.
pub(super) fn sections() -> Vec<Section> {
    let of = |test: &Test| {
        let (doc, keys) = test.keys();
        let name = test.about().map_or("", |about| about.key);
        Section { name, written: format!("[{name}]"), what: doc.trim().to_owned(), keys: declared(keys) }
    };
    let mut all: Vec<Section> = Test::PROCEDURES.iter().map(of).collect();
    let goals = all.iter().position(|section| section.keys.iter().any(|key| key.name == "goals"));
    all.insert(goals.map_or(0, |at| at + 1), Section::of("throughput.goals"));
    all
}

/// What a struct declares of its keys, as the page has it.
pub(super) fn declared(keys: &'static [settings::Key]) -> Vec<Key> {
    let key = |key: &settings::Key| Key { name: key.name, what: in_a_sentence(key.doc), default: key.default.words() };
    keys.iter().map(key).collect()
}

/// The keys of the top of the file that name a procedure's table.
pub(super) fn tables() -> Vec<Key> {
    let abouts = || Test::PROCEDURES.iter().filter_map(|test| test.about());
    let made = |made: Made| abouts().filter(|about| about.made == made).map(|about| about.key).collect::<Vec<_>>();
    let usually = made(Made::Usually);
    let usually = match usually.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => usually.concat(),
    };
    let more = made(Made::WithRfc2544).join(", ");
    abouts()
        .map(|about| Key {
            name: about.key,
            what: format!("table: {}", about.what),
            default: match about.made {
                Made::OnRequest => "not measured".to_owned(),
                _ => format!("without any test table: quick {usually}; rfc2544 also {more}"),
            },
        })
        .collect()
}

/// A test that was named has its table; where none is named the preset says which are made.
pub(super) fn tests(root: &Table<'_>, preset: Preset) -> Tests {
    let mut tests = Tests::default();
    let all = || Test::PROCEDURES.iter().filter_map(|test| Some((*test, test.about()?)));
    let named = all().any(|(_, about)| root.has(about.key));
    for (test, about) in all() {
        if !named {
            match about.made {
                Made::OnRequest => {}
                Made::WithRfc2544 if preset == Preset::Quick => {}
                Made::Usually | Made::WithRfc2544 => tests.set_default(test, preset),
            }
            continue;
        }
        if about.at_throughput && root.has(about.key) && !root.has("throughput") {
            let says = "needs the throughput; add [throughput]";
            root.note(about.key, format!("{} {says}", about.key));
        }
        let Some(table) = root.table(about.key) else { continue };
        if let Some(values) = values(&table, test.keys().1, preset) {
            // A test of the model sees that what is declared fits the fields.
            let _ = tests.set(test, values.into());
            tests.problems(test).into_iter().for_each(|(key, says)| table.note(key, says));
        }
    }
    tests
}

/// The settings of a table; `None` where a key without a default is missing or wrong.
pub(super) fn read<T: Settings + DeserializeOwned>(table: &Table<'_>, preset: Preset) -> Option<T> {
    serde_json::from_value(values(table, T::KEYS, preset)?.into()).ok()
}

/// A value for each field: that of the file, or the default where the file has none or a wrong one.
fn values(table: &Table<'_>, keys: &'static [settings::Key], preset: Preset) -> Option<Map<String, Value>> {
    let of = |key: &'static settings::Key| {
        let item = match key.default {
            Default::Required => table.required(key.name),
            _ => table.item(key.name),
        };
        let given = item.and_then(|item| value(&item, &key.kind));
        Some((key.field.to_owned(), given.or_else(|| key.default.json(preset))?))
    };
    // Every key is read before any is missed.
    let values: Vec<Option<(String, Value)>> = keys.iter().map(of).collect();
    values.into_iter().collect()
}

fn value(item: &Item<'_>, kind: &Kind) -> Option<Value> {
    Some(match kind {
        Kind::Duration(range) => item.duration_ms(range.clone())?.into(),
        Kind::Whole(range) => item.whole(range.clone())?.into(),
        Kind::Number(range) => item.number(range.clone())?.into(),
        Kind::Goals => serde_json::to_value(goals(item)?).ok()?,
        Kind::Command => command(item)?.into(),
    })
}

/// Words of a command.
pub(super) fn command(item: &Item<'_>) -> Option<Vec<String>> {
    let entries = item.list(1..=MAX_WORDS, "words of a command, the program first, like [\"reboot-it\", \"now\"]")?;
    let word = |(nth, entry): (usize, &Item<'_>)| {
        let text = entry.as_text().filter(|text| text.len() <= MAX_WORD_BYTES && !text.contains('\0'));
        let text = text.filter(|text| nth > 0 || !text.trim().is_empty());
        text.map(str::to_owned)
            .or_else(|| entry.refuse(&format!("a word of a command, at most {MAX_WORD_BYTES} bytes")))
    };
    let words: Vec<Option<String>> = entries.iter().enumerate().map(word).collect();
    words.into_iter().collect()
}

fn goals(item: &Item<'_>) -> Option<Vec<Goal>> {
    let entries = item.list(1..=SearchPlan::MAX_GOALS, "goals: \"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or tables")?;
    let mut goals: Vec<Goal> = Vec::new();
    for entry in &entries {
        let goal = match entry.as_text().map(Goal::by_name) {
            Some(Some(goal)) => goal,
            Some(None) => {
                entry.refuse::<()>("\"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or a table");
                continue;
            }
            None => match entry.clone().into_table().and_then(|table| goal(&table)) {
                Some(goal) => goal,
                None => continue,
            },
        };
        if goals.iter().any(|other| other.name == goal.name) {
            entry.note(format!("another goal has the name {}; each needs its own", goal.name));
        }
        goals.push(goal);
    }
    (!goals.is_empty()).then_some(goals)
}

fn goal(table: &Table<'_>) -> Option<Goal> {
    let duration = |key| table.item(key).and_then(|item| item.duration_ms(TRIAL_MS));
    let ratio = |key| table.item(key).and_then(|item| item.number(0.0..=0.99));
    let initial_trial_ms = duration("initial-trial").unwrap_or(1_000);
    let final_trial_ms = duration("final-trial").unwrap_or(1_000.max(initial_trial_ms));
    if final_trial_ms < initial_trial_ms {
        table.note("final-trial", "it must not be shorter than initial-trial");
    }
    let sum_ms = table.item("duration-sum").and_then(|item| item.duration_ms(10..=SearchPlan::LONGEST_MS));
    let duration_sum_ms = sum_ms.unwrap_or(final_trial_ms);
    if duration_sum_ms < final_trial_ms {
        table.note("duration-sum", "it must not be shorter than final-trial");
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
