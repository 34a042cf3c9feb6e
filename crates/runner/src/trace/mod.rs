//! A trace: sends what the planner asks for, hands it the answers, and looks up the names of the hops.

mod channel;
mod error;
mod names;

use crate::remote::{Remote, RemoteError};
use channel::Channel;
pub use error::TraceError;
use names::Names;
use narrows_model::trace::report::TraceEnd;
use narrows_model::{Ending, Family, TracePlan, TraceProtocol, TraceRecord};
use narrows_search::trace::{Planner, Step};
use narrows_sys::nanos::EvenClock;
use narrows_sys::probe::{Handshake, ProbeSocket, Sent, wait};
use narrows_sys::{clock, path_mtu};
use narrows_traffic::Stop;
pub use narrows_views::trace::report;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How often a wait checks the stop flag and the keys.
const POLL: Duration = Duration::from_millis(20);
/// How long the names of the hops are waited for at the end.
const NAMES: Duration = Duration::from_secs(2);

/// The address of a host, of the family that the user insists on.
pub fn resolve(host: &str, family: Option<Family>) -> Result<IpAddr, TraceError> {
    let all = narrows_sys::names::addresses(host).map_err(TraceError::Name)?;
    let fits = |address: &IpAddr| family.is_none_or(|family| Family::of(address) == family);
    let word = if family == Some(Family::Ipv4) { "IPv4" } else { "IPv6" };
    all.into_iter().find(fits).ok_or_else(|| TraceError::Family(host.to_owned(), word))
}

/// Why this user may not send echo requests.
pub fn echo_refused(target: IpAddr) -> Option<TraceError> {
    let refused = |error: &narrows_sys::Error| {
        error
            .errno()
            .is_some_and(|number| io::Error::from_raw_os_error(number).kind() == io::ErrorKind::PermissionDenied)
    };
    ProbeSocket::echo(target).err().filter(refused).map(TraceError::Echo)
}

/// Ports that hosts answer most often, by accepting or by refusing.
const COMMON: [u16; 3] = [22, 80, 443];

/// Which other ports the target answers, where one TCP port is silent: then a filter drops that port, not the way to the host.
fn other_ports(record: &TraceRecord, stop: &Stop) -> BTreeMap<u16, bool> {
    let silent = matches!(report(record).end, TraceEnd::Silent { .. }) && record.ending == Ending::Complete;
    if record.plan.protocol != TraceProtocol::Tcp || !silent {
        return BTreeMap::new();
    }
    let ports = COMMON.into_iter().filter(|port| *port != record.plan.port);
    let begun = |port| Some((port, ProbeSocket::tcp(0, SocketAddr::new(record.plan.target, port), 64).ok()?));
    let mut open: Vec<(u16, ProbeSocket)> = ports.filter_map(begun).collect();
    let mut answers: BTreeMap<u16, bool> = open.iter().map(|(port, _)| (*port, false)).collect();
    let (began, limit) = (clock::now(), Duration::from_millis(record.plan.wait_ms.max(1_000)));
    while !open.is_empty() && began.elapsed() < limit && !stop.is_set() {
        if wait(open.iter().map(|(_, socket)| socket), POLL).is_err() {
            break;
        }
        open.retain(|(port, socket)| {
            // An ICMP error is of a router, or of a filter in front of the target.
            let error = std::iter::from_fn(|| socket.receive()).any(|it| it.control.error.is_some());
            let done = if error { Some(false) } else { socket.handshake().map(|it| it != Handshake::Failed) };
            answers.extend(done.map(|answered| (*port, answered)));
            done.is_none()
        });
    }
    answers
}

/// Traces until the plan is done, `stop` is set, or `show` returns false. `poll` is called often; `show` gets the record after each
/// interval of a trace that goes on.
/// Errors: no route, or a socket that this user may not open. What stops a trace later is in its record.
pub fn trace(
    plan: TracePlan,
    stop: &Stop,
    poll: &mut dyn FnMut(),
    show: &mut dyn FnMut(&TraceRecord) -> bool,
) -> Result<TraceRecord, TraceError> {
    let time = EvenClock::begin();
    let mut channel = Channel::open(&plan, time)?;
    let mut names = Names::new(plan.names);
    let serial = plan.protocol == TraceProtocol::Tcp;
    let interval = Duration::from_millis(plan.interval_ms);
    let (continuous, mtu) = (plan.continuous, plan.mtu.then(|| first_link_mtu(&plan)).flatten());
    let mut planner = Planner::new(plan, time.now() / 1_000, serial);
    if let Some(bytes) = mtu {
        planner.set_first_link_mtu(bytes);
    }
    let mut shown = clock::now();
    loop {
        if stop.is_set() {
            planner.interrupt();
            break;
        }
        let now = time.now() / 1_000;
        match planner.next(now) {
            Step::Send(order) => {
                if channel.send(&order)? != Sent::Gone {
                    planner.too_big_here(order.id);
                }
            }
            Step::Wait(until_us) => {
                channel.wait(Duration::from_micros(until_us.saturating_sub(now)).min(POLL))?;
            }
            Step::Done => break,
        }
        channel.answers(&mut planner);
        poll();
        if continuous && shown.elapsed() >= interval {
            shown = clock::now();
            names.look(planner.record());
            planner.set_names(names.known());
            if !show(planner.record()) {
                break;
            }
        }
    }
    names.look(planner.record());
    names.wait(NAMES, stop);
    planner.set_names(names.known());
    let mut record = planner.finish();
    record.other_ports = other_ports(&record, stop);
    Ok(record)
}

