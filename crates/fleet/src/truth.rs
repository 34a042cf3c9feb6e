//! What is known of planned tests: each is made once, or named as missed.
//!
//! A transport may lose, repeat, delay and reorder what agents and the controller say to each other. What decides is here: a test has one
//! name, a lease with a number that only grows (a fencing token), and one end. A result counts once, and only with the newest lease, so an
//! agent that was away for long overwrites nothing (M. Kleppmann, *How to do distributed locking*, 2016).

use crate::protocol::Found;
use crate::schedule::{HOUR_MS, Name, Planned};
use narrows_mesh::Load;
use narrows_model::run::mesh::MeshState;
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

/// Figures of days are kept for so long: the same month of last year is still there.
pub const DAYS_KEPT_MS: u64 = 400 * 24 * HOUR_MS;

/// What is known of one test, or of those of a day.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// When it was due, or when the day began.
    pub due_ms: u64,
    /// Tests; of a single one 1, of a diagnosis 0.
    pub tests: u64,
    /// Those that were missed, or found nothing.
    pub failed: u64,
    /// Goodput (bit/s) or round-trip time (microseconds): least, middle, most; of days the middle is the mean of the tests'.
    pub figures: Option<[f64; 3]>,
    /// Probe packets, those of them that were lost, and those of the others whose answers were.
    pub packets: [u64; 3],
}

impl Point {
    /// Of one test by what it found; `None`: it was missed.
    pub fn of(due_ms: u64, result: Option<&[u8]>) -> Self {
        let found = result.and_then(|result| serde_json::from_slice::<Found>(result).ok());
        let (figures, packets) = match found {
            Some(Found::Load(MeshState::Measured { goodput_bps, .. })) => (Some([goodput_bps; 3]), [0; 3]),
            Some(Found::Probe(path)) => (path.rtt_us, path.packets.unwrap_or_default()),
            // Beside the load that it belongs to.
            Some(Found::Diagnosis(_)) => return Self { due_ms, ..Self::default() },
            _ => (None, [0; 3]),
        };
        Self { due_ms, tests: 1, failed: u64::from(figures.is_none()), figures, packets }
    }

    /// Both together.
    pub fn and(&self, other: &Self) -> Self {
        let found = |it: &Self| (it.tests.saturating_sub(it.failed)) as f64;
        let both = |[a, b, c]: [f64; 3], [x, y, z]: [f64; 3]| {
            let middle = (b * found(self) + y * found(other)) / (found(self) + found(other)).max(1.0);
            [a.min(x), middle, c.max(z)]
        };
        Self {
            due_ms: self.due_ms.min(other.due_ms),
            tests: self.tests + other.tests,
            failed: self.failed + other.failed,
            figures: self.figures.zip(other.figures).map(|(a, b)| both(a, b)).or(self.figures).or(other.figures),
            packets: [0, 1, 2].map(|nth| self.packets[nth].saturating_add(other.packets[nth])),
        }
    }
}

/// The beginning of a day (UTC).
pub const fn day_of(at_ms: u64) -> u64 {
    at_ms - at_ms % (24 * HOUR_MS)
}

/// When a test of a path was due, and its result.
pub type Due = (u64, Option<Vec<u8>>);

