//! Rounds of tests: when one is over, and what it says.

use super::latest::STANDS_MS;
use super::sessions::Round;
use super::{AROUND_MS, Control, Kind, Load, Message, Name, Place, Planned, SILENT_MS, Session, Truth};
use crate::judge::{Before, Heard};
use std::collections::BTreeSet;

/// How often clocks are judged: meanwhile each agent polls a few times, so that all show it where the controller's own is off.
const CLOCKS_MS: u64 = 90_000;

/// An agent that was never heard of may be about to be installed.
const COMES_MS: u64 = 3_600_000;

impl<'a, T: Truth> Control<'a, T> {
    /// Plans tests of a mesh now, beside those of the schedule, or only those between two hosts; how many.
    /// Errors: the store's.
    pub fn run(&mut self, mesh: usize, between: Option<[usize; 2]>, now_ms: u64) -> Result<usize, T::Error> {
        let is_asked = |load: &Load| between.is_none_or(|[a, b]| [[a, b], [b, a]].contains(&[load.from, load.to]));
        let tests = self.fleet.meshes[mesh].tests.len();
        let of_test = |test: usize| {
            let lasts_ms = self.fleet.meshes[mesh].tests[test].lasts_ms + crate::schedule::BESIDE_MS;
            let asked = |loads: &Vec<Load>| loads.iter().copied().filter(is_asked).collect::<Vec<Load>>();
            let rounds = self.schedule.rounds(mesh, test).iter().map(asked).filter(|loads| !loads.is_empty());
            // The time is no number of periods: no slot has it.
            rounds.enumerate().flat_map(move |(nth, loads)| {
                let due_ms = now_ms + nth as u64 * lasts_ms;
                loads.into_iter().map(move |load| Planned { due_ms, name: Name { mesh, test, slot: now_ms, load } })
            })
        };
        let all: Vec<Planned> = (0..tests).flat_map(of_test).collect();
        self.write_down(&all, now_ms)?;
        for test in 0..tests {
            if let Some(round) = self.rounds.get_mut(&((mesh, test), now_ms)) {
                round.is_asked = true;
            }
        }
        Ok(all.len())
    }

    /// Rounds that are over, as far as people want to hear of them; and agents that are silent.
    pub(super) fn judged(&mut self, now_ms: u64) -> Result<Vec<Message>, T::Error> {
        let is_over = |(key, round): &(&(Place, u64), &Round)| {
            round.closes_ms <= now_ms || round.left.is_empty() && !self.waits(key.0, round, now_ms)
        };
        let over: Vec<(Place, u64)> = self.rounds.iter().filter(is_over).map(|(key, _)| *key).collect();
        let hosts = self.fleet.hosts.iter().map(|(name, host)| (name.as_str(), host.group.as_str()));
        self.judge.incidents().regroup(&hosts);
        if self.looks_ms == now_ms {
            self.ready.extend(self.judge.agents(now_ms, &self.heard(now_ms)));
            self.ready.extend(self.judge.tests(now_ms, &self.finds(now_ms)));
        }
        if now_ms >= self.clocks_ms + CLOCKS_MS {
            self.clocks_ms = now_ms;
            let clocks = self.names.iter().zip(&self.sessions).filter_map(|(name, it)| Some((*name, it.behind_ms()?)));
            self.ready.extend(self.judge.clocks(now_ms, &clocks.collect::<Vec<_>>(), &self.names));
        }
        if over.is_empty() {
            self.reported(now_ms)?;
            return Ok(std::mem::take(&mut self.ready));
        }
        for kind in [Kind::Load, Kind::Probe] {
            self.latest.forget(kind, now_ms.saturating_sub(STANDS_MS));
        }
        let record = self.as_mesh(now_ms, Some(&|load, at_ms| self.ran(load, at_ms)));
        for key in over {
            let Some(round) = self.rounds.remove(&key) else { continue };
            let kind = self.test(key.0).kind;
            // What other rounds found meanwhile is judged with them; packets of probes go there and back.
            let back = |load: &Load| Load { from: load.to, to: load.from };
            let is_of = |load: &Load| round.of.contains(load) || kind == Kind::Probe && round.of.contains(&back(load));
            let ran = |load, at_ms| self.ran(load, at_ms);
            let since = self.latest.since(kind, round.began_ms, &ran);
            let fresh: BTreeSet<Load> = since.into_iter().filter(is_of).collect();
            let before = Before {
                goodput_bps: &|load| self.latest.usual_bps(load),
                round_trip_us: &|load| self.latest.round_trip_us(load),
            };
            let messages = match round.again {
                true => self.judge.again(now_ms, &record, &fresh, &before),
                false => self.judge.round(now_ms, &record, kind, &fresh, &before),
            };
            // What the store cannot take now is reported all the same.
            self.ready.extend(messages);
            self.latest.judged(kind, &fresh);
            if !round.again && kind == Kind::Load {
                self.again(key.0, &fresh, now_ms)?;
            }
        }
        self.reported(now_ms)?;
        Ok(std::mem::take(&mut self.ready))
    }

