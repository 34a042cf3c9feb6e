//! What agents found, as far as it can be believed.

use super::nothing::nothing_of;
use super::sessions::CLOCKS;
use super::{Agent, Control, Counts, Has, Load, Name, Poll, Truth};
use crate::cost::probe_packets;
use crate::protocol::{Found, OUTCOMES_MAX, Outcome, Settings, Ticket};
use crate::truth::{Lease, Taken};
use narrows_model::run::mesh::{MeshPath, MeshState, OneWay};
use narrows_model::words::show::clean;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// No load carries more, bit/s.
const MOST_BPS: f64 = 1e14;
/// No load counts for more than this multiple of what its test is expected to carry.
const BEYOND: f64 = 20.0;
/// Of a path.
const HOPS_MAX: usize = 64;
/// Of a sentence of an agent, in characters.
const WORDS_MAX: usize = 300;
/// Of a host, and the length of one.
const SETTINGS_MAX: usize = 3_000;
const SETTING_BYTES_MAX: usize = 300;
/// Probes of a path whose losses count for nothing, in a row.
const ASIDE_MAX: u8 = 10;
/// What such a probe is remarked with where it is stored.
const BESIDE_LOAD: &str = "a load of the fleet ran at one of its hosts";

/// Takes its losses out of a probe that was made beside a load of the fleet itself: what that pushed out of a queue shows nothing of the
/// network, and what it did not push out as little. Whether it was one; what lost all packets of a direction is none.
pub(super) fn set_aside(found: &mut Found) -> bool {
    let Found::Probe(path) = found else { return false };
    let is_through = |[sent, up, down]: [u64; 3]| up < sent && down < sent.saturating_sub(up).max(1);
    let is_it = path.remarks.iter().any(|it| it == BESIDE_LOAD)
        && path.rtt_us.is_some()
        && path.packets.is_some_and(is_through);
    if is_it {
        path.packets = None;
    }
    is_it
}

/// Orders of one agent.
const WORKING_MAX: usize = 10_000;

/// What an agent says of a path, without what cannot be. A probe of it has so many packets at most.
fn sound(found: Found, load: Load, most: u64) -> Found {
    possible(found, load, most)
        .unwrap_or_else(|| Found::Load(MeshState::Failed("what its agent says of it cannot be".to_owned())))
}

fn possible(found: Found, load: Load, most: u64) -> Option<Found> {
    let share = |share: Option<f64>| share.filter(|share| (0.0..=1.0).contains(share));
    let words = |words: &str| clean(&words.chars().take(WORDS_MAX).collect::<String>());
    Some(match found {
        Found::Load(MeshState::Measured { goodput_bps, retransmits, busy }) => {
            let goodput_bps = Some(goodput_bps).filter(|bps| (0.0..MOST_BPS).contains(bps))?;
            Found::Load(MeshState::Measured { goodput_bps, retransmits, busy: busy.map(share) })
        }
        Found::Load(MeshState::Unreachable(why)) => Found::Load(MeshState::Unreachable(words(&why))),
        Found::Load(MeshState::Failed(why)) => Found::Load(MeshState::Failed(words(&why))),
        Found::Load(MeshState::NotMade) => return None,
        Found::Diagnosis(says) => Found::Diagnosis(says.map(|it| words(&it)).map_err(|it| words(&it))),
        Found::Probe(path) => {
            let time = |us: &f64| (0.0..1e9).contains(us);
            Found::Probe(MeshPath {
                from: load.from,
                to: load.to,
                rtt_us: path.rtt_us.filter(|all| all.iter().all(time)),
                one_way: path.one_way.filter(OneWay::is_sound),
                packets: path.packets.filter(|[sent, up, down]| up.saturating_add(*down) <= *sent && *sent <= most),
                mtu_bytes: path.mtu_bytes,
                hops: path
                    .hops
                    .iter()
                    .take(HOPS_MAX)
                    .filter_map(|hop| hop.parse::<IpAddr>().ok())
                    .map(|it| it.to_string())
                    .collect(),
                // What the controller remarks no agent says.
                remarks: path
                    .remarks
                    .iter()
                    .take(3)
                    .map(|remark| words(remark))
                    .filter(|it| it != BESIDE_LOAD)
                    .collect(),
            })
        }
    })
}

