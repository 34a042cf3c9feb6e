//! Loads between all of many hosts: members behind ssh, who may load whom, rounds in which no host is in two loads, and what is slow once
//! more alone.

mod host;
mod member;
mod orders;

pub use member::obey;

use crate::remote::{SshServer, TargetSpec};
use crate::{DEFAULT_PORT, Stop, lock, result_of};
use host::{Host, Program};
use narrows_mesh::blame::SLOW;
use narrows_mesh::design::pairs;
use narrows_mesh::rounds::rounds;
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::run::mesh::{MeshLoad, MeshMember, MeshPlan, MeshRecord, MeshState};
use narrows_model::{Direction, Snapshot};
use narrows_views::mesh::cells;
use orders::{Answer, Hello, LoadOrder, Loaded, Order};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// A host as the user names it.
#[derive(Debug, Clone)]
pub struct MeshHost {
    /// `ssh://[user@]host[:port]`.
    pub name: String,
    /// Empty without one.
    pub group: String,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct MeshSpec {
    pub hosts: Vec<MeshHost>,
    pub plan: MeshPlan,
    /// The most loads at the same time.
    pub concurrent: usize,
    /// The command that is narrows on the hosts; `None`: theirs, where it is of this version, else this program.
    pub remote_command: Option<String>,
}

/// The most hosts: each is an ssh process and two threads of this one.
pub const HOSTS_MAX: usize = 200;

/// A host may take so long to let this one in and to get the program.
const GREETS: Duration = Duration::from_secs(60);
/// Beside the load: connections, slow start of a busy host, the reading of its counters.
const AROUND: Duration = Duration::from_secs(20);

/// The hosts of a file: one in each line, with its group behind it; `#` begins a remark.
///
/// # Errors
/// The file cannot be read.
pub fn listed(file: &Path) -> Result<Vec<MeshHost>, String> {
    let text = narrows_sys::files::read_text(file).map_err(|error| format!("cannot read the hosts: {error}"))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    let hosts = lines.filter_map(|mut words| {
        let name = words.next()?;
        let name = if name.contains("://") { name.to_owned() } else { format!("ssh://{name}") };
        Some(MeshHost { name, group: words.next().unwrap_or_default().to_owned() })
    });
    Ok(hosts.collect())
}

/// A member that answers, or why it does not.
type Joined = Mutex<Result<(Host, Hello, IpAddr), String>>;

/// Makes the mesh; `watch` gets its progress. Loads that cannot be made are in the record.
///
/// # Errors
/// A name means nothing, or this program cannot be read.
pub fn run(spec: &MeshSpec, stop: &Stop, watch: &(dyn Fn(&str) + Sync)) -> Result<MeshRecord, String> {
    let members = join(spec, stop, watch)?;
    let mut record =
        MeshRecord { plan: spec.plan, members: inventories(spec, &members), loads: Vec::new(), interrupted: false };
    let present: Vec<usize> = (0..members.len()).filter(|member| record.members[*member].absent.is_none()).collect();
    watch(&format!("{} of {} hosts answer", present.len(), members.len()));
    let reached = reach(&members, &present);
    let mut groups: Vec<usize> = Vec::new();
    for member in &present {
        let group = &spec.hosts[*member].group;
        let same = present.iter().position(|other| spec.hosts[*other].group == *group);
        groups.push(same.unwrap_or_default());
    }
    let all = pairs(&groups);
    // What all share stands for a limit on all.
    let rounds = rounds(present.len(), &all, |_| &[0], spec.concurrent);
    let total = rounds.len();
    for (nth, round) in rounds.into_iter().enumerate() {
        let wanted = round.into_iter().map(|load| [present[load.from], present[load.to]]);
        let made: Vec<MeshLoad> = wanted.map(|pair| to_make(pair, &members, &reached)).collect();
        if stop.is_set() {
            record.loads.extend(made);
            continue;
        }
        watch(&format!("round {} of {total}: {} at the same time", nth + 1, loads(made.len())));
        record.loads.extend(make(made, &members, spec.plan, stop));
    }
    again(&mut record, &members, stop, watch);
    record.interrupted = stop.is_set();
    Ok(record)
}

fn loads(count: usize) -> String {
    narrows_model::words::show::plural(count as u64, "load")
}

/// The address of a host, by the ssh configuration and the resolver of this one: a host could report the address of a third one.
fn address(server: &SshServer) -> Result<IpAddr, String> {
    let mut ask = narrows_sys::process::ssh_command("ssh");
    ask.args(["-G", "--", &server.destination]);
    let told = ask.output().map_err(|error| format!("cannot start ssh: {error}"))?;
    let told = String::from_utf8_lossy(&told.stdout);
    let name = told.lines().find_map(|line| line.strip_prefix("hostname "));
    let name = name.ok_or("ssh does not know the host")?;
    let found = narrows_sys::names::addresses(name).map_err(|error| error.to_string())?;
    found
        .into_iter()
        .find(|address| !address.is_loopback())
        .ok_or_else(|| format!("{name} has only a loopback address"))
}

fn join(spec: &MeshSpec, stop: &Stop, watch: &(dyn Fn(&str) + Sync)) -> Result<Vec<Joined>, String> {
    let program = Program::own()?;
    let server = |host: &MeshHost| {
        let target = TargetSpec { asked: host.name.clone(), family: None, port: DEFAULT_PORT, token: None };
        let (_, _, server) = target.server().map_err(|error| error.to_string())?;
        server.ok_or_else(|| format!("cannot use {}: write ssh://{0}", host.name))
    };
    let servers = spec.hosts.iter().map(server).collect::<Result<Vec<_>, _>>()?;
    // From this thread: ssh ends with the thread that started it.
    let start = |server: SshServer| (Host::start(&server, &program, spec.remote_command.as_deref(), stop), server);
    let started: Vec<_> = servers.into_iter().map(start).collect();
    watch(&format!("connecting to {} hosts", started.len()));
    Ok(std::thread::scope(|scope| {
        let greet = |(host, server): (Result<Host, String>, SshServer)| {
            let mut host = host?;
            let hello = host.greet(&program, GREETS)?;
            Ok((host, hello, address(&server)?))
        };
        let greeting: Vec<_> = started.into_iter().map(|it| scope.spawn(move || Mutex::new(greet(it)))).collect();
        greeting.into_iter().map(|it| result_of(it.join())).collect()
    }))
}

/// Asks one member.
fn ask(member: &Joined, order: &Order, patience: Duration) -> Result<Answer, String> {
    match &mut *lock(member) {
        Ok((host, ..)) => host.ask(order, patience),
        Err(why) => Err(why.clone()),
    }
}

fn at(member: &Joined) -> Option<SocketAddr> {
    lock(member).as_ref().ok().map(|(_, hello, address)| SocketAddr::new(*address, hello.port))
}

fn inventories(spec: &MeshSpec, members: &[Joined]) -> Vec<MeshMember> {
    std::thread::scope(|scope| {
        let asking: Vec<_> =
            members.iter().map(|member| scope.spawn(move || ask(member, &Order::Inventory, AROUND))).collect();
        let told = asking.into_iter().map(|it| result_of(it.join()));
        let members = spec.hosts.iter().zip(members).zip(told);
        members
            .map(|((named, member), told)| {
                let (host, absent) = match told {
                    Ok(Answer::Inventory(host)) => (*host, None),
                    Ok(_) => (Snapshot::default(), Some("unexpected answer".to_owned())),
                    Err(why) => (Snapshot::default(), Some(why)),
                };
                let name = named.name.strip_prefix("ssh://").unwrap_or(&named.name).to_owned();
                let address = at(member).map(|at| at.ip().to_string()).unwrap_or_default();
                MeshMember { name, group: named.group.clone(), address, absent, host }
            })
            .collect()
    })
}

/// Why each host could not reach each other one; `None` where it could.
fn reach(members: &[Joined], present: &[usize]) -> Vec<Vec<Option<String>>> {
    let places: Vec<Option<SocketAddr>> = members.iter().map(at).collect();
    let known: Vec<SocketAddr> = places.iter().flatten().copied().collect();
    let order = &Order::Reach(known);
    std::thread::scope(|scope| {
        let trying: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(nth, member)| scope.spawn(move || present.contains(&nth).then(|| ask(member, order, AROUND))))
            .collect();
        let told = trying.into_iter().map(|it| match result_of(it.join()) {
            Some(Ok(Answer::Reached(told))) => Ok(told),
            Some(Err(why)) => Err(why),
            _ => Err("not asked".to_owned()),
        });
        told.map(|told| {
            // In the order of the members that have an address.
            let mut nth = 0;
            places
                .iter()
                .map(|place| {
                    place.as_ref()?;
                    nth += 1;
                    told.as_ref().map_or_else(|why| Some(why.clone()), |told| told.get(nth - 1).cloned().flatten())
                })
                .collect()
        })
        .collect()
    })
}

