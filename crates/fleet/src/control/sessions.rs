//! What is known of agents, and what is under way.

use super::{Agent, Clock, Control, Counts, Kind, Lease, Load, Name, Nothing, Place, Settings, Ticket, Truth};
use crate::judge::CLOCK_MS;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

/// Polls by which a clock is judged.
pub(super) const CLOCKS: usize = 3;

/// The tests of a slot that are not over, and when no more are waited for.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) left: BTreeSet<Load>,
    /// All of them.
    pub(super) of: BTreeSet<Load>,
    /// Whether it makes tests again.
    pub(super) again: bool,
    /// Whether a user asked for it: in quiet hours, too.
    pub(super) is_asked: bool,
    pub(super) began_ms: u64,
    pub(super) closes_ms: u64,
}

impl Round {
    pub(super) const fn new(began_ms: u64) -> Self {
        Self { left: BTreeSet::new(), of: BTreeSet::new(), again: false, is_asked: false, began_ms, closes_ms: 0 }
    }
}

/// A diagnosis is waited for so long; then its incident is reported without it.
pub(super) const WAITS_MS: u64 = 120_000;

/// What a controller of this process knows and does not keep, by names that hold whatever becomes of the file.
#[derive(Debug, Default)]
pub struct Sessions {
    of: BTreeMap<String, Session>,
    /// `None`: none worked before.
    work: Option<Work>,
}

/// A round that is not over.
#[derive(Debug)]
struct Begun {
    /// Its mesh, and its test there.
    test: [String; 2],
    slot: u64,
    round: Round,
    /// The hosts of its tests.
    of: Vec<[String; 2]>,
}

/// What is under way.
#[derive(Debug)]
struct Work {
    rounds: Vec<Begun>,
    /// Diagnoses that are made, for which incidents and until when; those that were; and what they say.
    diagnosed: Vec<(Ticket, (u64, u64))>,
    examined: BTreeSet<u64>,
    verdicts: BTreeMap<u64, String>,
    tests: Vec<([String; 2], Option<Counts>, Option<Nothing>)>,
    /// Paths whose last result was judged.
    judged: Vec<(Kind, [String; 2])>,
    clocks_ms: u64,
    misses_from_ms: u64,
}

/// The place of an agent.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// With the address that it comes from, where that is known.
    pub(super) agent: Option<(Agent, Option<IpAddr>)>,
    pub(super) heard_ms: u64,
    /// Whether an earlier controller heard of it.
    pub(super) was_heard: bool,
    /// The process before this one with where it came from; how often one of the two came back, and when that was last.
    pub(super) other: Option<(String, Option<IpAddr>)>,
    pub(super) returns: u32,
    pub(super) returned_ms: u64,
    /// Since when this process of it is known.
    pub(super) began_ms: u64,
    /// Since when it is expected.
    pub(super) since_ms: u64,
    /// It gets no tests.
    pub(super) drained: bool,
    /// By how much its clock is behind, ms, at its last polls; and what its kernel says of it.
    pub(super) behind_ms: VecDeque<i64>,
    pub(super) clock: Option<Clock>,
    pub(super) settings: Settings,
    /// Those from which they differ, where that was not kept yet; when such was kept last.
    pub(super) noted: Option<BTreeMap<String, String>>,
    pub(super) noted_ms: u64,
    /// When its last load was over.
    pub(super) loaded_ms: u64,
}

/// A process that comes back so often is not the only one with its token: what is late on its way comes once.
const RETURNS: u32 = 6;
/// Two that run are back after so long.
const BACK_MS: u64 = 90_000;

impl Session {
    /// Its agent speaks, from an address.
    pub(super) fn hears(&mut self, agent: Agent, from: Option<IpAddr>, now_ms: u64) {
        if self.agent.as_ref().is_none_or(|(known, _)| known.started != agent.started) {
            self.began_ms = now_ms;
            let is_back = self.other.as_ref().is_some_and(|(started, _)| *started == agent.started);
            self.returns = if is_back { self.returns.saturating_add(1) } else { 0 };
            self.returned_ms = now_ms;
            self.other = self.agent.take().map(|(agent, from)| (agent.started, from));
        }
        (self.agent, self.heard_ms) = (Some((agent, from)), now_ms);
    }

