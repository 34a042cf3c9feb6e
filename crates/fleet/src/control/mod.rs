//! The controller: which tests are given to whom when, what they found, and what is reported of that. No IO and no clock, so days of
//! thousands of hosts can be simulated.

mod diagnosed;
mod latest;
mod nothing;
mod orders;
mod outcome;
mod rounds;
mod series;
mod sessions;
mod settings;
mod state;

use crate::incident::{Message, Rules, Unsaid};
use crate::judge::{Judge, SILENT_MS};
use crate::plan::{Fleet, Host, Kind, Test};
use crate::protocol::{Admits, Agent, Clock, Order, Poll, Reply, Settings, Ticket, What};
use crate::schedule::{HOUR_MS, Name, Planned, Schedule};
use crate::truth::{Lease, Truth};
use latest::{Latest, Ran};
use narrows_mesh::Load;
use narrows_model::run::mesh::MeshRecord;
use narrows_model::{Fact, Unit, Value};
use sessions::{Round, Session};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

pub use sessions::{Member, Sessions};
pub use state::joined;

/// Tests are written down so long before they are due.
const AHEAD_MS: u64 = 300_000;
/// A test is given so long before it is due: its other host must know of it.
const LEAD_MS: u64 = 4_000;
/// What may come beside the time of a test before somebody else gets it.
const AROUND_MS: u64 = 30_000;
/// What was due before is in nobody's hands any more: the patience and the length of a test together are shorter.
const OPEN_BACK_MS: u64 = 1_800_000;
/// No more of what was due before is written down.
const DAY_MS: u64 = 24 * HOUR_MS;
/// A diagnosis takes no longer.
const DIAGNOSIS_MS: u64 = 30_000;
/// Tests that are written down at once.
const PLANNED_MAX: usize = 2_000;
/// How often old tests are folded, and how many at once.
const FOLD_MS: u64 = 600_000;
const FOLDED_MAX: usize = 2_000;
/// Without a tick for so long, the controller was stopped.
const SLEPT_MS: u64 = 15_000;
/// How often it looks for tests that came to nothing.
const LATE_MS: u64 = 5_000;
/// A test that somebody else has, or that is over, is asked for again after so long.
const AGAIN_MS: u64 = 15_000;
/// Slots of the schedule are numbers of periods, of a second at least; what is made beside it has the time, in milliseconds, …
const BESIDE: u64 = 1 << 36;
/// … and a diagnosis this as well.
const DIAGNOSIS: u64 = 1 << 62;
/// Every so many probes of a path its routers are traced.
const TRACED_EACH: u64 = 30;

/// A test that was given.
#[derive(Debug)]
struct Running {
    lease: Lease,
    /// Who makes its connections.
    opener: usize,
    due_ms: u64,
}

/// What came of a test since its last result.
#[derive(Debug)]
struct Nothing {
    /// When the first and the last one came to nothing.
    since_ms: u64,
    last_ms: u64,
    tests: u64,
    last: String,
}

/// How the tests of one kind of a mesh ended since the controller began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub done: u64,
    pub failed: u64,
    pub missed: u64,
}

/// What an agent has already.
#[derive(Debug, Default)]
pub struct Has {
    pub working: BTreeSet<Ticket>,
    pub admitted: u64,
    /// Whether its settings are known here.
    pub settings: bool,
}

/// The secret of a pass, from what it is for.
pub type Secrets<'a> = &'a dyn Fn(&str) -> String;

/// A mesh and a test of it, as places in the file.
type Place = (usize, usize);

