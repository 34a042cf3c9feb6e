//! What is known of planned tests: each is made once, or named as missed.
//!
//! A transport may lose, repeat, delay and reorder what agents and the controller say to each other. What decides is here: a test has one
//! name, a lease with a number that only grows (a fencing token), and one end. A result counts once, and only with the newest lease, so an
//! agent that was away for long overwrites nothing (M. Kleppmann, *How to do distributed locking*, 2016).

use crate::schedule::{Name, Planned};
use narrows_mesh::Load;
use std::collections::{BTreeMap, BTreeSet};

/// The right to make a test, until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub name: Name,
    /// Larger than that of any lease of this test before.
    pub fence: u64,
    pub until_ms: u64,
}

/// How a result was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Stored,
    /// It is there already.
    Again,
    /// Another lease was given since, or the test was named as missed: it does not count.
    TooLate,
}

/// Where tests and their ends are kept. A store implements it on its tables, with the same answers.
pub trait Truth {
    type Error;

    /// Writes down tests; what is known of those that are there already stays. How many are new.
    /// Errors: the store's.
    fn plan(&mut self, tests: &[Planned]) -> Result<usize, Self::Error>;

    /// The latest time at which a test that was written down is due.
    /// Errors: the store's.
    fn planned(&mut self) -> Result<Option<u64>, Self::Error>;

    /// Gives these tests, in their order; `None`: somebody has it, it is over, or it was never planned.
    /// Errors: the store's.
    fn lease(&mut self, names: &[Name], now_ms: u64, until_ms: u64) -> Result<Vec<Option<Lease>>, Self::Error>;

    /// Stores a result.
    /// Errors: the store's.
    fn end(&mut self, lease: &Lease, result: &[u8]) -> Result<Taken, Self::Error>;

    /// Names as missed what of a test was due before a time and is in nobody's hands now.
    /// Errors: the store's.
    fn miss(&mut self, mesh: usize, test: usize, due_before_ms: u64, now_ms: u64) -> Result<Vec<Name>, Self::Error>;

    /// The results of a test that was due since a time, in the order of that.
    /// Errors: the store's.
    fn results(&mut self, mesh: usize, test: usize, since_ms: u64) -> Result<Vec<(Name, Vec<u8>)>, Self::Error>;

    /// Keeps what a controller knows beside tests, instead of what it kept before.
    /// Errors: the store's.
    fn keep(&mut self, state: &[u8]) -> Result<(), Self::Error>;

    /// What was kept last.
    /// Errors: the store's.
    fn kept(&mut self) -> Result<Option<Vec<u8>>, Self::Error>;
}

/// All in memory, for simulations.
#[derive(Debug, Default)]
pub struct Memory {
    tests: BTreeMap<Name, Kept>,
    /// Those that are not over, by mesh, test and the time they are due.
    open: BTreeSet<(usize, usize, u64, Name)>,
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

    fn end(&mut self, lease: &Lease, result: &[u8]) -> Result<Taken, Self::Error> {
        let Some(kept) = self.tests.get(&lease.name) else { return Ok(Taken::TooLate) };
        let is_newest = kept.lease.is_some_and(|it| it.fence == lease.fence);
        Ok(match &kept.end {
            Some(End::Result(_)) if is_newest => Taken::Again,
            None if is_newest => {
                self.close(lease.name, End::Result(result.to_vec()));
                Taken::Stored
            }
            _ => Taken::TooLate,
        })
    }

    fn miss(&mut self, mesh: usize, test: usize, due_before_ms: u64, now_ms: u64) -> Result<Vec<Name>, Self::Error> {
        let is_free = |name: &Name| self.tests[name].lease.is_none_or(|lease| lease.until_ms <= now_ms);
        let of_test = self.open.range((mesh, test, 0, FIRST)..);
        let late = of_test.take_while(|(m, t, due_ms, _)| (*m, *t) == (mesh, test) && *due_ms < due_before_ms);
        let names: Vec<Name> = late.filter(|(.., name)| is_free(name)).map(|(.., name)| *name).collect();
        names.iter().for_each(|name| self.close(*name, End::Missed));
        Ok(names)
    }

