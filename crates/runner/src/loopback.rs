//! Both ends of an engine on this host, over its loopback: what the tester itself can do.

use crate::instruments::{Connections, DataStream, Instruments as _, Socket};
use crate::live::LiveInstruments;
use crate::remote::Measured;
use crate::stop::Stop;
use narrows_model::load::Wanted;
use narrows_model::{LoadPlan, Place, TcpPlan, Trial, UdpPlan, UdpTrial};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::net;
use narrows_sys::udp::UdpListener;
use narrows_wire::Key;
use narrows_wire::probe::Hello;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// For a connection to the same host.
const LOCAL: Duration = Duration::from_secs(2);

/// Both ends of the TCP engine.
pub(crate) fn tcp(instruments: LiveInstruments, plan: &TcpPlan, stop: &Stop) -> Result<Trial, String> {
    let listener = net::listen(0).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let load = LoadPlan::Tcp(plan.clone());
    for Wanted { id, flow, .. } in load.streams() {
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = net::connect(to, LOCAL, |_| Ok::<_, narrows_sys::Error>(())).map_err(|error| error.to_string())?;
        ours.push(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None });
        let (socket, _) = listener.accept().map_err(|error| error.to_string())?;
        theirs.push(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None });
    }
    run(instruments, load, ours, theirs, stop)?.tcp().ok_or_else(|| "the loopback ran another kind of load".to_owned())
}

/// Both ends of the UDP engine.
pub(crate) fn udp(instruments: LiveInstruments, plan: &UdpPlan, stop: &Stop) -> Result<UdpTrial, String> {
    let home = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = UdpListener::bind_at(home).map_err(|error| error.to_string())?;
    let address = SocketAddr::new(home.ip(), listener.port());
    let load = LoadPlan::Udp(plan.clone());
    let key = Key(crate::trust::random_bytes().map_err(|error| error.to_string())?);
    let wanted = load.streams();
    let (ours, theirs) = std::thread::scope(|scope| {
        let greeter = scope.spawn(|| greet(instruments, &listener, &load, wanted.len()));
        let open = |wanted: &Wanted| {
            let stream = instruments.open_udp(address, &key, wanted.id, wanted.flow, &load)?;
            Ok(DataStream { id: wanted.id, flow: wanted.flow, socket: Socket::Udp(stream), connect_ns: None })
        };
        let ours = wanted.iter().map(open).collect::<Result<Vec<_>, String>>();
        (ours, greeter.join())
    });
    let theirs = theirs.map_err(|_| "the loopback's receiving end failed".to_owned())?;
    run(instruments, load, ours?, theirs, stop)?.udp().ok_or_else(|| "the loopback ran another kind of load".to_owned())
}

/// Answers the hellos of so many streams, or of as many as come in time.
fn greet(instruments: LiveInstruments, listener: &UdpListener, load: &LoadPlan, count: usize) -> Vec<DataStream> {
    let mut streams = Vec::new();
    let Ok(never) = Event::new() else { return streams };
    let mut buffer = vec![0; 65_536];
    while streams.len() < count {
        let Ok([true, _]) = wait_readable([listener.as_fd(), never.as_fd()], Some(LOCAL)) else { break };
        let Ok(Some(arrival)) = listener.receive(&mut buffer) else { continue };
        let Ok(hello) = Hello::decode(&buffer[..arrival.bytes.min(buffer.len())]) else { continue };
        if let Ok(stream) = instruments.accept_udp(&hello, &arrival, load) {
            streams.push(DataStream {
                id: hello.stream.into(),
                flow: hello.flow,
                socket: Socket::Udp(stream),
                connect_ns: None,
            });
        }
    }
    streams
}

fn run(
    instruments: LiveInstruments,
    load: LoadPlan,
    ours: Vec<DataStream>,
    theirs: Vec<DataStream>,
    stop: &Stop,
) -> Result<Measured, String> {
    let peer = Some(IpAddr::from([127, 0, 0, 1]));
    let before = instruments.counters(peer);
    let (client, server) = std::thread::scope(|scope| {
        let far = scope.spawn(|| instruments.run(Place::Server, &load, Connections::of(theirs), stop, &mut |_| {}));
        let near = instruments.run(Place::Client, &load, Connections::of(ours), stop, &mut |_| {});
        (near, far.join())
    });
    let server = server.map_err(|_| "the loopback's receiving end failed".to_owned())?;
    let after = instruments.counters(peer);
    let client = client?.between(before.clone(), after.clone());
    let server = server?.between(before, after);
    let elapsed_us = client.flow_time_us();
    Ok(Measured { plan: load, client, server, elapsed_us })
}
