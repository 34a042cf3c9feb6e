//! The members of a mesh: how they join, what they say of themselves and of the paths to each other.

use super::host::{Host, Programs};
use super::member::INSTRUMENTS;
use super::orders::{Answer, Hello, Order, ProbeOrder};
use super::spec::{MeshHost, MeshPlace, MeshSpec};
use crate::remote::{Options, Remote, RemoteError, Session, SshServer, TargetSpec};
use crate::{DEFAULT_PORT, Stop, lock, result_of};
use hyper::Method;
use narrows_model::Snapshot;
use narrows_model::run::mesh::{MeshMember, MeshPath, OneWay};
use narrows_model::words::show::{clean, plural};
use narrows_wire::Token;
use narrows_wire::api::PassAnswer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

/// A host may take so long to let this one in and to get the program.
const GREETS: Duration = Duration::from_secs(60);
/// Beside what an order asks for: connections, slow start of a busy host, the reading of its counters.
pub(super) const AROUND: Duration = Duration::from_secs(20);
/// A server answers in this time.
const ANSWERS: Duration = Duration::from_secs(10);
/// Each host that cannot be reached takes its part of a batch's time.
const TRIES: Duration = Duration::from_millis(300);

/// Probes of all paths of a host together keep to this, bit/s.
const PROBES_BPS: u64 = 200_000;
/// Two probes of a path are no closer.
const PROBES_APART_US: u64 = 20_000;
/// Traces begin a second apart, and the last takes its time.
const TRACE: Duration = Duration::from_secs(1);

/// Who speaks for a member.
enum Who {
    /// A process of this run, which connects to others as well.
    Process(Host),
    /// `narrows serve`, which others connect to with a pass of this run.
    Server(Session),
}

/// A member that answers.
struct Member {
    who: Who,
    /// Where the others load it, with what token.
    at: SocketAddr,
    token: String,
    /// The port of its reflector, if it has one.
    stamp: Option<u16>,
    /// Whether another mesh has a member on that host.
    is_shared: bool,
}

/// How settings of a member are changed: not by other members, but by a server behind ssh that undoes them when its session ends.
enum Tuning {
    /// Not at all: a session that may change settings takes the place of a load.
    Served,
    /// The command that starts that server.
    Command(String),
    Session(Session),
    /// No more: what its server had changed, that server rolls back.
    Lost,
}

/// A member, or why it takes no part.
type Joined = Mutex<Result<Member, String>>;

/// A member with what it is known by: its address, and the port of its ssh or of its server.
type Greeted = Result<(Member, Tuning, (IpAddr, String)), String>;

/// What a server that others connect to says of connecting to them.
const SERVES: &str = "narrows serve connects to no other host";

/// Opens a session with `narrows serve`, and asks it for a pass.
fn served(host: &str, port: u16, token: &Token) -> Greeted {
    let spec = TargetSpec { asked: host.to_owned(), family: None, port, token: Some(token.clone()) };
    let remote = Remote::connect(&spec, &Options::new(INSTRUMENTS)).map_err(|error| error.to_string())?;
    let session = remote.open_look().map_err(|error| error.to_string())?;
    let pass: PassAnswer = session.call(Method::POST, "pass", &(), ANSWERS).map_err(|error| match error {
        RemoteError::Server(why) if why.contains("unknown request") => {
            format!("its narrows {} knows no passes for a mesh: upgrade it", clean(&remote.hello().version))
        }
        error => error.to_string(),
    })?;
    let pass = token.with_secret(&pass.secret).map_err(|_| "invalid pass".to_owned())?;
    let at = SocketAddr::new(remote.data_address().ip(), port);
    if at.ip().is_loopback() {
        return Err(format!("{host} is a loopback address, which means another host to each"));
    }
    let known = (at.ip(), port.to_string());
    let member = Member { who: Who::Server(session), at, token: pass.reveal(), stamp: None, is_shared: false };
    Ok((member, Tuning::Served, known))
}

