//! The loads of a mesh: rounds of them, what is slow once more alone, and a diagnosis of each suspect.

use super::members::{AROUND, Members};
use super::orders::{Answer, LoadOrder, Loaded, Order};
use crate::diagnosis::usual::{self, DIAGNOSIS_MS};
use crate::{Stop, result_of};
use narrows_mesh::Load;
use narrows_mesh::blame::{Element, Suspect, blame};
use narrows_mesh::record::{cells, groups};
use narrows_model::run::mesh::{MeshDiagnosis, MeshLoad, MeshRecord, MeshState};
use narrows_model::run::report::VerdictView;
use narrows_model::words::figures::float;
use narrows_model::words::show::{clean, plural};
use narrows_model::words::units;
use narrows_model::{Direction, Ending, Place, Run, Status};
use narrows_sys::clock;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// So many slow loads of an element that are as slow alone show that the others of it are, too.
const CONFIRM: usize = 3;

/// No load carries more; a member may say anything.
const MOST_BPS: f64 = 1e14;

/// Suspects that are diagnosed.
const DIAGNOSED: usize = 6;

/// Connecting and reading of counters around a load.
pub(super) const BESIDE_MS: u64 = 1_500;

/// A verdict whose places are hosts: its sentence, its first cause, and the first command that mends it.
pub(crate) fn said(verdict: &VerdictView, place: impl Fn(Place) -> String) -> (String, Option<String>, Option<String>) {
    let Some(cause) = verdict.causes.first().filter(|_| verdict.status == Status::Limited) else {
        return (verdict.headline.clone(), verdict.causes.first().map(|it| it.id.clone()), None);
    };
    let says = format!("{} by {} {}: {}", units::bps(verdict.goodput_bps), cause.id, place(cause.at), cause.summary);
    let fix = cause.fix.commands.first().map(|it| format!("{}: {}", place(it.at), it.run));
    (says, Some(cause.id.clone()), fix)
}

/// Who makes loads.
pub(super) struct Loads<'a> {
    pub(super) members: &'a Members,
    pub(super) stop: &'a Stop,
    pub(super) watch: &'a (dyn Fn(&str) + Sync),
    pub(super) began: Instant,
    carried_bytes: f64,
}

impl<'a> Loads<'a> {
    pub(super) fn new(members: &'a Members, stop: &'a Stop, watch: &'a (dyn Fn(&str) + Sync), began: Instant) -> Self {
        Self { members, stop, watch, began, carried_bytes: 0.0 }
    }

