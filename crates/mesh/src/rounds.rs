//! Which pairs are loaded at the same time: no host is in two loads of a round, and no hop in more loads than may be.
//!
//! Pairs are coloured so that those of a host differ; a colour is a round in each direction. All pairs of n hosts take n - 1 colours (n
//! where n is odd) by the circle method of tournaments; any other pairs take at most one more than the busiest host has (V. G. Vizing,
//! 1964), by the algorithm of J. Misra and D. Gries, *A constructive proof of Vizing's theorem*, Information Processing Letters 41, 1992.

use crate::Load;
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// The loads of each round. `hops`: what a load shares with others, such as the routers on its path; no round has more than `concurrent`
/// loads over one of them.
pub fn rounds<'a>(
    hosts: usize,
    pairs: &[[usize; 2]],
    hops: impl Fn(Load) -> &'a [usize],
    concurrent: usize,
) -> Vec<Vec<Load>> {
    let mut colours: BTreeMap<u32, Vec<[usize; 2]>> = BTreeMap::new();
    for (pair, colour) in pairs.iter().zip(colours_of(hosts, pairs)) {
        colours.entry(colour).or_default().push(*pair);
    }
    let both = colours.values().flat_map(|pairs| {
        let there = pairs.iter().map(|[a, b]| Load { from: *a, to: *b });
        let back = pairs.iter().map(|[a, b]| Load { from: *b, to: *a });
        [there.collect::<Vec<_>>(), back.collect()]
    });
    both.flat_map(|loads| split(loads, &hops, concurrent.max(1))).collect()
}

/// A round in parts, each of which shares no hop too often: the first part with room takes a load.
fn split<'a>(loads: Vec<Load>, hops: &impl Fn(Load) -> &'a [usize], concurrent: usize) -> Vec<Vec<Load>> {
    let mut parts: Vec<(Vec<Load>, BTreeMap<usize, usize>)> = Vec::new();
    for load in loads {
        let shared = hops(load);
        let has_room = |used: &BTreeMap<usize, usize>| {
            shared.iter().all(|hop| used.get(hop).is_none_or(|count| *count < concurrent))
        };
        let at = parts.iter().position(|(_, used)| has_room(used)).unwrap_or_else(|| {
            parts.push(Default::default());
            parts.len() - 1
        });
        let (part, used) = &mut parts[at];
        part.push(load);
        shared.iter().for_each(|hop| *used.entry(*hop).or_default() += 1);
    }
    parts.into_iter().map(|(part, _)| part).collect()
}

/// A colour for each pair; two pairs of one host differ.
fn colours_of(hosts: usize, pairs: &[[usize; 2]]) -> Vec<u32> {
    if pairs.len() == hosts * hosts.saturating_sub(1) / 2 {
        return pairs.iter().map(|pair| circle(hosts, *pair)).collect();
    }
    let mut degree = vec![0; hosts];
    pairs.iter().flatten().for_each(|host| degree[*host] += 1);
    let mut colouring = Colouring::new(hosts, degree.into_iter().max().unwrap_or(0) + 1, pairs);
    (0..pairs.len()).for_each(|edge| colouring.colour(edge));
    colouring.of
}

/// All hosts but the last sit on a circle; a round pairs those of which the numbers have one sum, and the last with whom that leaves.
fn circle(hosts: usize, [a, b]: [usize; 2]) -> u32 {
    let seats = if hosts.is_multiple_of(2) { hosts - 1 } else { hosts };
    let sum = match (a == seats, b == seats) {
        (true, _) => 2 * b,
        (_, true) => 2 * a,
        _ => a + b,
    };
    u32::try_from(sum % seats).unwrap_or(NONE)
}

/// A colouring that grows by an edge at a time.
struct Colouring<'a> {
    colours: usize,
    edges: &'a [[usize; 2]],
    /// The colour of each edge.
    of: Vec<u32>,
    /// The edge of each colour at each host.
    at: Vec<u32>,
}

impl<'a> Colouring<'a> {
    fn new(hosts: usize, colours: usize, edges: &'a [[usize; 2]]) -> Self {
        Self { colours, edges, of: vec![NONE; edges.len()], at: vec![NONE; hosts * colours] }
    }

    fn edge_at(&self, host: usize, colour: u32) -> Option<usize> {
        let edge = self.at[host * self.colours + colour as usize];
        (edge != NONE).then_some(edge as usize)
    }

    fn is_free(&self, host: usize, colour: u32) -> bool {
        self.edge_at(host, colour).is_none()
    }

    fn free(&self, host: usize) -> u32 {
        (0..self.colours as u32).find(|colour| self.is_free(host, *colour)).unwrap_or(0)
    }

    fn other(&self, edge: usize, host: usize) -> usize {
        let [a, b] = self.edges[edge];
        if a == host { b } else { a }
    }

