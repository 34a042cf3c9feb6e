//! Which pairs are loaded: all of a few hosts; of many so many for each host that a bad host, pair, or path between two groups stands out.

use crate::blame::{Cell, Element, blame};
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many hosts, all pairs are loaded.
pub const ALL_UP_TO: usize = 16;

/// Pairs of each host where not all are loaded: enough that most of a host's own are not those of another bad one.
pub const EACH: usize = 8;

/// The pairs, each once. `groups`: the group of each host. A host meets hosts of each group in turn, and between the first hosts of two
/// groups there is a load always.
pub fn pairs(groups: &[usize]) -> Vec<[usize; 2]> {
    testable_pairs(groups, &|_| true)
}

/// The same, of those pairs of which a load can be made.
pub fn testable_pairs(groups: &[usize], can: &dyn Fn(&[usize; 2]) -> bool) -> Vec<[usize; 2]> {
    let hosts = groups.len();
    let all = || (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| [a, b])).filter(|pair| can(pair));
    if hosts <= ALL_UP_TO {
        return all().collect();
    }
    let circle = by_turns(groups);
    let mut found = BTreeSet::new();
    // Strides one after the other reach the next group, the one after it, and so on; each host has two neighbours of a stride.
    for (at, a) in circle.iter().enumerate() {
        let pair = |stride: usize| {
            let b = circle[(at + stride) % hosts];
            [*a.min(&b), *a.max(&b)]
        };
        let next: Vec<[usize; 2]> = (1..=EACH / 2).map(pair).collect();
        if next.iter().all(can) {
            found.extend(next);
            continue;
        }
        // Those that can be tested with few hosts alone do not all take the same of them.
        let others: Vec<[usize; 2]> = (1..hosts).map(pair).filter(can).collect();
        found.extend(others.iter().cycle().skip(at * (EACH / 2) % others.len().max(1)).take(EACH / 2));
    }
    let way = |pair: &[usize; 2]| {
        let [a, b] = pair.map(|host| groups[host]);
        [a.min(b), a.max(b)]
    };
    // The first hosts of two groups, where they can; all pairs are gone through only where some cannot.
    let firsts: BTreeMap<usize, usize> = groups.iter().enumerate().rev().map(|(host, group)| (*group, host)).collect();
    let first = |(a, b): (&usize, &usize)| [*a.min(b), *a.max(b)];
    let ways = firsts.iter().flat_map(|(group, a)| firsts.range(group + 1..).map(move |(_, b)| (a, b))).map(first);
    let (standing, lacking): (Vec<_>, Vec<_>) = ways.partition(|pair| can(pair));
    found.extend(standing);
    let mut lacking: BTreeSet<[usize; 2]> = lacking.iter().map(way).collect();
    if !lacking.is_empty() {
        found.extend(all().filter(|pair| lacking.remove(&way(pair))));
    }
    found.into_iter().collect()
}

