//! What a round of tests says of hosts, paths and routers, so that one fault is one incident, whatever it is called.
//!
//! From round to round the same fault may look like a host, like its sending, or like one of its paths. What ties these together are the
//! paths that suffer: it is the same element if it has the same name, or else if it explains many of the same paths.

mod blamed;

pub(crate) use blamed::Before;

use crate::incident::{Incidents, Message, Rules, Seen};
use crate::plan::Kind;
use blamed::{Blamed, is_surrounded, late, lossy, packets, slow, together, with_past};
use narrows_mesh::Load;
use narrows_mesh::blame::{SLOW, blame};
use narrows_mesh::record::groups;
use narrows_model::run::mesh::MeshRecord;
use narrows_model::words::units::micros;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is bad, and what it was called.
#[derive(Debug, Default)]
pub struct Judge {
    incidents: Incidents,
    of: BTreeMap<String, Sides>,
}

/// What each kind of test shows of an element.
type Sides = BTreeMap<Kind, Side>;

#[derive(Debug, Default)]
struct Side {
    paths: BTreeSet<Load>,
    /// Whether its last round was bad.
    bad: bool,
    /// Whether it is a host on some of its paths.
    is_part: bool,
    /// Packets of probes that were sent and lost until its last bad round, where it loses some: of bad rounds alone it would be too many, …
    lost: Option<[u64; 2]>,
    /// … and in the rounds since.
    since: [u64; 2],
}

fn sum(some: [u64; 2], more: [u64; 2]) -> [u64; 2] {
    [0, 1].map(|at| u64::saturating_add(some[at], more[at]))
}

impl Side {
    /// Whether packets show that it loses no more what it lost: so many that losses as before would hardly have hidden in them.
    fn is_clean(&self) -> bool {
        let Some([sent, lost]) = self.lost else { return true };
        self.since[0] as f64 * lost as f64 >= (CLEAN + 2.0 * self.since[1] as f64) * sent as f64
    }
}

/// A [`Judge`] in names of hosts, which hold whatever becomes of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    incidents: Incidents,
    of: Vec<KeptSide>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptSide {
    element: String,
    kind: Kind,
    bad: bool,
    #[serde(default)]
    is_part: bool,
    paths: Vec<[String; 2]>,
    #[serde(default)]
    lost: Option<[u64; 2]>,
    #[serde(default)]
    since: [u64; 2],
}

/// Of an element that is bad for the first time so many paths are tested again: as many show that the others are, too.
const AGAIN: usize = 3;

/// Where so many losses are expected and none is there, chance did that once in a thousand times (Poisson distribution).
const CLEAN: f64 = 7.0;

/// An agent that said nothing for so long is silent.
pub const SILENT_MS: u64 = 60_000;

/// What is said of tests that find nothing, between their kind and their mesh.
pub const TESTS: &str = " tests of mesh ";
/// How incidents name the token of a host, before its name.
pub(crate) const TOKEN: &str = "the token of ";

/// A clock that is out by more is an incident: times of different hosts cannot be put beside each other.
pub(crate) const CLOCK_MS: u64 = 2_000;

/// What is known of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Now,
    /// It may still poll.
    Unknown,
    SilentSince(u64),
}

/// From so many agents on some are a group.
const GROUP: usize = 3;
/// So many of a group that are silent are one incident, which is over when few are.
const MOST: f64 = 0.75;
const FEW: f64 = 0.25;
/// Agents that one fault silences do not fall silent at one moment: they poll each half a minute.
const OTHERS_MS: u64 = 30_000;

fn seconds(now_ms: u64, since_ms: u64) -> String {
    format!("{} s", now_ms.saturating_sub(since_ms) / 1_000)
}

