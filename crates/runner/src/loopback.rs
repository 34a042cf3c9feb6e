//! Both ends of an engine on this host, over its loopback: what the tester itself can do.

use crate::instruments::LiveInstruments;
use narrows_model::{Carrier, LoadPlan, Place, StreamSpec, Trial};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::net;
use narrows_sys::udp::UdpListener;
use narrows_traffic::{Connections, DataStream, Socket, Stop};
use narrows_wire::probe::Hello;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// For a connection to the same host.
const LOCAL: Duration = Duration::from_secs(2);

/// The streams of the client's end and of the server's end.
type BothEnds = (Vec<DataStream>, Vec<DataStream>);

/// Runs both ends of a trial on this host.
pub(crate) fn trial(instruments: LiveInstruments, plan: &LoadPlan, stop: &Stop) -> Result<Trial, String> {
    if plan.connects_per_transaction() {
        return Err("crr needs a server; it does not run over loopback".to_owned());
    }
    let (tcp, udp): (Vec<_>, Vec<_>) = plan.streams().into_iter().partition(|stream| stream.carrier == Carrier::Tcp);
    let (mut ours, mut theirs) = connect_tcp(&tcp)?;
    if !udp.is_empty() {
        let (near, far) = connect_udp(plan, &udp)?;
        ours.extend(near);
        theirs.extend(far);
    }
    run(instruments, plan, ours, theirs, stop)
}

fn connect_tcp(streams: &[StreamSpec]) -> Result<BothEnds, String> {
    let listener = net::listen(0).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for StreamSpec { id, flow, .. } in streams.iter().copied() {
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = net::connect(to, LOCAL, |_| Ok::<_, narrows_sys::Error>(())).map_err(|error| error.to_string())?;
        ours.push(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None });
        let (socket, _) = listener.accept().map_err(|error| error.to_string())?;
        theirs.push(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None });
    }
    Ok((ours, theirs))
}

fn connect_udp(plan: &LoadPlan, streams: &[StreamSpec]) -> Result<BothEnds, String> {
    let home = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = UdpListener::bind_at(home).map_err(|error| error.to_string())?;
    let address = SocketAddr::new(home.ip(), listener.port());
    let key = crate::trust::trial_key().map_err(|error| error.to_string())?;
    let (ours, theirs) = std::thread::scope(|scope| {
        let greeter = scope.spawn(|| greet(&listener, plan, streams.len()));
        let open = |stream: &StreamSpec| {
            let socket = narrows_traffic::open_udp(address, &key, stream.id, stream.flow, plan);
            let socket = Socket::Udp(socket.map_err(|error| error.to_string())?);
            Ok(DataStream { id: stream.id, flow: stream.flow, socket, connect_ns: None })
        };
        let ours = streams.iter().map(open).collect::<Result<Vec<_>, String>>();
        (ours, greeter.join())
    });
    Ok((ours?, theirs.map_err(|_| "the loopback receiver failed".to_owned())?))
}

/// Answers the hellos of this many streams, or of as many as come in time.
fn greet(listener: &UdpListener, plan: &LoadPlan, count: usize) -> Vec<DataStream> {
    let mut streams = Vec::new();
    let Ok(never) = Event::new() else { return streams };
    let mut buffer = vec![0; 65_536];
    while streams.len() < count {
        let Ok([true, _]) = wait_readable([listener.as_fd(), never.as_fd()], Some(LOCAL)) else { break };
        let Ok(Some(arrival)) = listener.receive(&mut buffer) else { continue };
        let Ok(hello) = Hello::decode(&buffer[..arrival.bytes.min(buffer.len())]) else { continue };
        if let Ok(stream) = narrows_traffic::accept_udp(&hello, &arrival, plan) {
            let (id, flow) = (hello.stream.into(), hello.flow);
            streams.push(DataStream { id, flow, socket: Socket::Udp(stream), connect_ns: None });
        }
    }
    streams
}

fn run(
    instruments: LiveInstruments,
    plan: &LoadPlan,
    ours: Vec<DataStream>,
    theirs: Vec<DataStream>,
    stop: &Stop,
) -> Result<Trial, String> {
    let peer = Some(IpAddr::from([127, 0, 0, 1]));
    let before = instruments.counters(peer);
    let (client, server) = std::thread::scope(|scope| {
        let far = scope.spawn(|| instruments.run(Place::Server, plan, Connections::beside(theirs), stop, &mut |_| {}));
        let near = instruments.run(Place::Client, plan, Connections::beside(ours), stop, &mut |_| {});
        (near, far.join())
    });
    let server = server.map_err(|_| "the loopback receiver failed".to_owned())?;
    let after = instruments.counters(peer);
    let client = client?.between(before.clone(), after.clone());
    let server = server?.between(before, after);
    let elapsed_us = client.flow_time_us();
    Ok(Trial { plan: plan.clone(), client, server, elapsed_us })
}
