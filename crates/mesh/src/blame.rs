//! The fewest elements that explain what is slow.
//!
//! What a load carries is the least that one of the elements on its path carries: the sending host, the receiving one, the path between
//! their groups, a hop, or something that this pair alone meets. What a load should carry is known from others: the least of what hosts of
//! the two groups usually send and receive. The median of hosts is not moved by the few that are slow, as the medians of a table are not
//! (J. W. Tukey, *Exploratory Data Analysis*, 1977, chapter 11). Elements of which nearly all loads are slow are candidates, and the one that explains
//! most of what is left is taken, again and again: the greedy cover (V. Chvátal, 1979). What no element explains may be a host's on some of its
//! paths; the rest are single paths.

use crate::Load;
use std::collections::{BTreeMap, BTreeSet};

/// A load that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub load: Load,
    /// Goodput, bits a second.
    pub goodput_bps: f64,
    /// What it shares with others on its path: routers, as numbers.
    pub hops: Vec<usize>,
    /// The one of its hosts whose CPUs were busy all the time, if so.
    pub by_host: Option<usize>,
    /// What it carried before, where that is known: it should carry as much now.
    pub usual_bps: Option<f64>,
}

impl Cell {
    /// The host for lack of whose time it carried less than it should, which accuses no network. A load that carries what it should says
    /// that, however busy its hosts are.
    pub fn starved(&self, expected_bps: f64) -> Option<usize> {
        self.by_host.filter(|_| self.goodput_bps < SLOW * expected_bps)
    }
}

/// What may be slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A host in both directions, …
    Host(usize),
    /// … when it sends, …
    Sends(usize),
    /// … and when it receives.
    Receives(usize),
    /// What the loads from one group to another pass.
    Way(usize, usize),
    /// The same in both directions.
    Between(usize, usize),
    /// A hop that loads share.
    Hop(usize),
    /// From one host to another: no other load is as slow.
    Pair(usize, usize),
    /// A host on some of its paths only: what it has, and some of the others have not, slows them.
    Partly(usize),
}

/// An element that explains slow loads.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    pub element: Element,
    /// Others that explain the same loads as well.
    pub or: Vec<Element>,
    /// What its loads carry, as a part of what they should: median, and its interval (95 %, from the order of the loads; their range, where
    /// there are fewer than six).
    pub carries: f64,
    pub interval: [f64; 2],
    /// The slow loads that it explains, and that nothing before it in the list does.
    pub loads: Vec<Load>,
}

/// What is to blame.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Blame {
    /// In the order of how much they explain.
    pub suspects: Vec<Suspect>,
    /// Hosts that had no time for loads that are slow: those accuse nobody.
    pub starved: Vec<usize>,
    /// What each load should carry, bits a second, in the order of the cells.
    pub expected_bps: Vec<f64>,
}

pub use narrows_model::run::mesh::SLOW;

/// So much of an element's loads must be slow.
const NEARLY_ALL: f64 = 0.75;

/// Who is slow, by loads between hosts of these groups.
pub fn blame(groups: &[usize], cells: &[Cell]) -> Blame {
    let first = by(groups, cells, expected_bps(groups, cells));
    let is_shared = |it: &&Suspect| matches!(it.element, Element::Way(..) | Element::Between(..) | Element::Hop(_));
    let held: BTreeSet<Load> =
        first.suspects.iter().filter(is_shared).flat_map(|it| it.loads.iter().copied()).collect();
    // What a path between groups holds back says nothing of what hosts carry: where that is most of what they receive, a slow one among them
    // would look like all.
    let is_free = |cell: &&Cell| !held.contains(&cell.load);
    let free: Vec<Cell> = cells.iter().filter(is_free).cloned().collect();
    if free.len() == cells.len() || free.is_empty() {
        return first;
    }
    let mut by_others = expected_bps(groups, &free).into_iter();
    let mut expected_bps = first.expected_bps;
    for (_, bps) in cells.iter().zip(&mut expected_bps).filter(|(cell, _)| is_free(cell)) {
        *bps = bps.max(by_others.next().unwrap_or(0.0));
    }
    by(groups, cells, expected_bps)
}

/// The same, where it is known what each load should carry.
fn by(groups: &[usize], cells: &[Cell], expected_bps: Vec<f64>) -> Blame {
    let (mut starved, mut counts) = (BTreeSet::new(), Vec::new());
    for (cell, expected) in cells.iter().zip(&expected_bps) {
        match cell.starved(*expected) {
            Some(host) => _ = starved.insert(host),
            None => counts.push((cell, cell.goodput_bps / expected)),
        }
    }
    Blame { suspects: cover(groups, &counts), starved: starved.into_iter().collect(), expected_bps }
}

