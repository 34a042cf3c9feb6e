//! `[ab]`: two configurations of the device.

use super::procedures::command;
use super::reader::{Item, Table};
use crate::data::ab::{DeviceConfiguration, ForwardingAb, SwitchStep};

/// The tables of the configurations.
pub(super) const SIDES: [&str; 2] = ["ab.a", "ab.b"];

/// Commands and faults of a configuration.
const MAX_STEPS: usize = 64;

/// What `[ab]` says beside the plan.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) a: DeviceConfiguration,
    pub(super) b: DeviceConfiguration,
    pub(super) runs: u32,
    pub(super) settle_ms: u64,
}

/// The pair, if the file has one that is sound.
pub(super) fn pair(root: &Table<'_>) -> Option<Pair> {
    let table = root.table("ab")?;
    let range = ForwardingAb::MIN_RUNS..=ForwardingAb::MAX_RUNS;
    let runs = table.item("runs").and_then(|item| item.count(range)).unwrap_or(5);
    let settle_ms = table.item("settle").and_then(|item| item.duration_ms(0..=3_600_000)).unwrap_or(2_000);
    let side = |key| table.required_table(key).and_then(|table| configuration(&table));
    let (a, b) = (side("a"), side("b"));
    let (a, b) = (a?, b?);
    if a.name == b.name {
        table.note("b", format!("both configurations have the name `{}`; each needs its own", a.name));
    } else if a.steps == b.steps {
        table.note("b", "it has the same steps as a: there is nothing to compare");
    }
    Some(Pair { a, b, runs, settle_ms })
}

fn configuration(table: &Table<'_>) -> Option<DeviceConfiguration> {
    let name = table.required("name").and_then(|item| item.text(100, "a name"));
    let list = |key, of: &str| table.item(key).and_then(|item| item.list(0..=MAX_STEPS, of)).unwrap_or_default();
    let commands = list("commands", "commands, each a list of words");
    let faults = list("faults", "faults of the lab, like \"filter-drop=1000\"");
    let undo = list("undo", "commands, each a list of words").iter().filter_map(command).collect();
    let command = |item: &Item<'_>| command(item).map(|words| SwitchStep::Command { words });
    let mut steps: Vec<SwitchStep> = commands.iter().filter_map(command).collect();
    steps.extend(faults.iter().filter_map(fault));
    Some(DeviceConfiguration { name: name?, steps, undo })
}

fn fault(item: &Item<'_>) -> Option<SwitchStep> {
    let word = item.text(200, "a fault like \"filter-drop=1000\"")?;
    let (id, value) = word.split_once('=').unwrap_or((&word, ""));
    let is_id =
        |id: &str| !id.is_empty() && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_id(id) {
        return item.refuse("a fault's id, or id=value");
    }
    Some(SwitchStep::Fault { id: id.to_owned(), value: value.to_owned() })
}