/// A load that nobody has made yet.
fn to_make([from, to]: [usize; 2], members: &[Joined], reached: &[Vec<Option<String>>]) -> MeshLoad {
    let why = |a: usize, b: usize| reached.get(a).and_then(|row| row.get(b)).cloned().flatten();
    let [there, back] = [why(from, to), why(to, from)];
    let state = match (&there, &back) {
        (Some(there), Some(back)) if at(&members[from]).is_some() && at(&members[to]).is_some() => {
            MeshState::Unreachable(if there == back { there.clone() } else { format!("{there}; back: {back}") })
        }
        _ => MeshState::NotMade,
    };
    MeshLoad { from, to, opened_by_receiver: there.is_some(), state, beside_others_bps: None }
}

/// Makes these loads at the same time, those that can be.
fn make(loads: Vec<MeshLoad>, members: &[Joined], plan: MeshPlan, stop: &Stop) -> Vec<MeshLoad> {
    std::thread::scope(|scope| {
        let make = |mut load: MeshLoad| {
            if matches!(load.state, MeshState::Unreachable(_)) {
                return load;
            }
            load.state = match one(&load, members, plan) {
                Ok(Loaded { goodput_bps, retransmits, busy }) if goodput_bps.is_finite() && goodput_bps >= 0.0 => {
                    MeshState::Measured { goodput_bps, retransmits, busy }
                }
                Ok(_) => MeshState::Failed("invalid figures in its answer".to_owned()),
                Err(_) if stop.is_set() => MeshState::NotMade,
                Err(why) => MeshState::Failed(why),
            };
            load
        };
        let making: Vec<_> = loads.into_iter().map(|load| scope.spawn(move || make(load))).collect();
        making.into_iter().map(|it| result_of(it.join())).collect()
    })
}

