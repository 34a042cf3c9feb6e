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

/// Above [`ALL_UP_TO`] hosts, one more drops so many pairs of the others on average until each has [`EACH`].
const DROPPED: f64 = 10.0;

/// The same for hosts that come and go: one more or less drops few pairs of the others. `groups` and `keys`: numbers of groups and hosts that
/// do not change with the others, as hashes of their names.
///
/// Hosts are on a circle in the order of their hashed keys, and each meets the four next to it on either side. One more drops the four pairs
/// between hosts that are five apart then. Each two groups have a pair, of hosts that follow points of the circle: one more host can take the
/// place of another in as many pairs as there are other groups. So of many hosts 4 + groups - 1 pairs at most are dropped, and none is added
/// that is not of the new host, but for pairs of hosts that have eight of their own group beside them: those meet the nearest of another one,
/// up to eight places away. Above [`ALL_UP_TO`] hosts the other pairs leave in the order of their hashes, [`DROPPED`] with each host.
pub fn stable_pairs(groups: &[usize], keys: &[u64]) -> Vec<[usize; 2]> {
    let hosts = groups.len();
    let all = || (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| [a, b]));
    if hosts <= ALL_UP_TO {
        return all().collect();
    }
    let mut circle: Vec<(u64, usize)> = keys.iter().map(|key| mix(*key)).zip(0..hosts).collect();
    circle.sort_unstable();
    let pair = |a: usize, b: usize| [a.min(b), a.max(b)];
    let ahead = |at: usize, places: usize| circle[(at + places) % hosts].1;
    let near = |at: usize| (1..=EACH / 2).map(move |places| (at, places));
    let mut found: BTreeSet<[usize; 2]> =
        (0..hosts).flat_map(near).map(|(at, places)| pair(ahead(at, 0), ahead(at, places))).collect();
    let count = far_pairs(hosts);
    if count > 0 {
        let place = |[a, b]: [usize; 2]| mix(mix(keys[a]).wrapping_add(mix(keys[b])));
        let far = all().filter(|pair| !found.contains(pair));
        let mut far: Vec<(u64, [usize; 2])> = far.map(|pair| (place(pair), pair)).collect();
        far.sort_unstable();
        found.extend(far.into_iter().take(count).map(|(_, pair)| pair));
    }
    let mut of_group: BTreeMap<usize, Vec<(u64, usize)>> = BTreeMap::new();
    for (at, (place, host)) in circle.iter().enumerate() {
        of_group.entry(groups[*host]).or_default().push((*place, *host));
        // By its own group alone nobody tells a slow host from a slow group. Mostly this is one of the eight.
        let mut beside = (1..=EACH).flat_map(|places| [ahead(at, places), ahead(at, hosts - places)]);
        found.extend(beside.find(|other| groups[*other] != groups[*host]).map(|other| pair(*host, other)));
    }
    // Not the same host stands for its group with all others.
    let stands = |of: &[(u64, usize)], other: usize| {
        let next = of.partition_point(|(place, _)| *place < mix(other as u64));
        of[next % of.len()].1
    };
    let known: Vec<(usize, Vec<(u64, usize)>)> = of_group.into_iter().collect();
    for (nth, (a, of_a)) in known.iter().enumerate() {
        found.extend(known[nth + 1..].iter().map(|(b, of_b)| pair(stands(of_a, *b), stands(of_b, *a))));
    }
    found.into_iter().collect()
}

