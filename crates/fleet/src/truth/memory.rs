//! The tests of a fleet in memory, for simulations.

use super::{DAYS_KEPT_MS, Due, Ended, Lease, NOTES_MAX, Note, Point, Taken, Truth, day_of};
use crate::schedule::{Name, Planned};
use narrows_mesh::Load;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// All in memory, for simulations.
#[derive(Debug, Default)]
pub struct Memory {
    tests: BTreeMap<Name, Kept>,
    /// Those that are not over, by mesh, test and the time they are due.
    open: BTreeSet<(usize, usize, u64, Name)>,
    /// By mesh, test, path and day.
    days: BTreeMap<(usize, usize, Load, u64), Point>,
    notes: Vec<Note>,
    leader: Option<(String, u64)>,
    state: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Kept {
    due_ms: u64,
    lease: Option<Lease>,
    end: Option<End>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Result(Vec<u8>),
    Missed,
}

impl Memory {
    /// When each test was due and how it ended; `None`: it is not over.
    pub fn ends(&self) -> impl Iterator<Item = (Name, u64, Option<&End>)> {
        self.tests.iter().map(|(name, kept)| (*name, kept.due_ms, kept.end.as_ref()))
    }

    fn close(&mut self, name: Name, end: End) {
        if let Some(kept) = self.tests.get_mut(&name) {
            kept.end = Some(end);
            self.open.remove(&(name.mesh, name.test, kept.due_ms, name));
        }
    }
}

impl Truth for Memory {
    type Error = std::convert::Infallible;

    fn plan(&mut self, tests: &[Planned]) -> Result<usize, Self::Error> {
        let before = self.tests.len();
        for test in tests {
            let name = test.name;
            self.tests.entry(name).or_insert_with(|| {
                self.open.insert((name.mesh, name.test, test.due_ms, name));
                Kept { due_ms: test.due_ms, ..Kept::default() }
            });
        }
        Ok(self.tests.len() - before)
    }

    fn planned(&mut self) -> Result<Option<u64>, Self::Error> {
        Ok(self.tests.values().map(|kept| kept.due_ms).max())
    }

    fn lease(&mut self, names: &[Name], now_ms: u64, until_ms: u64) -> Result<Vec<Option<Lease>>, Self::Error> {
        let give = |name: &Name| {
            let is_free = |kept: &&mut Kept| kept.end.is_none() && kept.lease.is_none_or(|it| it.until_ms <= now_ms);
            let kept = self.tests.get_mut(name).filter(is_free)?;
            let fence = kept.lease.map_or(1, |it| it.fence + 1);
            Some(*kept.lease.insert(Lease { name: *name, fence, until_ms }))
        };
        Ok(names.iter().map(give).collect())
    }

    fn end(&mut self, results: &[(Lease, Vec<u8>)]) -> Result<Vec<Taken>, Self::Error> {
        let end = |(lease, result): &(Lease, Vec<u8>)| {
            let Some(kept) = self.tests.get(&lease.name) else { return Taken::TooLate };
            let is_newest = kept.lease.is_some_and(|it| it.fence == lease.fence);
            match &kept.end {
                Some(End::Result(_)) if is_newest => Taken::Again,
                None if is_newest => {
                    self.close(lease.name, End::Result(result.clone()));
                    Taken::Stored
                }
                _ => Taken::TooLate,
            }
        };
        Ok(results.iter().map(end).collect())
    }

    fn miss(&mut self, mesh: usize, test: usize, due_before_ms: u64, now_ms: u64) -> Result<Vec<Name>, Self::Error> {
        let is_free = |name: &Name| self.tests[name].lease.is_none_or(|lease| lease.until_ms <= now_ms);
        let of_test = self.open.range((mesh, test, 0, FIRST)..);
        let late = of_test.take_while(|(m, t, due_ms, _)| (*m, *t) == (mesh, test) && *due_ms < due_before_ms);
        let names: Vec<Name> = late.filter(|(.., name)| is_free(name)).map(|(.., name)| *name).collect();
        names.iter().for_each(|name| self.close(*name, End::Missed));
        Ok(names)
    }

