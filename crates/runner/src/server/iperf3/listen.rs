//! The port of iperf3: connections by their cookie, datagrams by the host that sent them.

use super::control::within;
use super::limits::{COOKIE, DATAGRAMS_AT_ONCE};
use super::logins::Logins;
use super::session;
use super::table::Tests;
use crate::server::shared::{Shared, source_of};
use crate::server::unauthenticated::Unauthenticated;
use narrows_sys::net;
use narrows_sys::udp::UdpListener;
use narrows_wire::iperf3::control::COOKIE as COOKIE_BYTES;
use narrows_wire::iperf3::{Cookie, datagram};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::sleep;

/// The open ports, before there are threads.
#[derive(Debug)]
pub(in crate::server) struct Ports {
    connections: std::net::TcpListener,
    pub(in crate::server) datagrams: UdpListener,
    /// The port of both.
    pub(in crate::server) port: u16,
}

impl Ports {
    /// Opens both; 0 takes a free port.
    pub(in crate::server) fn open(port: u16, bind: Option<IpAddr>) -> narrows_sys::Result<Self> {
        let at = |port| bind.map(|address| SocketAddr::new(address, port));
        let connections = at(port).map_or_else(|| net::listen(port), net::listen_at)?;
        let failed = |error| narrows_sys::Error::new("open", "the port of iperf3", error);
        let port = connections.local_addr().map_err(failed)?.port();
        connections.set_nonblocking(true).map_err(failed)?;
        let datagrams = at(port).map_or_else(|| UdpListener::bind(port), UdpListener::bind_at)?;
        Ok(Self { connections, datagrams, port })
    }
}

/// What all tests share.
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) tests: Tests,
    pending: Unauthenticated,
    pub(super) logins: Logins,
}

/// Serves for ever. All tests end when this is dropped.
pub(in crate::server) async fn serve(shared: Arc<Shared>, ports: Ports) {
    let server = Arc::new(Server {
        shared,
        tests: Tests::default(),
        pending: Unauthenticated::default(),
        logins: Logins::default(),
    });
    let Ok(listener) = TcpListener::from_std(ports.connections) else { return };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(datagrams(server.tests.clone(), ports.datagrams));
    loop {
        while tasks.try_join_next().is_some() {}
        let Ok((stream, address)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pending = server.pending.enter(source_of(address.ip()));
        let greeting = greet(server.clone(), stream, address, pending.clone());
        pending.is_served_by(tasks.spawn(greeting));
    }
}

/// Reads the cookie of a connection: a stream of a test, or a new test.
async fn greet(
    server: Arc<Server>,
    mut stream: TcpStream,
    address: SocketAddr,
    pending: crate::server::unauthenticated::Pending,
) {
    let _ = stream.set_nodelay(true);
    let mut bytes = [0; COOKIE_BYTES];
    if within(COOKIE, async { stream.read_exact(&mut bytes).await.map(drop) }).await.is_err() {
        return;
    }
    let Some(cookie) = Cookie::decode(&bytes) else { return };
    let stream = match server.tests.hand(&cookie, stream) {
        Ok(()) | Err(None) => return,
        Err(Some(stream)) => stream,
    };
    session::run(&server, cookie, stream, address, &pending).await;
}

/// Reads what opens UDP streams; everything else is dropped.
async fn datagrams(tests: Tests, listener: UdpListener) {
    let Ok(Ok(ready)) = listener.watched().map(UdpSocket::from_std) else { return };
    let mut buffer = [0; 64];
    while ready.readable().await.is_ok() {
        for _ in 0..DATAGRAMS_AT_ONCE {
            let received = ready.try_io(Interest::READABLE, || match listener.receive(&mut buffer) {
                Ok(Some(arrival)) => Ok(Some(arrival)),
                Ok(None) => Err(io::Error::from(ErrorKind::WouldBlock)),
                // What is broken about one datagram is not about the next.
                Err(_) => Ok(None),
            });
            let Ok(arrival) = received else { break };
            if let Some(arrival) = arrival.filter(|arrival| arrival.bytes == 4)
                && let Some(reply) = datagram::reply(&buffer[..4])
            {
                tests.hand_datagram(arrival, reply);
            }
        }
        tokio::task::yield_now().await;
    }
}
