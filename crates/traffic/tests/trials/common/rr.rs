//! Both ends of a request/response trial in one process, over loopback.

use super::{connect, cpus, raw, stream};
use narrows_model::{Flow, LoadPlan, Place, Progress, RrEndRecord, RrPlan, Transaction};
use narrows_sys::net;
use narrows_sys::udp::UdpListener;
use narrows_traffic::rr::{Answers, answer};
use narrows_traffic::udp::UdpStream;
use narrows_traffic::{Connections, DataStream, PerTransaction, Socket, Stop, TrafficError, accept_udp, open_udp};
use narrows_wire::hello::LENGTH;
use narrows_wire::probe::Hello;
use narrows_wire::{Answer, DataHello, Key, Wanted};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) const KEY: Key = Key([7; 32]);

/// A connection, both ends raw: `(client's, server's)`.
pub(crate) fn tcp_pair() -> (TcpStream, TcpStream) {
    super::pair()
}

/// Two sockets after their handshake: `(client's, server's)`.
pub(crate) fn udp_pair(plan: &RrPlan, id: u32) -> (UdpStream, UdpStream) {
    let plan = LoadPlan::from(plan.clone());
    let listener = UdpListener::bind(0).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.port()));
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut buffer = [0; 2048];
            loop {
                if let Some(arrival) = listener.receive(&mut buffer).unwrap() {
                    let hello = Hello::decode(&buffer[..arrival.bytes.min(buffer.len())]).unwrap();
                    return accept_udp(&hello, &arrival, &plan).unwrap();
                }
                narrows_sys::clock::sleep(Duration::from_millis(1));
            }
        });
        let client = open_udp(address, &KEY, id, Flow::Up, &plan).unwrap();
        (client, server.join().unwrap())
    })
}

/// The socket of a stream, as another program would have it.
pub(crate) fn raw_udp(stream: UdpStream) -> UdpSocket {
    let socket = stream.socket.try_clone().unwrap();
    // From here on no hello is answered.
    drop(stream);
    socket.set_read_timeout(None).unwrap();
    socket
}

/// The connections of a trial with one stream.
pub(crate) fn one(socket: impl Into<OneSocket>) -> Connections {
    let OneSocket(socket) = socket.into();
    Connections::of(vec![DataStream { id: 0, flow: Flow::Up, socket, connect_ns: Some(123_456) }])
}

/// A socket over TCP or UDP.
pub(crate) struct OneSocket(Socket);

impl From<TcpStream> for OneSocket {
    fn from(socket: TcpStream) -> Self {
        Self(Socket::Tcp(socket))
    }
}

impl From<UdpStream> for OneSocket {
    fn from(stream: UdpStream) -> Self {
        Self(Socket::Udp(stream))
    }
}

/// The connections of a plan: `(client's, server's)`.
fn pairs(plan: &RrPlan) -> (Connections, Connections) {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for id in 0..plan.streams {
        let (mine, theirs) = if plan.transaction == Transaction::Udp {
            let (mine, theirs) = udp_pair(plan, id);
            (Socket::Udp(mine), Socket::Udp(theirs))
        } else {
            let (mine, theirs) = tcp_pair();
            (Socket::Tcp(mine), Socket::Tcp(theirs))
        };
        client.push(DataStream { id, flow: Flow::Up, socket: mine, connect_ns: None });
        server.push(DataStream { id, flow: Flow::Up, socket: theirs, connect_ns: None });
    }
    let (client_load, server_load) = plan.load.as_ref().map(connect).unwrap_or_default();
    let after = |streams: Vec<DataStream>| {
        (plan.streams..).zip(streams).map(|(id, it)| stream(id, it.flow, raw(vec![it]))).collect::<Vec<_>>()
    };
    client.extend(after(client_load));
    server.extend(after(server_load));
    (Connections::of(client), Connections::of(server))
}

/// Runs one end; `progress` gets all its reports.
pub(crate) fn run(
    place: Place,
    plan: &RrPlan,
    connections: Connections,
    stop: &Stop,
    progress: &mut Vec<Progress>,
) -> Result<RrEndRecord, TrafficError> {
    let mut listen = |step| progress.push(step);
    let record = narrows_traffic::run(place, &plan.clone().into(), connections, stop, &cpus, &mut listen)?;
    Ok(record.get::<RrEndRecord>().unwrap().clone())
}

/// Runs one end without a listener for its progress.
pub(crate) fn run_end(place: Place, plan: &RrPlan, connections: Connections, stop: &Stop) -> RrEndRecord {
    run(place, plan, connections, stop, &mut Vec::new()).unwrap()
}

/// Runs both ends of a trial over streams; the client's progress as well.
pub(crate) fn run_both(plan: &RrPlan) -> (RrEndRecord, RrEndRecord, Vec<Progress>) {
    let (client, server) = pairs(plan);
    let mut progress = Vec::new();
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(Place::Server, plan, server, &Stop::new()));
        let client = run(Place::Client, plan, client, &Stop::new(), &mut progress).unwrap();
        (client, server.join().unwrap(), progress)
    })
}

/// Connections that are made or answered while the trial runs.
pub(crate) fn per_transaction(per_transaction: PerTransaction) -> Connections {
    Connections { per_transaction, ..Connections::of(Vec::new()) }
}

/// An accept path: reads hellos and answers transactions until told to end.
fn accept(listener: &TcpListener, answers: &Answers, end: &AtomicBool) {
    loop {
        let (mut socket, peer) = listener.accept().unwrap();
        if end.load(Ordering::Relaxed) {
            return;
        }
        let mut hello = [0; LENGTH];
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        if socket.read_exact(&mut hello).is_err() {
            continue;
        }
        let answering = match DataHello::decode(&hello) {
            Ok(DataHello { key: KEY, wanted: Wanted::Transaction { id } }) => {
                answers.begin(id, socket.local_addr().unwrap(), peer)
            }
            _ => Err("no transaction"),
        };
        match answering {
            // A client that was stopped may leave in the middle.
            Ok(answering) => drop(answer(socket, answering)),
            Err(why) => socket.write_all(&Answer::No(why.to_owned()).encode()).unwrap(),
        }
    }
}

/// Runs both ends of a trial in which each transaction has a connection of its own; the client's plan may differ from the server's.
pub(crate) fn run_transactions(client: &RrPlan, server: &RrPlan, stop: &Stop) -> (RrEndRecord, RrEndRecord) {
    let listener = net::listen(0).unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
    let (answers, end) = (Answers::new(server), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..server.streams {
            scope.spawn(|| accept(&listener, &answers, &end));
        }
        let connections = per_transaction(PerTransaction::Answer(answers.clone()));
        let responder = scope.spawn(|| run_end(Place::Server, server, connections, stop));
        let connections = per_transaction(PerTransaction::Connect { address, key: KEY });
        let client = run_end(Place::Client, client, connections, stop);
        let record = responder.join().unwrap();
        end.store(true, Ordering::Relaxed);
        for _ in 0..server.streams {
            drop(net::connect(address, Duration::from_secs(5), |_| Ok::<(), narrows_sys::Error>(())).unwrap());
        }
        (client, record)
    })
}
