//! Which elements lose packets of probes at a low rate.
//!
//! Losses are few, so those of all paths of an element count together: the element whose share of lost packets differs most from that of
//! the others, by the ratio of likelihoods, is taken, then the same of what is left (the scan statistic of M. Kulldorff, 1997).

use crate::Load;
use crate::blame::{Element, Suspect, elements};
use std::collections::BTreeMap;

/// The probes of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    pub load: Load,
    /// What it shares with others: routers, as numbers.
    pub hops: Vec<usize>,
    pub sent: u64,
    pub lost: u64,
}

/// An element that loses packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Losing {
    pub element: Element,
    /// Others with the same paths.
    pub or: Vec<Element>,
    /// Over its paths that nothing before it in the list explains.
    pub sent: u64,
    pub lost: u64,
}

/// Fewer packets are lost anywhere, now and then.
const LEAST: u64 = 3;

/// Share of packets that a whole network loses at least.
const WHOLE: f64 = 0.001;

/// How often losses that are spread evenly may accuse an element.
const CHANCE: f64 = 0.01;

/// The elements that lose packets, the clearest first.
pub fn losing(groups: &[usize], ways: &[Way]) -> Vec<Losing> {
    let mut members: BTreeMap<Element, Vec<usize>> = BTreeMap::new();
    for (at, way) in ways.iter().enumerate() {
        elements(groups, way.load, &way.hops).into_iter().for_each(|it| members.entry(it).or_default().push(at));
    }
    // Wilks (1938): twice the logarithm of the ratio is about a squared normal; of so many elements one reaches it by chance (Bonferroni).
    let least = ((members.len().max(1)) as f64 / CHANCE).ln();
    let mut left: Vec<bool> = vec![true; ways.len()];
    let mut found = Vec::new();
    loop {
        let sum = |of: &mut dyn Iterator<Item = usize>| {
            of.filter(|at| left[*at]).fold((0_u64, 0_u64), |(sent, lost), at| {
                (sent.saturating_add(ways[at].sent), lost.saturating_add(ways[at].lost))
            })
        };
        let all = sum(&mut (0..ways.len()));
        let mut best: Option<(f64, Losing, Vec<usize>)> = None;
        for (element, of) in &members {
            let (sent, lost) = sum(&mut of.iter().copied());
            // Where all paths are of one network it is named if no part of it is, and if it loses more than any does now and then.
            let whole = sent == all.0
                && found.is_empty()
                && matches!(element, Element::Way(..) | Element::Between(..))
                && narrows_stats::wilson(lost, sent, 0.95).is_some_and(|[least, _]| least > WHOLE);
            let differs = if whole { least } else { differs((sent, lost), (all.0 - sent, all.1 - lost)) };
            let of: Vec<usize> = of.iter().copied().filter(|at| left[*at]).collect();
            match &mut best {
                _ if lost < LEAST || differs < least => {}
                Some((_, known, same)) if *same == of => known.or.push(*element),
                Some((most, ..)) if *most >= differs => {}
                _ => best = Some((differs, Losing { element: *element, or: Vec::new(), sent, lost }, of)),
            }
        }
        let Some((_, taken, of)) = best else { return found };
        of.into_iter().for_each(|at| left[at] = false);
        found.push(taken);
    }
}

/// Parts what is slow: suspects that no element which loses packets explains, and the loads of the others, for each such element. A single path
/// and a host on some of its paths are explained where all their loads pass the element, unless that is a whole network: of that too many
/// other loads are well. `ways`: what loads share with others.
pub fn explained(
    groups: &[usize],
    ways: &BTreeMap<[usize; 2], Vec<usize>>,
    losing: &[Losing],
    suspects: Vec<Suspect>,
) -> (Vec<Suspect>, Vec<Vec<Load>>) {
    let passes = |load: &Load, element: &Element| {
        let hops = ways.get(&[load.from, load.to]).map_or(&[][..], Vec::as_slice);
        elements(groups, *load, hops).contains(element)
    };
    let mut of_losing = vec![Vec::new(); losing.len()];
    let mut others = Vec::new();
    for suspect in suspects {
        let is_part = matches!(suspect.element, Element::Pair(..) | Element::Partly(_));
        let explains = |it: &Losing| {
            !matches!(it.element, Element::Way(..) | Element::Between(..))
                && suspect.loads.iter().all(|load| passes(load, &it.element))
        };
        match losing.iter().position(|it| is_part && explains(it)) {
            Some(at) => of_losing[at].extend(suspect.loads),
            None => others.push(suspect),
        }
    }
    (others, of_losing)
}