    /// Why no more of what lasts so long begins, if so.
    pub(super) fn spent(&self, record: &MeshRecord, lasts_ms: u64) -> Option<&'static str> {
        let plan = &record.plan;
        let late = plan.budget_ms.is_some_and(|most| clock::micros_since(self.began) / 1_000 + lasts_ms > most);
        let much = plan.budget_bytes.is_some_and(|most| self.carried_bytes >= float(most));
        match (late, much) {
            (true, _) => Some("--budget is used up"),
            (_, true) => Some("--budget-bytes is used up"),
            _ => None,
        }
    }

    /// Makes these rounds; what is not made any more is in the record as well.
    pub(super) fn rounds(&mut self, record: &mut MeshRecord, rounds: Vec<Vec<Load>>) {
        let total = rounds.len();
        for (nth, round) in rounds.into_iter().enumerate() {
            let made: Vec<MeshLoad> = round.into_iter().map(|load| self.to_make(load)).collect();
            let spent = self.spent(record, record.plan.duration_ms);
            if self.stop.is_set() || spent.is_some() {
                record.loads.extend(made);
                record.ended_early = record.ended_early.take().or(spent.map(str::to_owned));
                continue;
            }
            let loads = plural(made.len() as u64, "load");
            (self.watch)(&format!("round {} of {total}: {loads} at the same time", nth + 1));
            let (before, count) = (self.carried_bytes, made.len());
            let made = self.make(made, record);
            record.loads.extend(made);
            if nth == 0 && total > 1 {
                let bytes = (self.carried_bytes - before) * total as f64;
                let all = plural((count * total) as u64, "load");
                (self.watch)(&format!("at this rate about {} for about {all}", units::bytes(bytes as u64)));
            }
        }
    }

    /// A load that nobody has made yet.
    fn to_make(&self, Load { from, to }: Load) -> MeshLoad {
        let [there, back] = [self.members.unreached(from, to), self.members.unreached(to, from)];
        let state = match (there, back, self.members.at(from), self.members.at(to)) {
            (Some(there), Some(back), Some((a, ..)), Some((b, ..))) => {
                let both = if there == back { there.to_owned() } else { format!("{there}; back: {back}") };
                let shared = if a.ip() == b.ip() { format!(": both are behind {}", a.ip()) } else { String::new() };
                MeshState::Unreachable(format!("{both}{shared}"))
            }
            _ => MeshState::NotMade,
        };
        let state = if self.stop.is_set() { MeshState::NotMade } else { state };
        MeshLoad { from, to, opened_by_receiver: there.is_some(), state, beside_others_bps: None }
    }

    /// Makes these loads at the same time, those that can be.
    fn make(&mut self, loads: Vec<MeshLoad>, record: &MeshRecord) -> Vec<MeshLoad> {
        let (this, stop, duration_ms) = (&*self, self.stop, record.plan.duration_ms);
        let made: Vec<MeshLoad> = std::thread::scope(|scope| {
            let make = |mut load: MeshLoad| {
                if matches!(load.state, MeshState::Unreachable(_)) {
                    return load;
                }
                load.state = match this.one(&load, record) {
                    Ok(Loaded { goodput_bps, retransmits, busy }) => {
                        let busy = busy.map(|share| share.filter(|share| (0.0..=1.0).contains(share)));
                        MeshState::Measured { goodput_bps, retransmits, busy }
                    }
                    Err(_) if stop.is_set() => MeshState::NotMade,
                    Err(why) => MeshState::Failed(why),
                };
                load
            };
            let making: Vec<_> = loads.into_iter().map(|load| scope.spawn(move || make(load))).collect();
            making.into_iter().map(|it| result_of(it.join())).collect()
        });
        for load in &made {
            if let MeshState::Measured { goodput_bps, .. } = load.state {
                self.count(goodput_bps, duration_ms);
            }
        }
        made
    }

    /// Who opens the connections of a load, and what it is asked.
    fn order(&self, load: &MeshLoad, record: &MeshRecord, duration_ms: u64) -> Result<(usize, LoadOrder), String> {
        let (by, other, direction) = if load.opened_by_receiver {
            (load.to, load.from, Direction::Down)
        } else {
            (load.from, load.to, Direction::Up)
        };
        let (to, token, _) = self.members.at(other).ok_or("the other host is gone")?;
        let plan = usual::load(record.plan.streams, direction, duration_ms);
        Ok((by, LoadOrder { to, token, plan }))
    }

    pub(super) fn one(&self, load: &MeshLoad, record: &MeshRecord) -> Result<Loaded, String> {
        let duration_ms = record.plan.duration_ms;
        let (by, order) = self.order(load, record, duration_ms)?;
        match self.members.ask(by, &Order::Load(order), AROUND + Duration::from_millis(duration_ms))? {
            Answer::Loaded(loaded) if (0.0..MOST_BPS).contains(&loaded.goodput_bps) => Ok(loaded),
            Answer::Loaded(_) => Err("invalid figures in its answer".to_owned()),
            _ => Err("unexpected answer".to_owned()),
        }
    }

    /// What a load carried counts for the budget.
    pub(super) fn count(&mut self, goodput_bps: f64, duration_ms: u64) {
        self.carried_bytes += goodput_bps * float(duration_ms) / 8e3;
    }

    /// What was slow may have been disturbed: once more, alone. A few of each suspect, or of a host without time, are enough where they are
    /// as slow alone; a load that nothing else bears out is repeated twice.
    pub(super) fn again(&mut self, record: &mut MeshRecord) {
        let mut tried: BTreeMap<usize, usize> = BTreeMap::new();
        while !self.stop.is_set() {
            let (places, cells) = cells(record);
            let found = blame(&groups(record), &cells);
            let place =
                |load: &Load| places.iter().copied().zip(&cells).find(|(_, cell)| cell.load == *load).map(|it| it.0);
            let of_suspect = |it: &Suspect| {
                let times = if matches!(it.element, Element::Pair(..)) { 2 } else { 1 };
                (it.loads.iter().filter_map(place).collect(), times)
            };
            // A host without time may have it when there is one load: a few of them show it, whatever comes out.
            let of_starved = |host: &usize| {
                let all = places.iter().zip(cells.iter().zip(&found.expected_bps));
                let of_host = |at: &usize| [record.loads[*at].from, record.loads[*at].to].contains(host);
                let left = CONFIRM.saturating_sub(tried.keys().copied().filter(of_host).count());
                let its = all.filter(|(_, (cell, bps))| cell.starved(**bps) == Some(*host)).map(|(at, _)| *at);
                (its.filter(|at| !tried.contains_key(at)).take(left).collect(), 1)
            };
            let all = found.suspects.iter().map(of_suspect).chain(found.starved.iter().map(of_starved));
            let next = all.into_iter().find_map(|(of, times): (Vec<usize>, usize)| {
                let known = |at: &&usize| match tried.get(at) {
                    Some(count) => *count >= times,
                    None => record.loads[**at].beside_others_bps.is_some(),
                };
                let left = of.iter().find(|at| !known(at)).copied();
                left.filter(|_| of.iter().filter(known).count() < CONFIRM)
            });
            let Some(place) = next else { return };
            if let Some(why) = self.spent(record, record.plan.duration_ms) {
                record.ended_early.get_or_insert_with(|| why.to_owned());
                return;
            }
            *tried.entry(place).or_default() += 1;
            let load = record.loads[place].clone();
            let MeshState::Measured { goodput_bps: before, .. } = load.state else { continue };
            let name = |at: usize| record.members.get(at).map_or("", |it| it.name.as_str());
            (self.watch)(&format!("slow; repeating alone: {} to {}", name(load.from), name(load.to)));
            let made = self.make(vec![load], record).pop();
            if let Some(made) = made.filter(|made| matches!(made.state, MeshState::Measured { .. })) {
                let beside_others_bps = record.loads[place].beside_others_bps.or(Some(before));
                record.loads[place] = MeshLoad { beside_others_bps, ..made };
            }
        }
    }

    /// Diagnoses the worst load of each suspect and of what loses packets; the runs that were made, each with its place in the record.
    pub(super) fn diagnose(&mut self, record: &mut MeshRecord) -> Vec<(usize, Run)> {
        let found = narrows_views::mesh::report(record);
        let suspects = found.suspects.into_iter().map(|it| (it.element, it.worst));
        let suspects = suspects.chain(found.losing.into_iter().filter_map(|it| Some((it.element, it.worst?))));
        let mut runs = Vec::new();
        for (element, [from, to]) in suspects.take(DIAGNOSED) {
            if self.stop.is_set() {
                break;
            }
            if let Some(why) = self.spent(record, DIAGNOSIS_MS) {
                record.ended_early.get_or_insert_with(|| why.to_owned());
                break;
            }
            let Some(load) = record.loads.iter().find(|load| [load.from, load.to] == [from, to]) else { continue };
            if record.diagnoses.iter().any(|it| [it.from, it.to] == [from, to]) {
                continue;
            }
            (self.watch)(&format!("diagnosing {element}: up to {} s", DIAGNOSIS_MS / 1_000));
            let patience = AROUND + Duration::from_millis(2 * DIAGNOSIS_MS);
            let asked = self.order(load, record, DIAGNOSIS_MS * 2 / 5).and_then(|(by, order)| {
                match self.members.ask(by, &Order::Diagnose(order), patience)? {
                    Answer::Diagnosed(run) => Ok(*run),
                    _ => Err("unexpected answer".to_owned()),
                }
            });
            let opener = if load.opened_by_receiver { [to, from] } else { [from, to] };
            let (headline, cause, fix) = match asked.as_ref().map(narrows_diagnose::report) {
                Ok(Some(report)) => said(&report.verdict, |place| match place {
                    Place::Path => "on the path".to_owned(),
                    Place::Client => format!("at {}", record.members[opener[0]].name),
                    Place::Server => format!("at {}", record.members[opener[1]].name),
                }),
                Ok(None) => match asked.as_ref().map(|run| &run.ending) {
                    Ok(Ending::Failed(why)) => (format!("the diagnosis failed: {}", clean(why)), None, None),
                    _ => ("nothing was measured".to_owned(), None, None),
                },
                Err(_) if self.stop.is_set() => break,
                Err(why) => (format!("the diagnosis failed: {why}"), None, None),
            };
            let reads = asked.as_ref().ok().zip(cause.as_deref()).map_or_else(Vec::new, |(run, cause)| {
                let weighed = narrows_diagnose::weigh(run, 0, cause).unwrap_or_default();
                weighed.into_iter().take(1).flat_map(|it| it.read).map(|(key, _)| key).collect()
            });
            self.carried_bytes += asked.as_ref().map_or(0.0, |run| float(narrows_diagnose::carried_bytes(run)));
            let run = asked.as_ref().ok().filter(|_| record.plan.try_fixes);
            let load = load.clone();
            let tried = run.and_then(|run| self.proved(record, &load, run));
            record.diagnoses.push(MeshDiagnosis { from, to, headline, cause, reads, fix, tried, run: None });
            runs.extend(asked.ok().map(|run| (record.diagnoses.len() - 1, run)));
        }
        runs
    }
}
