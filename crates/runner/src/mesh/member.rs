//! A member of a mesh: a server of this run alone, and the loads that the conductor orders.
//!
//! It has no files: key and token are in memory, and it ends when its standard input does, whoever ended that.

use super::orders::{Answer, CONNECTS, Hello, LoadOrder, Loaded, Order, ProbeOrder, Probed, SILENCE, heard, line, say};
use crate::diagnosis::{self, usual};
use crate::instruments::LiveInstruments;
use crate::live::LiveEnds;
use crate::measure;
use crate::remote::{Options, Remote, TargetSpec};
use crate::server::{Admission, ServeConfig, ServeError, Server, StampConfig};
use crate::{Stop, VERSION, result_of, stamp, trace};
use narrows_model::keys;
use narrows_model::load::stamp::StampPlan;
use narrows_model::run::measure::EndCpu;
use narrows_model::run::mesh::OneWay;
use narrows_model::words::figures::float;
use narrows_model::{Direction, LoadPlan, Run, TcpEndRecord, TcpPlan, TracePlan};
use narrows_sys::clock;
use narrows_sys::process::{mark, marks};
use narrows_views::measure::tcp;
use std::io::{BufReader, stdin, stdout};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The variable with what tells one mesh from another.
pub(super) const MESH_ID: &str = "NARROWS_MESH";
/// How the names begin that members take while they run.
const MARK: &str = "narrows-mesh-";

pub(super) const INSTRUMENTS: LiveInstruments = LiveInstruments::All;