    fn miss_all(&mut self, due_before_ms: u64, now_ms: u64) -> Result<(), Self::Error> {
        let places: BTreeSet<(usize, usize)> = self.open.iter().map(|(mesh, test, ..)| (*mesh, *test)).collect();
        for (mesh, test) in places {
            self.miss(mesh, test, due_before_ms, now_ms)?;
        }
        Ok(())
    }

    fn reopen(&mut self, now_ms: u64) -> Result<(), Self::Error> {
        let is = |kept: &Kept| kept.due_ms > now_ms && kept.end == Some(End::Missed);
        for (name, kept) in self.tests.iter_mut().filter(|(_, kept)| is(kept)) {
            kept.end = None;
            kept.lease = kept.lease.map(|lease| Lease { until_ms: 0, ..lease });
            self.open.insert((name.mesh, name.test, kept.due_ms, *name));
        }
        Ok(())
    }

    fn open(&mut self, due_ms: RangeInclusive<u64>) -> Result<Vec<(Planned, Option<Lease>)>, Self::Error> {
        let is = |(.., at_ms, _): &&(usize, usize, u64, Name)| due_ms.contains(at_ms);
        let open = |(.., due_ms, name): &(usize, usize, u64, Name)| {
            (Planned { due_ms: *due_ms, name: *name }, self.tests[name].lease)
        };
        let mut found: Vec<_> = self.open.iter().filter(is).map(open).collect();
        found.sort_by_key(|(planned, _)| *planned);
        Ok(found)
    }

