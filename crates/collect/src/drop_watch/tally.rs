//! Counts in place: a sample increments a counter and is not kept.

use super::format::Layout;
use narrows_sys::drops::Dropped;
use narrows_sys::perf::Hits;
use narrows_sys::{Result, files};
use std::collections::BTreeMap;
use std::path::Path;

/// The kernel's own reasons are below this; those of subsystems go into a map.
const CORE: usize = 512;
/// Maximum number of distinct subsystem reasons.
const OTHERS_MAX: usize = 64;
/// Maximum number of distinct kernel addresses, for drops without a reason.
const PLACES_MAX: usize = 16;
/// `SKB_DROP_REASON_NOT_SPECIFIED`, the same in every kernel that has it.
const NOT_SPECIFIED: u32 = 2;

#[derive(Debug)]
pub(super) struct Tally {
    core: Vec<u64>,
    others: BTreeMap<u32, u64>,
    places: BTreeMap<u64, u64>,
    /// Records that the rings reported as lost.
    pub(super) missed: u64,
    /// Drops that happened during the watch.
    pub(super) watched: u64,
    /// Of these, drops without a counted reason.
    pub(super) lost: u64,
    /// Drops in other network namespaces, where these are only those of one.
    pub(super) elsewhere: Option<u64>,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            core: vec![0; CORE],
            others: BTreeMap::new(),
            places: BTreeMap::new(),
            missed: 0,
            watched: 0,
            lost: 0,
            elsewhere: None,
        }
    }
}

fn add<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, n: u64, most: usize) {
    let room = map.len() < most;
    match map.get_mut(&key) {
        Some(count) => *count = count.saturating_add(n),
        None if room => drop(map.insert(key, n)),
        None => {}
    }
}

impl Tally {
    pub(super) fn take(&mut self, layout: Layout, data: &[u8]) {
        let Some(reason) = layout.reason.of(data).and_then(|reason| u32::try_from(reason).ok()) else {
            return; // a sample without its reason counts as lost
        };
        self.add(reason, layout.location.and_then(|field| field.of(data)), 1);
    }

    fn add(&mut self, reason: u32, place: Option<u64>, n: u64) {
        match self.core.get_mut(reason as usize) {
            Some(count) => *count = count.saturating_add(n),
            None => add(&mut self.others, reason, n, OTHERS_MAX),
        }
        if let Some(place) = place.filter(|_| reason == NOT_SPECIFIED) {
            add(&mut self.places, place, n, PLACES_MAX);
        }
    }

    /// What was counted of one network namespace.
    pub(super) fn of(dropped: Dropped) -> Self {
        let mut tally = Self { elsewhere: Some(dropped.elsewhere), ..Self::default() };
        for (reason, place, n) in dropped.here {
            tally.add(reason, Some(place), n);
            tally.watched = tally.watched.saturating_add(n);
        }
        tally.watched = tally.watched.saturating_add(dropped.uncounted);
        tally.lost = tally.watched.saturating_sub(tally.counted());
        tally
    }

    fn counted(&self) -> u64 {
        self.core.iter().chain(self.others.values()).fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Subtracts what was counted from the kernel's total.
    pub(super) fn close(&mut self, rings: impl Iterator<Item = Result<Hits>>) {
        let happened = rings
            .map(|hits| hits.ok().map(|hits| hits.happened))
            .try_fold(0_u64, |sum, ring| Some(sum.saturating_add(ring?)));
        let counted = self.counted();
        self.watched = happened.unwrap_or(counted.saturating_add(self.missed)).max(counted);
        self.lost = self.watched - counted;
    }

    /// The reasons that were seen.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let core = (0_u32..).zip(&self.core).map(|(reason, n)| (reason, *n));
        core.chain(self.others.iter().map(|(reason, n)| (*reason, *n))).filter(|(_, n)| *n > 0)
    }

    /// The kernel functions that dropped without giving a reason.
    pub(super) fn functions(&self) -> BTreeMap<String, u64> {
        if self.places.is_empty() {
            return BTreeMap::new();
        }
        let symbols = files::read(Path::new("/proc/kallsyms"), 64 << 20).unwrap_or_default();
        resolve(&self.places, &String::from_utf8_lossy(&symbols))
    }
}

