//! A mesh with who is to blame: the elements that explain what is slow, and what slow hosts have in common.

use crate::figures::{GOODPUT, LOSS, RTT};
use narrows_mesh::Load;
use narrows_mesh::blame::{Blame, Cell, Element, SLOW, Suspect, blame};
use narrows_mesh::differs::{differences, differences_of_loads};
use narrows_mesh::losing::{Losing, explained};
use narrows_mesh::record::{Names, cells, groups, hops, losses};
use narrows_model::run::history::{Headline, StoredRun};
use narrows_model::run::mesh::{
    MeshDiagnosis, MeshDifference, MeshLoad, MeshLoss, MeshName, MeshRecord, MeshReport, MeshState, MeshSuspect, SCHEMA,
};
use narrows_model::words::figures::float;
use narrows_model::words::show::plural;
use narrows_model::words::units::{self, percent};
use narrows_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// Differences that come by chance more often than this are not shown, and no more than so many are.
const CHANCE: f64 = 0.05;
const DIFFERENCES_MAX: usize = 10;

pub fn report(record: &MeshRecord) -> MeshReport {
    let known = Names::of(record);
    let (name, words) = (|member| known.host(member), |element| known.words(element));
    let (places, cells) = cells(record);
    let groups = groups(record);
    let Blame { suspects, starved, expected_bps } = blame(&groups, &cells);
    let losing = losses(record);
    let (suspects, of_losing) = explained(&groups, &hops(record).1, &losing, suspects);
    let (mut expected, mut slow_loads) = (vec![None; record.loads.len()], vec![false; record.loads.len()]);
    for (place, (cell, bps)) in places.iter().zip(cells.iter().zip(expected_bps)) {
        let is_slow = cell.goodput_bps < SLOW * bps && cell.starved(bps).is_none();
        (expected[*place], slow_loads[*place]) = (Some(bps), is_slow);
    }
    let part = |load: &Load| {
        let at = places.iter().zip(&cells).find(|(_, cell)| cell.load == *load);
        at.map_or(1.0, |(place, cell)| cell.goodput_bps / expected[*place].unwrap_or(1.0))
    };
    let is_repeated = |load: &Load| {
        let of = |it: &&MeshLoad| it.from == load.from && it.to == load.to;
        record.loads.iter().find(of).is_some_and(|it| it.beside_others_bps.is_some())
    };
    let slow: BTreeSet<usize> = suspects
        .iter()
        .filter_map(|suspect| match suspect.element {
            Element::Host(a) | Element::Sends(a) | Element::Receives(a) | Element::Partly(a) => Some(a),
            _ => None,
        })
        .collect();
    // Where one is slow on some of its paths only, hosts do not fall into two groups: loads do.
    let is_partial = |it: &Suspect| matches!(it.element, Element::Pair(..) | Element::Partly(_));
    let by_loads = suspects.iter().any(is_partial).then(|| {
        let of_hosts = |it: &&Suspect| !matches!(it.element, Element::Way(..) | Element::Between(..) | Element::Hop(_));
        let unexplained: BTreeSet<Load> = suspects.iter().filter(of_hosts).flat_map(|it| it.loads.clone()).collect();
        let by_loss: BTreeSet<Load> = of_losing.iter().flatten().copied().collect();
        let of_network = |(place, cell): &(&usize, &Cell)| cell.starved(expected[**place].unwrap_or(1.0)).is_none();
        let counted = places.iter().zip(&cells).filter(of_network).map(|(_, cell)| cell.load);
        let counted = counted.filter(|load| !by_loss.contains(load));
        counted.partition::<Vec<Load>, _>(|load| unexplained.contains(load))
    });
    let worst = |loads: &[Load]| {
        let least = loads.iter().min_by(|a, b| part(a).total_cmp(&part(b)));
        least.map(|it| [it.from, it.to])
    };
    let suspects: Vec<MeshSuspect> = suspects
        .into_iter()
        .map(|suspect| MeshSuspect {
            element: words(suspect.element),
            or: suspect.or.into_iter().map(words).collect(),
            carries: suspect.carries,
            interval: suspect.interval,
            loads: suspect.loads.len(),
            repeated: suspect.loads.iter().filter(|load| is_repeated(load)).count(),
            worst: worst(&suspect.loads).unwrap_or_default(),
        })
        .collect();
    let losing = losing
        .into_iter()
        .zip(of_losing)
        .map(|(Losing { element, or, sent, lost }, loads)| MeshLoss {
            element: words(element),
            or: or.into_iter().map(words).collect(),
            lost,
            sent,
            interval: narrows_stats::wilson(lost, sent, 0.95).unwrap_or([0.0, 1.0]),
            loads: loads.len(),
            worst: worst(&loads),
        })
        .collect();
    let mut report = MeshReport {
        schema: SCHEMA.to_owned(),
        plan: record.plan,
        members: record.members.iter().map(named).collect(),
        loads: record.loads.clone(),
        paths: record.paths.clone(),
        expected_bps: expected,
        slow: slow_loads,
        losing,
        suspects,
        starved: starved.into_iter().map(name).collect(),
        shared: record.members.iter().filter(|it| it.is_shared).map(|it| it.name.clone()).collect(),
        differences: differing(record, &slow, by_loads),
        diagnoses: record.diagnoses.clone(),
        ended_early: record.ended_early.clone(),
        headline: String::new(),
        interrupted: record.interrupted,
    };
    report.headline = headline(&report);
    report
}