    fn results(&mut self, mesh: usize, test: usize, since_ms: u64) -> Result<Vec<(Name, Vec<u8>)>, Self::Error> {
        let of = |(name, kept): &(&Name, &Kept)| (name.mesh, name.test) == (mesh, test) && kept.due_ms >= since_ms;
        let result = |(name, kept): (&Name, &Kept)| match &kept.end {
            Some(End::Result(result)) => Some((kept.due_ms, *name, result.clone())),
            _ => None,
        };
        let mut found: Vec<_> = self.tests.iter().filter(of).filter_map(result).collect();
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, name, result)| (name, result)).collect())
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

/// A fleet for [`conforms`].
#[cfg(any(test, feature = "conformance"))]
pub fn of_ten_hosts() -> crate::plan::Fleet {
    let hosts: String = (0..10).map(|nth| format!("hosts.h{nth} = {{}}\n")).collect();
    let test = "[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
    crate::plan::Fleet::read(&format!("name = 'ten'\n{hosts}{test}")).expect("a fleet")
}

/// What every implementation answers for [`of_ten_hosts`]; fails where one does otherwise.
#[cfg(any(test, feature = "conformance"))]
pub fn conforms<T: Truth<Error: std::fmt::Debug>>(truth: &mut T) {
    let planned = |due_ms: u64, from: usize, slot: u64| Planned {
        due_ms,
        name: Name { mesh: 0, test: 0, slot, load: Load { from, to: 9 } },
    };
    let tests = [planned(100, 1, 1), planned(200, 1, 2), planned(100, 2, 1)];
    assert_eq!(truth.planned().expect("a time"), None);
    assert_eq!(truth.plan(&tests).expect("planned"), 3);
    assert_eq!(truth.planned().expect("a time"), Some(200));
    assert_eq!(truth.plan(&[tests[0], planned(900, 1, 1)]).expect("planned"), 0, "a name is planned once");
    let names = tests.map(|it| it.name);
    let lease = |truth: &mut T, names: &[Name], now, until| truth.lease(names, now, until).expect("leases");
    let unknown = Name { slot: 77, ..names[0] };
    let given = lease(truth, &[names[0], unknown], 150, 500);
    let first = given[0].expect("a lease");
    assert_eq!((first.name, first.until_ms, given[1]), (names[0], 500, None));
    assert_eq!(lease(truth, &names[..1], 160, 500), [None], "it has an owner");
    // The lease ends, another one takes it: what the first says does not count any more.
    let [second, slow] = [0, 1].map(|nth| lease(truth, &names[nth..=nth], 500, 2_000)[0].expect("it is free"));
    assert!(second.fence > first.fence);
    assert_eq!(truth.end(&first, b"old").expect("an end"), Taken::TooLate);
    assert_eq!(truth.end(&second, b"new").expect("an end"), Taken::Stored);
    assert_eq!(truth.end(&second, b"new").expect("an end"), Taken::Again, "given twice");
    assert_eq!(truth.end(&first, b"old").expect("an end"), Taken::TooLate);
    assert_eq!(lease(truth, &names[..1], 900, 999), [None], "it is over");
    // What somebody has is not missed before its lease ends; what nobody asked for is.
    assert!(truth.miss(0, 0, 100, 1_500).expect("missed").is_empty(), "it is not late");
    assert_eq!(truth.miss(0, 0, 1_000, 1_500).expect("missed"), [names[2]]);
    assert_eq!(truth.miss(0, 0, 1_000, 2_000).expect("missed"), [names[1]]);
    assert_eq!(truth.end(&slow, b"late").expect("an end"), Taken::TooLate, "it is named as missed");
    assert!(truth.miss(0, 0, 9_000, 9_000).expect("missed").is_empty());
    assert_eq!(lease(truth, &names, 9_000, 9_900), [None; 3]);
    assert_eq!(truth.end(&Lease { name: unknown, ..first }, b"").expect("an end"), Taken::TooLate);
    assert_eq!(truth.results(0, 0, 100).expect("results"), [(names[0], b"new".to_vec())]);
    assert!(truth.results(0, 0, 101).expect("results").is_empty());
    assert_eq!(truth.kept().expect("a state"), None);
    truth.keep(b"one").expect("kept");
    truth.keep(b"two").expect("kept");
    assert_eq!(truth.kept().expect("a state").as_deref(), Some(&b"two"[..]));
}

#[cfg(test)]
mod tests {
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
                    if truth.end(lease, b"it").expect("an end") == Taken::Stored {
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
