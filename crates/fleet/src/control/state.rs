//! What a controller knows beside tests, so that the next one goes on where it ended.

use super::latest::back;
use super::outcome::set_aside;
use super::{
    AHEAD_MS, AROUND_MS, BESIDE, Control, HOUR_MS, Kind, LEAD_MS, Load, Message, OPEN_BACK_MS, Place, Planned, Running,
    Session, Test, Truth,
};
use crate::incident::Unsaid;
use crate::judge::{Judge, Kept as KeptJudge};
use crate::plan::{Host, Joined};
use crate::protocol::Found;
use crate::truth::Lease;
use crate::usual::Odd;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    judge: KeptJudge,
    unreached: Vec<[String; 2]>,
    drained: Vec<String>,
    /// Agents that were ever heard of.
    #[serde(default)]
    heard: Vec<String>,
    paused_until_ms: u64,
    /// Hosts that joined.
    #[serde(default)]
    joined: BTreeMap<String, Joined>,
    /// Bytes of loads on a day.
    #[serde(default)]
    carried: Vec<Carried>,
    /// Paths that are worse than usual.
    #[serde(default)]
    worse: Vec<Worse>,
    /// Messages that not all who should have got, …
    #[serde(default)]
    unsaid: Vec<Message>,
    /// … and who had each of them.
    #[serde(default)]
    had: Vec<Vec<String>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Worse {
    from: String,
    to: String,
    kind: Kind,
    odd: Odd,
}

#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    mesh: String,
    test: String,
    day: u64,
    bytes: u64,
}

/// The last result of a path stands for so many periods after a restart.
const STANDS: u64 = 2;
/// Results of so long tell what is usual.
const LOADS_BACK_MS: u64 = 20 * HOUR_MS;
const PROBES_BACK_MS: u64 = 6 * HOUR_MS;
/// A part of them: values of less are of one moment (`usual::APART_MS`).
const APART_MS: u64 = 600_000;
/// Periods at least: as many values as tell something.
const BACK: u64 = 10;

/// The hosts that joined, by what a controller kept.
pub fn joined(kept: &[u8]) -> BTreeMap<String, Joined> {
    serde_json::from_slice::<Kept>(kept).map(|kept| kept.joined).unwrap_or_default()
}