fn one(load: &MeshLoad, members: &[Joined], plan: MeshPlan) -> Result<Loaded, String> {
    let (by, other, direction) = if load.opened_by_receiver {
        (load.to, load.from, Direction::Down)
    } else {
        (load.from, load.to, Direction::Up)
    };
    let to = at(&members[other]).ok_or("the other host is gone")?;
    let token = lock(&members[other]).as_ref().map(|(_, hello, _)| hello.token.clone()).map_err(Clone::clone)?;
    let patience = AROUND + Duration::from_millis(plan.duration_ms);
    let plan = TcpPlan {
        streams: plan.streams,
        direction,
        limit: Limit::DurationMs(plan.duration_ms),
        // Slow start is not what a path carries.
        omit_ms: (plan.duration_ms / 5).min(1_000),
        ..TcpPlan::default()
    };
    match ask(&members[by], &Order::Load(LoadOrder { to, token, plan }), patience)? {
        Answer::Loaded(loaded) => Ok(loaded),
        _ => Err("unexpected answer".to_owned()),
    }
}

/// What was slow may have been disturbed: once more, alone.
fn again(record: &mut MeshRecord, members: &[Joined], stop: &Stop, watch: &(dyn Fn(&str) + Sync)) {
    let groups = narrows_views::mesh::groups(record);
    let (places, cells) = cells(record);
    let expected = narrows_mesh::blame::blame(&groups, &cells).expected_bps;
    let slow: Vec<usize> = places
        .into_iter()
        .zip(cells.iter().zip(expected))
        .filter_map(|(place, (cell, expected))| (cell.goodput_bps < SLOW * expected).then_some(place))
        .collect();
    for (nth, place) in slow.iter().enumerate() {
        if stop.is_set() {
            return;
        }
        watch(&format!("slow, once more alone: {} of {}", nth + 1, slow.len()));
        let load = &record.loads[*place];
        let MeshState::Measured { goodput_bps: before, .. } = load.state else { continue };
        let made = make(vec![load.clone()], members, record.plan, stop).pop();
        if let Some(made) = made.filter(|made| matches!(made.state, MeshState::Measured { .. })) {
            record.loads[*place] = MeshLoad { beside_others_bps: Some(before), ..made };
        }
    }
}
