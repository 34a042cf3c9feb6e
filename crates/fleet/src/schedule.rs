//! Which tests are due when: an hour at a time, the same whoever computes it.
//!
//! All tests of a pair have a slot, which is a number of periods since the epoch. Probes are made by all pairs at once; loads in rounds, so
//! that no host is in two at a time, whatever mesh they are of: one that has no place yet slips until both of its hosts are free. The hint
//! is not the authority: a host admits one load at a time itself.

use crate::plan::{Fleet, Kind, MINUTES, Mesh, Test};
use narrows_mesh::Load;
use narrows_mesh::rounds::rounds;
use std::collections::HashMap;

/// Connecting, reading of counters, and what clocks differ by, around a load.
pub const BESIDE_MS: u64 = 3_000;

/// Milliseconds of an hour.
pub const HOUR_MS: u64 = 3_600_000;

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
        Self { fleet, rounds: fleet.meshes.iter().map(of_mesh).collect() }
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
                let slots = (from.saturating_sub(first)).div_ceil(test.every_ms)..;
                for slot in slots.take_while(|slot| begins(*slot) < to) {
                    for (round, loads) in self.rounds[mesh][nth].iter().enumerate() {
                        let due_ms = begins(slot) + round as u64 * (test.lasts_ms + BESIDE_MS);
                        let name = |load: &Load| Name { mesh, test: nth, slot, load: *load };
                        all.extend(loads.iter().map(|load| Planned { due_ms, name: name(load) }));
                    }
                }
            }
        }
        all.sort_unstable();
        self.slip(&mut all);
        all.retain(|it| !is_quiet(&self.fleet.meshes[it.name.mesh].tests[it.name.test], it.due_ms));
        all
    }

    /// The rounds of a test that are in its quiet hours in each slot of a week.
    pub fn never(&self, mesh: usize, test: usize) -> usize {
        let (of, test_of) = (&self.fleet.meshes[mesh], &self.fleet.meshes[mesh].tests[test]);
        let slots = (7 * 24 * HOUR_MS / test_of.every_ms).max(1);
        let due_ms = |slot: u64, round: usize| {
            slot * test_of.every_ms + shift(&of.name, test_of) + round as u64 * (test_of.lasts_ms + BESIDE_MS)
        };
        let is_never = |round: &usize| (0..slots).all(|slot| is_quiet(test_of, due_ms(slot, *round)));
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
}