/// The function that contains each address; `unknown` if the symbols do not show it (without root all are zero).
fn resolve(places: &BTreeMap<u64, u64>, symbols: &str) -> BTreeMap<String, u64> {
    let mut nearest: BTreeMap<u64, (u64, &str)> = places.keys().map(|place| (*place, (0, "unknown"))).collect();
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()).filter(|address| *address > 0);
        let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (address, words.next(), words.next()) else {
            continue;
        };
        for (_, best) in nearest.range_mut(address..) {
            if address >= best.0 {
                *best = (address, name);
            }
        }
    }
    let mut functions = BTreeMap::new();
    for (place, count) in places {
        let name = nearest.get(place).map_or("unknown", |(_, name)| name);
        let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "._".contains(*c)).take(64).collect();
        *functions.entry(plain).or_insert(0) += count;
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::super::format::Format;
    use super::*;

    fn layout() -> Layout {
        let text =
            "ID: 1\nfield:void * location; offset:0; size:8;\nfield:enum skb_drop_reason reason; offset:8; size:4;\n";
        Format::parse(text).expect("a description").layout
    }

    fn sample(place: u64, reason: u32) -> Vec<u8> {
        [place.to_ne_bytes().as_slice(), &reason.to_ne_bytes()].concat()
    }

    #[test]
    fn uncounted_drops_are_lost() {
        let mut tally = Tally::default();
        for (place, reason) in [(1, 6), (1, 6), (70, 2), (1, 3 << 16 | 5)] {
            tally.take(layout(), &sample(place, reason));
        }
        tally.take(layout(), &[0; 9]);
        tally.close([Ok(Hits { happened: 7, lost: Some(3) })].into_iter());
        assert_eq!(tally.reasons().collect::<Vec<_>>(), [(2, 1), (6, 2), (196_613, 1)]);
        assert_eq!((tally.watched, tally.lost), (7, 3));
    }

    #[test]
    fn without_the_kernels_count_the_ring_reports_losses() {
        let mut tally = Tally { missed: 4, ..Tally::default() };
        tally.take(layout(), &sample(1, 6));
        tally.close([Err(narrows_sys::Error::new("read", "x", std::io::Error::other("no")))].into_iter());
        assert_eq!((tally.watched, tally.lost), (5, 4));
    }

    #[test]
    fn the_number_of_subsystem_reasons_is_bounded() {
        let mut tally = Tally::default();
        for reason in 0..1000_u32 {
            tally.take(layout(), &sample(u64::from(reason), 1 << 16 | reason));
            tally.take(layout(), &sample(u64::from(reason), 2));
        }
        tally.close([Ok(Hits { happened: 2000, lost: None })].into_iter());
        assert_eq!((tally.others.len(), tally.places.len()), (OTHERS_MAX, PLACES_MAX));
        assert_eq!(tally.lost, 2000 - 1000 - 64);
    }

    #[test]
    fn drops_of_one_namespace_are_counted_apart_from_those_of_others() {
        let here = vec![(6, 0, 40), (2, 70, 3), (3 << 16 | 5, 0, 1)];
        let tally = Tally::of(Dropped { here, uncounted: 2, elsewhere: 900 });
        assert_eq!(tally.reasons().collect::<Vec<_>>(), [(2, 3), (6, 40), (196_613, 1)]);
        assert_eq!((tally.watched, tally.lost, tally.elsewhere), (46, 2, Some(900)));
        assert_eq!(tally.places, BTreeMap::from([(70, 3)]));
    }

    #[test]
    fn an_address_belongs_to_the_symbol_before_it() {
        let symbols = "ffff10 T first\nffff20 d data\nffff30 t second.cold\n0 T hidden\nodd\n";
        let places = BTreeMap::from([(0x00ff_ff25, 2), (0x00ff_ff30, 1), (0x05, 4)]);
        let found = resolve(&places, symbols);
        assert_eq!(found, BTreeMap::from([("first".into(), 2), ("second.cold".into(), 1), ("unknown".into(), 4)]));
    }
}
