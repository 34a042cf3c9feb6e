//! The plan file of a forwarding benchmark: TOML in the user's words, a [`ForwardingPlan`] out, or everything that is wrong
//! with the file at once.
//!
//! ```toml
//! name = "router a"
//! link = "10G"
//!
//! [generator]
//! device = "gen0"
//! address = "198.18.0.2"
//! gateway = "198.18.0.1"
//!
//! [receiver]
//! device = "rcv0"
//! address = "198.19.0.2"
//! gateway = "198.19.0.1"
//! ```
//!
//! is a whole plan: the rest comes from `preset`, which is `"quick"` where it is not given. Every key is in [`keys`], with
//! what it is and what is taken without it; [`reference()`] is the page of the manual.
//!
//! Where a test has a table, only tests that have one are made; an empty table is the test with the preset's values.

mod ab;
mod hops;
pub mod keys;
mod modifiers;
mod ports;
mod problem;
mod procedures;
mod reader;
mod section;
mod traffic;

#[cfg(test)]
mod tests;

pub use keys::reference;
pub use problem::Problems;

use crate::data::ForwardingPlan;
use crate::data::ab::ForwardingAb;
use crate::data::plan::line_rate_pps;
use crate::data::settings::Preset;
use keys::SECTIONS;
use narrows_model::words::units::{Rate, parse_rate};
use narrows_wire::problem::Problem;
use problem::MISSING;
use reader::{Ink, Item, Table};
use toml::de::DeTable;

pub const MAX_BYTES: usize = 256 * 1024;
/// The slowest and the fastest line, bit/s.
const LINK_BPS: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000_000;
/// The most that is offered, frames a second.
const MAX_PPS: u64 = 1_000_000_000;

/// What a plan file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanFile {
    pub plan: ForwardingPlan,
    /// With two configurations of the device, where the file has `[ab]`.
    pub ab: Option<ForwardingAb>,
}

/// Reads a plan file.
/// Errors: everything that is wrong with it, each with line, column, key, value and what is allowed.
pub fn parse(text: &str) -> Result<PlanFile, Problems> {
    if text.len() > MAX_BYTES {
        let says = format!("the file has {} bytes; the maximum for a plan is {MAX_BYTES}", text.len());
        return Err(Problems::of(vec![Problem { line: 1, column: 1, key: String::new(), says }], 0));
    }
    let ink = Ink::new(text, &SECTIONS);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        ink.note(error.span().map_or(0, |span| span.start), "", format!("invalid TOML: {}", error.message()));
    }
    // Where only values are broken the tables still stand, and the rest of the file is looked at, too.
    let broken: Vec<usize> =
        errors.iter().map(|error| ink.lines().at(error.span().map_or(0, |span| span.start)).0).collect();
    let stands = broken.iter().all(|line| is_assignment(ink.lines().line(*line)));
    let file = if stands { read(&Table::root(&ink, table.get_ref())) } else { None };
    let (mut problems, more) = ink.into_problems();
    if !broken.is_empty() {
        // A line that is no TOML was told already; what it does not say cannot be missed.
        problems.retain(|problem| {
            problem.key.is_empty() || !broken.contains(&problem.line) && !problem.says.starts_with(MISSING)
        });
    }
    match file {
        Some(file) if problems.is_empty() => Ok(file),
        _ => Err(Problems::of(problems, more)),
    }
}

/// Whether a line is `key = …` with nothing in it that opens over several lines.
fn is_assignment(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, value)| {
        let key = key.trim();
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        plain && !value.contains(['[', '{', '"', '\''])
    })
}

/// The whole file; nothing where a part that has no default is missing or wrong. What is wrong has been noted.
fn read(root: &Table<'_>) -> Option<PlanFile> {
    let preset = root.item("preset").and_then(|item| item.one_of(&Preset::WORDS)).unwrap_or(Preset::Quick);
    let allow_any = root.item("allow-any-address").and_then(|item| item.flag()).unwrap_or(false);
    let name = root.required("name").and_then(|item| item.text(200, "a name"));
    let link_bps = root.required("link").and_then(|item| link(&item));
    let max_load_pps = root.item("max-load").and_then(|item| max_load(&item));

    let generator = root.required_table("generator").and_then(|table| ports::port(&table, allow_any));
    let receiver_table = root.required_table("receiver");
    let receiver = receiver_table.as_ref().and_then(|table| ports::port(table, allow_any));
    if let (Some(table), Some(generator), Some(receiver)) = (&receiver_table, &generator, &receiver) {
        ports::check_both(table, generator, receiver);
    }

    let hops = hops::hops(&root.tables("hop", hops::MAX));
    let ports = traffic::Ports { generator: generator.as_ref(), receiver: receiver.as_ref() };
    let mut traffic: Vec<_> = root
        .tables("traffic", traffic::MAX)
        .iter()
        .flat_map(|table| modifiers::modified(table, traffic::traffic(table, preset, ports), &hops))
        .collect();
    if traffic.is_empty() {
        traffic = traffic::default_traffic(preset, ports);
    }

    let smallest = traffic.iter().flat_map(|traffic| &traffic.sizes).min().copied().unwrap_or(64);
    let line_pps = line_rate_pps(link_bps.unwrap_or(*LINK_BPS.start()), smallest.into());
    let mut tests = procedures::tests(root, preset);
    tests.complete(max_load_pps.map_or(line_pps, |most| most.min(line_pps)));
    let conditions = procedures::read(root, preset);
    let tables = root.table("tables").and_then(|table| procedures::read(&table, preset));
    if tables.is_none() && !root.has("tables") {
        modifiers::check_tables(root, &traffic, &hops);
    }
    let wait = root.item("wait-for-lost-device").and_then(|item| item.duration_ms(0..=86_400_000));
    let pair = ab::pair(root);
    if pair.is_some() && tests.throughput.is_none() {
        root.note("ab", "a comparison needs [throughput]; add it");
    }
    let plan = ForwardingPlan {
        name: name?,
        generator: generator?,
        receiver: receiver?,
        link_bps: link_bps?,
        max_load_pps,
        traffic,
        hops,
        tests,
        conditions: conditions?,
        tables,
        lost_dut_wait_ms: wait.unwrap_or(0),
    };
    let ab = pair.map(|pair| ForwardingAb {
        plan: plan.clone(),
        a: pair.a,
        b: pair.b,
        runs: pair.runs,
        settle_ms: pair.settle_ms,
    });
    Some(PlanFile { plan, ab })
}

fn link(item: &Item<'_>) -> Option<u64> {
    let bps = match item.as_text().map(parse_rate) {
        Some(Ok(Rate::Bits(bps))) => Some(bps),
        Some(_) => None,
        None => item.as_whole(),
    };
    bps.filter(|bps| LINK_BPS.contains(bps)).or_else(|| item.refuse("a rate in bit/s like \"10G\", from 1M to 1T"))
}

fn max_load(item: &Item<'_>) -> Option<f64> {
    let pps = match item.as_text().map(parse_rate) {
        Some(Ok(Rate::Packets(pps))) => Some(pps),
        _ => None,
    };
    let pps = pps.filter(|pps| (1..=MAX_PPS).contains(pps));
    pps.map(|pps| pps as f64).or_else(|| item.refuse("frames per second like \"2Mpps\", from 1pps to 1Gpps"))
}
