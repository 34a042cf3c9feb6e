//! Loads between all of many hosts: members behind ssh, probes of all paths, rounds in which no host is in two loads, more pairs around what
//! is slow, and a diagnosis of each suspect.

mod host;
pub(crate) mod loads;
pub(crate) mod member;
pub(crate) mod members;
pub(crate) mod orders;
mod proof;
mod spec;

pub use member::obey;
pub use spec::{HOSTS_MAX, MeshHost, MeshSpec, listed};

use crate::Stop;
use loads::{BESIDE_MS, Loads};
use members::Members;
use narrows_mesh::Load;
use narrows_mesh::blame::Cell;
use narrows_mesh::design::{ALL_UP_TO, denser, testable_pairs};
use narrows_mesh::record::{cells, groups, hops};
use narrows_mesh::rounds::rounds;
use narrows_model::Run;
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPath, MeshRecord, MeshState};
use narrows_model::words::{show::plural, units};
use narrows_sys::clock;
use std::time::Duration;

/// Makes it once, or once in so long until it is stopped.
/// Errors: what `make` returns.
pub fn repeat<E>(every: Option<Duration>, stop: &Stop, make: &mut dyn FnMut() -> Result<(), E>) -> Result<(), E> {
    loop {
        let began = clock::now();
        make()?;
        let Some(every) = every else { return Ok(()) };
        rest(every.saturating_sub(began.elapsed()), stop);
        if stop.is_set() {
            return Ok(());
        }
    }
}

/// Waits so long, or until it is stopped.
pub fn rest(lasts: Duration, stop: &Stop) {
    let began = clock::now();
    while !stop.is_set() && began.elapsed() < lasts {
        clock::sleep(LOOKS.min(lasts.saturating_sub(began.elapsed())));
    }
}

/// How often a pause looks whether it was stopped.
const LOOKS: Duration = Duration::from_millis(200);

/// How often pairs are added around what looks slow.
const DENSER: usize = 2;

/// Makes the mesh; `watch` gets its progress. Loads that cannot be made are in the record. The second value: the runs of its diagnoses,
/// each with its place among them.
/// Errors: a name means nothing, or this program cannot be read.
pub fn run(
    spec: &MeshSpec,
    stop: &Stop,
    watch: &(dyn Fn(&str) + Sync),
) -> Result<(MeshRecord, Vec<(usize, Run)>), String> {
    let began = clock::now();
    let mut members = Members::join(spec, stop, watch)?;
    let mut record = MeshRecord {
        plan: spec.plan,
        members: members.inventories(spec),
        paths: Vec::new(),
        loads: Vec::new(),
        diagnoses: Vec::new(),
        ended_early: None,
        interrupted: false,
    };
    let present: Vec<usize> = (0..record.members.len()).filter(|it| record.members[*it].absent.is_none()).collect();
    watch(&format!("{} of {} hosts answer", present.len(), record.members.len()));
    if present.len() < 2 || stop.is_set() {
        record.interrupted = stop.is_set();
        return Ok((record, Vec::new()));
    }
    members.reach(&present);
    let members = members;
    let of_all = groups(&record);
    let groups: Vec<usize> = present.iter().map(|member| of_all[*member]).collect();
    let is_testable = |pair: &[usize; 2]| pair.iter().any(|it| members.connects(present[*it]));
    let mut pairs = testable_pairs(&groups, &is_testable);
    if pairs.is_empty() {
        return Ok((record, Vec::new()));
    }
    let named = |pairs: &[[usize; 2]]| pairs.iter().map(|pair| pair.map(|it| present[it])).collect::<Vec<_>>();
    if let Some(before) = &spec.resumes {
        (record.paths, record.loads) = taken_over(&record.members, before);
        for load in &mut record.loads {
            load.opened_by_receiver = members.unreached(load.from, load.to).is_some();
        }
        watch(&format!("{} taken over", plural(record.loads.len() as u64, "load")));
    }
    let is_probed =
        |[a, b]: &[usize; 2]| record.paths.iter().any(|it| [[*a, *b], [*b, *a]].contains(&[it.from, it.to]));
    let unprobed: Vec<_> = named(&pairs).into_iter().filter(|pair| !is_probed(pair)).collect();
    if spec.plan.probe_ms > 0 && !unprobed.is_empty() && !stop.is_set() {
        watch(&format!("probing {} at a low rate", plural(unprobed.len() as u64, "pair")));
        let probed = members.probe(&unprobed, spec.plan.probe_ms);
        // What was interrupted says nothing.
        record
            .paths
            .extend(probed.into_iter().filter(|it| !stop.is_set() || it.packets.is_some() || it.rtt_us.is_some()));
    }
    let mut loads = Loads::new(&members, stop, watch, began);
    let mut more = pairs.clone();
    for nth in 0..=DENSER {
        let rounds = planned(&record, present.len(), &more, &present, spec.concurrent);
        let lasts_ms = rounds.len() as u64 * (spec.plan.duration_ms + BESIDE_MS);
        watch(&format!(
            "{}{} in {}: about {}, and what is slow again alone",
            plural(rounds.iter().map(Vec::len).sum::<usize>() as u64, "load"),
            if nth == 0 { "" } else { " more around what is slow" },
            plural(rounds.len() as u64, "round"),
            units::micros(lasts_ms * 1_000)
        ));
        loads.rounds(&mut record, rounds);
        loads.again(&mut record);
        if stop.is_set() || present.len() <= ALL_UP_TO {
            break;
        }
        more = denser(&groups, &pairs, &of_present(&record, &present), &is_testable);
        if more.is_empty() {
            break;
        }
        pairs.extend(&more);
    }
    let runs = if spec.plan.diagnose { loads.diagnose(&mut record) } else { Vec::new() };
    record.interrupted = stop.is_set();
    Ok((record, runs))
}