/// All hosts that the user named.
pub(super) struct Members {
    all: Vec<Joined>,
    /// `reached[a][b]`: why a could not reach b; `None` where it could.
    reached: Vec<Vec<Option<String>>>,
    /// Beside the members: a change is undone, too, where its member is lost.
    tuning: Vec<Mutex<Tuning>>,
    /// How each is reached, in the user's words.
    named: Vec<String>,
}

/// The address of a host, by the ssh configuration and the resolver of this one: a host could report the address of a third one.
fn address(server: &SshServer) -> Result<(IpAddr, String), String> {
    let mut ask = narrows_sys::process::ssh_command("ssh");
    if let Some(port) = server.port {
        ask.args(["-p", &port.to_string()]);
    }
    ask.args(["-G", "--", &server.destination]);
    let told = ask.output().map_err(|error| format!("cannot start ssh: {error}"))?;
    let told = String::from_utf8_lossy(&told.stdout);
    let of = |key: &str| told.lines().find_map(|line| line.strip_prefix(key));
    let name = of("hostname ").ok_or("ssh does not know the host")?;
    let port = of("port ").unwrap_or_default().to_owned();
    let found = narrows_sys::names::addresses(name).map_err(|error| error.to_string())?;
    found
        .into_iter()
        .find(|address| !address.is_loopback())
        .map(|address| (address, port))
        .ok_or_else(|| format!("{name} has only a loopback address"))
}

/// How a member is reached.
enum Begun {
    Ssh(Result<Host, String>, SshServer),
    Serves(String, u16, Token),
}

/// What `narrows serve` can be asked.
fn answer_of(session: &Session, order: &Order) -> Result<Answer, String> {
    let answer = match order {
        Order::Inventory => session.inventory().map(|host| Answer::Inventory(Box::new(host))),
        Order::Seal => {
            session.call::<serde_json::Value>(Method::POST, "pass/seal", &(), ANSWERS).map(|_| Answer::Sealed)
        }
        _ => return Ok(Answer::Failed(SERVES.to_owned())),
    };
    answer.map_err(|error| error.to_string())
}

impl Members {
    /// Starts them all.
    /// Errors: a name means nothing, or this program cannot be read.
    pub(super) fn join(spec: &MeshSpec, stop: &Stop, watch: &(dyn Fn(&str) + Sync)) -> Result<Self, String> {
        let programs = Programs::read(&spec.programs)?;
        let places = spec.hosts.iter().map(MeshHost::place).collect::<Result<Vec<_>, _>>()?;
        if !places.iter().any(|place| matches!(place, MeshPlace::Ssh(_))) {
            let why = "cannot make a mesh of hosts that only serve: name one as ssh://host, which loads the others";
            return Err(why.to_owned());
        }
        watch(&format!("connecting to {}", plural(places.len() as u64, "host")));
        // From this thread: ssh ends with the thread that started it.
        let begin = |place| match place {
            MeshPlace::Ssh(server) => {
                let host = Host::start(&server, &programs, spec.remote_command.as_deref(), stop);
                Begun::Ssh(host, server)
            }
            MeshPlace::Serves { host, port, token } => Begun::Serves(host, port, token),
        };
        let begun: Vec<_> = places.into_iter().map(begin).collect();
        let greeted: Vec<Greeted> = std::thread::scope(|scope| {
            let greet = |begun| match begun {
                Begun::Ssh(host, server) => {
                    let mut host: Host = host?;
                    let Hello { port, token, stamp, process, boot, is_shared, .. } = host.greet(&programs, GREETS)?;
                    let known = address(&server)?;
                    let at = SocketAddr::new(known.0, port);
                    // The program of that process, which may have lost its name; one name may mean several machines.
                    let program = spec.remote_command.clone().unwrap_or_else(|| format!("/proc/{process}/exe"));
                    let boot: String = boot.chars().filter(|it| it.is_ascii_hexdigit() || *it == '-').collect();
                    let command =
                        format!("[ \"$(cat /proc/sys/kernel/random/boot_id)\" = '{boot}' ] && exec {program}");
                    let member = Member { who: Who::Process(host), at, token, stamp: Some(stamp), is_shared };
                    Ok((member, Tuning::Command(command), known))
                }
                Begun::Serves(host, port, token) => served(&host, port, &token),
            };
            let greeting: Vec<_> = begun.into_iter().map(|it| scope.spawn(move || greet(it))).collect();
            greeting.into_iter().map(|it| result_of(it.join())).collect()
        });
        // Behind one translated address several hosts have ports of their own.
        let mut seen: Vec<(usize, (IpAddr, String))> = Vec::new();
        let mut tuning = Vec::new();
        let all = greeted.into_iter().enumerate().map(|(nth, greeted)| {
            Mutex::new(greeted.and_then(
                |(member, tuned, place)| match seen.iter().find(|(_, other)| *other == place) {
                    Some((first, _)) => Err(format!("it has the address and port of {}", spec.hosts[*first].name)),
                    None => {
                        seen.push((nth, place));
                        tuning.resize_with(nth, || Mutex::new(Tuning::Served));
                        tuning.push(Mutex::new(tuned));
                        Ok(member)
                    }
                },
            ))
        });
        let all: Vec<Joined> = all.collect();
        tuning.resize_with(all.len(), || Mutex::new(Tuning::Served));
        let named = spec.hosts.iter().map(|it| it.name.clone()).collect();
        Ok(Self { all, reached: Vec::new(), tuning, named })
    }

