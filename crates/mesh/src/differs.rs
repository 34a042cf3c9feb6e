//! What the slow hosts have in common and the others have not.

use std::collections::{BTreeMap, BTreeSet};

/// A setting that separates slow hosts from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub key: String,
    /// What slow hosts have.
    pub value: String,
    /// How many of the slow hosts have it, and how many of the others.
    pub slow: [u64; 2],
    pub others: [u64; 2],
    /// How often one of so many settings separates any such hosts as well by chance: Fisher's exact test, times the number of values that
    /// were compared (C. E. Bonferroni).
    pub chance: f64,
}

/// The values that slow hosts have more often than others, the clearest first; one value of each key. `facts`: those of each host.
pub fn differences(facts: &[BTreeMap<String, String>], slow: &BTreeSet<usize>) -> Vec<Difference> {
    let mut values: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    let mut known: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (host, facts) in facts.iter().enumerate() {
        let side = usize::from(!slow.contains(&host));
        for (key, value) in facts {
            values.entry((key, value)).or_default()[side] += 1;
            known.entry(key).or_default()[side] += 1;
        }
    }
    // A value that all have separates nobody.
    let telling: Vec<_> =
        values.iter().filter(|((key, _), have)| known.get(key).is_some_and(|of| have != &of)).collect();
    let compared = telling.len() as f64;
    let mut found: Vec<Difference> = telling
        .into_iter()
        .filter_map(|((key, value), have)| {
            let of = known.get(key)?;
            let (slow, others) = ([have[0], of[0]], [have[1], of[1]]);
            let chance = (compared * narrows_stats::more_often(slow, others)?).min(1.0);
            (have[0] > 0).then(|| Difference {
                key: (*key).to_owned(),
                value: (*value).to_owned(),
                slow,
                others,
                chance,
            })
        })
        .collect();
    found.sort_by(|a, b| a.chance.total_cmp(&b.chance).then_with(|| a.key.cmp(&b.key)));
    let mut seen = BTreeSet::new();
    found.retain(|it| seen.insert(it.key.clone()));
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