impl<T: Truth> Control<'_, T> {
    /// Those of its hosts that joined, with where their agents came from last.
    fn joined(&self) -> BTreeMap<String, Joined> {
        let all = self.fleet.hosts.iter().zip(&self.sessions);
        let member = |((name, host), session): ((&String, &Host), &Session)| {
            let known = host.member.as_ref()?;
            let address = session.agent.as_ref().and_then(|(_, from)| *from).or(known.address);
            Some((name.clone(), Joined { group: known.group.clone(), address }))
        };
        all.filter_map(member).collect()
    }

    /// Keeps what has to be known after a restart; to be called when what [`Control::tick`] returned is on its way.
    /// Errors: the store's.
    pub fn keep(&mut self) -> Result<(), T::Error> {
        // Before its first tick it knows nothing, and would keep that instead of what is known.
        if self.next_hour.is_none() {
            return Ok(());
        }
        let name = |host: &usize| self.names[*host].to_owned();
        let of = |is: fn(&Session) -> bool| -> Vec<String> {
            self.sessions.iter().enumerate().filter(|(_, session)| is(session)).map(|(host, _)| name(&host)).collect()
        };
        let worse =
            |(kind, load, odd): (Kind, Load, Odd)| Worse { from: name(&load.from), to: name(&load.to), kind, odd };
        let carried = |(place, (day, bytes)): (&Place, &(u64, u64))| Carried {
            mesh: self.fleet.meshes[place.0].name.clone(),
            test: self.test(*place).word(),
            day: *day,
            bytes: *bytes,
        };
        let (unsaid, had) = self.unsaid.iter().chain(&self.on_their_way).cloned().unzip();
        let kept = Kept {
            judge: self.judge.kept(&self.names),
            unreached: self.unreached.iter().map(|pair| pair.each_ref().map(name)).collect(),
            drained: of(|it| it.drained),
            heard: of(|it| it.agent.is_some() || it.was_heard),
            paused_until_ms: self.paused_until_ms,
            joined: self.joined(),
            carried: self.carried.iter().map(carried).collect(),
            worse: self.latest.odd().map(worse).collect(),
            unsaid,
            had,
        };
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        if self.kept != bytes {
            self.truth.keep(&bytes)?;
            self.kept = bytes;
        }
        Ok(())
    }

    /// What [`Control::tick`] returned and did not arrive everywhere yet: it is kept, so that no restart loses it.
    pub fn on_their_way(&mut self, messages: Vec<Unsaid>) {
        self.on_their_way = messages;
    }

    /// What an earlier controller did not deliver, once.
    pub fn unsaid(&mut self) -> Vec<Unsaid> {
        std::mem::take(&mut self.unsaid)
    }

    /// The paths that the file has tests of, in both directions.
    fn tested(&self) -> BTreeSet<(Kind, Load)> {
        let of = |place: Place| {
            let loads = self.schedule.rounds(place.0, place.1).iter().flatten();
            loads.flat_map(move |load| [*load, back(*load)].map(|load| (self.test(place).kind, load)))
        };
        self.places().flat_map(of).collect()
    }

    /// Takes the results of hours again, a part of them at a time: all of a large mesh at once would fill the memory. A period of each part
    /// tells what is usual; the last ones stand for their paths.
    fn results_again(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let places: Vec<Place> = self.places().collect();
        let fleet = self.fleet;
        let back_ms = |(mesh, test): Place| {
            let Test { kind, every_ms, .. } = &fleet.meshes[mesh].tests[test];
            let back_ms = if *kind == Kind::Load { LOADS_BACK_MS } else { PROBES_BACK_MS };
            back_ms.max(BACK * every_ms)
        };
        let longest_ms = places.iter().map(|place| back_ms(*place)).max().unwrap_or(0);
        for from_ms in (now_ms.saturating_sub(longest_ms)..=now_ms).step_by(APART_MS as usize) {
            let mut results = Vec::new();
            for place in &places {
                let (every_ms, begins_ms) = (self.test(*place).every_ms, now_ms.saturating_sub(back_ms(*place)));
                let ends_ms = from_ms + APART_MS - 1;
                let is_last = ends_ms + STANDS * every_ms >= now_ms;
                let to_ms = if is_last { ends_ms } else { ends_ms.min(from_ms + every_ms - 1) };
                if to_ms >= begins_ms {
                    results.extend(self.truth.results(place.0, place.1, from_ms.max(begins_ms)..=to_ms)?);
                }
            }
            // A path may have several tests.
            results.sort_by_key(|(due_ms, ..)| *due_ms);
            for (due_ms, name, result) in results {
                if let Ok(mut found) = serde_json::from_slice::<Found>(&result) {
                    set_aside(&mut found);
                    self.latest.take(name.load, false, found, due_ms);
                }
            }
        }
        Ok(())
    }

    /// Takes over what an earlier controller had in hand: tests that somebody has, and those that nobody has yet. What another process wanted
    /// to make again or to diagnose is named as missed.
    pub(super) fn take_over(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let tested = self.tested();
        for (planned, lease) in self.truth.open(now_ms.saturating_sub(OPEN_BACK_MS)..=now_ms + HOUR_MS + AHEAD_MS)? {
            let Planned { due_ms, name } = planned;
            let is_scheduled = name.slot < BESIDE;
            let is_carried = self.rounds.contains_key(&((name.mesh, name.test), name.slot));
            let kind = self.test((name.mesh, name.test)).kind;
            let is_wanted = if Self::is_diagnosis(&name) {
                self.diagnosed.contains_key(&name)
            } else if is_scheduled {
                tested.contains(&(kind, name.load))
            } else {
                is_carried
            };
            let is_late = due_ms + self.patience_ms((name.mesh, name.test)) < now_ms;
            match lease.filter(|it| it.until_ms > now_ms) {
                Some(lease) => {
                    // By a clock that was ahead it was given for longer.
                    let longest_ms = now_ms + LEAD_MS + self.lasts_ms(&name) + AROUND_MS;
                    let lease = Lease { until_ms: lease.until_ms.min(longest_ms), ..lease };
                    let opener = self.opener(name.load);
                    self.begins(Running { lease, opener, due_ms });
                }
                // With other hosts a pair may have another round: what was to come is made when it was to come.
                None if !is_late && is_wanted => _ = self.due.insert((due_ms, planned)),
                None => continue,
            }
            if is_scheduled || is_carried {
                self.in_round(&planned);
            }
        }
        Ok(())
    }

    /// Takes over what an earlier controller knew.
    pub(super) fn restore(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let kept = self.truth.kept()?.unwrap_or_default();
        // What another version wrote and this one cannot read is no reason not to begin.
        let mut worse = Vec::new();
        if let Ok(kept) = serde_json::from_slice::<Kept>(&kept) {
            let tested = self.tested();
            self.judge = Judge::restored(kept.judge, &self.names, &|kind, load| tested.contains(&(kind, *load)));
            worse = kept.worse;
            let had = kept.had.into_iter().chain(std::iter::repeat_with(Vec::new));
            self.unsaid = kept.unsaid.into_iter().zip(had).collect();
            let pair = |[a, b]: &[String; 2]| Some([self.host(a)?, self.host(b)?]);
            self.unreached = kept.unreached.iter().filter_map(pair).collect();
            for host in kept.drained.iter().filter_map(|name| self.host(name)).collect::<Vec<_>>() {
                self.sessions[host].drained = true;
            }
            for host in kept.heard.iter().filter_map(|name| self.host(name)).collect::<Vec<_>>() {
                self.sessions[host].was_heard = true;
            }
            self.paused_until_ms = kept.paused_until_ms;
            for place in self.places().collect::<Vec<_>>() {
                let is =
                    |it: &&Carried| it.mesh == self.fleet.meshes[place.0].name && it.test == self.test(place).word();
                if let Some(Carried { day, bytes, .. }) = kept.carried.iter().find(is) {
                    self.carried.insert(place, (*day, *bytes));
                }
            }
        }
        self.results_again(now_ms)?;
        self.latest.judged_again();
        // The old ones tell what was usual, and nothing of now.
        for kind in [Kind::Load, Kind::Probe] {
            let tests = self.fleet.meshes.iter().flat_map(|mesh| &mesh.tests).filter(|test| test.kind == kind);
            let longest_ms = tests.map(|test| test.every_ms).max().unwrap_or(0);
            self.latest.forget(kind, now_ms.saturating_sub(STANDS * longest_ms));
        }
        for Worse { from, to, kind, odd } in worse {
            if let (Some(from), Some(to)) = (self.host(&from), self.host(&to)) {
                self.latest.restore(kind, Load { from, to }, odd);
            }
        }
        Ok(())
    }
}
