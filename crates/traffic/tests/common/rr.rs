//! Both ends of a request/response trial in one process, over loopback.

use super::{connect, cpus};
use narrows_model::{Place, RrEndRecord, RrPlan, RrSample, Transaction};
use narrows_sys::net;
use narrows_traffic::rr::{Answers, Connections, Exchange, RrStream, Socket, answer, prepare, run};
use narrows_traffic::{Progress, Stop};
use narrows_wire::hello::LENGTH;
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

/// Two sockets that are connected to each other: `(client's, server's)`.
#[allow(clippy::disallowed_methods)] // sockets of a test, on loopback
pub(crate) fn udp_pair() -> (UdpSocket, UdpSocket) {
    let bound = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (client, server) = (bound(), bound());
    client.connect(server.local_addr().unwrap()).unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    (client, server)
}

pub(crate) fn one(socket: Socket) -> Connections {
    let stream = RrStream { id: 0, socket, connect_ns: Some(123_456) };
    Connections { exchange: Exchange::Streams(vec![stream]), load: Vec::new() }
}

/// The connections of a plan: `(client's, server's)`.
fn pairs(plan: &RrPlan) -> (Connections, Connections) {
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for id in 0..plan.streams {
        let (mine, theirs) = if plan.transaction == Transaction::Udp {
            let (mine, theirs) = udp_pair();
            prepare(&theirs, plan).unwrap();
            (Socket::Udp(mine), Socket::Udp(theirs))
        } else {
            let (mine, theirs) = tcp_pair();
            (Socket::Tcp(mine), Socket::Tcp(theirs))
        };
        client.push(RrStream { id, socket: mine, connect_ns: None });
        server.push(RrStream { id, socket: theirs, connect_ns: None });
    }
    let (client_load, server_load) = plan.load.as_ref().map(connect).unwrap_or_default();
    (
        Connections { exchange: Exchange::Streams(client), load: client_load },
        Connections { exchange: Exchange::Streams(server), load: server_load },
    )
}

/// Runs one end without a listener for its progress.
pub(crate) fn run_end(place: Place, plan: &RrPlan, connections: Connections, stop: &Stop) -> RrEndRecord {
    run(place, plan, connections, stop, &cpus, &mut |_| {}).unwrap()
}

/// Runs both ends of a trial over streams; the client's progress as well.
pub(crate) fn run_both(plan: &RrPlan) -> (RrEndRecord, RrEndRecord, Vec<Progress<RrSample>>) {
    let (client, server) = pairs(plan);
    let mut progress = Vec::new();
    thread::scope(|scope| {
        let server = scope.spawn(|| run_end(Place::Server, plan, server, &Stop::new()));
        let step = &mut |step| progress.push(step);
        let client = run(Place::Client, plan, client, &Stop::new(), &cpus, step).unwrap();
        (client, server.join().unwrap(), progress)
    })
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
        let connections = Connections { exchange: Exchange::Answer(answers.clone()), load: Vec::new() };
        let responder = scope.spawn(|| run_end(Place::Server, server, connections, stop));
        let connections = Connections { exchange: Exchange::Connect { address, key: KEY }, load: Vec::new() };
        let client = run_end(Place::Client, client, connections, stop);
        let record = responder.join().unwrap();
        end.store(true, Ordering::Relaxed);
        for _ in 0..server.streams {
            drop(net::connect(address, Duration::from_secs(5), |_| Ok::<(), narrows_sys::Error>(())).unwrap());
        }
        (client, record)
    })
}