    /// Whether two agents have its token, and in words; `None`: it never had another process.
    pub(super) fn twice(&self, now_ms: u64) -> Option<Option<String>> {
        let (_, other) = self.other.as_ref()?;
        let (_, from) = self.agent.as_ref()?;
        let is_it = self.returns >= RETURNS && now_ms < self.returned_ms + BACK_MS;
        let places: Vec<String> = [from, other].into_iter().flatten().map(ToString::to_string).collect();
        let at = if places.is_empty() { String::new() } else { format!(" ({})", places.join(" and ")) };
        Some(is_it.then(|| format!("two agents{at} use it, and each takes the other's tests: stop one")))
    }

    /// Whether its clock is further away than the controller's by more than polls can tell.
    pub(super) fn is_clock_off(&self) -> bool {
        self.behind_ms().is_some_and(|ms| ms.unsigned_abs() > CLOCK_MS)
    }

    /// By how much its clock is behind, ms: a poll that took long on its way tells too much. `None`: it is not known yet.
    pub(super) fn behind_ms(&self) -> Option<i64> {
        if self.behind_ms.len() < CLOCKS { None } else { self.behind_ms.iter().copied().min_by_key(|it| it.abs()) }
    }

    /// What is left of it at a time; of a clock that was set back all of it may be later.
    pub(super) fn by(mut self, now_ms: u64) -> Self {
        if self.heard_ms.max(self.since_ms) > now_ms {
            self.behind_ms.clear();
        }
        for at_ms in [
            &mut self.heard_ms, &mut self.returned_ms, &mut self.began_ms, &mut self.since_ms, &mut self.noted_ms,
            &mut self.loaded_ms,
        ] {
            *at_ms = now_ms.min(*at_ms);
        }
        self
    }
}