    /// Asks one member.
    pub(super) fn ask(&self, member: usize, order: &Order, patience: Duration) -> Result<Answer, String> {
        let mut member = lock(&self.all[member]);
        let answer = match &mut *member {
            Ok(Member { who: Who::Process(host), .. }) => host.ask(order, patience),
            Ok(Member { who: Who::Server(session), .. }) => {
                session.lost().map_or_else(|| answer_of(session, order), |why| Err(why.to_string()))
            }
            Err(why) => return Err(why.clone()),
        };
        match answer {
            Ok(Answer::Failed(why)) => Err(short(&why)),
            Ok(answer) => Ok(answer),
            Err(why) => {
                // A late answer would be taken for that of the next order.
                *member = Err(why.clone());
                Err(why)
            }
        }
    }

    /// Asks several at the same time; the answers in their order.
    fn ask_all(&self, orders: &[(usize, Order)], patience: Duration) -> Vec<Result<Answer, String>> {
        std::thread::scope(|scope| {
            let asking: Vec<_> =
                orders.iter().map(|(member, order)| scope.spawn(move || self.ask(*member, order, patience))).collect();
            asking.into_iter().map(|it| result_of(it.join())).collect()
        })
    }

    /// Where the others load a member, with its token and the port of its reflector.
    pub(super) fn at(&self, member: usize) -> Option<(SocketAddr, String, Option<u16>)> {
        let mut member = lock(&self.all[member]);
        // With its session its pass has ended.
        if let Ok(Member { who: Who::Server(session), .. }) = &*member
            && let Some(why) = session.lost()
        {
            *member = Err(why.to_string());
        }
        let Member { at, token, stamp, .. } = member.as_ref().ok()?;
        Some((*at, token.clone(), *stamp))
    }

    /// Whether it can be asked to connect to others.
    pub(super) fn connects(&self, member: usize) -> bool {
        matches!(&*lock(&self.all[member]), Ok(Member { who: Who::Process(_), .. }))
    }