    /// Plans what looks bad once more, alone: what it shows then counts as another round.
    fn again(&mut self, (mesh, test): Place, fresh: &BTreeSet<Load>, now_ms: u64) -> Result<(), T::Error> {
        let doubtful = self.judge.doubtful().into_iter().filter(|load| fresh.contains(load));
        let name = |load| Name { mesh, test, slot: now_ms, load };
        let tests: Vec<Planned> = doubtful.map(|load| Planned { due_ms: now_ms, name: name(load) }).collect();
        self.alone.extend(tests.iter().map(|it| it.name));
        self.write_down(&tests, now_ms)?;
        if let Some(round) = self.rounds.get_mut(&((mesh, test), now_ms)) {
            round.again = true;
        }
        Ok(())
    }

    /// Each host, with its group and whether its agent is heard.
    pub(super) fn heard(&self, now_ms: u64) -> Vec<(&'a str, &'a str, Heard)> {
        let heard = |session: &Session| {
            let last_ms = session.heard_ms.max(session.since_ms);
            let is_new = session.agent.is_none() && !session.was_heard;
            let patience_ms = if is_new { COMES_MS } else { SILENT_MS };
            match now_ms >= last_ms + patience_ms {
                // Whoever drained it may have switched it off.
                true if session.drained => Heard::Unknown,
                true => Heard::SilentSince(last_ms),
                // It was not there since then, and may still come.
                false if session.heard_ms < session.since_ms => Heard::Unknown,
                false => Heard::Now,
            }
        };
        let groups = self.fleet.hosts.values().map(|host| host.group.as_str());
        let all = self.names.iter().zip(&self.sessions).zip(groups);
        all.map(|((name, session), group)| (*name, group, heard(session))).collect()
    }

    /// Whether the agents of a path ran from before a test until after it, which ended at a time.
    pub(super) fn ran(&self, load: Load, at_ms: u64) -> bool {
        let ran = |host: usize| {
            let session = &self.sessions[host];
            session.agent.is_some() && session.began_ms + AROUND_MS <= at_ms && session.heard_ms >= at_ms
        };
        ran(load.from) && ran(load.to)
    }

    /// Whether a path of a round is dead, and it is not known yet whether an agent is.
    fn waits(&self, place: Place, round: &Round, now_ms: u64) -> bool {
        let kind = self.test(place).kind;
        let unheard = |load: &Load, at_ms: u64| {
            [load.from, load.to]
                .iter()
                .any(|host| self.sessions[*host].heard_ms < at_ms && !self.is_silent(*host, now_ms))
        };
        round.of.iter().any(|load| self.latest.dead_since(kind, *load).is_some_and(|at_ms| unheard(load, at_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fleet;
    use crate::truth::Memory;

    /// With b1 and b2 in these groups.
    fn fleet([b1, b2]: [&str; 2]) -> Fleet {
        let hosts = format!("a1 = {{}}\nb1 = {{ group = '{b1}' }}\nb2 = {{ group = '{b2}' }}");
        let mesh = "[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'";
        Fleet::read(&format!("name = 's'\n[hosts]\n{hosts}\n{mesh}\n")).expect("a fleet")
    }

    fn muted(control: &mut Control<'_, Memory>) -> [bool; 2] {
        ["agent b1", "agent b2"].map(|element| control.judge().incidents().is_muted(element))
    }

    #[test]
    fn a_mute_of_a_group_is_of_the_hosts_that_the_group_has_now() {
        const BEGIN_MS: u64 = 1_700_000_000_000;
        let [before, after] = [["west", "east"], ["east", "west"]].map(fleet);
        let mut control = Control::new(&before, Memory::default(), BEGIN_MS);
        control.judge().incidents().mute("group west", BEGIN_MS + COMES_MS);
        control.tick(BEGIN_MS).expect("a tick");
        assert_eq!(muted(&mut control), [true, false]);
        control.keep().expect("kept");
        // As after `narrows fleet apply`.
        let mut control = Control::new(&after, control.into_truth(), BEGIN_MS + 1_000);
        control.tick(BEGIN_MS + 1_000).expect("a tick");
        assert_eq!(muted(&mut control), [false, true]);
    }
}
