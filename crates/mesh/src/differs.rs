//! What the slow hosts have in common and the others have not.

use crate::Load;
use std::collections::{BTreeMap, BTreeSet};

/// A setting that separates slow hosts from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub key: String,
    /// What slow hosts have.
    pub value: String,
    /// How many of the slow hosts have it, and how many of the others; of loads, those that begin or end at a host that has it.
    pub slow: [u64; 2],
    pub others: [u64; 2],
    /// How often one of so many settings separates as well by chance: Fisher's exact test of hosts, draws of as many hosts where loads are
    /// counted, times the number of values that were compared (C. E. Bonferroni).
    pub chance: f64,
}

/// The values that slow hosts have more often than others, the clearest first; one value of each key. `facts`: those of each host.
pub fn differences(facts: &[BTreeMap<String, String>], slow: &BTreeSet<usize>) -> Vec<Difference> {
    clearest(facts, |have, of, _| {
        let split = |hosts: &[usize]| {
            let among = hosts.iter().filter(|host| slow.contains(host)).count() as u64;
            [among, hosts.len() as u64 - among]
        };
        let (have, of) = (split(have), split(of));
        let (slow, others) = ([have[0], of[0]], [have[1], of[1]]);
        Some((slow, others, narrows_stats::more_often(slow, others)?))
    })
}

/// The same where hosts are slow on some of their paths only: values of the hosts at which slow loads begin or end more often than at as
/// many other hosts.
pub fn differences_of_loads(facts: &[BTreeMap<String, String>], slow: &[Load], others: &[Load]) -> Vec<Difference> {
    clearest(facts, |have, of, compared| {
        // Of hosts of which the key is known, as places among them; both lists are in order.
        let place = |host| of.binary_search(&host).ok();
        let known = |loads: &[Load]| -> Vec<[usize; 2]> {
            loads.iter().filter_map(|it| Some([place(it.from)?, place(it.to)?])).collect()
        };
        let has = |ends: &&[usize; 2]| ends.iter().any(|at| have.binary_search(&of[*at]).is_ok());
        let count = |ends: &[[usize; 2]]| [ends.iter().filter(has).count() as u64, ends.len() as u64];
        let ends = known(slow);
        let (slow, others) = (count(&ends), count(&known(others)));
        Some((slow, others, narrows_stats::covered_by_chance(of.len(), &ends, have.len(), slow[0], WORK / compared)))
    })
}

/// Places that the draws of all values look at: seconds.
const WORK: usize = 1_000_000_000;