/// The fewest elements that explain what is bad: cells with a part below [`SLOW`] of what they should have.
pub fn cover(groups: &[usize], counts: &[(&Cell, f64)]) -> Vec<Suspect> {
    let mut members: BTreeMap<Element, Vec<usize>> = BTreeMap::new();
    for (at, (cell, _)) in counts.iter().enumerate() {
        elements(groups, cell.load, &cell.hops)
            .into_iter()
            .for_each(|element| members.entry(element).or_default().push(at));
    }
    let mut left: BTreeSet<usize> = (0..counts.len()).filter(|at| counts[*at].1 < SLOW).collect();
    let (mut suspects, mut are_single) = (Vec::new(), false);
    while let Some(mut found) = best(&members, counts, &left) {
        // Not once a path is blamed alone: of what is left the rest would stand out.
        if matches!(found.0, Element::Pair(..)) && !are_single {
            let partly = partly(groups, counts, &left);
            are_single = partly.is_none();
            found = partly.map_or(found, |(element, explained)| (element, Vec::new(), explained));
        }
        let (element, or, explained) = found;
        left.retain(|at| !explained.contains(at));
        suspects.push(suspect(element, or, &explained, counts));
    }
    suspects
}

/// What a load may be held back by.
pub fn elements(groups: &[usize], load: Load, hops: &[usize]) -> Vec<Element> {
    let Load { from, to } = load;
    let [a, b] = [groups[from], groups[to]];
    let mut all = vec![
        Element::Host(from),
        Element::Host(to),
        Element::Sends(from),
        Element::Receives(to),
        Element::Way(a, b),
        Element::Pair(from, to),
    ];
    all.extend((a != b).then_some(Element::Between(a.min(b), a.max(b))));
    all.extend(hops.iter().map(|hop| Element::Hop(*hop)));
    all
}

/// The element that explains most of the slow loads that are left, those that do as well, and the loads.
fn best(
    members: &BTreeMap<Element, Vec<usize>>,
    counts: &[(&Cell, f64)],
    left: &BTreeSet<usize>,
) -> Option<(Element, Vec<Element>, Vec<usize>)> {
    let mut found: Option<(Element, Vec<Element>, Vec<usize>)> = None;
    // The part of the one that was found that is slow: of two that explain the same, the one of which all is slow comes first.
    let mut found_part = 0.0;
    for (element, of) in members {
        let explains: Vec<usize> = of.iter().copied().filter(|at| left.contains(at)).collect();
        // What something else explains speaks neither for it nor against it.
        let good = of.iter().filter(|at| counts[**at].1 >= SLOW).count();
        let part = explains.len() as f64 / (explains.len() + good) as f64;
        if part < NEARLY_ALL {
            continue;
        }
        // One load is no pattern.
        let least = if matches!(element, Element::Pair(..)) { 1 } else { 2 };
        match &mut found {
            _ if explains.len() < least => {}
            Some((first, or, other)) if *other == explains => {
                let is_closer = part > found_part;
                or.push(if is_closer { std::mem::replace(first, *element) } else { *element });
                found_part = part.max(found_part);
            }
            Some((.., other)) if other.len() >= explains.len() => {}
            _ => (found, found_part) = (Some((*element, Vec::new(), explains)), part),
        }
    }
    found
}

/// So many slow loads of one host that nothing else explains, …
const SOME: usize = 3;
/// … which chance alone puts there in fewer meshes, are its own.
const BY_CHANCE: f64 = 0.01;