#[derive(Debug)]
pub struct Control<'a, T> {
    fleet: &'a Fleet,
    schedule: Schedule<'a>,
    truth: T,
    names: Vec<&'a str>,
    /// Those that the file names.
    addresses: Vec<Option<IpAddr>>,
    sessions: Vec<Session>,
    next_hour: Option<u64>,
    looks_ms: u64,
    /// Those of the next hour that are not written down yet, the earliest first.
    planned: VecDeque<Planned>,
    /// When it folds old tests again.
    folds_ms: u64,
    /// When clocks were judged last.
    clocks_ms: u64,
    /// The last [`Control::tick`].
    ticked_ms: u64,
    /// With the time when each is next tried.
    due: BTreeSet<(u64, Planned)>,
    running: BTreeMap<Name, Running>,
    /// The running tests of each host.
    of_host: Vec<BTreeSet<Name>>,
    /// Hosts whose running tests changed since somebody asked for that.
    changed: BTreeSet<usize>,
    /// Loads that are diagnosed, for the numbers of incidents of which nobody knows yet, and until when that is waited for.
    diagnosed: BTreeMap<Name, (u64, u64)>,
    /// Those for which that was tried.
    examined: BTreeSet<u64>,
    /// Tests beside which no other load may pass the same routers.
    alone: BTreeSet<Name>,
    rounds: BTreeMap<(Place, u64), Round>,
    /// How many probes of each path were set aside in a row.
    aside: BTreeMap<Load, u8>,
    /// Hosts that could not connect to others, with the others.
    unreached: BTreeSet<[usize; 2]>,
    latest: Latest,
    counts: BTreeMap<Place, Counts>,
    /// Tests without a result since.
    nothing: BTreeMap<Place, Nothing>,
    /// Bytes of loads on a day, by test.
    carried: BTreeMap<Place, (u64, u64)>,
    paused_until_ms: u64,
    /// Nothing is named as missed before: what agents found while there was no controller comes first.
    misses_from_ms: u64,
    /// When this controller began.
    began_ms: u64,
    judge: Judge,
    /// What diagnoses say, by the numbers of incidents that are not reported yet.
    verdicts: BTreeMap<u64, String>,
    /// To be reported at the next look.
    ready: Vec<Message>,
    /// Messages that not all who should have got, of this controller …
    on_their_way: Vec<Unsaid>,
    /// … and of an earlier one.
    unsaid: Vec<Unsaid>,
    /// What was kept last.
    kept: Vec<u8>,
}