/// The rounds of these pairs of present hosts, as places among all members: no more than `concurrent` over what traces say that they share,
/// or over what stands for all paths that no trace tells of.
fn planned(
    record: &MeshRecord,
    hosts: usize,
    pairs: &[[usize; 2]],
    present: &[usize],
    concurrent: usize,
) -> Vec<Vec<Load>> {
    let (known, of_way) = hops(record);
    let unknown = [known.len()];
    let of_way = |load: Load| {
        let way = of_way.get(&[present[load.from], present[load.to]]).map(Vec::as_slice);
        way.filter(|way| !way.is_empty()).unwrap_or(&unknown)
    };
    let named = |load: Load| Load { from: present[load.from], to: present[load.to] };
    let all = rounds(hosts, pairs, of_way, concurrent);
    let is_known = |load: &Load| record.loads.iter().any(|it| [it.from, it.to] == [load.from, load.to]);
    let left = |round: Vec<Load>| round.into_iter().map(named).filter(|load| !is_known(load)).collect();
    all.into_iter().map(left).filter(|round: &Vec<Load>| !round.is_empty()).collect()
}

/// What an earlier mesh measured between these hosts, which are known by their names.
fn taken_over(members: &[MeshMember], before: &MeshRecord) -> (Vec<MeshPath>, Vec<MeshLoad>) {
    let place = |old: usize| {
        let name = &before.members.get(old)?.name;
        members.iter().position(|member| member.name == *name && member.absent.is_none())
    };
    let both = |from: usize, to: usize| Some([place(from)?, place(to)?]);
    let is_known = |path: &&MeshPath| path.rtt_us.is_some() || path.mtu_bytes.is_some() || !path.hops.is_empty();
    let paths = before.paths.iter().filter(is_known).filter_map(|path| {
        let [from, to] = both(path.from, path.to)?;
        Some(MeshPath { from, to, ..path.clone() })
    });
    let is_measured = |load: &&MeshLoad| matches!(load.state, MeshState::Measured { .. });
    let loads = before.loads.iter().filter(is_measured).filter_map(|load| {
        let [from, to] = both(load.from, load.to)?;
        Some(MeshLoad { from, to, ..load.clone() })
    });
    (paths.collect(), loads.collect())
}

/// What was measured, by places among the present hosts.
fn of_present(record: &MeshRecord, present: &[usize]) -> Vec<Cell> {
    let place = |member: usize| present.iter().position(|it| *it == member);
    let (_, cells) = cells(record);
    let placed = cells.into_iter().filter_map(|cell| {
        let load = Load { from: place(cell.load.from)?, to: place(cell.load.to)? };
        Some(Cell { load, by_host: cell.by_host.and_then(place), ..cell })
    });
    placed.collect()
}