    /// Changes settings of a member. Where it is not known what its server did, that server ends, which undoes all.
    pub(super) fn tune<T>(
        &self,
        member: usize,
        act: impl FnOnce(&Session) -> Result<T, RemoteError>,
    ) -> Result<T, String> {
        let mut tuning = lock(&self.tuning[member]);
        if let Tuning::Command(command) = &*tuning {
            let spec = TargetSpec { asked: self.named[member].clone(), family: None, port: DEFAULT_PORT, token: None };
            let remote_command = command.clone();
            let options = Options { allow_tune: true, unattended: true, remote_command, ..Options::new(INSTRUMENTS) };
            let session = Remote::connect(&spec, &options).and_then(|remote| remote.open_session(&mut |_, _| true));
            *tuning = Tuning::Session(session.map_err(|error| error.to_string())?);
        }
        let done = match &*tuning {
            Tuning::Session(session) => session.lost().map_or_else(|| act(session), Err),
            Tuning::Lost => return Err("the connection to its server was lost, which rolls back by itself".to_owned()),
            _ => return Err("a mesh changes no host that serves: name it as ssh://".to_owned()),
        };
        // What the server refused, it did not do.
        if matches!(&done, Err(error) if !matches!(error, RemoteError::Server(_))) {
            *tuning = Tuning::Lost;
        }
        done.map_err(|error| error.to_string())
    }

    pub(super) fn inventories(&self, spec: &MeshSpec) -> Vec<MeshMember> {
        let told = self.ask_all(&(0..self.all.len()).map(|it| (it, Order::Inventory)).collect::<Vec<_>>(), AROUND);
        let members = spec.hosts.iter().enumerate().zip(told);
        members
            .map(|((nth, named), told)| {
                let (host, absent) = match told {
                    Ok(Answer::Inventory(host)) => (*host, None),
                    Ok(_) => (Snapshot::default(), Some("unexpected answer".to_owned())),
                    Err(why) => (Snapshot::default(), Some(why)),
                };
                let address = self.at(nth).map(|(at, ..)| at.ip().to_string()).unwrap_or_default();
                let is_shared = lock(&self.all[nth]).as_ref().is_ok_and(|it| it.is_shared);
                MeshMember { name: named.called(), group: named.group.clone(), address, absent, is_shared, host }
            })
            .collect()
    }

    /// Each tries each, and then lets nobody in any more who did not come: a member admits the addresses that it has seen.
    pub(super) fn reach(&mut self, present: &[usize]) {
        let places: Vec<_> = present.iter().map(|member| self.at(*member)).collect();
        let order = |nth: usize| {
            let others = places.iter().enumerate().filter(|(other, _)| *other != nth);
            Order::Reach(others.filter_map(|(_, at)| at.clone()).map(|(at, token, _)| (at, token)).collect())
        };
        let connecting: Vec<_> = present.iter().enumerate().filter(|(_, member)| self.connects(**member)).collect();
        let orders: Vec<_> = connecting.iter().map(|(nth, member)| (**member, order(*nth))).collect();
        let told = self.ask_all(&orders, 2 * AROUND + TRIES * u32::try_from(present.len()).unwrap_or(u32::MAX));
        let mut reached = vec![vec![Some(SERVES.to_owned()); self.all.len()]; self.all.len()];
        for ((nth, from), told) in connecting.into_iter().zip(told) {
            let others =
                present.iter().zip(&places).enumerate().filter(|(other, (_, at))| *other != nth && at.is_some());
            for (place, (_, (to, _))) in others.enumerate() {
                reached[*from][*to] = match &told {
                    Ok(Answer::Reached(told)) => {
                        let why = told.get(place).cloned().unwrap_or_else(|| Some("no answer".to_owned()));
                        why.map(|why| short(&why))
                    }
                    Ok(_) => Some("unexpected answer".to_owned()),
                    Err(why) => Some(why.clone()),
                };
            }
        }
        self.reached = reached;
        self.ask_all(&present.iter().map(|it| (*it, Order::Seal)).collect::<Vec<_>>(), AROUND);
    }

    /// Why a host could not reach another one; `None` where it could.
    pub(super) fn unreached(&self, from: usize, to: usize) -> Option<&str> {
        self.reached.get(from)?.get(to)?.as_deref()
    }

