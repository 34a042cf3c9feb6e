//! Which pairs are loaded: all of a few hosts; of many so many for each host that a bad host, pair, or way between two groups stands out.

use std::collections::{BTreeMap, BTreeSet};

/// Up to so many hosts, all pairs are loaded.
pub const ALL_UP_TO: usize = 16;

/// Pairs of each host where not all are loaded: enough that most of a host's own are not those of another bad one.
pub const EACH: usize = 8;

/// The pairs, each once. `groups`: the group of each host. A host meets hosts of each group in turn, and between the first hosts of two
/// groups there is a load always.
pub fn pairs(groups: &[usize]) -> Vec<[usize; 2]> {
    let hosts = groups.len();
    if hosts <= ALL_UP_TO {
        return (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| [a, b])).collect();
    }
    let circle = by_turns(groups);
    let mut found = BTreeSet::new();
    let mut add = |a: usize, b: usize| found.insert([a.min(b), a.max(b)]);
    // Strides one after the other reach the next group, the one after it, and so on; each host has two neighbours of a stride.
    for (at, a) in circle.iter().enumerate() {
        for stride in 1..=EACH / 2 {
            let b = circle[(at + stride) % hosts];
            add(*a, b);
        }
    }
    let firsts: BTreeMap<usize, usize> = groups.iter().enumerate().rev().map(|(host, group)| (*group, host)).collect();
    for (group, a) in &firsts {
        firsts.range(group + 1..).for_each(|(_, b)| {
            add(*a, *b);
        });
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

/// Pairs that tell more of the elements that are suspected: each of these hosts with others that it has not met, a few of each group.
pub fn denser(groups: &[usize], made: &[[usize; 2]], suspects: &[usize]) -> Vec<[usize; 2]> {
    let known: BTreeSet<[usize; 2]> = made.iter().copied().collect();
    let mut found = BTreeSet::new();
    for suspect in suspects {
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for other in by_turns(groups) {
            let pair = [other.min(*suspect), other.max(*suspect)];
            let taken = left.entry(groups[other]).or_default();
            if other != *suspect && !known.contains(&pair) && *taken < 2 {
                *taken += 1;
                found.insert(pair);
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_suspect_meets_hosts_that_it_has_not_met() {
        let groups: Vec<usize> = (0..40).map(|host| host % 3).collect();
        let made = pairs(&groups);
        let more = denser(&groups, &made, &[7]);
        assert!(more.len() == 6 && more.iter().all(|pair| pair.contains(&7) && !made.contains(pair)), "{more:?}");
    }
}