/// As [`trace`], while the server at its far end traces the path back to this host. The second value is why it did not.
pub fn both_ways(
    server: &Remote,
    plan: TracePlan,
    stop: &Stop,
    poll: &mut dyn FnMut(),
    show: &mut dyn FnMut(&TraceRecord) -> bool,
) -> Result<(TraceRecord, Option<RemoteError>), TraceError> {
    std::thread::scope(|scope| {
        let asked = plan.clone();
        let back = scope.spawn(move || server.open_look()?.trace(&asked));
        let mut record = trace(plan, stop, poll, show)?;
        let why = match back.join() {
            Ok(Ok(back)) => {
                record.back = Some(Box::new(back));
                None
            }
            Ok(Err(why)) => Some(why),
            Err(_) => Some(RemoteError::Here("the thread that waits for it failed".to_owned())),
        };
        Ok((record, why))
    })
}

/// The first port of datagrams that nobody takes, as traceroute has it.
pub const UDP_PORT: u16 = 33_434;

/// The trace of a diagnosis: of the path MTU, or enough samples for loss.
pub fn beside_load(target: IpAddr, mtu: bool) -> TracePlan {
    TracePlan {
        asked: target.to_string(),
        target,
        protocol: TraceProtocol::Udp,
        port: UDP_PORT,
        first_ttl: 1,
        max_ttl: 30,
        gap: 5,
        rounds: if mtu { 4 } else { 40 },
        continuous: false,
        // A host answers about six probes at once and then one a second (`icmp_ratelimit`): those of an MTU are not spent on equal paths.
        flows: if mtu { 1 } else { 4 },
        interval_ms: 50,
        wait_ms: 500,
        probe_bytes: 64,
        ports: Vec::new(),
        mtu,
        names: false,
    }
}

/// The trace of flows with these source and destination ports, to a target that does not answer them: their ports are those of a load.
pub fn of_flows(target: IpAddr, ports: Vec<[u16; 2]>) -> TracePlan {
    let flows = u16::try_from(ports.len()).unwrap_or(u16::MAX);
    TracePlan { gap: 3, rounds: 1, flows, ports, ..beside_load(target, false) }
}

/// The largest IP packet that the first link takes, as the kernel names it when it rejects a larger one; otherwise that of the route.
fn first_link_mtu(plan: &TracePlan) -> Option<u32> {
    let largest = vec![0; usize::from(u16::MAX) - 48];
    let socket = ProbeSocket::udp(0, SocketAddr::new(plan.target, plan.port.max(1))).ok()?;
    socket.first_link_mtu(&largest).or_else(|| path_mtu::towards(plan.target).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(protocol: TraceProtocol, port: u16) -> TracePlan {
        TracePlan {
            asked: "localhost".into(),
            target: IpAddr::from([127, 0, 0, 1]),
            protocol,
            port,
            first_ttl: 1,
            max_ttl: 30,
            gap: 5,
            rounds: 3,
            continuous: false,
            flows: 6,
            interval_ms: 20,
            wait_ms: 500,
            probe_bytes: 64,
            ports: Vec::new(),
            mtu: true,
            names: false,
        }
    }

    #[test]
    fn this_host_is_one_hop_away_by_udp_and_tcp() {
        let listener = narrows_sys::net::listen_at(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        for protocol in [TraceProtocol::Udp, TraceProtocol::Tcp] {
            let record = trace(plan(protocol, port), &Stop::new(), &mut || (), &mut |_| true).unwrap();
            let report = report(&record);
            assert_eq!(report.hops.len(), 1, "{protocol:?}: {report:?}");
            assert_eq!(report.hops[0].nodes[0].address, "127.0.0.1");
            assert_eq!((report.hops[0].sent, report.hops[0].answered), (3, 3), "{protocol:?}: {report:?}");
            assert_eq!(report.mtu.is_some(), protocol == TraceProtocol::Udp);
        }
    }
}