/// A probe that the receiving host sent, as the sending one would have seen it. What was lost there is what was lost on the way back; the
/// routers are those of the other direction, which tell nothing of this one.
fn seen_from_there(path: MeshPath) -> MeshPath {
    let one_way = path.one_way.map(|it| OneWay { median_us: [it.median_us[1], it.median_us[0]], ..it });
    let packets = path.packets.map(|[sent, up, down]| [sent, down, up]);
    MeshPath { one_way, packets, hops: Vec::new(), mtu_bytes: None, ..path }
}

/// What an agent says of itself, without what cannot be.
fn sound_agent(agent: &Agent) -> Option<Agent> {
    let word = |word: &str, most: usize| word.len() <= most && word.chars().all(|c| c.is_ascii_graphic());
    let is = word(&agent.version, 40) && word(&agent.fingerprint, 64) && word(&agent.started, 64);
    is.then(|| agent.clone())
}

/// Settings of a host, as many and as long as they can be.
fn sound_settings(sent: Settings) -> Settings {
    let is_sound = |(key, value): &(String, String)| {
        key.len() <= 100 && key.chars().all(|c| c.is_ascii_graphic()) && value.len() <= SETTING_BYTES_MAX
    };
    let all = sent.all.map(|all| {
        let sound = all.into_iter().filter(is_sound).take(SETTINGS_MAX);
        sound.map(|(key, value)| (key, clean(&value))).collect()
    });
    Settings { sum: sent.sum, all }
}

/// Settings that changed at once are named one by one up to here.
const NAMED_MAX: usize = 5;
const NOTES_APART_MS: u64 = 300_000;

type Named = BTreeMap<String, String>;

/// What differs between the settings of a host that were known and those that it has now.
fn differing(known: Option<&Named>, now: Option<&Named>) -> Vec<String> {
    let (Some(known), Some(now)) = (known, now) else { return Vec::new() };
    let is_other = |key: &&String| known.get(*key) != now.get(*key);
    let keys: BTreeSet<&String> = known.keys().chain(now.keys()).filter(is_other).collect();
    let word = |value: Option<&String>| value.map_or_else(|| "unknown".to_owned(), |it| it.chars().take(60).collect());
    let says = |key: &&String| format!("{key}: {} → {}", word(known.get(*key)), word(now.get(*key)));
    let mut all: Vec<String> = keys.iter().take(NAMED_MAX).map(says).collect();
    if keys.len() > NAMED_MAX {
        all.push(format!("and {} other settings", keys.len() - NAMED_MAX));
    }
    all
}