fn named(member: &narrows_model::run::mesh::MeshMember) -> MeshName {
    let (name, group) = (member.name.clone(), member.group.clone());
    MeshName { name, group, address: member.address.clone(), absent: member.absent.clone() }
}

/// Settings, not counters or names, that separate the slow hosts from the others; the hosts of slow loads, where loads are given, slow ones
/// and others.
fn differing(
    record: &MeshRecord,
    slow: &BTreeSet<usize>,
    by_loads: Option<(Vec<Load>, Vec<Load>)>,
) -> Vec<MeshDifference> {
    let present: Vec<usize> = (0..record.members.len()).filter(|at| record.members[*at].absent.is_none()).collect();
    let facts: Vec<_> = present.iter().map(|at| record.members[*at].host.settings()).collect();
    let of_members = slow;
    let slow = present.iter().enumerate().filter(|(_, at)| slow.contains(at)).map(|(nth, _)| nth).collect();
    let of_slow = |it: &MeshDiagnosis| of_members.contains(&it.from) || of_members.contains(&it.to);
    let cause = |key: &str| {
        let reads = |it: &&MeshDiagnosis| of_slow(it) && it.reads.iter().any(|read| read == key);
        record.diagnoses.iter().find(reads).and_then(|it| it.cause.clone())
    };
    let of_loads = by_loads.is_some();
    let found = by_loads.map_or_else(
        || differences(&facts, &slow),
        |(slow, others)| {
            let place = |at: usize| present.binary_search(&at).ok();
            let placed = |it: &Load| Some(Load { from: place(it.from)?, to: place(it.to)? });
            let placed = |loads: Vec<Load>| -> Vec<Load> { loads.iter().filter_map(placed).collect() };
            differences_of_loads(&facts, &placed(slow), &placed(others))
        },
    );
    let found = found.into_iter().map(|it| MeshDifference {
        cause: cause(&it.key),
        of_loads,
        key: it.key,
        value: it.value,
        slow: it.slow,
        others: it.others,
        chance: it.chance,
    });
    // What a rule reads that names a slow host needs no statistics.
    let (named, others): (Vec<_>, Vec<_>) = found
        .filter(|it| it.chance <= CHANCE || it.cause.is_some() && separates(it))
        .partition(|it| it.cause.is_some());
    named.into_iter().chain(others).take(DIFFERENCES_MAX).collect()
}

/// Whether slow hosts have a value at least twice as often as the others.
const fn separates(it: &MeshDifference) -> bool {
    it.slow[0].saturating_mul(it.others[1]) >= it.others[0].saturating_mul(2).saturating_mul(it.slow[1])
}