    fn results(&mut self, mesh: usize, test: usize, due_ms: RangeInclusive<u64>) -> Result<Vec<Ended>, Self::Error> {
        let is_due = |kept: &Kept| due_ms.contains(&kept.due_ms);
        let of = |(name, kept): &(&Name, &Kept)| (name.mesh, name.test) == (mesh, test) && is_due(kept);
        let result = |(name, kept): (&Name, &Kept)| match &kept.end {
            Some(End::Result(result)) => Some((kept.due_ms, *name, result.clone())),
            _ => None,
        };
        let mut found: Vec<_> = self.tests.iter().filter(of).filter_map(result).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn days(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Point>, Self::Error> {
        let days = self.days.range((mesh, test, load, day_of(since_ms))..=(mesh, test, load, u64::MAX));
        Ok(days.map(|(_, point)| point.clone()).collect())
    }

    fn series(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Due>, Self::Error> {
        let is = |name: &Name| (name.mesh, name.test, name.load) == (mesh, test, load);
        let ended = self.tests.iter().filter(|(name, kept)| is(name) && kept.due_ms >= since_ms);
        let due = |(_, kept): (&Name, &Kept)| match kept.end.as_ref()? {
            End::Result(result) => Some((kept.due_ms, Some(result.clone()))),
            End::Missed => Some((kept.due_ms, None)),
        };
        let mut found: Vec<Due> = ended.filter_map(due).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn fold(&mut self, before_ms: u64, most: usize) -> Result<usize, Self::Error> {
        let old = self.tests.iter().filter(|(_, kept)| kept.due_ms < before_ms).map(|(name, _)| *name);
        let old: Vec<Name> = old.take(most).collect();
        for name in &old {
            let Some(Kept { due_ms, end, .. }) = self.tests.remove(name) else { continue };
            self.open.remove(&(name.mesh, name.test, due_ms, *name));
            let Some(end) = end else { continue };
            let point = Point::of(due_ms, if let End::Result(result) = &end { Some(result) } else { None });
            if point.tests == 0 {
                continue;
            }
            let point = Point { due_ms: day_of(due_ms), ..point };
            let day = self.days.entry((name.mesh, name.test, name.load, point.due_ms));
            day.and_modify(|day| *day = day.and(&point)).or_insert(point);
        }
        let oldest_ms = before_ms.saturating_sub(DAYS_KEPT_MS);
        self.days.retain(|(.., day), _| *day >= oldest_ms);
        self.notes.retain(|(at_ms, ..)| *at_ms >= oldest_ms);
        Ok(old.len())
    }

    fn note(&mut self, host: usize, at_ms: u64, says: &[String]) -> Result<(), Self::Error> {
        self.notes.extend(says.iter().map(|says| (at_ms, host, says.clone())));
        Ok(())
    }

    fn notes(&mut self, hosts: [usize; 2], since_ms: u64) -> Result<Vec<Note>, Self::Error> {
        let is = |(at_ms, host, _): &&Note| *at_ms >= since_ms && hosts.contains(host);
        let mut found: Vec<Note> = self.notes.iter().filter(is).cloned().collect();
        found.sort_by_key(|(at_ms, ..)| *at_ms);
        found.drain(..found.len().saturating_sub(NOTES_MAX));
        Ok(found)
    }

    fn lead(&mut self, controller: &str, now_ms: u64, until_ms: u64) -> Result<bool, Self::Error> {
        let is_free = self.leader.as_ref().is_none_or(|(who, until_ms)| who == controller || *until_ms <= now_ms);
        if is_free {
            self.leader = Some((controller.to_owned(), until_ms));
        }
        Ok(is_free)
    }

    fn keep(&mut self, state: &[u8]) -> Result<(), Self::Error> {
        self.state = Some(state.to_vec());
        Ok(())
    }

    fn kept(&mut self) -> Result<Option<Vec<u8>>, Self::Error> {
        Ok(self.state.clone())
    }
}

/// Before all other names.
const FIRST: Name = Name { mesh: 0, test: 0, slot: 0, load: Load { from: 0, to: 0 } };

#[cfg(test)]
mod tests {
    use super::super::conforms;
    use super::*;

    #[test]
    fn memory_conforms() {
        conforms(&mut Memory::default());
    }

    /// A small generator (xorshift64, G. Marsaglia 2003), so that a failure can be repeated.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % most
        }
    }

    /// Agents die and come back, their words are lost, repeated and late; the controller plans again and again.
    #[test]
    fn whatever_is_lost_or_repeated_each_test_ends_once() {
        for seed in 1..40 {
            let (mut random, mut truth) = (Random(seed), Memory::default());
            let planned: Vec<Planned> = (0..200)
                .map(|nth| Planned {
                    due_ms: nth * 50,
                    name: Name { mesh: 0, test: 0, slot: nth, load: Load { from: (nth % 5) as usize, to: 9 } },
                })
                .collect();
            let mut on_the_way: Vec<(u64, Lease)> = Vec::new();
            let mut stored: BTreeMap<Name, u32> = BTreeMap::new();
            let mut missed = BTreeSet::new();
            for now in (0..40_000).step_by(20) {
                let some = random.below(200) as usize;
                truth.plan(&planned[..some]).expect("planned");
                let from = random.below(200) as usize;
                let due = planned.iter().skip(from).filter(|it| it.due_ms <= now).map(|it| it.name);
                let names: Vec<Name> = due.take(3).collect();
                for lease in truth.lease(&names, now, now + 300).expect("leases").into_iter().flatten() {
                    // Lost, in time, late, or twice.
                    match random.below(4) {
                        0 => {}
                        1 => on_the_way.push((now + random.below(250), lease)),
                        2 => on_the_way.push((now + 300 + random.below(2_000), lease)),
                        _ => on_the_way.extend([(now + 100, lease), (now + random.below(900), lease)]),
                    }
                }
                on_the_way.retain(|(at, lease)| {
                    if *at > now {
                        return true;
                    }
                    if truth.end(&[(*lease, b"it".to_vec())]).expect("an end") == [Taken::Stored] {
                        *stored.entry(lease.name).or_default() += 1;
                    }
                    false
                });
                missed.extend(truth.miss(0, 0, now.saturating_sub(5_000), now).expect("missed"));
            }
            truth.plan(&planned).expect("planned");
            missed.extend(truth.miss(0, 0, 60_000, 60_000).expect("missed"));
            assert!(stored.values().all(|times| *times == 1), "seed {seed}");
            assert!(stored.keys().all(|name| !missed.contains(name)), "seed {seed}");
            assert_eq!((stored.len() + missed.len(), truth.ends().count()), (200, 200), "seed {seed}");
            assert!(truth.ends().all(|(.., end)| end.is_some()), "seed {seed}");
        }
    }
}