/// When a test was due, its name and its result.
pub type Ended = (u64, Name, Vec<u8>);

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

    /// The results of a test that was due since a time, with that and in its order.
    /// Errors: the store's.
    fn results(&mut self, mesh: usize, test: usize, since_ms: u64) -> Result<Vec<Ended>, Self::Error>;

    /// The tests of a path that were due since a time and are over, the earliest first; without a result, they were missed.
    /// Errors: the store's.
    fn series(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Due>, Self::Error>;

    /// The days of a path since a time, of which single tests are kept no more.
    /// Errors: the store's.
    fn days(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Point>, Self::Error>;

    /// Folds tests that were due before a time into one figure a day for each path, at most so many at once; how many there were. Days are
    /// kept for [`DAYS_KEPT_MS`] more.
    /// Errors: the store's.
    fn fold(&mut self, before_ms: u64, most: usize) -> Result<usize, Self::Error>;

    /// Whether a controller leads until a time: nobody else does now. The others stand by.
    /// Errors: the store's.
    fn lead(&mut self, controller: &str, now_ms: u64, until_ms: u64) -> Result<bool, Self::Error>;

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
    /// By mesh, test, path and day.
    days: BTreeMap<(usize, usize, Load, u64), Point>,
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

    fn results(&mut self, mesh: usize, test: usize, since_ms: u64) -> Result<Vec<Ended>, Self::Error> {
        let of = |(name, kept): &(&Name, &Kept)| (name.mesh, name.test) == (mesh, test) && kept.due_ms >= since_ms;
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
        self.days.retain(|(.., day), _| *day >= before_ms.saturating_sub(DAYS_KEPT_MS));
        Ok(old.len())
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
    assert_eq!(truth.results(0, 0, 100).expect("results"), [(100, names[0], b"new".to_vec())]);
    assert!(truth.results(0, 0, 101).expect("results").is_empty());
    folds(truth, names[0].load);
    let mut leads = |who, now, until| truth.lead(who, now, until).expect("an answer");
    assert!(leads("a", 0, 15) && !leads("b", 14, 29) && leads("a", 10, 25), "one leads, and goes on");
    assert!(leads("b", 25, 40) && !leads("a", 26, 41), "it was away for too long");
    assert_eq!(truth.kept().expect("a state"), None);
    truth.keep(b"one").expect("kept");
    truth.keep(b"two").expect("kept");
    assert_eq!(truth.kept().expect("a state").as_deref(), Some(&b"two"[..]));
}

/// Tests of two days become a figure for each, once.
#[cfg(any(test, feature = "conformance"))]
fn folds<T: Truth<Error: std::fmt::Debug>>(truth: &mut T, load: Load) {
    let day = 24 * HOUR_MS;
    let probe = |rtt_us: f64, lost: u64| {
        let path = narrows_model::run::mesh::MeshPath {
            rtt_us: Some([rtt_us, 2.0 * rtt_us, 3.0 * rtt_us]),
            packets: Some([50, lost, 0]),
            ..Default::default()
        };
        serde_json::to_vec(&Found::Probe(path)).expect("JSON")
    };
    let name = |slot| Name { mesh: 0, test: 0, slot, load };
    let due = |slot: u64| 10 * day + (slot - 1_000) * day / 2;
    let slots = [1_000, 1_001, 1_002];
    truth.plan(&slots.map(|slot| Planned { due_ms: due(slot), name: name(slot) })).expect("planned");
    for (slot, result) in [(1_000, probe(100.0, 3)), (1_001, probe(200.0, 0))] {
        let lease = truth.lease(&[name(slot)], 0, 1).expect("a lease")[0].expect("it is free");
        truth.end(&lease, &result).expect("an end");
    }
    // A diagnosis is no load of the day.
    let diagnosis = serde_json::to_vec(&Found::Diagnosis(Err("why".to_owned()))).expect("JSON");
    truth.plan(&[Planned { due_ms: 10 * day + 1, name: name(77) }]).expect("planned");
    let lease = truth.lease(&[name(77)], 0, 1).expect("a lease")[0].expect("it is free");
    truth.end(&lease, &diagnosis).expect("an end");
    truth.miss(0, 0, 12 * day, 12 * day).expect("missed");
    let point = |due_ms, tests, failed, figures, packets| Point { due_ms, tests, failed, figures, packets };
    let first = point(due(1_000), 1, 0, Some([100.0, 200.0, 300.0]), [50, 3, 0]);
    let series = |truth: &mut T| truth.series(0, 0, load, 9 * day).expect("a series");
    let days = |truth: &mut T| truth.days(0, 0, load, 9 * day).expect("days");
    let found = series(truth);
    let points: Vec<Point> = found.iter().map(|(at_ms, result)| Point::of(*at_ms, result.as_deref())).collect();
    assert_eq!((points.len(), &points[0], points[3].failed), (4, &first, 1), "{found:?}");
    assert_eq!(days(truth), []);
    let both = point(10 * day, 2, 0, Some([100.0, 300.0, 600.0]), [100, 3, 0]);
    let folded = |truth: &mut T, before_ms| {
        // A little at a time; what the conformance made before is older.
        std::iter::from_fn(|| Some(truth.fold(before_ms, 1).expect("folded"))).take_while(|count| *count > 0).count()
    };
    assert!(folded(truth, 11 * day) >= 2);
    assert_eq!(folded(truth, 11 * day), 0, "it is done once");
    assert_eq!((days(truth), series(truth)), (vec![both], vec![found[3].clone()]));
    assert!(folded(truth, 12 * day) > 0);
    assert_eq!((days(truth).len(), series(truth).len()), (2, 0));
    folded(truth, 12 * day + DAYS_KEPT_MS);
    assert_eq!(truth.plan(&[Planned { due_ms: 900 * day, name: name(5_000) }]).expect("planned"), 1);
    truth.fold(901 * day, 9).expect("folded");
    assert_eq!(days(truth), [], "days are not kept for ever");
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