impl Judge {
    /// To be kept.
    pub(crate) fn kept(&self, names: &[&str]) -> Kept {
        let named = |load: &Load| [load.from, load.to].map(|host| names[host].to_owned());
        let sides =
            self.of.iter().flat_map(|(element, sides)| sides.iter().map(move |(kind, side)| (element, kind, side)));
        let kept = |(element, kind, side): (&String, &Kind, &Side)| KeptSide {
            element: element.clone(),
            kind: *kind,
            bad: side.bad,
            is_part: side.is_part,
            paths: side.paths.iter().map(named).collect(),
            lost: side.lost,
            since: side.since,
        };
        Kept { incidents: self.incidents.clone(), of: sides.map(kept).collect() }
    }

    /// As it was kept; hosts that are gone and paths that are tested no more are left out.
    pub(crate) fn restored(kept: Kept, names: &[&str], is_tested: &dyn Fn(Kind, &Load) -> bool) -> Self {
        let place = |name: &String| names.binary_search(&name.as_str()).ok();
        let load = |[from, to]: &[String; 2]| Some(Load { from: place(from)?, to: place(to)? });
        let mut of: BTreeMap<String, Sides> = BTreeMap::new();
        for KeptSide { element, kind, bad, is_part, paths, lost, since } in kept.of {
            let paths: BTreeSet<Load> = paths.iter().filter_map(load).filter(|load| is_tested(kind, load)).collect();
            let sides = of.entry(element).or_default();
            if !paths.is_empty() {
                sides.insert(kind, Side { paths, bad, is_part, lost, since });
                continue;
            }
            // Nothing tests it any more: whatever is tested next ends it.
            for kind in [Kind::Load, Kind::Probe] {
                sides.entry(kind).or_insert(Side { is_part, ..Side::default() });
            }
        }
        Self { incidents: kept.incidents, of }
    }

    pub fn new(rules: Rules) -> Self {
        Self { incidents: Incidents::new(rules), ..Self::default() }
    }

    pub const fn incidents(&mut self) -> &mut Incidents {
        &mut self.incidents
    }

    /// What is open, to be read.
    pub fn open(&self) -> Vec<&crate::incident::Incident> {
        self.incidents.open()
    }

    /// All agents of the file, each with its group. Where most of a group are silent, that is one incident, and where most of all are.
    pub(crate) fn agents(&mut self, now_ms: u64, agents: &[(&str, &str, Heard)]) -> Vec<Message> {
        let groups: BTreeSet<&str> = agents.iter().map(|(_, group, _)| *group).collect();
        let of_group = |group: &str| (format!("the agents of group {group}"), Some(group.to_owned()));
        let mut sets = vec![("all agents".to_owned(), None)];
        sets.extend(groups.iter().filter(|group| groups.len() > 1 && !group.is_empty()).map(|group| of_group(group)));
        let mut seen: Vec<(String, Seen)> = Vec::new();
        let mut covered: BTreeSet<&str> = BTreeSet::new();
        for (element, group) in sets {
            let of: Vec<_> = agents.iter().filter(|it| group.as_deref().is_none_or(|group| it.1 == group)).collect();
            let since = |heard: Heard| if let Heard::SilentSince(since_ms) = heard { Some(since_ms) } else { None };
            let silent: Vec<u64> = of.iter().filter_map(|(.., heard)| since(*heard)).collect();
            let there = of.iter().filter(|(.., heard)| *heard == Heard::Now).count() as f64;
            let part = silent.len() as f64 / of.len().max(1) as f64;
            let is_bad = of.len() >= GROUP && part >= MOST && of.iter().any(|(name, ..)| !covered.contains(name));
            let says = silent.iter().min().map_or_else(String::new, |since_ms| {
                format!("nothing is heard of {} of {} for {}", silent.len(), of.len(), seconds(now_ms, *since_ms))
            });
            if is_bad || self.incidents.knows(&element) {
                covered.extend(of.iter().map(|(name, ..)| *name));
            }
            if let Some(since_ms) = silent.iter().min().filter(|_| is_bad) {
                self.incidents.was_bad(&element, *since_ms);
            }
            let found = if is_bad {
                Seen::Bad(says)
            } else if of.is_empty() || there > (1.0 - FEW) * of.len() as f64 {
                Seen::Good
            } else {
                Seen::Unknown
            };
            seen.push((element, found));
        }
        for (name, _, heard) in agents {
            let found = match heard {
                Heard::Now => Seen::Good,
                Heard::Unknown => Seen::Unknown,
                // Others of its group may be silent a little later.
                Heard::SilentSince(since_ms) if covered.contains(name) || now_ms < since_ms + SILENT_MS + OTHERS_MS => {
                    Seen::Unknown
                }
                Heard::SilentSince(since_ms) => {
                    self.incidents.was_bad(&format!("agent {name}"), *since_ms);
                    Seen::Bad(format!("nothing is heard of it for {}", seconds(now_ms, *since_ms)))
                }
            };
            seen.push((format!("agent {name}"), found));
        }
        // Those that left the file are silent no more.
        let known: BTreeSet<String> = seen.iter().map(|(element, _)| element.clone()).collect();
        let is_gone = |it: &&crate::incident::Incident| {
            it.element.starts_with("agent ") || it.element.starts_with("the agents of ")
        };
        let gone = self.incidents.open().into_iter().filter(is_gone).filter(|it| !known.contains(&it.element));
        let gone: Vec<_> = gone.map(|it| (it.element.clone(), Seen::Good)).collect();
        seen.retain(|(name, seen)| matches!(seen, Seen::Bad(_)) || self.incidents.knows(name));
        seen.extend(gone);
        self.incidents.round(now_ms, &seen)
    }