/// The logarithm of how much likelier two shares are than one for both; 0 where the first is no larger.
fn differs((sent, lost): (u64, u64), (others_sent, others_lost): (u64, u64)) -> f64 {
    let [n, c, m, d] = [sent, lost, others_sent, others_lost].map(|it| it as f64);
    if c * m <= d * n {
        return 0.0;
    }
    let likely = |hits: f64, of: f64| {
        let term = |part: f64| if part > 0.0 { part * (part / of).ln() } else { 0.0 };
        term(hits) + term(of - hits)
    };
    likely(c, n) + likely(d, m) - likely(c + d, n + m)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design;
    use proptest::prelude::*;

    /// Probes of all pairs, where an element loses a share of them; `noise`: from 0 to 1.
    fn probed(groups: &[usize], bad: &[(Element, f64)], mut noise: impl FnMut() -> f64) -> Vec<Way> {
        let pairs = design::pairs(groups);
        let loads = pairs.iter().flat_map(|[a, b]| [Load { from: *a, to: *b }, Load { from: *b, to: *a }]);
        loads
            .map(|load| {
                let on_way = elements(groups, load, &[]);
                let share: f64 = bad.iter().filter(|(it, _)| on_way.contains(it)).map(|(_, share)| share).sum();
                let lost = (0..100).filter(|_| noise() < share).count() as u64;
                Way { load, hops: Vec::new(), sent: 100, lost }
            })
            .collect()
    }

    #[test]
    fn each_kind_of_element_is_named_alone() {
        let groups: Vec<usize> = (0..24).map(|host| host % 2).collect();
        let [a, b] = design::pairs(&groups)[7];
        for (element, share) in [
            (Element::Host(3), 0.02),
            (Element::Sends(4), 0.05),
            (Element::Receives(5), 0.05),
            (Element::Way(0, 1), 0.02),
            (Element::Pair(a, b), 0.2),
        ] {
            let found = losing(&groups, &probed(&groups, &[(element, share)], crate::blame::tests::seeded(7)));
            let named: Vec<Element> = found.iter().map(|it| it.element).collect();
            assert_eq!(named, [element], "{found:?}");
        }
        assert!(losing(&groups, &probed(&groups, &[], || 1.0)).is_empty());
    }

    #[test]
    fn two_lossy_hosts_are_two_elements() {
        let groups = [0; 12];
        let bad = [(Element::Host(2), 0.03), (Element::Sends(9), 0.1)];
        let found = losing(&groups, &probed(&groups, &bad, crate::blame::tests::seeded(9)));
        let mut named: Vec<Element> = found.iter().map(|it| it.element).collect();
        named.sort_unstable();
        assert_eq!(named, [Element::Host(2), Element::Sends(9)], "{found:?}");
    }

    proptest! {
        /// Losses that all paths have alike accuse nobody.
        #[test]
        fn even_losses_accuse_nobody(seed in 1..u64::MAX, hosts in 4..20_usize) {
            let groups: Vec<usize> = (0..hosts).map(|host| host % 2).collect();
            let pairs = probed(&groups, &[], || 1.0);
            let mut noise = crate::blame::tests::seeded(seed);
            let even = pairs.into_iter().map(|way| Way { lost: (0..100).filter(|_| noise() < 0.01).count() as u64, ..way });
            let found = losing(&groups, &even.collect::<Vec<_>>());
            prop_assert!(found.len() <= 1, "{:?}", found);
        }
    }
}
