//! `modifiers` of a `[[traffic]]`: conditions under which the same frames are measured once more (RFC 2544, section 11). Each
//! becomes a traffic of its own behind the one without it.

use super::hops::snmp_agent;
use super::reader::{Item, Table};
use crate::data::{CounterSource, HopPlan};
use narrows_model::Family;
use narrows_model::host::snmp::SnmpAgent;
use narrows_model::host::table::TableKind;
use narrows_model::load::frame_traffic::{Modifier, Traffic};

/// Modifiers of one traffic.
const MAX: usize = 8;
/// One per cent, as RFC 2544, section 11.1 has it.
const SHARE: f64 = 0.01;
/// RIP's own time between updates (RFC 2453, section 3.8).
const EVERY_MS: u64 = 30_000;

const KINDS: &str = "\"broadcast\", \"management\", \"routes\" or a table with its kind";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Broadcast,
    Management,
    Routes,
}

const WORDS: [(&str, Kind); 3] =
    [("broadcast", Kind::Broadcast), ("management", Kind::Management), ("routes", Kind::Routes)];

impl Kind {
    const fn allowed(self) -> &'static [&'static str] {
        match self {
            Self::Broadcast => &["kind", "share"],
            Self::Management => &["kind", "agent", "version", "community", "user", "password"],
            Self::Routes => &["kind", "every", "networks"],
        }
    }
}

/// The traffic of a table, and the same with each of the table's modifiers.
pub(super) fn modified(table: &Table<'_>, plain: Traffic, hops: &[HopPlan]) -> Vec<Traffic> {
    let entries = table.item("modifiers").and_then(|item| item.list(0..=MAX, KINDS)).unwrap_or_default();
    let mut all = vec![plain];
    for table_of in TableKind::ALL {
        let sizes = table.item(table_of.word()).and_then(|item| item.list(1..=MAX, "numbers of entries"));
        for entry in sizes.unwrap_or_default() {
            let Some(entries) = entry.count(1..=table_of.most()) else { continue };
            if all[0].bidirectional {
                entry.note("the table leads to the receiver only; leave bidirectional out");
            }
            push(&entry, &mut all, Modifier::Table { table: table_of, entries });
        }
    }
    for entry in &entries {
        let Some(modifier) = modifier(entry, all[0].family, hops) else { continue };
        push(entry, &mut all, modifier);
    }
    all
}

/// The plain traffic once more, under a modifier.
fn push(entry: &Item<'_>, all: &mut Vec<Traffic>, modifier: Modifier) {
    let traffic = Traffic { modifier: Some(modifier), ..all[0].clone() };
    if all.contains(&traffic) {
        entry.note("it is in the list twice");
    } else {
        all.push(traffic);
    }
}

/// Without commands the tables must be of a kernel on this machine.
pub(super) fn check_tables(root: &Table<'_>, traffic: &[Traffic], hops: &[HopPlan]) {
    let here = |hop: &HopPlan| hop.under_test && matches!(hop.source, CounterSource::Namespace { .. });
    if traffic.iter().any(|it| it.table().is_some()) && !hops.iter().any(here) {
        let says = "no hop under test is a namespace of this machine, so that narrows cannot fill its tables; add \
                    [tables] with install and remove";
        root.note("tables", says);
    }
}

fn modifier(entry: &Item<'_>, family: Family, hops: &[HopPlan]) -> Option<Modifier> {
    let word = entry.as_text().and_then(|text| WORDS.iter().find(|(word, _)| *word == text));
    let (kind, table) = match (word, entry.as_text()) {
        (Some((_, kind)), _) => (*kind, None),
        (None, Some(_)) => return entry.refuse(KINDS),
        (None, None) => {
            let table = entry.clone().into_table()?;
            let kind = table.required("kind")?.one_of(&WORDS)?;
            let word = WORDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| *word);
            table.refuse_others(kind.allowed(), &format!("a modifier of the kind \"{word}\""));
            (kind, Some(table))
        }
    };
    let item = |key| table.as_ref().and_then(|table| table.item(key));
    match kind {
        Kind::Broadcast => {
            let share = item("share").map_or(Some(SHARE), |item| item.number(0.000_1..=0.5))?;
            // From 2 to 10,000.
            let every = (1.0 / share).round() as u32;
            Some(Modifier::Broadcast { every })
        }
        Kind::Management => {
            let agent = match &table {
                Some(table) if table.has("agent") => snmp_agent(table)?,
                _ => match asked(hops) {
                    Some(agent) => agent,
                    None => {
                        entry.note(
                            "the plan has no hop with an SNMP source; name the agent: { kind = \"management\", agent = \
                             \"198.18.0.1\", community = \"public\" }",
                        );
                        return None;
                    }
                },
            };
            Some(Modifier::Management { agent })
        }
        Kind::Routes if family == Family::Ipv6 => {
            entry.note("routing updates are RIP version 2, for IPv4 only; RIPng is not supported");
            None
        }
        Kind::Routes => Some(Modifier::Routes {
            every_ms: item("every").map_or(Some(EVERY_MS), |item| item.duration_ms(100..=3_600_000))?,
            networks: item("networks")
                .map_or(Some(Modifier::MAX_NETWORKS), |item| item.count(1..=Modifier::MAX_NETWORKS))?,
        }),
    }
}

/// Whom a plan asks that names nobody: the device under test where SNMP reads its counters, else the first hop that SNMP reads.
fn asked(hops: &[HopPlan]) -> Option<SnmpAgent> {
    let agent = |hop: &HopPlan| match &hop.source {
        CounterSource::Snmp(agent) => Some(agent.clone()),
        _ => None,
    };
    hops.iter().filter(|hop| hop.under_test).find_map(agent).or_else(|| hops.iter().find_map(agent))
}