/// How many pairs of hosts that are further apart on the circle are loaded.
fn far_pairs(hosts: usize) -> usize {
    let far = |hosts: usize| (hosts * (hosts - 1) / 2 - hosts * EACH / 2) as f64;
    let leave = (EACH / 2) as f64;
    let mut part = 1.0_f64;
    for before in ALL_UP_TO..hosts {
        // Pairs that are not near any more are dropped as all others that are far.
        part -= (DROPPED - leave * (1.0 - part)) / (far(before) + leave);
        if part <= 0.0 {
            return 0;
        }
    }
    (part * far(hosts)).round() as usize
}

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014): the upper bits depend on all bits of a key, as those of FNV do not.
const fn mix(key: u64) -> u64 {
    let key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
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
    use crate::blame::tests::seeded;

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

    /// Hosts in groups by turns or by chance, with their keys.
    fn some(noise: &mut impl FnMut() -> f64, by_turns: bool) -> (Vec<usize>, Vec<u64>) {
        let mut draw = |below: usize| (noise() * below as f64) as usize;
        let (hosts, groups) = (13 + draw(109), 1 + draw(6));
        let of = (0..hosts).map(|nth| if by_turns { nth % groups } else { draw(groups) }).collect();
        (of, (0..hosts).map(|_| draw(1 << 53) as u64).collect())
    }

    fn partners(hosts: usize, pairs: &[[usize; 2]]) -> Vec<Vec<usize>> {
        let mut of = vec![Vec::new(); hosts];
        for [a, b] in pairs {
            of[*a].push(*b);
            of[*b].push(*a);
        }
        of
    }

    #[test]
    fn stable_pairs_are_as_many_of_each_host_and_between_all_groups() {
        let mut noise = seeded(88_172_645_463_325_252);
        for nth in 0..300 {
            let (groups, keys) = some(&mut noise, nth % 2 == 0);
            let made = stable_pairs(&groups, &keys);
            let known: BTreeSet<usize> = groups.iter().copied().collect();
            let ways: BTreeSet<[usize; 2]> = made
                .iter()
                .map(|pair| pair.map(|host| groups[host]))
                .filter(|[a, b]| a != b)
                .map(|[a, b]| [a.min(b), a.max(b)])
                .collect();
            let of_ways = known.len() * (known.len() - 1) / 2;
            assert_eq!(ways.len(), of_ways);
            let most = groups.len() * EACH / 2 + far_pairs(groups.len()) + of_ways + 6;
            assert!(made.len() <= most, "{} of {}", made.len(), groups.len());
            for (host, others) in partners(groups.len(), &made).iter().enumerate() {
                assert!((EACH..=3 * EACH).contains(&others.len()), "{others:?}");
                assert!(
                    known.len() == 1 || others.iter().any(|other| groups[*other] != groups[host]),
                    "{host}: {groups:?}"
                );
            }
        }
        let count = |hosts: usize| stable_pairs(&vec![0; hosts], &(0..hosts as u64).collect::<Vec<_>>()).len();
        assert_eq!([9, 16, 17, 24, 32, 40, 1_000].map(count), [36, 120, 125, 148, 155, 160, 4_000]);
    }

    #[test]
    fn one_host_more_changes_few_pairs_of_the_others() {
        let mut noise = seeded(88_172_645_463_325_252);
        let (mut most, mut all) = ([0; 2], 0);
        for nth in 0..600 {
            let (groups, keys) = some(&mut noise, nth % 2 == 0);
            let new = (noise() * groups.len() as f64) as usize;
            let without = |all: &[usize]| [&all[..new], &all[new + 1..]].concat();
            let old: Vec<usize> = without(&(0..groups.len()).collect::<Vec<_>>());
            let old_keys: Vec<u64> = old.iter().map(|host| keys[*host]).collect();
            let before = stable_pairs(&without(&groups), &old_keys);
            let before: BTreeSet<[usize; 2]> = before.into_iter().map(|pair| pair.map(|host| old[host])).collect();
            let after: BTreeSet<[usize; 2]> = stable_pairs(&groups, &keys).into_iter().collect();
            let changed = before.symmetric_difference(&after).filter(|pair| !pair.contains(&new)).count();
            let most = &mut most[usize::from(far_pairs(old.len()) == 0)];
            (*most, all) = (changed.max(*most), all + changed);
        }
        // Of many hosts mostly four, and one more for each group for which the new host stands now.
        assert!(most[0] <= 18 && most[1] <= 10 && all < 600 * 6, "at most {most:?}, {} on average", all / 600);
    }

    #[test]
    fn a_bad_element_is_named_by_stable_pairs_as_by_others() {
        let mut noise = seeded(88_172_645_463_325_252);
        let mut draw = |below: usize| (noise() * below as f64) as usize;
        let mut found = Vec::new();
        for (hosts, of) in [(12, 1), (12, 3), (16, 4), (24, 3), (40, 3), (40, 6), (120, 6)] {
            let groups: Vec<usize> = (0..hosts).map(|host| host % of).collect();
            let (mut stable, mut others) = (0, 0);
            for _ in 0..100 {
                let keys: Vec<u64> = (0..hosts).map(|_| draw(1 << 53) as u64).collect();
                let (host, way) = (draw(hosts), [draw(of), draw(of)]);
                let is_way = of > 1 && draw(2) == 0 && way[0] != way[1];
                let hosts = [Element::Host(host), Element::Sends(host), Element::Receives(host)];
                let bad = if is_way { Element::Way(way[0], way[1]) } else { hosts[draw(3)] };
                let is_named = |pairs: &[[usize; 2]]| {
                    let suspects = blame(&groups, &loaded(&groups, pairs, bad)).suspects;
                    usize::from(suspects.len() == 1 && suspects[0].element == bad)
                };
                stable += is_named(&stable_pairs(&groups, &keys));
                others += is_named(&pairs(&groups));
            }
            found.push((hosts, of, stable, others));
        }
        assert!(
            found.iter().all(|(.., stable, others)| stable + 3 >= *others),
            "hosts, groups, named, named: {found:?}"
        );
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