/// The host that most of the slow loads that are left have in common, with them, where more of its loads are slow than of others that pass
/// between the same groups (Fisher's exact test, times the hosts with slow loads).
fn partly(groups: &[usize], counts: &[(&Cell, f64)], left: &BTreeSet<usize>) -> Option<(Element, Vec<usize>)> {
    let mut of_host: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for at in left {
        let Load { from, to } = counts[*at].0.load;
        [from, to].into_iter().for_each(|host| of_host.entry(host).or_default().push(*at));
    }
    let hosts = of_host.len() as f64;
    // Both directions of one pair are two at most.
    let mut most: Vec<(usize, Vec<usize>)> = of_host.into_iter().filter(|(_, loads)| loads.len() >= SOME).collect();
    most.sort_by_key(|(_, loads)| std::cmp::Reverse(loads.len()));
    let way = |load: Load| [groups[load.from], groups[load.to]];
    let is_its_own = |(host, loads): &(usize, Vec<usize>)| {
        let ways: BTreeSet<[usize; 2]> = loads.iter().map(|at| way(counts[*at].0.load)).collect();
        // Slow ones, and all: its own, and those of others.
        let [mut own, mut others] = [[0, 0]; 2];
        for (at, (cell, part)) in counts.iter().enumerate() {
            let is_left = left.contains(&at);
            // What something else explains is neither.
            if ways.contains(&way(cell.load)) && (is_left || *part >= SLOW) {
                let side = if [cell.load.from, cell.load.to].contains(host) { &mut own } else { &mut others };
                *side = [side[0] + u64::from(is_left), side[1] + 1];
            }
        }
        narrows_stats::more_often(own, others).is_some_and(|chance| hosts * chance < BY_CHANCE)
    };
    most.into_iter().find(is_its_own).map(|(host, loads)| (Element::Partly(host), loads))
}

fn suspect(element: Element, or: Vec<Element>, explained: &[usize], counts: &[(&Cell, f64)]) -> Suspect {
    let mut parts: Vec<f64> = explained.iter().map(|at| counts[*at].1).collect();
    parts.sort_by(f64::total_cmp);
    Suspect {
        element,
        or,
        carries: narrows_stats::median(&parts).unwrap_or(0.0),
        interval: median_interval(&parts),
        loads: explained.iter().map(|at| counts[*at].0.load).collect(),
    }
}

/// The interval of a median by the order of the values (95 %; the normal approximation of the binomial), or all values where they are few.
fn median_interval(sorted: &[f64]) -> [f64; 2] {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return [0.0; 2] };
    if sorted.len() < 6 {
        return [*first, *last];
    }
    // a few thousand at most
    let below = (sorted.len() as f64 / 2.0 - 0.98 * (sorted.len() as f64).sqrt()).floor().max(0.0) as usize;
    [sorted[below], sorted[sorted.len() - 1 - below]]
}