    /// The tests of the file, and whether each finds something; and tokens that two agents have.
    pub(crate) fn tests(&mut self, now_ms: u64, tests: &[(String, Seen)]) -> Vec<Message> {
        let is_of = |element: &String| element.contains(TESTS) || element.starts_with(TOKEN);
        let is_gone = |element: &String| is_of(element) && !tests.iter().any(|(known, _)| known == element);
        let gone: Vec<String> =
            self.incidents.open().into_iter().map(|it| it.element.clone()).filter(is_gone).collect();
        let mut seen = tests.to_vec();
        seen.retain(|(name, seen)| matches!(seen, Seen::Bad(_)) || self.incidents.knows(name));
        seen.extend(gone.into_iter().map(|element| (element, Seen::Good)));
        self.incidents.round(now_ms, &seen)
    }

    /// Clocks, each with by how much it is behind the controller's, ms.
    pub(crate) fn clocks(&mut self, now_ms: u64, clocks: &[(&str, i64)], names: &[&str]) -> Vec<Message> {
        let is_off = |behind_ms: i64| behind_ms.unsigned_abs() > CLOCK_MS;
        let says = |behind_ms: i64| {
            let way = if behind_ms > 0 { "behind" } else { "ahead of" };
            format!("it is {} {way} the controller's", micros(behind_ms.unsigned_abs().saturating_mul(1_000)))
        };
        let off = clocks.iter().filter(|(_, behind_ms)| is_off(*behind_ms)).count();
        // Where most are off, it is the controller's own.
        let is_own = clocks.len() >= GROUP && off as f64 >= MOST * clocks.len() as f64;
        let own =
            if is_own { Seen::Bad(format!("{off} of {} hosts have another time", clocks.len())) } else { Seen::Good };
        let mut seen = vec![("the controller's clock".to_owned(), own)];
        for (name, behind_ms) in clocks {
            let found = match is_off(*behind_ms) {
                false => Seen::Good,
                true if is_own => Seen::Unknown,
                true => Seen::Bad(says(*behind_ms)),
            };
            seen.push((format!("the clock of {name}"), found));
        }
        seen.retain(|(name, seen)| matches!(seen, Seen::Bad(_)) || self.incidents.knows(name));
        // Those that left the file.
        let host = |element: &str| element.strip_prefix("the clock of ").map(str::to_owned);
        let open = self.incidents.open().into_iter().map(|it| it.element.clone());
        let is_gone = |element: &String| host(element).is_some_and(|name| names.binary_search(&name.as_str()).is_err());
        seen.extend(open.filter(is_gone).map(|element| (element, Seen::Good)));
        self.incidents.round(now_ms, &seen)
    }