impl<T: Truth> Control<'_, T> {
    /// What the next controller of this process goes on with.
    pub fn sessions(&mut self) -> Sessions {
        let names = self.names.iter().map(|name| (*name).to_owned());
        let of = names.zip(self.sessions.iter_mut().map(std::mem::take)).collect();
        // Before its first tick it knows nothing.
        let work = self.next_hour.is_some().then(|| self.work());
        Sessions { of, work }
    }

    fn work(&mut self) -> Work {
        let words = |(mesh, test): Place| [self.fleet.meshes[mesh].name.clone(), self.test((mesh, test)).word()];
        let hosts = |load: &Load| [load.from, load.to].map(|host| self.names[host].to_owned());
        let round = |((place, slot), round): (&(Place, u64), &Round)| {
            let of = round.of.iter().map(hosts).collect();
            let round = Round { of: BTreeSet::new(), left: BTreeSet::new(), ..*round };
            Begun { test: words(*place), slot: *slot, round, of }
        };
        let examining =
            |(name, of): (&Name, &(u64, u64))| (self.ticket(&Lease { name: *name, fence: 0, until_ms: 0 }), *of);
        let rounds = self.rounds.iter().map(round).collect();
        let judged = self.latest.are_judged().map(|(kind, load)| (kind, hosts(&load))).collect();
        let diagnosed = self.diagnosed.iter().map(examining).collect();
        let places: Vec<(Place, [String; 2])> = self.places().map(|place| (place, words(place))).collect();
        let mut tests = Vec::new();
        for (place, words) in places {
            tests.push((words, self.counts.remove(&place), self.nothing.remove(&place)));
        }
        Work {
            rounds,
            diagnosed,
            examined: std::mem::take(&mut self.examined),
            verdicts: std::mem::take(&mut self.verdicts),
            tests,
            judged,
            clocks_ms: self.clocks_ms,
            misses_from_ms: self.misses_from_ms,
        }
    }

    /// Goes on with what was known.
    pub fn resume(&mut self, mut known: Sessions) {
        for (name, session) in self.names.iter().zip(&mut self.sessions) {
            if let Some(known) = known.of.remove(*name) {
                *session = known.by(self.began_ms);
            }
        }
        let Some(work) = known.work else { return };
        let now_ms = self.began_ms;
        let places: BTreeMap<[String; 2], Place> = self
            .places()
            .map(|(mesh, test)| ([self.fleet.meshes[mesh].name.clone(), self.test((mesh, test)).word()], (mesh, test)))
            .collect();
        let load = |[from, to]: &[String; 2]| Some(Load { from: self.host(from)?, to: self.host(to)? });
        let judged = work.judged.iter().filter_map(|(kind, hosts)| Some((*kind, load(hosts)?)));
        self.latest.known = judged.collect();
        for Begun { test: words, slot, round, of } in work.rounds {
            let load = |[from, to]: &[String; 2]| Some(Load { from: self.host(from)?, to: self.host(to)? });
            let of: BTreeSet<Load> = of.iter().filter_map(load).collect();
            // What of it is not over is in the store.
            if let Some(place) = places.get(&words).filter(|_| round.began_ms <= now_ms) {
                if round.again {
                    let (mesh, test) = *place;
                    self.alone.extend(of.iter().map(|load| Name { mesh, test, slot, load: *load }));
                }
                self.rounds.insert((*place, slot), Round { of, ..round });
            }
        }
        for (ticket, (number, until_ms)) in work.diagnosed {
            if let Some(name) = self.named(&ticket) {
                self.diagnosed.insert(name, (number, until_ms.min(now_ms + WAITS_MS)));
            }
        }
        (self.examined, self.verdicts) = (work.examined, work.verdicts);
        for (words, counts, nothing) in work.tests {
            if let Some(place) = places.get(&words) {
                self.counts.extend(counts.map(|it| (*place, it)));
                self.nothing.extend(nothing.filter(|it| it.last_ms <= now_ms).map(|it| (*place, it)));
            }
        }
        self.clocks_ms = work.clocks_ms.min(now_ms);
        self.misses_from_ms = work.misses_from_ms.min(self.misses_from_ms);
    }
}

/// A host and its agent.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pub name: &'a str,
    /// `None`: it was never heard of.
    pub version: Option<&'a str>,
    /// Where it comes from, where that is known.
    pub from: Option<IpAddr>,
    pub heard_ms: u64,
    pub drained: bool,
    /// By how much its clock is behind the controller's, ms, where that is known; and by how much it may be out as its kernel says.
    pub behind_ms: Option<i64>,
    pub clock_error_us: Option<u64>,
    /// When the last of its loads ended that carried something, and the last of its probes that was answered.
    pub last_ms: [Option<u64>; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(started: &str) -> Agent {
        let word = str::to_owned;
        Agent { version: word("1"), port: 5221, fingerprint: word("f"), stamp: 5222, started: word(started) }
    }

    #[test]
    fn two_agents_with_one_token_are_told_from_one_that_is_started_again() {
        let at = |last: u8| Some(IpAddr::from([10, 77, 0, last]));
        let mut session = Session::default();
        for (nth, started) in ["a", "b", "c", "d", "e", "f", "g", "h", "i"].into_iter().enumerate() {
            session.hears(agent(started), at(2), nth as u64 * 1_000);
        }
        assert_eq!(session.twice(9_000), Some(None));
        for nth in 0..7_u64 {
            let (started, last) = if nth.is_multiple_of(2) { ("x", 3) } else { ("i", 2) };
            session.hears(agent(started), at(last), 10_000 + nth * 1_000);
        }
        let says = session.twice(17_000).flatten().expect("two");
        assert!(says.contains("10.77.0.3 and 10.77.0.2"), "{says}");
        // One of them was stopped.
        session.hears(agent("x"), at(3), 120_000);
        assert_eq!(session.twice(120_000), Some(None));
    }
}
