//! The words for traffics, modifiers, hops and outcomes.

use crate::data::CounterSource;
use narrows_model::host::table::TableKind;
use narrows_model::load::frame_traffic::{Modifier, Traffic};
use narrows_model::load::frame_words::{family, protocol, walk};
use narrows_model::load::frames::Walk;
use narrows_model::run::search::{GoalResult, Outcome, TesterLimit};
use narrows_model::words::figures::{grouped, nanos, tick};
use narrows_model::words::show::{clean, plural};

/// A traffic in a few words: `IPv4 UDP, 1 flow to 256 networks, both directions`.
pub fn traffic(of: &Traffic) -> String {
    let flows = if of.flows == 1 {
        "1 flow".to_owned()
    } else {
        // Several networks are visited at random: in turns a walk would stay in one for seconds.
        let walked = if (of.networks > 1 || of.table().is_some_and(|it| it.table != TableKind::Rules))
            && of.walk == Walk::Odometer
        {
            Walk::Random { seed: 1 }
        } else {
            of.walk
        };
        format!("{} flows {}", grouped(of.flows), walk(walked))
    };
    let networks = if of.networks > 1 { format!(" to {} networks", of.networks) } else { String::new() };
    let both = if of.bidirectional { ", both directions" } else { "" };
    let beside = of.modifier.as_ref().map(|it| format!("; {}", modifier(it))).unwrap_or_default();
    format!("{}, {flows}{networks}{both}{beside}", protocol(of.family, of.transport))
}

/// A modifier at length.
fn modifier(of: &Modifier) -> String {
    match of {
        Modifier::Broadcast { every } => format!("one of {every} frames to the broadcast MAC address"),
        Modifier::Management { agent } => format!("one management query per second to {}", clean(&agent.agent)),
        Modifier::Routes { every_ms, networks } => {
            let time = nanos(every_ms.saturating_mul(1_000_000));
            format!(
                "routing updates of {} (RIP version 2), at the start and every {time}",
                plural((*networks).into(), "network")
            )
        }
        Modifier::Table { table: TableKind::Rules, entries } => {
            format!("past {}", TableKind::Rules.entries(*entries))
        }
        Modifier::Table { table, entries } => format!("over {}", table.entries(*entries)),
    }
}

/// The same in a word or two.
fn short_modifier(of: &Modifier) -> String {
    match of {
        Modifier::Broadcast { .. } => {
            let percent = of.broadcast_share() * 100.0;
            format!("{} % broadcast", tick(percent))
        }
        Modifier::Management { .. } => "SNMP queries".to_owned(),
        Modifier::Routes { .. } => "RIP updates".to_owned(),
        Modifier::Table { table, entries } => table.entries(*entries),
    }
}

/// Names that tell traffics apart, each as short as that allows; one with a modifier has the name of that without it first.
pub fn names(of: &[Traffic]) -> Vec<String> {
    let mut plain: Vec<Traffic> = Vec::new();
    let mut at: Vec<(usize, String)> = Vec::new();
    for traffic in of {
        let without = Traffic { modifier: None, ..traffic.clone() };
        let beside = traffic.modifier.as_ref().map(|it| format!(", {}", short_modifier(it))).unwrap_or_default();
        // Two that are alike but for nothing stay two.
        let known = plain.iter().position(|other| *other == without).filter(|_| traffic.modifier.is_some());
        at.push((known.unwrap_or(plain.len()), beside));
        if known.is_none() {
            plain.push(without);
        }
    }
    let names = plain_names(&plain);
    let names: Vec<String> = at.into_iter().map(|(at, beside)| format!("{}{beside}", names[at])).collect();
    let twice = |at: usize| names.iter().filter(|name| **name == names[at]).count() > 1;
    (0..names.len())
        .map(|at| if twice(at) { format!("{} ({})", names[at], at + 1) } else { names[at].clone() })
        .collect()
}

fn plain_names(of: &[Traffic]) -> Vec<String> {
    let tries: [fn(&Traffic) -> String; 3] = [
        |it| family(it.family).to_owned(),
        |it| protocol(it.family, it.transport),
        |it| {
            let networks = if it.networks > 1 { format!(", {} networks", it.networks) } else { String::new() };
            let both = if it.bidirectional { ", both ways" } else { "" };
            let flows = if it.flows == 1 { "flow" } else { "flows" };
            format!("{}, {} {flows}{networks}{both}", protocol(it.family, it.transport), grouped(it.flows))
        },
    ];
    let unlike = |names: &[String]| names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
    let found = tries.iter().map(|name| of.iter().map(name).collect::<Vec<_>>()).find(|names| unlike(names));
    found.unwrap_or_else(|| {
        of.iter().enumerate().map(|(at, it)| format!("{} ({})", family(it.family), at + 1)).collect()
    })
}

/// Where counters are read. Communities, user names and passwords are left out.
pub fn counters(of: &CounterSource) -> String {
    match of {
        CounterSource::Namespace { name } => format!("namespace {}", clean(name)),
        CounterSource::Narrows { host, .. } => format!("narrows on {}", clean(host)),
        CounterSource::Snmp(of) => format!("SNMP v{} on {}", of.access.version(), clean(&of.agent)),
    }
}

/// How a search ended, in a word or two.
pub fn outcome(of: &GoalResult, is_line: bool) -> &'static str {
    match of.outcome {
        Outcome::Found => "found",
        Outcome::MinLoadFails => "the minimum load fails",
        Outcome::MaxLoadPasses if is_line => "line rate passes",
        Outcome::MaxLoadPasses => "the maximum load passes",
        Outcome::Unfinished => "unfinished",
        Outcome::TesterLimited(TesterLimit::AtMaximum | TesterLimit::Unsent) => "tester-limited",
        Outcome::TesterLimited(TesterLimit::Invalid) => "invalid above",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;
    use narrows_model::Family;

    #[test]
    fn names_are_as_long_as_it_takes() {
        let of = |family, networks| Traffic { family, flows: 1, networks, ..plan().traffic.remove(0) };
        assert_eq!(names(&[of(Family::Ipv4, 1), of(Family::Ipv6, 1)]), ["IPv4", "IPv6"]);
        assert_eq!(
            names(&[of(Family::Ipv4, 1), of(Family::Ipv4, 256)]),
            ["IPv4 UDP, 1 flow", "IPv4 UDP, 1 flow, 256 networks"]
        );
        assert_eq!(names(&[of(Family::Ipv4, 1), of(Family::Ipv4, 1)]), ["IPv4 (1)", "IPv4 (2)"]);
        let with = |modifier| Traffic { modifier: Some(modifier), ..of(Family::Ipv4, 1) };
        let modified = [
            of(Family::Ipv4, 1),
            with(Modifier::Broadcast { every: 100 }),
            with(Modifier::Broadcast { every: 3 }),
            with(Modifier::Routes { every_ms: 1_000, networks: 1 }),
            with(Modifier::Routes { every_ms: 2_000, networks: 1 }),
        ];
        assert_eq!(
            names(&modified),
            [
                "IPv4", "IPv4, 1 % broadcast", "IPv4, 33.333 % broadcast", "IPv4, RIP updates (4)",
                "IPv4, RIP updates (5)"
            ]
        );
        assert_eq!(
            traffic(&modified[3]),
            "IPv4 UDP, 1 flow; routing updates of 1 network (RIP version 2), at the start and every 1.00 s"
        );
    }
}