    /// A round of tests of one kind: `fresh` are the paths of which it found something.
    pub(crate) fn round(
        &mut self,
        now_ms: u64,
        record: &MeshRecord,
        kind: Kind,
        fresh: &BTreeSet<Load>,
        before: &Before<'_>,
    ) -> Vec<Message> {
        let (mut blamed, bad) = match kind {
            Kind::Load => slow(record, before),
            Kind::Probe => {
                let (mut blamed, mut bad) = lossy(record);
                let (late, paths) = late(record, before, &bad);
                blamed.extend(late);
                bad.extend(paths);
                (blamed, bad)
            }
        };
        let tested = match kind {
            Kind::Load => record.loads.len(),
            Kind::Probe => 2 * record.paths.len(),
        };
        blamed = together(blamed, tested);
        // That it is one path alone is not known where most others of its hosts were not measured, or by starved hosts.
        let is_lone =
            |it: &Blamed| it.paths.len() == 1 && it.paths.iter().all(|load| !is_surrounded(record, fresh, *load));
        blamed.retain(|it| kind == Kind::Probe || !is_lone(it));
        let mut seen = Vec::new();
        let mut matched = BTreeSet::new();
        // Those that keep their names come first, so that no other one takes them.
        blamed.sort_by_key(|it| !self.of.contains_key(&it.element));
        // What was found before this round was judged before.
        for Blamed { element, says, paths, is_part, lost } in
            blamed.into_iter().filter(|it| !it.paths.is_disjoint(fresh))
        {
            let key = self.named(kind, element, &paths, fresh, &matched);
            matched.insert(key.clone());
            let sides = self.of.entry(key.clone()).or_default();
            let before = sides.get(&kind).and_then(|it| Some(sum(it.lost?, it.since)));
            let lost = lost.map(|lost| before.map_or(lost, |before| sum(before, lost)));
            sides.insert(kind, Side { paths, bad: true, is_part, lost, since: [0; 2] });
            seen.push((key, Seen::Bad(says)));
        }
        for (key, sides) in self.of.iter_mut().filter(|(key, _)| !matched.contains(*key)) {
            let Some(side) = sides.get_mut(&kind) else { continue };
            // What it was on may be in the file no more.
            if !side.paths.is_empty() && side.paths.is_disjoint(fresh) {
                continue;
            }
            // Of the few packets that loads of the fleet leave alone none may be lost by chance.
            let more = packets(record, |load| side.paths.contains(load) && fresh.contains(load));
            side.since = sum(side.since, more);
            if kind == Kind::Probe && !side.is_clean() {
                seen.push((key.clone(), Seen::Unknown));
                continue;
            }
            side.bad &=
                !side.paths.is_empty() && !side.paths.iter().any(|path| fresh.contains(path) && !bad.contains(path));
            // What only loads, or only probes, show to be well is not.
            let is_bad = sides.values().any(|side| side.bad);
            seen.push((key.clone(), if is_bad { Seen::Unknown } else { Seen::Good }));
        }
        self.report(now_ms, &seen)
    }

    /// Loads that were made again, alone. Where they are as slow, what several paths bear out counts as seen in another round; one path
    /// alone does not: where a fault begins in the middle of a round, all that it slows down looks like that. Nor do many at once.
    pub(crate) fn again(
        &mut self,
        now_ms: u64,
        record: &MeshRecord,
        fresh: &BTreeSet<Load>,
        before: &Before<'_>,
    ) -> Vec<Message> {
        let cells = with_past(record, before);
        let expected = blame(&groups(record), &cells).expected_bps;
        let is_slow = |load: &Load| {
            let at = cells.binary_search_by_key(load, |cell| cell.load).ok();
            at.is_some_and(|at| cells[at].goodput_bps < SLOW * expected[at])
        };
        // Many at once may be one thing, of which this round saw a part.
        let is_new = |(key, sides): &(&String, &Sides)| {
            !self.incidents.is_open(key) && sides.get(&Kind::Load).is_some_and(|side| side.bad && side.paths.len() > 1)
        };
        let are_many = self.of.iter().filter(is_new).count() >= GROUP;
        let mut seen = Vec::new();
        for (key, sides) in &mut self.of {
            let Some(side) = sides.get_mut(&Kind::Load) else { continue };
            let mut tested = side.paths.intersection(fresh).peekable();
            if tested.peek().is_none() {
                continue;
            }
            side.bad = tested.any(is_slow);
            seen.push((
                key.clone(),
                match (side.bad, side.paths.len()) {
                    (true, count) if count == 1 || side.is_part || are_many => Seen::Unknown,
                    (true, _) => Seen::Bad(self.incidents.says(key)),
                    (false, _) if sides.values().any(|side| side.bad) => Seen::Unknown,
                    (false, _) => Seen::Good,
                },
            ));
        }
        self.report(now_ms, &seen)
    }