impl<'a, T: Truth> Control<'a, T> {
    /// `now_ms`: agents are expected from then on.
    pub fn new(fleet: &'a Fleet, truth: T, now_ms: u64) -> Self {
        let session = |_: &_| Session { since_ms: now_ms, ..Session::default() };
        Self {
            fleet,
            schedule: Schedule::new(fleet),
            truth,
            names: fleet.hosts.keys().map(String::as_str).collect(),
            addresses: fleet.hosts.values().map(|host| host.address.parse().ok()).collect(),
            sessions: fleet.hosts.values().map(session).collect(),
            next_hour: None,
            looks_ms: 0,
            planned: VecDeque::new(),
            folds_ms: now_ms,
            clocks_ms: now_ms,
            ticked_ms: now_ms,
            due: BTreeSet::new(),
            running: BTreeMap::new(),
            of_host: vec![BTreeSet::new(); fleet.hosts.len()],
            changed: BTreeSet::new(),
            alone: BTreeSet::new(),
            diagnosed: BTreeMap::new(),
            examined: BTreeSet::new(),
            rounds: BTreeMap::new(),
            aside: BTreeMap::new(),
            unreached: BTreeSet::new(),
            latest: Latest::default(),
            counts: BTreeMap::new(),
            nothing: BTreeMap::new(),
            carried: BTreeMap::new(),
            paused_until_ms: 0,
            misses_from_ms: now_ms + SILENT_MS,
            began_ms: now_ms,
            judge: Judge::new(Rules::default()),
            verdicts: BTreeMap::new(),
            ready: Vec::new(),
            on_their_way: Vec::new(),
            unsaid: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// What is known of tests, for the next controller.
    pub fn into_truth(self) -> T {
        self.truth
    }

    /// The place of a host.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }

    pub const fn judge(&mut self) -> &mut Judge {
        &mut self.judge
    }

    /// No test begins until then.
    pub const fn pause(&mut self, until_ms: u64) {
        self.paused_until_ms = until_ms;
    }

    /// Until when no test begins, if so.
    pub fn paused(&self, now_ms: u64) -> Option<u64> {
        Some(self.paused_until_ms).filter(|until_ms| *until_ms > now_ms)
    }

    /// A host gets no tests, or gets them again.
    pub fn drain(&mut self, host: usize, is: bool) {
        self.sessions[host].drained = is;
    }

    /// How long a test takes.
    fn lasts_ms(&self, name: &Name) -> u64 {
        if Self::is_diagnosis(name) { DIAGNOSIS_MS } else { self.test((name.mesh, name.test)).lasts_ms }
    }

    fn test(&self, (mesh, test): Place) -> &'a Test {
        &self.fleet.meshes[mesh].tests[test]
    }

    /// How late a test may begin.
    fn patience_ms(&self, place: Place) -> u64 {
        let test = self.test(place);
        test.every_ms.min(if test.kind == Kind::Load { 600_000 } else { 60_000 })
    }

    /// What is due, what came to nothing, and what is to be reported now; to be called each second or so.
    /// Errors: the store's.
    pub fn tick(&mut self, now_ms: u64) -> Result<Vec<Message>, T::Error> {
        if now_ms >= self.ticked_ms + SLEPT_MS {
            // While it was stopped, or the store was, no agent could reach it.
            self.sessions.iter_mut().for_each(|session| session.since_ms = now_ms);
            self.misses_from_ms = now_ms + SILENT_MS;
            self.ticked_ms = now_ms;
        }
        let (mut hour, from_ms) = match self.next_hour {
            // After a long sleep not all of it is written down.
            Some(hour) => (hour.max(now_ms.saturating_sub(DAY_MS) / HOUR_MS), 0),
            // What was due while no controller was there was missed, and is named so.
            None => {
                self.restore(now_ms)?;
                // By a clock that was ahead: it can still be made.
                self.truth.reopen(now_ms)?;
                self.take_over(now_ms)?;
                let planned_ms = self.truth.planned()?.unwrap_or(now_ms).clamp(now_ms - DAY_MS.min(now_ms), now_ms);
                // Loads of a slot may be due in the next hour.
                (planned_ms.saturating_sub(HOUR_MS) / HOUR_MS, planned_ms)
            }
        };
        while hour * HOUR_MS <= now_ms + AHEAD_MS {
            let mut tests = self.schedule.of_hour(hour);
            tests.retain(|test| test.due_ms >= from_ms);
            self.planned.extend(tests);
            hour += 1;
            self.next_hour = Some(hour);
        }
        // A part of them at a time: agents wait meanwhile.
        let part: Vec<Planned> = self.planned.iter().take(PLANNED_MAX).copied().collect();
        self.write_down(&part, now_ms)?;
        self.planned.drain(..part.len());
        if now_ms >= self.looks_ms + LATE_MS {
            self.looks_ms = now_ms;
            self.late(now_ms)?;
        }
        self.give(now_ms)?;
        if now_ms >= self.folds_ms {
            if now_ms >= self.misses_from_ms + FOLD_MS {
                // What the file has no more is late for nobody.
                self.truth.miss_all(now_ms.saturating_sub(OPEN_BACK_MS), now_ms)?;
            }
            // A little at a time: agents wait meanwhile.
            let count = self.truth.fold(now_ms.saturating_sub(self.fleet.keep_ms), FOLDED_MAX)?;
            self.folds_ms = now_ms + if count < FOLDED_MAX { FOLD_MS } else { 0 };
        }
        let messages = self.judged(now_ms)?;
        self.ticked_ms = now_ms;
        Ok(messages)
    }

    fn write_down(&mut self, tests: &[Planned], now_ms: u64) -> Result<(), T::Error> {
        self.truth.plan(tests)?;
        for test in tests {
            // Of what was due long ago, only that it was missed is to be known.
            if test.due_ms + self.patience_ms((test.name.mesh, test.name.test)) < now_ms {
                continue;
            }
            self.in_round(test);
            if !self.running.contains_key(&test.name) {
                self.due.insert((test.due_ms, *test));
            }
        }
        Ok(())
    }

    fn in_round(&mut self, test: &Planned) {
        let Name { mesh, test: nth, slot, load } = test.name;
        let place = (mesh, nth);
        let closes_ms = test.due_ms + self.patience_ms(place) + self.test(place).lasts_ms + AROUND_MS;
        let round = self.rounds.entry((place, slot)).or_insert_with(|| Round::new(test.due_ms));
        round.left.insert(load);
        round.of.insert(load);
        round.closes_ms = round.closes_ms.max(closes_ms);
    }

    /// Names what was missed, and takes back what was given to somebody who does not answer.
    fn late(&mut self, now_ms: u64) -> Result<(), T::Error> {
        let over: Vec<Name> =
            self.running.iter().filter(|(_, it)| it.lease.until_ms <= now_ms).map(|(name, _)| *name).collect();
        for name in over {
            if let Some(Running { due_ms, .. }) = self.ends(&name) {
                self.due.insert((now_ms, Planned { due_ms, name }));
            }
        }
        let places: Vec<Place> = self.places().filter(|_| now_ms >= self.misses_from_ms).collect();
        for place in places {
            let before_ms = now_ms.saturating_sub(self.patience_ms(place));
            for name in self.truth.miss(place.0, place.1, before_ms, now_ms)? {
                self.counts.entry(place).or_default().missed += 1;
                self.came_to_nothing(&name, None, now_ms);
                // What was found before says nothing of now. A diagnosis is of no round.
                if self.rounds.contains_key(&(place, name.slot)) {
                    self.latest.miss(self.test(place).kind, name.load);
                }
                self.over(name);
            }
        }
        let patience: BTreeMap<Place, u64> = self.places().map(|place| (place, self.patience_ms(place))).collect();
        let is_late = |it: &Planned| it.due_ms + patience[&(it.name.mesh, it.name.test)] < now_ms;
        self.due.retain(|(_, planned)| !is_late(planned));
        Ok(())
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let of = |(mesh, it): (usize, &crate::plan::Mesh)| (0..it.tests.len()).map(move |test| (mesh, test));
        self.fleet.meshes.iter().enumerate().flat_map(of)
    }

    fn begins(&mut self, running: Running) {
        let name = running.lease.name;
        [name.load.from, name.load.to].into_iter().for_each(|host| _ = self.of_host[host].insert(name));
        self.changed.extend([name.load.from, name.load.to]);
        self.running.insert(name, running);
    }

    fn ends(&mut self, name: &Name) -> Option<Running> {
        let running = self.running.remove(name)?;
        [name.load.from, name.load.to].into_iter().for_each(|host| _ = self.of_host[host].remove(name));
        self.changed.extend([name.load.from, name.load.to]);
        Some(running)
    }

    fn running_of(&self, host: usize) -> impl Iterator<Item = &Running> {
        self.of_host[host].iter().filter_map(|name| self.running.get(name))
    }

    /// A test is over, whatever became of it.
    fn over(&mut self, name: Name) {
        self.ends(&name);
        self.alone.remove(&name);
        self.diagnosed.remove(&name);
        if let Some(round) = self.rounds.get_mut(&((name.mesh, name.test), name.slot)) {
            round.left.remove(&name.load);
        }
    }

    fn is_there(&self, host: usize, now_ms: u64) -> bool {
        let session = &self.sessions[host];
        !session.drained && now_ms < session.heard_ms + SILENT_MS && self.address(host).is_some()
    }

    /// Whether a host's agent is heard of.
    pub fn is_silent(&self, host: usize, now_ms: u64) -> bool {
        let session = &self.sessions[host];
        session.agent.is_none() || now_ms >= session.heard_ms + SILENT_MS
    }

    /// For how long the agents of hosts that joined have been silent, and where each came from last.
    pub fn silence(&self, now_ms: u64) -> Vec<(&str, u64, Option<IpAddr>)> {
        let all = self.fleet.hosts.iter().zip(&self.sessions).filter(|((_, host), _)| host.member.is_some());
        let of = |((name, _), session): ((&'a String, &Host), &Session)| {
            let from = session.agent.as_ref().and_then(|(_, from)| *from);
            (name.as_str(), now_ms.saturating_sub(session.heard_ms.max(session.since_ms)), from)
        };
        all.map(of).collect()
    }

    /// Hosts that may have something else to do than when this was asked last.
    pub fn changed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.changed)
    }