/// Each value with its hosts, and the hosts of which its key is known, judged by what counts slow ones and others and says how often it is
/// so by chance; it is told how many values are compared.
fn clearest(
    facts: &[BTreeMap<String, String>],
    judge: impl Fn(&[usize], &[usize], usize) -> Option<([u64; 2], [u64; 2], f64)>,
) -> Vec<Difference> {
    let mut values: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut known: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (host, facts) in facts.iter().enumerate() {
        for (key, value) in facts {
            values.entry((key, value)).or_default().push(host);
            known.entry(key).or_default().push(host);
        }
    }
    // A value that all have separates nobody.
    values.retain(|(key, _), have| known.get(key).is_some_and(|of| have.len() < of.len()));
    let count = values.len();
    let compared = count as f64;
    let mut found: Vec<Difference> = values
        .into_iter()
        .filter_map(|((key, value), have)| {
            let (slow, others, chance) = judge(&have, known.get(key)?, count)?;
            (slow[0] > 0).then(|| Difference {
                key: key.to_owned(),
                value: value.to_owned(),
                slow,
                others,
                chance: compared * chance,
            })
        })
        .collect();
    found.sort_by(|a, b| a.chance.total_cmp(&b.chance).then_with(|| a.key.cmp(&b.key)));
    let mut seen = BTreeSet::new();
    found.retain(|it| seen.insert(it.key.clone()));
    found.iter_mut().for_each(|it| it.chance = it.chance.min(1.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_setting_of_the_slow_hosts_is_first_among_harmless_differences() {
        let slow: BTreeSet<usize> = [3, 11, 20, 31].into();
        let facts: Vec<BTreeMap<String, String>> = (0..40_usize)
            .map(|host| {
                // Each of 20 settings differs on a few hosts of its own.
                let mut facts: BTreeMap<String, String> =
                    (0..20).map(|key| (format!("other.{key}"), ((host * 7 + key * 5) % 9 / 8).to_string())).collect();
                facts.insert("tcp.rmem.max".into(), if slow.contains(&host) { "65536" } else { "33554432" }.into());
                facts.insert("kernel".into(), "6.18".into());
                facts
            })
            .collect();
        let found = differences(&facts, &slow);
        assert_eq!((&*found[0].key, &*found[0].value), ("tcp.rmem.max", "65536"));
        assert_eq!((found[0].slow, found[0].others), ([4, 4], [0, 36]));
        assert!(found[0].chance < 0.001 && found[1].chance > 0.05, "{found:#?}");
        assert!(found.iter().all(|it| it.key != "kernel"), "all have it");
    }

    /// Four hosts of 40 have a setting that slows a third of their loads: no other setting is as clear, and none where any loads are slow.
    #[test]
    fn a_setting_of_hosts_that_are_slow_on_some_paths_is_first_and_slow_loads_anywhere_accuse_none() {
        let mut noise = crate::blame::tests::seeded(20_261_128);
        let mut below = |most: usize| (noise() * most as f64) as usize;
        let (mut first, mut accused) = (0, 0);
        for _ in 0..40 {
            let changed: BTreeSet<usize> = (0..4).map(|nth| nth * 10 + below(10)).collect();
            let facts: Vec<BTreeMap<String, String>> = (0..40)
                .map(|host| {
                    let mut facts: BTreeMap<String, String> =
                        (0..20).map(|key| (format!("other.{key}"), below(3).to_string())).collect();
                    facts.insert("changed".into(), changed.contains(&host).to_string());
                    facts
                })
                .collect();
            let all: Vec<Load> =
                (0..40).flat_map(|from| (1..9).map(move |stride| Load { from, to: (from + stride) % 40 })).collect();
            let is_slow: Vec<bool> = all
                .iter()
                .map(|it| (changed.contains(&it.from) || changed.contains(&it.to)) && below(3) == 0)
                .collect();
            let anywhere: Vec<bool> = all.iter().map(|_| below(16) == 0).collect();
            let of = |slow: &[bool]| {
                let part = |which: bool| -> Vec<Load> {
                    all.iter().zip(slow).filter(|(_, is)| **is == which).map(|(load, _)| *load).collect()
                };
                differences_of_loads(&facts, &part(true), &part(false))
            };
            let found = of(&is_slow);
            assert!(found[0].slow[0] <= found[0].slow[1] && found[0].slow[1] as usize <= all.len());
            first += usize::from(found[0].key == "changed" && found[0].value == "true" && found[0].chance < 0.05);
            accused += usize::from(of(&anywhere)[0].chance < 0.05);
        }
        assert!(first >= 38 && accused <= 5, "first in {first}, accused in {accused} of 40");
    }

    /// Of 40 hosts three to six have one changed setting among 20 in which hosts differ at random: 60 draws.
    #[test]
    fn the_changed_setting_is_first_in_nearly_all_draws() {
        let mut noise = crate::blame::tests::seeded(20_261_127);
        let mut below = |most: usize| (noise() * most as f64) as usize;
        let mut first = 0;
        for _ in 0..60 {
            let count = 3 + below(4);
            let mut slow = BTreeSet::new();
            while slow.len() < count {
                slow.insert(below(40));
            }
            let mut facts: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); 40];
            for key in 0..20 {
                let values = 2 + below(3);
                facts.iter_mut().for_each(|it| _ = it.insert(format!("other.{key}"), below(values).to_string()));
            }
            for (host, facts) in facts.iter_mut().enumerate() {
                facts.insert("changed".into(), slow.contains(&host).to_string());
            }
            first += usize::from(differences(&facts, &slow)[0].key == "changed");
        }
        assert!(first >= 57, "{first} of 60");
    }
}