fn headline(report: &MeshReport) -> String {
    let (measured, total) = (report.measured(), report.loads.len());
    let of = format!("{measured} of {} measured", plural(total as u64, "load"));
    let more = |count: usize| if count > 1 { format!(", and {} more", count - 1) } else { String::new() };
    let losing = report.losing.first().map(|it| {
        let share = it.lost as f64 / it.sent.max(1) as f64;
        let more = more(report.losing.len());
        format!("{}{} loses {} of its probe packets{more}; ", it.element, others(&it.or), percent(share))
    });
    let losing = losing.unwrap_or_default();
    let by_loss: usize = report.losing.iter().map(|it| it.loads).sum();
    let starved = match report.starved.as_slice() {
        [] => String::new(),
        [one] => format!("{one} is out of CPU, which slows its loads; "),
        all => format!("{} hosts are out of CPU, which slows their loads; ", all.len()),
    };
    match report.suspects.as_slice() {
        [] if measured == 0 => format!("nothing was measured: {of}"),
        [] if by_loss > 0 => format!("{losing}that slows {}; {starved}{of}", plural(by_loss as u64, "load")),
        [] if !starved.is_empty() => format!("{losing}{starved}no other load is slow; {of}"),
        [] if !losing.is_empty() => format!("{losing}no load is slow; {of}"),
        [] if measured < total => format!("no measured path is slow; {of}"),
        [] => format!("no host or path is slower than the rest; {of}"),
        all @ [first, ..] => format!(
            "{}{} carries {} of what it should{}; {losing}{starved}{of}",
            first.element,
            others(&first.or),
            percent(first.carries),
            more(all.len())
        ),
    }
}

/// That an element has others which explain as much.
fn others(or: &[String]) -> String {
    match or {
        [] => String::new(),
        [one] => format!(" (or {one})"),
        many => format!(" (or {} others)", many.len()),
    }
}

/// A load of a mesh differs by less from one time to the next.
const CHANGED: f64 = 0.2;
/// No more changed loads are listed.
const CHANGES_MAX: usize = 10;

/// What differs between two meshes of the same hosts: what is to blame now or no more, and loads that changed.
pub fn changes(before: &MeshReport, now: &MeshReport) -> Vec<String> {
    if now.interrupted {
        return Vec::new();
    }
    // What was not measured again, or by a host without time, is not known to be well.
    let name = |report: &MeshReport, at: usize| report.members.get(at).map(|it| it.name.clone());
    let measured = |[from, to]: [usize; 2]| {
        let pair = [name(before, from), name(before, to)];
        let at = now.loads.iter().position(|load| [name(now, load.from), name(now, load.to)] == pair);
        at.is_some_and(|at| match now.loads[at].state {
            MeshState::Measured { goodput_bps, .. } => {
                now.slow[at] || now.expected_bps[at].is_none_or(|bps| goodput_bps >= SLOW * bps)
            }
            _ => false,
        })
    };
    let unprobed = now.paths.iter().all(|path| path.packets.is_none());
    let lossy = before.losing.iter().filter(|_| unprobed).map(|it| it.element.as_str());
    let unknown: BTreeSet<&str> =
        before.suspects.iter().filter(|it| !measured(it.worst)).map(|it| it.element.as_str()).chain(lossy).collect();
    let away = |report: &MeshReport| -> BTreeSet<String> {
        report.members.iter().filter(|it| it.absent.is_some()).map(|it| it.name.clone()).collect()
    };
    let lost: Vec<String> =
        away(now).difference(&away(before)).map(|name| format!("{name} no longer takes part")).collect();
    let to_blame = |report: &MeshReport| -> BTreeSet<String> {
        let slow = report.suspects.iter().map(|it| format!("{} is slow", it.element));
        slow.chain(report.losing.iter().map(|it| format!("{} loses packets", it.element))).collect()
    };
    let (was, is) = (to_blame(before), to_blame(now));
    let new = is.difference(&was).map(|it| format!("now {it}"));
    let is_of = |it: &str, element: &str| {
        it.strip_prefix(element).is_some_and(|rest| [" is slow", " loses packets"].contains(&rest))
    };
    let is_known = |it: &&String| !unknown.iter().any(|element| is_of(it, element));
    let gone = was.difference(&is).filter(is_known).map(|it| format!("no longer: {it}"));
    let goodput = |report: &MeshReport| -> BTreeMap<(String, String), f64> {
        let of = |load: &MeshLoad| {
            let MeshState::Measured { goodput_bps, .. } = load.state else { return None };
            Some(((name(report, load.from)?, name(report, load.to)?), goodput_bps))
        };
        report.loads.iter().filter_map(of).collect()
    };
    let old = goodput(before);
    let changed = goodput(now).into_iter().filter_map(|((from, to), bps)| {
        let was = old.get(&(from.clone(), to.clone())).copied()?;
        let differs = (bps - was).abs() > CHANGED * bps.max(was);
        differs.then(|| format!("{from} to {to}: {}, was {}", units::bps(bps), units::bps(was)))
    });
    lost.into_iter().chain(new).chain(gone).chain(changed.take(CHANGES_MAX)).collect()
}

