//! Which tests are due when: an hour at a time, the same whoever computes it.
//!
//! All tests of a pair have a slot, which is a number of periods since the epoch. Probes of a slot begin within half a minute, each pair at
//! its own moment, so that not all agents begin at once; loads are made in rounds, so that no host is in two at a time, whatever mesh they
//! are of: one that has no place yet slips until both of its hosts are free. The hint is not the authority: a host admits one load at a time
//! itself.

use crate::plan::{Fleet, Kind, MINUTES, Mesh, Test};
use narrows_mesh::Load;
use narrows_mesh::rounds::rounds;
use std::collections::HashMap;

/// Connecting, reading of counters, and what clocks differ by, around a load.
pub const BESIDE_MS: u64 = 3_000;

/// Milliseconds of an hour.
pub const HOUR_MS: u64 = 3_600_000;

/// Probes of a slot begin within this time, or half of their period if that is shorter.
const SPREAD_MS: u64 = 30_000;

/// A test that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Planned {
    pub due_ms: u64,
    pub name: Name,
}

/// What a test is known by: no two have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Places in the file.
    pub mesh: usize,
    pub test: usize,
    pub slot: u64,
    pub load: Load,
}

/// The tests of a fleet, with their rounds.
#[derive(Debug)]
pub struct Schedule<'a> {
    fleet: &'a Fleet,
    names: Vec<&'a str>,
    /// By mesh and test.
    rounds: Vec<Vec<Rounds>>,
}

/// The loads that are made at the same time, round by round.
type Rounds = Vec<Vec<Load>>;

impl<'a> Schedule<'a> {
    pub fn new(fleet: &'a Fleet) -> Self {
        let of_test = |pairs: &[[usize; 2]], test: &Test| match test.kind {
            Kind::Load => rounds(fleet.hosts.len(), pairs, |_| &[], usize::MAX),
            Kind::Probe => vec![pairs.iter().map(|[a, b]| Load { from: *a, to: *b }).collect()],
        };
        let of_mesh = |mesh: &Mesh| {
            let pairs = fleet.pairs(mesh);
            mesh.tests.iter().map(|test| of_test(&pairs, test)).collect()
        };
        let names = fleet.hosts.keys().map(String::as_str).collect();
        Self { fleet, names, rounds: fleet.meshes.iter().map(of_mesh).collect() }
    }

    /// The rounds of a test.
    pub fn rounds(&self, mesh: usize, test: usize) -> &[Vec<Load>] {
        &self.rounds[mesh][test]
    }

    /// The tests whose slots begin in an hour (a number of hours since the epoch), the earliest first.
    pub fn of_hour(&self, hour: u64) -> Vec<Planned> {
        let (from, to) = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        let mut all = Vec::new();
        for (mesh, place) in self.fleet.meshes.iter().enumerate() {
            for (nth, test) in place.tests.iter().enumerate() {
                // Meshes do not begin at the same time.
                let first = shift(&place.name, test);
                let begins = |slot: u64| slot * test.every_ms + first;
                let offset = |load: &Load| self.offset_ms(test, *load);
                let offsets: Vec<Vec<u64>> =
                    self.rounds[mesh][nth].iter().map(|loads| loads.iter().map(offset).collect()).collect();
                let slots = (from.saturating_sub(first)).div_ceil(test.every_ms)..;
                for slot in slots.take_while(|slot| begins(*slot) < to) {
                    for (round, loads) in self.rounds[mesh][nth].iter().enumerate() {
                        let due_ms = begins(slot) + round as u64 * (test.lasts_ms + BESIDE_MS);
                        let name = |load: &Load| Name { mesh, test: nth, slot, load: *load };
                        let planned =
                            |(load, offset_ms): (&Load, &u64)| Planned { due_ms: due_ms + offset_ms, name: name(load) };
                        all.extend(loads.iter().zip(&offsets[round]).map(planned));
                    }
                }
            }
        }
        all.sort_unstable();
        self.slip(&mut all);
        all.retain(|it| !is_quiet(&self.fleet.meshes[it.name.mesh].tests[it.name.test], it.due_ms));
        all
    }