/// The hosts of all groups by turns.
fn by_turns(groups: &[usize]) -> Vec<usize> {
    let mut nth: BTreeMap<usize, usize> = BTreeMap::new();
    let mut order: Vec<(usize, usize, usize)> = groups
        .iter()
        .enumerate()
        .map(|(host, group)| {
            let nth = nth.entry(*group).or_default();
            *nth += 1;
            (*nth, *group, host)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(.., host)| host).collect()
}

/// Of two groups between which one pair is slow, so many others tell whether the path between them is.
const OF_A_WAY: usize = 4;

/// Pairs that tell more of what is suspected by the loads until now: of each suspected host that met few others with those that it has not
/// met, two of each group; and where a pair or a path between two groups is slow, others of the same two groups. None where all that is
/// suspected has been met often enough.
pub fn denser(
    groups: &[usize],
    made: &[[usize; 2]],
    cells: &[Cell],
    can: &dyn Fn(&[usize; 2]) -> bool,
) -> Vec<[usize; 2]> {
    let known: BTreeSet<[usize; 2]> = made.iter().copied().collect();
    let (mut hosts, mut ways) = (BTreeSet::new(), BTreeSet::new());
    for suspect in blame(groups, cells).suspects {
        match suspect.element {
            Element::Host(a) | Element::Sends(a) | Element::Receives(a) => _ = hosts.insert(a),
            Element::Partly(a) => {
                hosts.insert(a);
                // What meets at the first host of a group may be what passes between groups.
                ways.extend(suspect.loads.iter().map(|load| {
                    let [x, y] = [groups[load.from], groups[load.to]];
                    [x.min(y), x.max(y)]
                }));
            }
            Element::Pair(a, b) => {
                hosts.extend([a, b]);
                ways.insert([groups[a].min(groups[b]), groups[a].max(groups[b])]);
            }
            Element::Way(a, b) | Element::Between(a, b) => _ = ways.insert([a.min(b), a.max(b)]),
            Element::Hop(_) => {}
        }
    }
    let mut found = BTreeSet::new();
    let met_few = |host: &usize| made.iter().filter(|pair| pair.contains(host)).count() < EACH;
    for suspect in hosts.into_iter().filter(met_few) {
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        for other in by_turns(groups) {
            let pair = [other.min(suspect), other.max(suspect)];
            let taken = taken.entry(groups[other]).or_default();
            if other != suspect && !known.contains(&pair) && *taken < 2 && can(&pair) {
                *taken += 1;
                found.insert(pair);
            }
        }
    }
    let of = |group: usize| (0..groups.len()).filter(move |host| groups[*host] == group);
    for [a, b] in ways {
        let between = |pair: &&[usize; 2]| {
            let [x, y] = pair.map(|host| groups[host]);
            [x.min(y), x.max(y)] == [a, b]
        };
        let lacking = OF_A_WAY.saturating_sub(made.iter().filter(between).count());
        // The last of a group are not those that stand for it.
        let others = of(a).rev().zip(of(b).rev().skip(usize::from(a == b))).map(|(a, b)| [a.min(b), a.max(b)]);
        found.extend(others.filter(|pair| pair[0] != pair[1] && !known.contains(pair) && can(pair)).take(lacking));
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Load;
    use crate::blame::elements;

    #[test]
    fn a_few_hosts_meet_all_others_and_many_meet_some_of_each_group() {
        assert_eq!(pairs(&[0; 16]).len(), 120);
        let groups: Vec<usize> = (0..40).map(|host| host % 3).collect();
        let made = pairs(&groups);
        assert!(made.len() <= 780 / 3, "{}", made.len());
        for host in 0..40 {
            assert!(made.iter().filter(|pair| pair.contains(&host)).count() >= EACH);
        }
        for way in [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]] {
            let between = |pair: &&[usize; 2]| {
                let [a, b] = pair.map(|host| groups[host]);
                [a.min(b), a.max(b)] == way
            };
            assert!(made.iter().filter(between).count() >= 10, "{way:?}");
        }
    }

    /// What loads of these pairs carry, where an element carries half.
    fn loaded(groups: &[usize], pairs: &[[usize; 2]], bad: Element) -> Vec<Cell> {
        let loads = pairs.iter().flat_map(|[a, b]| [Load { from: *a, to: *b }, Load { from: *b, to: *a }]);
        let goodput_bps = |load| if elements(groups, load, &[]).contains(&bad) { 0.5e9 } else { 1e9 };
        loads
            .map(|load| Cell { load, goodput_bps: goodput_bps(load), hops: Vec::new(), by_host: None, usual_bps: None })
            .collect()
    }

    #[test]
    fn a_suspect_meets_hosts_that_it_has_not_met() {
        let groups: Vec<usize> = (0..40).map(|host| host % 3).collect();
        let made = pairs(&groups);
        let few: Vec<[usize; 2]> =
            made.iter().copied().filter(|pair| !pair.contains(&7) || pair.iter().sum::<usize>() < 13).collect();
        let more = denser(&groups, &few, &loaded(&groups, &few, Element::Host(7)), &|_| true);
        assert!(more.len() == 6 && more.iter().all(|pair| pair.contains(&7) && !few.contains(pair)), "{more:?}");
        for settled in [Element::Host(7), Element::Host(99)] {
            assert!(denser(&groups, &made, &loaded(&groups, &made, settled), &|_| true).is_empty(), "{settled:?}");
        }
    }

    #[test]
    fn pairs_are_chosen_among_those_that_can_be_tested() {
        let groups: Vec<usize> = (0..40).map(|host| host % 3).collect();
        // Those behind NAT connect only to the others.
        let is_hidden = |host: usize| host < 20;
        let can = |pair: &[usize; 2]| !pair.iter().all(|host| is_hidden(*host));
        let made = testable_pairs(&groups, &can);
        assert!(made.iter().all(can));
        for host in 0..40 {
            assert!(made.iter().filter(|pair| pair.contains(&host)).count() >= EACH / 2, "{host}: {made:?}");
        }
        for way in [[0, 1], [0, 2], [1, 2]] {
            assert!(made.iter().any(|[a, b]| [groups[*a].min(groups[*b]), groups[*a].max(groups[*b])] == way));
        }
        let most = (0..40).map(|host| made.iter().filter(|pair| pair.contains(&host)).count()).max();
        assert!(most <= Some(2 * EACH), "{most:?} pairs of one host");
        let of_7: Vec<[usize; 2]> = made.iter().copied().filter(|pair| pair.contains(&7)).skip(2).collect();
        let few: Vec<[usize; 2]> = made.iter().copied().filter(|pair| !of_7.contains(pair)).collect();
        let more = denser(&groups, &few, &loaded(&groups, &few, Element::Host(7)), &can);
        assert!(more.len() > 3 && more.iter().all(|pair| pair.contains(&7) && can(pair)), "{more:?}");
    }

    #[test]
    fn one_bad_element_of_two_thousand_hosts_is_named_by_few_loads() {
        let groups: Vec<usize> = (0..2_000).map(|host| host % 20).collect();
        let first = pairs(&groups);
        // 0.4 % of all pairs: four of each host, and one of any two groups that these leave out.
        assert_eq!(first.len(), 8_120);
        let most =
            (0..2_000).map(|host| first.iter().filter(|pair| pair.contains(&host)).count()).max().expect("hosts");
        let rounds = crate::rounds::rounds(groups.len(), &first, |_| &[], 1);
        assert!(rounds.len() <= 2 * (most + 1), "{} rounds, {most} pairs of one host", rounds.len());
        for (bad, more) in [
            (Element::Host(0), 0),
            (Element::Sends(1_234), 0),
            (Element::Receives(1_999), 0),
            (Element::Way(3, 4), 0),
            (Element::Between(0, 10), 3),
            (Element::Way(2, 13), 3),
            (Element::Pair(first[5_000][0], first[5_000][1]), 0),
        ] {
            let (mut made, mut added) = (first.clone(), 0);
            for _ in 0..2 {
                let next = denser(&groups, &made, &loaded(&groups, &made, bad), &|_| true);
                added += next.len();
                made.extend(next);
            }
            let named: Vec<Element> =
                blame(&groups, &loaded(&groups, &made, bad)).suspects.into_iter().map(|it| it.element).collect();
            assert_eq!((named, added), (vec![bad], more), "{bad:?}");
        }
    }
}