    fn set(&mut self, edge: usize, colour: u32) {
        for host in self.edges[edge] {
            self.at[host * self.colours + colour as usize] = edge as u32;
        }
        self.of[edge] = colour;
    }

    fn clear(&mut self, edge: usize) {
        let colour = std::mem::replace(&mut self.of[edge], NONE);
        for host in self.edges[edge] {
            self.at[host * self.colours + colour as usize] = NONE;
        }
    }

    fn colour(&mut self, edge: usize) {
        let centre = self.edges[edge][0];
        let fan = self.fan(edge, centre);
        let (own, wanted) = (self.free(centre), fan.last().map_or(0, |last| self.free(self.other(*last, centre))));
        self.invert(centre, [wanted, own]);
        // The first of the fan, as it is now, that may take the colour.
        let mut upto = 0;
        while !self.is_free(self.other(fan[upto], centre), wanted) {
            upto += 1;
        }
        let shifted: Vec<u32> = fan[1..=upto].iter().map(|edge| self.of[*edge]).chain([wanted]).collect();
        fan[1..=upto].iter().for_each(|edge| self.clear(*edge));
        fan[..=upto].iter().zip(shifted).for_each(|(edge, colour)| self.set(*edge, colour));
    }

    /// Edges of a host from one without a colour on: the colour of each is free at the far end of the one before it.
    fn fan(&self, edge: usize, centre: usize) -> Vec<usize> {
        let mut fan = vec![edge];
        let mut end = self.other(edge, centre);
        let next = |end: usize, fan: &[usize]| {
            let own = (0..self.colours as u32).filter(|colour| self.is_free(end, *colour));
            own.filter_map(|colour| self.edge_at(centre, colour)).find(|edge| !fan.contains(edge))
        };
        while let Some(edge) = next(end, &fan) {
            end = self.other(edge, centre);
            fan.push(edge);
        }
        fan
    }

    /// Swaps two colours on the path that begins at a host with the first of them.
    fn invert(&mut self, from: usize, [first, second]: [u32; 2]) {
        let (mut host, mut turn, mut path) = (from, [first, second], Vec::new());
        while let Some(edge) = self.edge_at(host, turn[0]).filter(|_| first != second) {
            path.push((edge, turn[1]));
            host = self.other(edge, host);
            turn.swap(0, 1);
        }
        path.iter().for_each(|(edge, _)| self.clear(*edge));
        path.iter().for_each(|(edge, colour)| self.set(*edge, *colour));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn all(hosts: usize) -> Vec<[usize; 2]> {
        (0..hosts).flat_map(|a| (a + 1..hosts).map(move |b| [a, b])).collect()
    }

    fn check(hosts: usize, pairs: &[[usize; 2]], rounds: &[Vec<Load>]) {
        let mut seen = BTreeSet::new();
        for round in rounds {
            let mut busy = vec![false; hosts];
            for load in round {
                assert!(!busy[load.from] && !busy[load.to], "{round:?}");
                (busy[load.from], busy[load.to]) = (true, true);
                assert!(seen.insert(*load), "{load:?} twice");
            }
        }
        assert_eq!(seen.len(), 2 * pairs.len());
    }

    #[test]
    fn all_pairs_take_as_many_rounds_as_a_tournament() {
        for hosts in 2..=17 {
            let rounds = rounds(hosts, &all(hosts), |_| &[], 1);
            check(hosts, &all(hosts), &rounds);
            assert_eq!(rounds.len(), 2 * if hosts % 2 == 0 { hosts - 1 } else { hosts });
        }
    }

    #[test]
    fn a_hop_that_loads_share_is_in_no_more_of_them_than_may_be() {
        // Three hosts on either side of one trunk.
        let pairs: Vec<[usize; 2]> = (0..3).flat_map(|a| (3..6).map(move |b| [a, b])).collect();
        let rounds = rounds(6, &pairs, |_| &[7], 2);
        check(6, &pairs, &rounds);
        assert!(rounds.iter().all(|round| round.len() <= 2));
        assert_eq!(rounds.len(), 12, "three colours of three loads, each way in two parts");
    }

    proptest! {
        #[test]
        fn any_pairs_take_at_most_one_round_more_than_the_busiest_host_has(
            hosts in 2..24_usize, picked in proptest::collection::vec(any::<bool>(), 276)
        ) {
            let pairs: Vec<[usize; 2]> = all(hosts).into_iter().zip(picked).filter_map(|(pair, is)| is.then_some(pair)).collect();
            let rounds = rounds(hosts, &pairs, |_| &[], 1);
            check(hosts, &pairs, &rounds);
            let busiest = (0..hosts).map(|host| pairs.iter().filter(|pair| pair.contains(&host)).count()).max().unwrap_or(0);
            prop_assert!(rounds.len() <= 2 * (busiest + 1));
        }
    }
}