/// What a mesh is listed with. `plan`, id, time and program are left empty.
pub fn stored(record: &MeshRecord) -> StoredRun {
    let report = report(record);
    let verdict = match (record.interrupted, report.suspects.first()) {
        (true, _) => "interrupted".to_owned(),
        _ if report.measured() == 0 => "nothing measured".to_owned(),
        (_, Some(suspect)) => format!("slow: {}", suspect.element),
        _ if !report.losing.is_empty() => format!("loses: {}", report.losing[0].element),
        _ if !report.starved.is_empty() => format!("out of CPU: {}", report.starved[0]),
        _ => "even".to_owned(),
    };
    let server = plural(record.members.len() as u64, "host");
    StoredRun { server, verdict, ..crate::history::empty("mesh", figures(record)) }
}

/// The median and the least of what loads carried, the median of the round trips, and the part of the probes that was lost.
fn figures(record: &MeshRecord) -> Vec<Headline> {
    let goodput = |load: &MeshLoad| match load.state {
        MeshState::Measured { goodput_bps, .. } => Some(goodput_bps),
        _ => None,
    };
    let carried: Vec<f64> = record.loads.iter().filter_map(goodput).collect();
    let rtts: Vec<f64> = record.paths.iter().filter_map(|path| Some(path.rtt_us?[1])).collect();
    let packets = record.paths.iter().filter_map(|path| path.packets);
    let (sent, lost) = packets.fold((0_u64, 0_u64), |(sent, lost), [of, up, down]| {
        (sent.saturating_add(of), lost.saturating_add(up).saturating_add(down))
    });
    let least = carried.iter().copied().reduce(f64::min);
    let found = [
        median(&carried).map(|bps| GOODPUT.at("median", bps)),
        least.map(|bps| GOODPUT.at("least", bps)),
        median(&rtts).map(|us| RTT.at("median", us)),
        (sent > 0).then(|| LOSS.at("of probes", float(lost) / float(sent))),
    ];
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPath, MeshPlan};
    use narrows_model::{Fact, Snapshot, Unit};

    /// Six hosts, of which `slow` sends at a tenth and is busy for a part of the time.
    fn record(slow: usize, busy: f64) -> MeshRecord {
        let fact = |value: u64| Fact {
            key: "tcp.wmem".to_owned(),
            value: value.into(),
            unit: Unit::Bytes,
            source: "test".to_owned(),
        };
        let member = |nth: usize| MeshMember {
            name: format!("h{nth}"),
            group: String::new(),
            address: String::new(),
            absent: None,
            is_shared: false,
            host: Snapshot { facts: vec![fact(if nth == slow { 1 } else { 2 })], ..Snapshot::default() },
        };
        let load = |(from, to)| MeshLoad {
            from,
            to,
            opened_by_receiver: false,
            state: MeshState::Measured {
                goodput_bps: if from == slow { 94e6 } else { 940e6 },
                retransmits: None,
                busy: [Some(if from == slow { busy } else { 0.1 }), None],
            },
            beside_others_bps: None,
        };
        let pairs = (0..6).flat_map(|from| (0..6).filter(move |to| *to != from).map(move |to| (from, to)));
        MeshRecord {
            plan: MeshPlan {
                duration_ms: 1_000,
                streams: 1,
                probe_ms: 0,
                diagnose: false,
                try_fixes: false,
                budget_ms: None,
                budget_bytes: None,
            },
            paths: Vec::new(),
            diagnoses: Vec::new(),
            ended_early: None,
            members: (0..6).map(member).collect(),
            loads: pairs.map(load).collect(),
            interrupted: false,
        }
    }

    #[test]
    fn the_host_that_sends_slowly_is_named_and_no_other() {
        let seen = report(&record(2, 0.3));
        let named: Vec<&str> = seen.suspects.iter().map(|it| it.element.as_str()).collect();
        assert_eq!(named, ["host h2 (sending)"]);
        assert!(seen.headline.starts_with("host h2 (sending) carries 10 % of what it should"), "{}", seen.headline);
        assert_eq!(stored(&record(2, 0.3)).verdict, "slow: host h2 (sending)");
    }

    /// The last host loses what it receives, and is slow with two others.
    #[test]
    fn slow_single_paths_over_a_host_that_loses_belong_to_it() {
        let mut lossy = record(9, 0.1);
        for load in lossy.loads.iter_mut().filter(|load| [[0, 5], [1, 5], [3, 2]].contains(&[load.from, load.to])) {
            let MeshState::Measured { goodput_bps, .. } = &mut load.state else { continue };
            *goodput_bps = if load.from == 1 { 400e6 } else { 600e6 };
        }
        let alone = report(&lossy);
        assert_eq!(alone.suspects.len(), 3, "{}", alone.headline);
        let pairs = (0..6).flat_map(|from| (from + 1..6).map(move |to| (from, to)));
        let path = |(from, to)| MeshPath {
            from,
            to,
            packets: Some([200, if to == 5 { 10 } else { 0 }, 0]),
            ..MeshPath::default()
        };
        lossy.paths = pairs.map(path).collect();
        let seen = report(&lossy);
        let named: Vec<&str> = seen.suspects.iter().map(|it| it.element.as_str()).collect();
        assert_eq!(named, ["only the path h3 to h2"]);
        assert_eq!(seen.losing.len(), 1, "{seen:#?}");
        let losing = &seen.losing[0];
        assert_eq!((&*losing.element, losing.loads, losing.worst), ("host h5 (receiving)", 2, Some([1, 5])));
        // What a whole network loses makes no single path slow.
        let spread = MeshPath { packets: Some([2_000, 9, 9]), ..MeshPath::default() };
        let everywhere = lossy.paths.iter().map(|it| MeshPath { from: it.from, to: it.to, ..spread.clone() }).collect();
        let whole = report(&MeshRecord { paths: everywhere, ..lossy.clone() });
        assert_eq!((whole.suspects.len(), whole.losing.len(), whole.losing[0].loads), (3, 1, 0), "{}", whole.headline);
        lossy.loads.retain(|load| [load.from, load.to] != [3, 2]);
        let said = "host h5 (receiving) loses 5.0 % of its probe packets; that slows 2 loads; 29 of 29 loads measured";
        assert_eq!(report(&lossy).headline, said);
    }

    #[test]
    fn a_setting_that_the_rule_of_a_named_cause_reads_is_first_also_of_one_host() {
        let alone = record(2, 0.3);
        assert!(report(&alone).differences.is_empty(), "one of six differs by chance");
        let diagnosis = MeshDiagnosis {
            from: 2,
            to: 0,
            headline: String::new(),
            cause: Some("tcp-send-buffer".to_owned()),
            reads: vec!["tcp.wmem".to_owned()],
            fix: None,
            tried: None,
            run: None,
        };
        let named = report(&MeshRecord { diagnoses: vec![diagnosis], ..alone }).differences;
        assert_eq!((&*named[0].key, named[0].cause.as_deref()), ("tcp.wmem", Some("tcp-send-buffer")));
    }

    #[test]
    fn what_changed_between_two_meshes_is_said() {
        let (even, slow) = (report(&record(9, 0.1)), report(&record(2, 0.1)));
        let said = changes(&even, &slow);
        assert_eq!(
            (&*said[0], &*said[1], said.len()),
            ("now host h2 (sending) is slow", "h2 to h0: 94.0 Mbit/s, was 940 Mbit/s", 6)
        );
        assert_eq!(changes(&slow, &even)[0], "no longer: host h2 (sending) is slow");
        assert!(changes(&slow, &slow).is_empty());
    }

    #[test]
    fn a_host_without_cpu_time_accuses_nobody_and_an_even_mesh_neither() {
        let seen = report(&record(2, 0.99));
        assert!(seen.suspects.is_empty() && seen.starved == ["h2"], "{seen:#?}");
        assert!(
            seen.headline.starts_with("h2 is out of CPU, which slows its loads; no other load is slow"),
            "{seen:#?}"
        );
        assert_eq!(stored(&record(2, 0.99)).verdict, "out of CPU: h2");
        let even = report(&record(9, 0.1));
        assert!(even.suspects.is_empty() && even.starved.is_empty(), "{even:#?}");
        assert_eq!(even.headline, "no host or path is slower than the rest; 30 of 30 loads measured");
    }

    #[test]
    fn loads_that_were_not_made_say_nothing_of_hosts() {
        let mut cut = record(9, 0.1);
        cut.loads.iter_mut().filter(|load| load.from == 1).for_each(|load| load.state = MeshState::NotMade);
        let seen = report(&cut);
        assert!(seen.suspects.is_empty() && seen.expected_bps.iter().flatten().count() == 25, "{seen:#?}");
        let nothing = MeshRecord { loads: Vec::new(), ..cut };
        assert_eq!(report(&nothing).headline, "nothing was measured: 0 of 0 loads measured");
    }
}