/// What each load should carry: the least of what a host of the one group usually sends and one of the other usually receives.
fn expected_bps(groups: &[usize], cells: &[Cell]) -> Vec<f64> {
    let usual = |host: fn(&Load) -> usize| {
        let mut of_host: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        cells.iter().for_each(|cell| of_host.entry(host(&cell.load)).or_default().push(cell.goodput_bps));
        let mut of_group: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (host, all) in of_host {
            // What it carries where others do not hold it back.
            of_group.entry(groups[host]).or_default().extend(narrows_stats::quantile(&all, 0.75));
        }
        of_group
            .into_iter()
            .filter_map(|(group, all)| Some((group, narrows_stats::median(&all)?)))
            .collect::<BTreeMap<_, _>>()
    };
    let (sends, receives) = (usual(|load| load.from), usual(|load| load.to));
    let of = |usual: &BTreeMap<usize, f64>, host: usize| usual.get(&groups[host]).copied().unwrap_or(f64::INFINITY);
    let like_others = |load: Load| of(&sends, load.from).min(of(&receives, load.to));
    cells.iter().map(|cell| like_others(cell.load).max(cell.usual_bps.unwrap_or(0.0)).max(1.0)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::design;
    use proptest::prelude::*;

    /// Loads between these hosts, each of 1 Gbit/s, where elements carry a part of that.
    fn mesh(groups: &[usize], slow: &[(Element, f64)], noise: &mut impl FnMut() -> f64) -> Vec<Cell> {
        let pairs = design::pairs(groups);
        let loads = pairs.iter().flat_map(|[a, b]| [Load { from: *a, to: *b }, Load { from: *b, to: *a }]);
        loads
            .map(|load| {
                let mut cell = Cell { load, goodput_bps: 1e9, hops: Vec::new(), by_host: None, usual_bps: None };
                let on_way = elements(groups, cell.load, &cell.hops);
                let least = slow.iter().filter(|(element, _)| on_way.contains(element)).map(|(_, part)| *part);
                cell.goodput_bps *= least.fold(1.0, f64::min) * (1.0 + 0.08 * (2.0 * noise() - 1.0));
                cell
            })
            .collect()
    }

    pub(crate) fn seeded(mut seed: u64) -> impl FnMut() -> f64 {
        move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;

            (seed >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    fn of(groups: &[usize], slow: &[(Element, f64)]) -> Vec<Element> {
        let found = blame(groups, &mesh(groups, slow, &mut seeded(88_172_645_463_325_252)));
        found.suspects.into_iter().map(|it| it.element).collect()
    }

    #[test]
    fn each_kind_of_element_is_named() {
        let groups: Vec<usize> = (0..40).map(|host| host / 14).collect();
        assert_eq!(of(&groups, &[]), []);
        let (a, b) = (design::pairs(&groups)[5][0], design::pairs(&groups)[5][1]);
        for element in [
            Element::Host(3),
            Element::Sends(17),
            Element::Receives(39),
            Element::Way(0, 1),
            Element::Between(1, 2),
            Element::Pair(a, b),
        ] {
            assert_eq!(of(&groups, &[(element, 0.5)]), [element]);
        }
    }

    #[test]
    fn two_faults_are_named_the_one_that_explains_more_first() {
        let groups: Vec<usize> = (0..40).map(|host| host / 14).collect();
        assert_eq!(
            of(&groups, &[(Element::Host(3), 0.4), (Element::Way(1, 2), 0.6)]),
            [Element::Way(1, 2), Element::Host(3)]
        );
        assert_eq!(of(&groups, &[(Element::Host(3), 0.4), (Element::Host(4), 0.6)]).len(), 2);
    }

    #[test]
    fn what_a_trunk_explains_speaks_neither_for_a_host_behind_it_nor_against_it() {
        let groups: Vec<usize> = (0..40).map(|host| host / 14).collect();
        let mut noise = seeded(88_172_645_463_325_252);
        let mut draw = |below: usize| (noise() * below as f64) as usize;
        let mut right = 0;
        for _ in 0..200 {
            let mut faults = vec![(Element::Way(0, 1), 0.4), (Element::Way(2, 0), 0.4)];
            for nth in 0..5 {
                let host = nth * 8 + draw(8);
                let part = 0.25 + 0.01 * draw(35) as f64;
                let element = [Element::Sends(host), Element::Receives(host), Element::Host(host)][draw(3)];
                faults.push((element, part));
            }
            let seed = 1 + draw(1_000_000) as u64;
            let found = blame(&groups, &mesh(&groups, &faults, &mut seeded(seed * 88_172_645_463)));
            let mut named: Vec<Element> = found.suspects.into_iter().map(|it| it.element).collect();
            let mut wanted: Vec<Element> = faults.into_iter().map(|(element, _)| element).collect();
            named.sort_unstable();
            wanted.sort_unstable();
            right += usize::from(named == wanted);
        }
        assert!(right >= 190, "{right} of 200");
    }

    #[test]
    fn behind_two_slow_trunks_a_slow_host_is_compared_with_its_own_group() {
        let groups: Vec<usize> = (0..40).map(|host| host / 14).collect();
        let trunks = [(Element::Way(1, 0), 0.1), (Element::Way(2, 0), 0.1)];
        for host in 0..14 {
            for element in [Element::Receives(host), Element::Host(host)] {
                let found = of(&groups, &[trunks[0], trunks[1], (element, 0.43)]);
                assert_eq!(found.iter().filter(|it| **it == element).count(), 1, "{element:?}: {found:?}");
                assert_eq!(found.len(), 3, "{element:?}: {found:?}");
            }
        }
    }

    /// Loads between hosts without SACK and those with large windows are slow, as an example.
    #[test]
    fn slow_loads_of_one_host_that_nothing_else_explains_are_its_own() {
        let groups: Vec<usize> = (0..40).map(|host| host / 14).collect();
        let mut noise = seeded(88_172_645_463_325_252);
        for (hosts, part, wanted) in
            [(&[5, 17][..], 0.5, vec![Element::Partly(5), Element::Partly(17)]), (&[5, 17], 0.0, vec![])]
        {
            let mut cells = mesh(&groups, &[], &mut noise);
            for cell in &mut cells {
                let Load { from, to } = cell.load;
                let (is_one, other) = if hosts.contains(&from) { (true, to) } else { (hosts.contains(&to), from) };
                cell.goodput_bps *= if is_one && (other as f64) < 40.0 * part { 0.3 } else { 1.0 };
            }
            let mut named: Vec<Element> = blame(&groups, &cells).suspects.into_iter().map(|it| it.element).collect();
            named.sort_unstable();
            assert_eq!(named, wanted);
        }
        // A host that is slow with one other is a pair, in both directions, too.
        let (a, b) = (design::pairs(&groups)[5][0], design::pairs(&groups)[5][1]);
        assert_eq!(of(&groups, &[(Element::Pair(a, b), 0.5), (Element::Pair(b, a), 0.5)]).len(), 2);
    }

    /// All pairs of one host alone, of which three are slow for reasons of their own; and half of what passes between two groups.
    #[test]
    fn slow_loads_that_meet_at_a_host_by_chance_accuse_only_paths() {
        let cell = |from, to, is_slow| Cell {
            load: Load { from, to },
            goodput_bps: if is_slow { 3e8 } else { 1e9 },
            hops: Vec::new(),
            by_host: None,
            usual_bps: None,
        };
        let only_pairs = |groups: &[usize], cells: &[Cell]| {
            let found = blame(groups, cells).suspects;
            assert!(!found.is_empty() && found.iter().all(|it| matches!(it.element, Element::Pair(..))), "{found:#?}");
        };
        let star: Vec<Cell> =
            (1..21).flat_map(|to| [cell(0, to, [3, 7, 9].contains(&to)), cell(to, 0, false)]).collect();
        only_pairs(&[0; 21], &star);
        let groups: Vec<usize> = (0..16).map(|host| host / 8).collect();
        let pairs = (0..16).flat_map(|from| (0..16).filter(move |to| *to != from).map(move |to| (from, to)));
        let trunk: Vec<Cell> =
            pairs.map(|(from, to)| cell(from, to, from < 8 && to >= 8 && (from + to) % 2 == 0)).collect();
        only_pairs(&groups, &trunk);
    }

    #[test]
    fn two_hosts_cannot_tell_which_of_them_it_is() {
        let cell = |from, to, goodput_bps| Cell {
            load: Load { from, to },
            goodput_bps,
            hops: Vec::new(),
            by_host: None,
            usual_bps: None,
        };
        let all =
            [cell(0, 1, 1e8), cell(1, 0, 1e9), cell(0, 2, 1e9), cell(2, 0, 1e9), cell(1, 2, 1e9), cell(2, 1, 1e9)];
        let found = blame(&[0, 0, 0], &all);
        assert_eq!(found.suspects.len(), 1, "{found:?}");
        assert_eq!(found.suspects[0].element, Element::Pair(0, 1));
        assert_eq!(found.suspects[0].interval, [0.1, 0.1]);
    }

    #[test]
    fn a_host_without_time_accuses_nobody() {
        let groups = [0; 8];
        let mut cells = mesh(&groups, &[(Element::Host(2), 0.3)], &mut seeded(7));
        for cell in &mut cells {
            cell.by_host = [cell.load.from, cell.load.to].contains(&2).then_some(2);
        }
        let found = blame(&groups, &cells);
        assert!(found.suspects.is_empty() && found.starved == [2], "{found:?}");
        // Busy hosts whose loads carry what they should are no news, and their loads count: those of host 4 show that it is well.
        let mut cells = mesh(&groups, &[(Element::Receives(3), 0.3)], &mut seeded(7));
        cells.iter_mut().for_each(|cell| cell.by_host = (cell.load.to != 3).then_some(cell.load.from));
        let found = blame(&groups, &cells);
        let named: Vec<Element> = found.suspects.iter().map(|it| it.element).collect();
        assert!(named == [Element::Receives(3)] && found.starved.is_empty(), "{found:?}");
    }

    proptest! {
        /// Loads of a mesh without a fault accuse nobody, and one fault is always named first.
        #[test]
        fn one_bad_host_or_way_is_named_first(seed in 1..u64::MAX, hosts in 6..40_usize, kind in 0..4_usize, part in 0.1..0.6) {
            let groups: Vec<usize> = (0..hosts).map(|host| host % 3).collect();
            let mut noise = seeded(seed);
            let host = (noise() * hosts as f64) as usize;
            prop_assert!(blame(&groups, &mesh(&groups, &[], &mut noise)).suspects.is_empty());
            let element = [Element::Host(host), Element::Sends(host), Element::Receives(host), Element::Between(0, 1)][kind];
            let found = blame(&groups, &mesh(&groups, &[(element, part)], &mut noise));
            prop_assert_eq!(found.suspects.first().map(|it| it.element), Some(element));
            prop_assert_eq!(found.suspects.len(), 1);
        }
    }
}