impl<T: Truth> Control<'_, T> {
    /// Takes a poll of a host's agent, which comes from an address. What the agent has now, and which of its outcomes are acknowledged; `None`:
    /// the poll is invalid.
    /// Errors: the store's.
    pub fn poll(
        &mut self,
        host: usize,
        from: Option<IpAddr>,
        poll: Poll,
        now_ms: u64,
    ) -> Result<Option<(Has, Vec<Ticket>)>, T::Error> {
        let Some(agent) = sound_agent(&poll.agent) else { return Ok(None) };
        let session = &mut self.sessions[host];
        if poll.settings.all.is_some() || poll.settings.sum == 0 {
            let before = std::mem::replace(&mut session.settings, sound_settings(poll.settings.clone()));
            if session.settings.all.is_some() && session.noted.is_none() {
                session.noted = before.all;
            }
        }
        // An agent reads them each ten minutes; one that says more often that they changed fills no store.
        let mut differ = Vec::new();
        if session.noted.is_some() && now_ms >= session.noted_ms.saturating_add(NOTES_APART_MS) {
            differ = differing(session.noted.take().as_ref(), session.settings.all.as_ref());
        }
        let knows = session.settings.sum == poll.settings.sum;
        session.clock = poll.clock;
        if let Some(clock) = poll.clock {
            let [now, its] = [now_ms, clock.at_unix_ms].map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
            session.behind_ms.push_back(now.saturating_sub(its));
            if session.behind_ms.len() > CLOCKS {
                session.behind_ms.pop_front();
            }
        }
        session.hears(agent, from, now_ms);
        if !differ.is_empty() {
            session.noted_ms = now_ms;
            self.truth.note(host, now_ms, &differ)?;
        }
        let outcomes = poll.outcomes.into_iter().take(OUTCOMES_MAX);
        // Which probes were beside a load is known once the loads are.
        let (probes, loads): (Vec<_>, Vec<_>) = outcomes.partition(|it| matches!(it.found, Found::Probe(_)));
        let taken = loads.iter().chain(&probes).map(|it| it.ticket.clone()).collect();
        for outcomes in [loads, probes] {
            self.outcomes(host, outcomes, now_ms)?;
        }
        let working: BTreeSet<Ticket> = poll.working.into_iter().take(WORKING_MAX).collect();
        Ok(Some((Has { working, admitted: poll.admitted, settings: knows }, taken)))
    }

    fn outcomes(&mut self, host: usize, outcomes: Vec<Outcome>, now_ms: u64) -> Result<(), T::Error> {
        let (mut all, mut results) = (Vec::new(), Vec::new());
        for Outcome { ticket, found } in outcomes {
            if let Some(name) = self.named(&ticket)
                && let Some(found) = self.believed(host, name, ticket.fence, found, now_ms)
            {
                let result = serde_json::to_vec(&found).unwrap_or_default();
                results.push((Lease { name, fence: ticket.fence, until_ms: 0 }, result));
                all.push(found);
            }
        }
        let ends = self.truth.end(&results)?;
        for ((found, (lease, _)), end) in all.into_iter().zip(results).zip(ends) {
            // It was stored before, and the store's answer was lost.
            let is_news = || self.running.get(&lease.name).is_some_and(|it| it.lease.fence == lease.fence);
            if end == Taken::Stored || end == Taken::Again && is_news() {
                self.stored(host, lease.name, found, now_ms);
            }
        }
        Ok(())
    }

    /// What an agent found, as it is stored; `None`: it does not count, or the other end is asked now.
    fn believed(&mut self, host: usize, name: Name, fence: u64, found: Found, now_ms: u64) -> Option<Found> {
        let Load { from, to } = name.load;
        let running = self.running.get(&name);
        let since_ms = running.map_or(now_ms, |it| it.due_ms);
        // An agent speaks of its own tests only.
        if running.map_or(![from, to].contains(&host), |it| it.opener != host) {
            return None;
        }
        // Nor of another kind of test, nor of a turn that it has no more.
        if self.is_load(&name) == matches!(found, Found::Probe(_)) || running.is_some_and(|it| it.lease.fence != fence)
        {
            return None;
        }
        // With some to spare: another version may send more.
        let most = 4 * probe_packets(self.test((name.mesh, name.test)).lasts_ms) + 32;
        let mut found = sound(found, name.load, most);
        if let Found::Probe(path) = &mut found
            && host == to
        {
            *path = seen_from_there(std::mem::take(path));
        }
        if let Found::Probe(path) = &mut found
            && path.one_way.is_some()
            && let Some(off) = [from, to].into_iter().find(|host| self.sessions[*host].is_clock_off())
        {
            path.one_way = None;
            path.remarks.push(format!("no one-way delays: the clock of {} is off", self.names[off]));
        }
        if matches!(found, Found::Load(MeshState::Unreachable(_))) {
            let other = Self::other(&name, host);
            self.unreached.insert([host, other]);
            if let Some(running) = self.running.get_mut(&name).filter(|it| it.lease.fence == fence)
                && !self.unreached.contains(&[other, host])
            {
                running.opener = other;
                self.changed.extend([host, other]);
                return None;
            }
        } else if matches!(found, Found::Load(MeshState::Measured { .. })) {
            self.unreached.remove(&[host, Self::other(&name, host)]);
        }
        if let Found::Probe(path) = &mut found
            && self.is_beside_load(&name, since_ms, now_ms)
        {
            path.remarks.push(BESIDE_LOAD.to_owned());
        }
        Some(found)
    }

    /// What follows from a result that is in the store now.
    fn stored(&mut self, host: usize, name: Name, mut found: Found, now_ms: u64) {
        let Load { from, to } = name.load;
        if let Found::Diagnosis(says) = &found {
            // It is the word of that host, whoever has its token.
            let says = says.clone().map(|it| format!("{} says: {it}", self.names[host]));
            self.diagnosis(&name, says);
        }
        self.count(&name, &found, now_ms);
        let nothing = nothing_of(&found);
        if matches!(found, Found::Load(MeshState::Measured { .. }) | Found::Diagnosis(_)) {
            [from, to].into_iter().for_each(|host| self.sessions[host].loaded_ms = now_ms);
        }
        if matches!(found, Found::Probe(_)) {
            let aside = self.aside.entry(name.load).or_default();
            // In a fleet that loads its hosts nearly always, the losses of probes are those that users meet.
            *aside = if *aside < ASIDE_MAX && set_aside(&mut found) { *aside + 1 } else { 0 };
        }
        self.latest.take(name.load, host == to, found, now_ms);
        if nothing.is_some() {
            self.came_to_nothing(&name, nothing, now_ms);
        }
        self.over(name);
    }

    /// Whether a host of a test had a load of another test since a time.
    fn is_beside_load(&self, name: &Name, since_ms: u64, now_ms: u64) -> bool {
        let is_loaded = |it: &super::Running| self.is_load(&it.lease.name) && it.due_ms <= now_ms;
        let has = |host: usize| self.sessions[host].loaded_ms >= since_ms || self.running_of(host).any(is_loaded);
        has(name.load.from) || has(name.load.to)
    }

    fn count(&mut self, name: &Name, found: &Found, now_ms: u64) {
        let place = (name.mesh, name.test);
        let is_found = matches!(found, Found::Load(MeshState::Measured { .. }))
            || matches!(found, Found::Probe(path) if path.rtt_us.is_some())
            || matches!(found, Found::Diagnosis(Ok(_)));
        let Counts { done, failed, .. } = self.counts.entry(place).or_default();
        *(if is_found { done } else { failed }) += 1;
        if is_found {
            self.nothing.remove(&place);
        }
        let bytes = match found {
            Found::Load(MeshState::Measured { goodput_bps, .. }) => {
                // A wrong figure does not use up the day.
                let most_bps = BEYOND * self.test(place).expect_bps as f64;
                Some((goodput_bps.min(most_bps) * self.test(place).lasts_ms as f64 / 8e3) as u64)
            }
            Found::Diagnosis(_) => Some(self.expected_bytes(name)),
            _ => None,
        };
        if let Some(bytes) = bytes {
            let day = now_ms / super::DAY_MS;
            let (of, sum) = self.carried.entry(place).or_default();
            *sum = if *of == day { sum.saturating_add(bytes) } else { bytes };
            *of = day;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_from_the_other_end_is_turned_round() {
        let one_way = Some(OneWay { median_us: [700.0, 300.0], error_us: 5.0 });
        let hops = vec!["192.0.2.1".to_owned()];
        let path = MeshPath { packets: Some([100, 9, 1]), one_way, hops, ..MeshPath::default() };
        let turned = seen_from_there(path);
        assert_eq!((turned.packets, turned.one_way.map(|it| it.median_us)), (Some([100, 1, 9]), Some([300.0, 700.0])));
        assert!(turned.hops.is_empty());
    }
}
