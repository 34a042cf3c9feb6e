//! What the last results of all paths blame.

use super::{GROUP, MOST};
use crate::usual::due_us;
use narrows_mesh::Load;
use narrows_mesh::blame::{Cell, Element, blame, cover};
use narrows_mesh::losing::explained;
use narrows_mesh::record::{Names, cells, groups, hops, losses};
use narrows_model::run::mesh::MeshRecord;
use narrows_model::words::show::plural;
use narrows_model::words::units::{bps, micros, percent};
use std::collections::BTreeSet;

/// What a round blames.
pub(super) struct Blamed {
    pub(super) element: String,
    pub(super) says: String,
    pub(super) paths: BTreeSet<Load>,
    /// Whether it is a host on some of its paths: a round that saw a part of something else may look so.
    pub(super) is_part: bool,
    /// Packets of probes that were sent and lost, where it loses some.
    pub(super) lost: Option<[u64; 2]>,
}

/// What paths did before.
pub(crate) struct Before<'a> {
    /// What a load carried, bit/s.
    pub(crate) goodput_bps: &'a dyn Fn(Load) -> Option<f64>,
    /// How long the round trip of a probed path took, and takes now, microseconds.
    pub(crate) round_trip_us: &'a dyn Fn(Load) -> Option<[f64; 2]>,
}

/// The loads of a mesh, with what each carried before.
pub(super) fn with_past(record: &MeshRecord, before: &Before<'_>) -> Vec<Cell> {
    let (_, cells) = cells(record);
    cells.into_iter().map(|cell| Cell { usual_bps: (before.goodput_bps)(cell.load), ..cell }).collect()
}

/// Whether most loads from its sender and to its receiver were measured as well.
pub(super) fn is_surrounded(record: &MeshRecord, fresh: &BTreeSet<Load>, load: Load) -> bool {
    let is_near = |from: usize, to: usize| (from == load.from) != (to == load.to);
    let all = record.loads.iter().filter(|it| is_near(it.from, it.to)).count();
    let measured = fresh.iter().filter(|it| is_near(it.from, it.to)).count();
    2 * measured >= all
}

/// Where nearly all paths are bad and no single element is to blame, it is one thing.
pub(super) fn together(blamed: Vec<Blamed>, tested: usize) -> Vec<Blamed> {
    let paths: BTreeSet<Load> = blamed.iter().flat_map(|it| it.paths.iter().copied()).collect();
    if blamed.len() < GROUP || (paths.len() as f64) < MOST * tested as f64 {
        return blamed;
    }
    let says = blamed.first().map(|it| format!("{}: {}", it.element, it.says)).unwrap_or_default();
    let says = format!("{} of {tested} are bad; {says}", plural(paths.len() as u64, "path"));
    let lost = blamed.iter().filter_map(|it| it.lost).reduce(|[sent, lost], [more, with]| [sent + more, lost + with]);
    vec![Blamed { element: "all paths".to_owned(), says, paths, is_part: false, lost }]
}

/// Elements whose round trips take longer than before, and all such paths; what loses packets is known to be bad.
pub(super) fn late(record: &MeshRecord, before: &Before<'_>, lossy: &BTreeSet<Load>) -> (Vec<Blamed>, BTreeSet<Load>) {
    let (names, groups, (_, hops)) = (Names::of(record), groups(record), hops(record));
    let known: Vec<(Cell, [f64; 2])> = (record.paths.iter())
        .map(|path| Load { from: path.from, to: path.to })
        .filter(|load| !lossy.contains(load) && load.from.max(load.to) < record.members.len())
        .filter_map(|load| {
            let times = (before.round_trip_us)(load)?;
            let hops = hops.get(&[load.from, load.to]).cloned().unwrap_or_default();
            Some((Cell { load, goodput_bps: 0.0, hops, by_host: None, usual_bps: None }, times))
        })
        .collect();
    let parts: Vec<(&Cell, f64)> = known.iter().map(|(cell, [was, is])| (cell, due_us(*was) / is)).collect();
    let mut bad = BTreeSet::new();
    let blamed = cover(&groups, &parts).into_iter().map(|suspect| {
        let of = |load: &Load| {
            let at = known.binary_search_by_key(load, |(cell, _)| cell.load).ok();
            at.map_or([0.0; 2], |at| known[at].1)
        };
        let worst = suspect.loads.iter().max_by(|a, b| (of(a)[1] / of(a)[0]).total_cmp(&(of(b)[1] / of(b)[0])));
        let worst = worst.map_or_else(String::new, |load| {
            let ([was, is], [from, to]) = (of(load), [load.from, load.to].map(|host| names.host(host)));
            format!("{from} and {to}: {}, before {}", micros(is.round() as u64), micros(was.round() as u64))
        });
        let count = plural(suspect.loads.len() as u64, "path");
        let says = format!("longer round trips on {count}{}; worst {worst}", others(&names, &suspect.or));
        let paths: BTreeSet<Load> =
            suspect.loads.iter().flat_map(|load| [*load, Load { from: load.to, to: load.from }]).collect();
        bad.extend(paths.iter().copied());
        // A round trip takes both directions.
        let element = match suspect.element {
            Element::Pair(a, b) => called(&names, Element::Host(a), &[Element::Host(b)]),
            element => called(&names, element, &suspect.or),
        };
        Blamed { element, says, paths, is_part: matches!(suspect.element, Element::Partly(_)), lost: None }
    });
    (blamed.collect(), bad)
}