    fn report(&mut self, now_ms: u64, seen: &[(String, Seen)]) -> Vec<Message> {
        let messages = self.incidents.round(now_ms, seen);
        let incidents = &self.incidents;
        self.of.retain(|key, _| incidents.knows(key));
        messages
    }

    /// The paths of an element that are bad: those of loads, else those of probes.
    pub(crate) fn paths(&self, element: &str) -> Option<&BTreeSet<Load>> {
        let sides = self.of.get(element)?;
        let known = [Kind::Load, Kind::Probe].map(|kind| sides.get(&kind).filter(|side| !side.paths.is_empty()));
        let bad = known.iter().flatten().find(|side| side.bad);
        bad.or_else(|| known.iter().flatten().next()).map(|side| &side.paths)
    }

    /// Paths that are to be tested again at once, alone, before what they show is reported.
    pub(crate) fn doubtful(&self) -> Vec<Load> {
        let pending = self.of.iter().filter(|(key, _)| !self.incidents.is_open(key));
        let loads = pending.filter_map(|(_, sides)| sides.get(&Kind::Load).filter(|side| side.bad));
        loads.flat_map(|side| side.paths.iter().copied().take(AGAIN)).collect()
    }

    /// The name by which an element goes on: its own, or that of the open incident that it is. What is not reported yet takes the new
    /// name, and so does what was a part of it.
    fn named(
        &mut self,
        kind: Kind,
        element: String,
        paths: &BTreeSet<Load>,
        fresh: &BTreeSet<Load>,
        taken: &BTreeSet<String>,
    ) -> String {
        let shared = |(key, sides): (&String, &Sides)| {
            let known = &sides.get(&kind)?.paths;
            let count = known.intersection(paths).count();
            // One of many paths that is still bad, while the others are well, is something else.
            let is_rest = (count as f64) < FEW * known.intersection(fresh).count() as f64;
            (count > 0 && !is_rest && !taken.contains(key)).then(|| (count, known.len(), key.clone()))
        };
        let mut before: Vec<(usize, usize, String)> = self.of.iter().filter_map(shared).collect();
        before.sort_unstable();
        let same = (self.of.contains_key(&element) && !taken.contains(&element)).then(|| element.clone());
        let most = |count: &usize, known: &usize| 2 * known >= paths.len() && 2 * count >= *known.min(&paths.len());
        let open = before.iter().rev().find(|(count, known, key)| self.incidents.is_open(key) && most(count, known));
        let key = same.or_else(|| open.map(|(.., key)| key.clone())).unwrap_or_else(|| {
            if let Some((.., most)) = before.iter().rev().find(|(.., key)| !self.incidents.is_open(key)) {
                self.incidents.rename(most, &element);
                if let Some(sides) = self.of.remove(most) {
                    self.of.insert(element.clone(), sides);
                }
            }
            element
        });
        for (.., part) in before {
            // What was reported has an end of its own.
            let stays = self.incidents.is_open(&part) || self.of.get(&part).is_none_or(|sides| sides.len() > 1);
            if part != key && !stays {
                self.incidents.forget(&part);
                self.of.remove(&part);
            }
        }
        key
    }
}