    /// Each host of the file with its agent.
    pub fn agents(&self) -> impl Iterator<Item = Member<'_>> {
        let last = self.latest.last_ms();
        self.names.iter().zip(&self.sessions).enumerate().map(move |(host, (name, session))| Member {
            name,
            version: session.agent.as_ref().map(|(agent, _)| agent.version.as_str()),
            from: session.agent.as_ref().and_then(|(_, from)| *from),
            heard_ms: session.heard_ms,
            drained: session.drained,
            behind_ms: session.behind_ms(),
            clock_error_us: session.clock.and_then(|clock| clock.error_us),
            last_ms: last.get(&host).copied().unwrap_or_default(),
        })
    }

    /// How tests ended, by the places of mesh and test.
    pub fn counts(&self) -> impl Iterator<Item = (Place, Counts)> {
        self.places().map(|place| (place, self.counts.get(&place).copied().unwrap_or_default()))
    }

    /// Whether this controller, and no other, leads the fleet until a time.
    /// Errors: the store's.
    pub fn lead(&mut self, me: &str, now_ms: u64, until_ms: u64) -> Result<bool, T::Error> {
        self.truth.lead(me, now_ms, until_ms)
    }

    /// The last results of all paths, as a mesh.
    pub fn record(&self, now_ms: u64) -> MeshRecord {
        let mut record = self.as_mesh(now_ms, None);
        for (member, session) in record.members.iter_mut().zip(&self.sessions) {
            let facts = session.settings.all.iter().flatten();
            let fact = |(key, value): (&String, &String)| Fact {
                key: key.clone(),
                value: Value::Text(value.clone()),
                unit: Unit::Text,
                source: String::new(),
            };
            member.host.facts = facts.map(fact).collect();
        }
        record
    }

    fn as_mesh(&self, now_ms: u64, ran: Option<Ran<'_>>) -> MeshRecord {
        let absent = |host: usize| self.is_silent(host, now_ms).then(|| "its agent is silent".to_owned());
        let address = |host: usize| self.address(host).map(|it| it.to_string()).unwrap_or_default();
        self.latest.record(self.fleet, &absent, &address, ran)
    }

    /// Where others load a host.
    fn address(&self, host: usize) -> Option<IpAddr> {
        let (_, from) = self.sessions[host].agent.as_ref()?;
        // By a loopback address each would load itself.
        let is_far = |it: &IpAddr| !it.is_loopback() && !it.is_unspecified();
        self.addresses[host].or(from.filter(is_far))
    }

    fn ticket(&self, lease: &Lease) -> Ticket {
        let Name { mesh, test, slot, load } = lease.name;
        let of = &self.fleet.meshes[mesh];
        Ticket {
            mesh: of.name.clone(),
            test: of.tests[test].word(),
            slot,
            from: self.names[load.from].to_owned(),
            to: self.names[load.to].to_owned(),
            fence: lease.fence,
        }
    }

    fn named(&self, ticket: &Ticket) -> Option<Name> {
        let mesh = self.fleet.meshes.iter().position(|it| it.name == ticket.mesh)?;
        let test = self.fleet.meshes[mesh].tests.iter().position(|it| it.word() == ticket.test)?;
        let load = Load { from: self.host(&ticket.from)?, to: self.host(&ticket.to)? };
        Some(Name { mesh, test, slot: ticket.slot, load })
    }
}