/// Elements that carry less than they should, and all slow paths.
pub(super) fn slow(record: &MeshRecord, before: &Before<'_>) -> (Vec<Blamed>, BTreeSet<Load>) {
    let (names, cells) = (Names::of(record), with_past(record, before));
    let found = blame(&groups(record), &cells);
    let should = |load: &Load| {
        let at = cells.binary_search_by_key(load, |cell| cell.load).ok();
        at.map_or((0.0, 1.0), |at| (cells[at].goodput_bps, found.expected_bps[at]))
    };
    let bad: BTreeSet<Load> = found.suspects.iter().flat_map(|it| it.loads.iter().copied()).collect();
    // What loses packets was found by probes.
    let (suspects, _) = explained(&groups(record), &hops(record).1, &losses(record), found.suspects);
    let blamed = suspects.iter().map(|suspect| {
        let part = |load: &Load| should(load).0 / should(load).1;
        let worst = suspect.loads.iter().min_by(|a, b| part(a).total_cmp(&part(b)));
        let worst = worst.map_or_else(String::new, |load| {
            let (is, usual) = should(load);
            let [from, to] = [load.from, load.to].map(|host| names.host(host));
            format!("; worst {from} to {to}: {} of {}", bps(is), bps(usual))
        });
        let count = plural(suspect.loads.len() as u64, "path");
        let others = others(&names, &suspect.or);
        let says = match suspect.carries {
            0.0 => format!("carries nothing on {count}{others}"),
            carries => format!("carries {} of what it should on {count}{others}{worst}", percent(carries)),
        };
        Blamed {
            element: called(&names, suspect.element, &suspect.or),
            says,
            paths: suspect.loads.iter().copied().collect(),
            is_part: matches!(suspect.element, Element::Partly(_)),
            lost: None,
        }
    });
    (blamed.collect(), bad)
}

/// Elements that lose packets of probes, and all paths that do.
pub(super) fn lossy(record: &MeshRecord) -> (Vec<Blamed>, BTreeSet<Load>) {
    let names = Names::of(record);
    let mut bad = BTreeSet::new();
    let blamed = losses(record).into_iter().map(|losing| {
        let paths = paths(record, losing.element);
        bad.extend(paths.iter().copied());
        let others = others(&names, &losing.or);
        let share = losing.lost as f64 / losing.sent.max(1) as f64;
        let says = format!("loses {} of its probe packets{others}: {} of {}", percent(share), losing.lost, losing.sent);
        let lost = Some([losing.sent, losing.lost]);
        Blamed { element: called(&names, losing.element, &losing.or), says, paths, is_part: false, lost }
    });
    (blamed.collect(), bad)
}

/// The packets of the last probes of some paths: those that were sent, and those of them that were lost.
pub(super) fn packets(record: &MeshRecord, is: impl Fn(&Load) -> bool) -> [u64; 2] {
    let ways = record.paths.iter().flat_map(|path| {
        let [sent, up, down] = path.packets.unwrap_or_default();
        let there = (Load { from: path.from, to: path.to }, [sent, up]);
        [there, (Load { from: path.to, to: path.from }, [sent.saturating_sub(up), down])]
    });
    let of = ways.filter(|(load, _)| is(load)).map(|(_, packets)| packets);
    of.fold([0; 2], super::sum)
}

/// The probed paths over an element.
fn paths(record: &MeshRecord, element: Element) -> BTreeSet<Load> {
    let (groups, (_, ways)) = (groups(record), hops(record));
    let both = record
        .paths
        .iter()
        .flat_map(|path| [Load { from: path.from, to: path.to }, Load { from: path.to, to: path.from }]);
    let passes = |load: &Load| {
        let hops = ways.get(&[load.from, load.to]).map_or(&[][..], Vec::as_slice);
        narrows_mesh::blame::elements(&groups, *load, hops).contains(&element)
    };
    both.filter(passes).collect()
}

/// What an element is called. Of two hosts that explain the same paths neither is accused.
fn called(names: &Names<'_>, element: Element, or: &[Element]) -> String {
    let both = or.iter().find_map(|it| match (element, it) {
        (Element::Host(one), Element::Host(other)) => Some([one, *other]),
        _ => None,
    });
    both.map_or_else(
        || names.words(element),
        |both| {
            let [one, other] = both.map(|host| names.host(host));
            format!("the path between {one} and {other}")
        },
    )
}

fn others(names: &Names<'_>, or: &[Element]) -> String {
    match or {
        [] => String::new(),
        [one] => format!(" (or it is {})", names.words(*one)),
        many => format!(" (or one of {} others)", many.len()),
    }
}