    /// Probes of these pairs at a low rate, all at the same time.
    pub(super) fn probe(&self, pairs: &[[usize; 2]], lasts_ms: u64) -> Vec<MeshPath> {
        let mut of: Vec<Vec<usize>> = vec![Vec::new(); self.all.len()];
        // Once: a host that is lost meanwhile keeps its place in the answers.
        let places: Vec<_> = (0..self.all.len()).map(|it| self.at(it).map(|(at, _, port)| (at.ip(), port))).collect();
        for [a, b] in pairs.iter().filter(|pair| pair.iter().all(|it| places[*it].is_some())) {
            of[*a].push(*b);
            of[*b].push(*a);
        }
        let most = of.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let interval_us = (most * narrows_mesh::PROBE_BITS * 1_000_000 / PROBES_BPS).max(PROBES_APART_US);
        let packets = u32::try_from((lasts_ms * 1_000).div_ceil(interval_us)).unwrap_or(u32::MAX);
        // The side that can connect sends the packets, too.
        let sends = |from: usize, to: usize| match self.unreached(from, to) {
            None => from < to || self.unreached(to, from).is_some(),
            Some(_) => false,
        };
        let order = |from: usize, others: &[usize]| {
            let place = |to: &usize| {
                let (ip, port) = places[*to].unwrap_or((IpAddr::from([0, 0, 0, 0]), None));
                (ip, port.filter(|_| sends(from, *to)))
            };
            Order::Probe(ProbeOrder { to: others.iter().map(place).collect(), packets, interval_us })
        };
        let patience = AROUND + TRACE * u32::try_from(most).unwrap_or(0) + Duration::from_millis(lasts_ms);
        let asked: Vec<(usize, &Vec<usize>)> =
            of.iter().enumerate().filter(|(from, others)| !others.is_empty() && self.connects(*from)).collect();
        let orders: Vec<_> = asked.iter().map(|(from, others)| (*from, order(*from, others))).collect();
        let told = self.ask_all(&orders, patience);
        let mut paths = Vec::new();
        for ((from, others), told) in asked.into_iter().zip(told) {
            let (mut seen, why) = match told {
                Ok(Answer::Probed(seen)) => (seen.into_iter(), "no answer".to_owned()),
                Ok(_) => (Vec::new().into_iter(), "unexpected answer".to_owned()),
                Err(why) => (Vec::new().into_iter(), why),
            };
            for to in others {
                let path = MeshPath { from, to: *to, ..MeshPath::default() };
                paths.push(match seen.next() {
                    Some(it) => MeshPath {
                        rtt_us: it.rtt_us.filter(|rtt| rtt.iter().all(|us| (0.0..RTT_MAX_US).contains(us))),
                        packets: it.packets.filter(|[sent, up, down]| {
                            *sent <= u64::from(packets) && up.checked_add(*down).is_some_and(|it| it <= *sent)
                        }),
                        one_way: it.one_way.filter(OneWay::is_sound),
                        mtu_bytes: it.mtu_bytes.filter(|bytes| *bytes <= 65_535),
                        // An address or nothing: a name could be that of another member.
                        hops: it.hops.iter().take(HOPS_MAX).map(|hop| router(hop)).collect(),
                        remarks: it.remarks.iter().take(REMARKS_MAX).map(|it| short(it)).collect(),
                        ..path
                    },
                    None => MeshPath { remarks: vec![why.clone()], ..path },
                });
            }
        }
        paths
    }
}

/// No answer is waited for so long.
const RTT_MAX_US: f64 = 60e6;
/// More hops no packet passes.
const HOPS_MAX: usize = 64;
/// Of a path, and their characters.
const REMARKS_MAX: usize = 3;
const REMARK_MAX: usize = 300;

fn router(hop: &str) -> String {
    hop.parse::<IpAddr>().map(|it| it.to_string()).unwrap_or_default()
}

fn short(remark: &str) -> String {
    clean(&remark.chars().take(REMARK_MAX).collect::<String>())
}