    /// When in its slot a test of a round is due: a probe by the names of its hosts, so that it stays where others come and go; a load when its
    /// round begins.
    fn offset_ms(&self, test: &Test, Load { from, to }: Load) -> u64 {
        if test.kind == Kind::Load {
            return 0;
        }
        let [from, to] = [from, to].map(|host| self.names[host].bytes());
        fnv(from.chain([0]).chain(to)) % spread_ms(test)
    }

    /// The rounds of a test that are in its quiet hours in each slot of a week, or some probes of them.
    pub fn never(&self, mesh: usize, test: usize) -> usize {
        let (of, test_of) = (&self.fleet.meshes[mesh], &self.fleet.meshes[mesh].tests[test]);
        let slots = (7 * 24 * HOUR_MS / test_of.every_ms).max(1);
        let due_ms = |slot: u64, round: usize| {
            slot * test_of.every_ms + shift(&of.name, test_of) + round as u64 * (test_of.lasts_ms + BESIDE_MS)
        };
        let last_ms = if test_of.kind == Kind::Probe { spread_ms(test_of) } else { 0 };
        let is_part = |at_ms: u64| is_quiet(test_of, at_ms) || is_quiet(test_of, at_ms + last_ms);
        let is_never = |round: &usize| (0..slots).all(|slot| is_part(due_ms(slot, *round)));
        (0..self.rounds[mesh][test].len()).filter(is_never).count()
    }

    /// Moves each load behind those that its hosts have before it.
    fn slip(&self, all: &mut [Planned]) {
        let mut free: HashMap<usize, u64> = HashMap::new();
        for planned in all.iter_mut() {
            let test = &self.fleet.meshes[planned.name.mesh].tests[planned.name.test];
            if test.kind == Kind::Probe {
                continue;
            }
            let hosts = [planned.name.load.from, planned.name.load.to];
            let frees = hosts.into_iter().filter_map(|host| free.get(&host).copied());
            planned.due_ms = frees.fold(planned.due_ms, u64::max);
            let ends = planned.due_ms + test.lasts_ms + BESIDE_MS;
            hosts.into_iter().for_each(|host| _ = free.insert(host, ends));
        }
        all.sort_unstable();
    }
}

/// When in its period a test begins: by its name, so that it stays where others come and go.
fn shift(mesh: &str, test: &Test) -> u64 {
    let word = test.word();
    fnv(mesh.bytes().chain(word.bytes())) % test.every_ms
}

/// The time within which the probes of a slot begin.
fn spread_ms(test: &Test) -> u64 {
    SPREAD_MS.min(test.every_ms / 2).max(1)
}

/// FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
pub(crate) fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether a test is in its quiet hours.
pub(crate) fn is_quiet(test: &Test, at_ms: u64) -> bool {
    test.is_quiet(u32::try_from(at_ms / 60_000 % u64::from(MINUTES)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn fleet(hosts: usize, meshes: &str) -> Fleet {
        let hosts: String = (0..hosts).map(|nth| format!("hosts.h{nth:04} = {{ group = 'g{}' }}\n", nth % 5)).collect();
        Fleet::read(&format!("name = 's'\n{hosts}{meshes}")).expect("a fleet")
    }

    const TWO: &str = "[[mesh]]\nname='all'\n[[mesh.test]]\nkind='load'\nevery='20m'\nlasts='2s'\n[[mesh.test]]\nkind='probe'\nevery='1m'\n\
        [[mesh]]\nname='firsts'\ndesign='representatives'\n[[mesh.test]]\nkind='load'\nevery='10m'\nlasts='5s'\nquiet=['08:00-18:00']\n";

    #[test]
    fn no_host_is_in_two_loads_and_each_test_is_due_once() {
        let fleet = fleet(12, TWO);
        let schedule = Schedule::new(&fleet);
        let day: Vec<Planned> = (0..24).flat_map(|hour| schedule.of_hour(24_000 + hour)).collect();
        let names: HashSet<_> = day.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), day.len());
        // 132 loads each 20 minutes, 66 probes each minute; of the 17 pairs of the representatives the night's.
        let count = |mesh, test| day.iter().filter(|it| (it.name.mesh, it.name.test) == (mesh, test)).count();
        assert_eq!((count(0, 0), count(0, 1), count(1, 0)), (72 * 132, 1440 * 66, 84 * 34));
        for hour in 24_000..24_024 {
            let loads: Vec<Planned> =
                schedule.of_hour(hour).into_iter().filter(|it| (it.name.mesh, it.name.test) != (0, 1)).collect();
            for (nth, load) in loads.iter().enumerate() {
                let lasts = fleet.meshes[load.name.mesh].tests[load.name.test].lasts_ms;
                let beside = loads[nth + 1..].iter().take_while(|other| other.due_ms < load.due_ms + lasts);
                let hosts = |it: &Planned| [it.name.load.from, it.name.load.to];
                assert!(beside.into_iter().all(|other| !hosts(other).iter().any(|it| hosts(load).contains(it))));
            }
        }
    }

    #[test]
    fn quiet_hours_may_go_over_midnight() {
        let fleet = fleet(2, &TWO.replace("08:00-18:00", "22:00-06:00"));
        let test = &fleet.meshes[1].tests[0];
        let at = |hour: u64| is_quiet(test, hour * HOUR_MS);
        assert_eq!([21, 22, 23, 0, 5, 6].map(at), [false, true, true, true, true, false]);
    }

    #[test]
    fn other_meshes_do_not_move_the_slots_of_one() {
        let (two, one) = (fleet(12, TWO), fleet(12, &TWO[..TWO.rfind("[[mesh]]").unwrap_or(0)]));
        let probes = |fleet: &Fleet| {
            let all = Schedule::new(fleet).of_hour(7);
            all.into_iter().filter(|it| (it.name.mesh, it.name.test) == (0, 1)).collect::<Vec<_>>()
        };
        assert_eq!(probes(&two), probes(&one));
    }

    #[test]
    fn a_pair_is_probed_at_its_own_moment_whoever_else_is_there() {
        let due = |hosts: &[&str], every: &str| {
            let hosts: String = hosts.iter().map(|name| format!("hosts.{name} = {{}}\n")).collect();
            let mesh = format!("[[mesh]]\nname='all'\n[[mesh.test]]\nkind='probe'\nevery='{every}'\n");
            let fleet = Fleet::read(&format!("name = 's'\n{hosts}{mesh}")).expect("a fleet");
            let names: Vec<&String> = fleet.hosts.keys().collect();
            let of_pair = |it: Planned| {
                let Load { from, to } = it.name.load;
                ((it.name.slot, names[from].clone(), names[to].clone()), it.due_ms)
            };
            Schedule::new(&fleet).of_hour(7).into_iter().map(of_pair).collect::<HashMap<_, _>>()
        };
        let names: Vec<String> = (0..40).map(|nth| format!("h{nth:04}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).chain(["a", "h0003b", "z"]).collect();
        for (every, every_ms, spread_ms) in [("10s", 10_000, 5_000), ("1m", 60_000, 30_000), ("10m", 600_000, 30_000)] {
            let (few, many) = (due(&all[3..9], every), due(&all, every));
            assert_eq!(few.len() as u64, 15 * HOUR_MS / every_ms);
            assert!(few.iter().all(|(pair, due_ms)| many[pair] == *due_ms));
            let first = many.values().min().expect("some");
            let slot = many.keys().map(|(slot, ..)| *slot).min().expect("some");
            let of_slot: Vec<u64> =
                many.iter().filter(|(it, _)| it.0 == slot).map(|(_, due_ms)| due_ms - first).collect();
            assert_eq!(of_slot.len(), 43 * 42 / 2);
            // In each tenth of the time there are half to twice as many as on average.
            let mut parts = [0; 10];
            of_slot.iter().for_each(|after_ms| parts[usize::try_from(after_ms * 10 / spread_ms).expect("few")] += 1);
            assert!(parts.iter().all(|count| (45..=180).contains(count)), "{every}: {parts:?}");
        }
    }
}