/// Serves, and obeys the orders of standard input until that ends; then this process does.
pub fn obey() -> Result<(), ServeError> {
    // A directory that cannot be: what others keep there, a member has not.
    let state = PathBuf::from("/dev/null/narrows");
    let admission = Arc::new(Admission::default());
    let reflects = StampConfig { admission: Some(admission.clone()), ..StampConfig::default() };
    let server = Server::start(ServeConfig {
        port: 0,
        of_one_run: Some(admission.clone()),
        stamp: Some(reflects),
        ..ServeConfig::new(state, INSTRUMENTS)
    })?;
    let token = server.token().map(narrows_wire::Token::reveal).unwrap_or_default();
    let stamp = server.stamp_port().unwrap_or_default();
    let boot = narrows_sys::process::boot_id().unwrap_or_default();
    let (version, process) = (VERSION.to_owned(), std::process::id());
    // As long as this process lives. Of one mesh there may be several here.
    let own = std::env::var(MESH_ID).ok().map(|id| format!("{MARK}{id}"));
    let is_shared = own.as_ref().is_some_and(|own| marks().iter().any(|it| it.starts_with(MARK) && it != own));
    let _mark = own.as_deref().and_then(mark);
    let hello = Hello { version, port: server.port(), token, stamp, process, boot, is_shared };
    let (orders, heard_orders) = mpsc::channel();
    // In a thread of its own: the end of the input ends the process in the middle of a load, too.
    std::thread::spawn(move || {
        let mut input = BufReader::new(stdin());
        while let Ok(Some(line)) = line(&mut input) {
            if orders.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    let (todo, working) = mpsc::channel::<Order>();
    std::thread::spawn(move || {
        let mut output = stdout();
        let said = say(&mut output, &Answer::Hello(hello));
        let obeyed =
            said.and_then(|()| working.iter().try_for_each(|order| say(&mut output, &answer(order, &admission))));
        std::process::exit(i32::from(obeyed.is_err()));
    });
    while let Ok(line) = heard_orders.recv_timeout(SILENCE) {
        // Who speaks another language cannot be obeyed.
        let Ok(order) = heard(&line) else { std::process::exit(1) };
        if !matches!(order, Order::Beat) && todo.send(order).is_err() {
            break;
        }
    }
    std::process::exit(0)
}

fn answer(order: Order, admission: &Admission) -> Answer {
    match order {
        Order::Beat => Answer::Failed("nothing was asked".to_owned()),
        Order::Inventory => {
            Answer::Inventory(Box::new(narrows_collect::inventory(&narrows_collect::Live::new(), None)))
        }
        Order::Reach(all) => Answer::Reached(reach(&all)),
        Order::Seal => {
            admission.seal();
            Answer::Sealed
        }
        Order::Probe(order) => Answer::Probed(probe(&order)),
        Order::Load(order) => load(order).map_or_else(Answer::Failed, Answer::Loaded),
        Order::Diagnose(order) => diagnose(order).map_or_else(Answer::Failed, |run| Answer::Diagnosed(Box::new(run))),
    }
}

/// So many hosts are tried at once: each is a connection with a thread.
const TRIED_AT_ONCE: usize = 32;

/// Shows the token to each, which from then on knows this host by the address that it sees it with.
fn reach(all: &[(SocketAddr, String)]) -> Vec<Option<String>> {
    let one = |(to, token): &(SocketAddr, String)| {
        TcpStream::connect_timeout(to, CONNECTS).map_err(|error| {
            let said = error.to_string();
            said.split(" (os error").next().unwrap_or_default().to_owned()
        })?;
        connect(*to, token, INSTRUMENTS).map(drop)
    };
    let some = |all: &[(SocketAddr, String)]| {
        std::thread::scope(|scope| {
            let trying: Vec<_> = all.iter().map(|to| scope.spawn(move || one(to).err())).collect();
            trying.into_iter().map(|it| result_of(it.join())).collect::<Vec<_>>()
        })
    };
    all.chunks(TRIED_AT_ONCE).flat_map(some).collect()
}

fn connect(to: SocketAddr, token: &str, instruments: LiveInstruments) -> Result<Remote, String> {
    let token = token.parse().map_err(|_| "invalid token of the other host".to_owned())?;
    let spec = TargetSpec { asked: to.to_string(), family: None, port: to.port(), token: Some(token) };
    Remote::connect(&spec, &Options::new(instruments)).map_err(|error| error.to_string())
}

/// The first routers of all traces are the same, and a router answers a host once a second (`icmp_ratelimit`).
const TRACES_APART: Duration = Duration::from_secs(1);
/// Round trips take no longer, so a trace ends in this time where it ends at all.
const TRACE_LASTS: Duration = Duration::from_secs(6);

pub(crate) fn probe(order: &ProbeOrder) -> Vec<Probed> {
    std::thread::scope(|scope| {
        let one = |(nth, (to, port)): (usize, &(IpAddr, Option<u16>))| {
            let (to, port) = (*to, *port);
            let packets = port.map(|port| {
                scope.spawn(move || {
                    let mut seen = Probed::default();
                    packets(SocketAddr::new(to, port), order, &mut seen).map(|()| seen)
                })
            });
            let wait = TRACES_APART * u32::try_from(nth).unwrap_or(u32::MAX);
            let way = scope.spawn(move || {
                clock::sleep(wait);
                way(to)
            });
            (way, packets)
        };
        let probing: Vec<_> = order.to.iter().enumerate().map(one).collect();
        let joined = probing.into_iter().map(|(way, packets)| (result_of(way.join()), packets));
        joined
            .map(|(way, packets)| {
                let mut probed = way.unwrap_or_else(|why| Probed { remarks: vec![why], ..Probed::default() });
                match packets.map(|it| result_of(it.join())) {
                    Some(Ok(Probed { rtt_us, packets, one_way, .. })) => {
                        (probed.rtt_us, probed.packets, probed.one_way) = (rtt_us, packets, one_way);
                    }
                    Some(Err(why)) => probed.remarks.push(why),
                    None => {}
                }
                probed
            })
            .collect()
    })
}

/// What packets tell of a path into `seen`: round trips, those that were lost, and one-way delays.
/// Errors: why they tell nothing.
pub(crate) fn packets(to: SocketAddr, order: &ProbeOrder, seen: &mut Probed) -> Result<(), String> {
    let plan = StampPlan {
        packets: order.packets,
        interval_us: order.interval_us,
        bytes: u32::try_from(stamp::base_bytes(None)).unwrap_or(u32::MAX),
        dscp: 0,
        authenticated: false,
        extensions: false,
    };
    plan.check()?;
    let record = stamp::measure(&plan, &to.to_string(), to, None, &Stop::new(), &mut |_| {});
    let report = stamp::report(&record.map_err(|error| error.to_string())?);
    let rtt = &report.rtt_ns;
    let rtt_us = (rtt.count > 0).then(|| [rtt.min, rtt.p50, rtt.p90].map(|ns| float(ns) / 1e3));
    if report.replies == 0 {
        return Err("no packet was answered".to_owned());
    }
    let lost = report.up.lost.zip(report.down.lost);
    // Of those of which the end of the session leaves it open in which direction they were lost nothing is said.
    let delays = report.up.delay_ns.zip(report.down.delay_ns).map(|(up, down)| [up[1], down[1]]);
    let error_ns = report.up.clock_error_ns.zip(report.down.clock_error_ns).map(|(up, down)| up.max(down));
    seen.one_way = delays.zip(error_ns).map(|(delays, error_ns)| OneWay {
        median_us: delays.map(|ns| ns as f64 / 1e3),
        error_us: float(error_ns) / 1e3,
    });
    (seen.rtt_us, seen.packets) = (rtt_us, lost.map(|(up, down)| [report.up.known, up, down]));
    Ok(())
}

/// The routers on the path, and the largest packet that passes it.
fn way(to: IpAddr) -> Result<Probed, String> {
    let plan = TracePlan { rounds: 2, gap: 3, flows: 1, ..trace::beside_load(to, true) };
    let (stop, began) = (Stop::new(), clock::now());
    let mut poll = || {
        if began.elapsed() >= TRACE_LASTS {
            stop.stop();
        }
    };
    let record = trace::trace(plan, &stop, &mut poll, &mut |_| true).map_err(|error| error.to_string())?;
    let report = trace::report(&record);
    let target = to.to_string();
    let nodes =
        report.hops.into_iter().map(|hop| hop.nodes.into_iter().next().map_or_else(String::new, |it| it.address));
    let hops = nodes.take_while(|address| *address != target).collect();
    let mtu_bytes = report.mtu.filter(|mtu| mtu.to_target).map(|mtu| mtu.path_bytes);
    Ok(Probed { mtu_bytes, hops, remarks: report.remarks, ..Probed::default() })
}

/// Another load may run there for so long.
const QUEUES: Duration = Duration::from_secs(10);

/// Both ends of a load, and the other one as a run names it.
fn both(order: &LoadOrder, instruments: LiveInstruments) -> Result<(LiveEnds, narrows_model::Target), String> {
    let remote = connect(order.to, &order.token, instruments)?;
    let began = clock::now();
    let session = remote.open_session(&mut |_, _| began.elapsed() < QUEUES).map_err(|error| error.to_string())?;
    let target = remote.target();
    Ok((LiveEnds::new(remote, session, instruments, None, Stop::new()), target))
}

pub(crate) fn diagnose(order: LoadOrder) -> Result<Run, String> {
    let (mut ends, target) = both(&order, INSTRUMENTS)?;
    Ok(diagnosis::diagnose(&mut ends, &mut (), &usual::plan(order.plan), target, (String::new(), String::new())))
}

/// The part of the periods of its control group in which an end had used up its CPU quota; `None`: it has none, or few of them were seen.
/// Source: Documentation/scheduler/sched-bwc.rst, statistics.
fn throttled(end: &TcpEndRecord) -> Option<f64> {
    let counts = end.after.counts_since(&end.before);
    let [times, periods] = [keys::CGROUP_CPU_THROTTLED, keys::CGROUP_CPU_PERIODS].map(|key| counts.get(key.name));
    let (times, periods) = (*times?, *periods?);
    (periods >= 5).then(|| float(times.min(periods)) / float(periods))
}

pub(crate) fn load(order: LoadOrder) -> Result<Loaded, String> {
    let (mut ends, target) = both(&order, LiveInstruments::Cpu)?;
    let down = order.plan.direction == Direction::Down;
    let plan = LoadPlan::Tcp(order.plan);
    let run = measure::measure(&mut ends, &plan, target, (String::new(), String::new()), &mut ());
    // A part of a load says nothing of the whole.
    if let narrows_model::Ending::Failed(why) = &run.ending {
        return Err(why.clone());
    }
    let report = tcp::build(&run).ok_or("nothing was measured")?;
    let flow = report.summary.flows.first().ok_or("nothing was measured")?;
    let trial = run.trials_of::<TcpPlan>().last().map(|(_, trial)| trial);
    let busy = |end: Option<&EndCpu>, record: Option<&TcpEndRecord>| {
        let host = end.and_then(|end| end.host).map(|host| 1.0 - host.idle / float(host.cores.into()));
        [host, record.and_then(throttled)].into_iter().flatten().reduce(f64::max)
    };
    let ends = [
        busy(report.summary.client.as_ref(), trial.map(|it| it.client)),
        busy(report.summary.server.as_ref(), trial.map(|it| it.server)),
    ];
    Ok(Loaded {
        goodput_bps: flow.total.goodput_bps,
        retransmits: flow.total.columns.retransmits,
        busy: if down { [ends[1], ends[0]] } else { ends },
    })
}
