//! Data connections: made with the plan's options before the handshake, greeted, and answered.

use super::error::RemoteError;
use narrows_model::{Carrier, LoadPlan, Place, StreamSpec, Transport};
use narrows_sys::clock;
use narrows_sys::net::{self, Carried};
use narrows_traffic::tcp::prepare;
use narrows_traffic::{DataStream, Socket};
use narrows_wire::hello::MAX_ANSWER_BYTES;
use narrows_wire::{Answer, DataHello, Key, Wanted};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// For one connection, and for the answer to its hello.
const LIMIT: Duration = Duration::from_secs(5);
/// Connections that are made at the same time.
const AT_ONCE: usize = 16;

/// Why one could not be made, before it is known which.
enum Failure {
    System(narrows_sys::Error),
    Option(String),
}

impl From<narrows_sys::Error> for Failure {
    fn from(error: narrows_sys::Error) -> Self {
        Self::System(error)
    }
}

fn connect(
    address: SocketAddr,
    carried: Carried,
    before: impl FnOnce(BorrowedFd<'_>) -> Result<(), String>,
) -> Result<TcpStream, RemoteError> {
    let data = |why| RemoteError::Data(address.to_string(), why);
    let before = |socket: BorrowedFd<'_>| before(socket).map_err(Failure::Option);
    net::connect_by(address, LIMIT, carried, before).map_err(|failure| match failure {
        Failure::Option(why) => data(why),
        Failure::System(error) => match RemoteError::from_connect(address.to_string(), &error) {
            RemoteError::Refused(_) => {
                data("connection refused; check for port translation between the hosts".to_owned())
            }
            RemoteError::TimedOut(_) => data("no answer; check that firewalls allow the port".to_owned()),
            _ if carried == Carried::Multipath => data(error.to_string()),
            _ => data(error.source.to_string()),
        },
    })
}

/// Says what the connection is for, and reads the answer byte by byte: what follows it is the engine's.
fn greet(stream: &mut TcpStream, hello: &DataHello) -> Result<(), String> {
    let io = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::WouldBlock => "no answer to the hello".to_owned(),
        _ => error.to_string(),
    };
    stream.set_read_timeout(Some(LIMIT)).and_then(|()| stream.set_write_timeout(Some(LIMIT))).map_err(io)?;
    stream.write_all(&hello.encode()).map_err(io)?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_ANSWER_BYTES {
        stream.read_exact(&mut byte).map_err(io)?;
        if byte == *b"\n" {
            stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None)).map_err(io)?;
            return match Answer::decode(&line) {
                Some(Answer::Ok) => Ok(()),
                Some(Answer::No(why)) => Err(why),
                None => Err("the listener is not a narrows server".to_owned()),
            };
        }
        line.push(byte[0]);
    }
    Err("the listener is not a narrows server".to_owned())
}

/// The set-up time of one fresh connection, in microseconds.
pub(super) fn probe(address: SocketAddr) -> Result<u64, RemoteError> {
    let start = clock::now();
    let mut stream = connect(address, Carried::Plain, |_| Ok(()))?;
    let time = clock::micros_since(start);
    greet(&mut stream, &DataHello::probe()).map_err(|why| RemoteError::Data(address.to_string(), why))?;
    Ok(time)
}

fn open(address: SocketAddr, key: Key, spec: StreamSpec, plan: &LoadPlan) -> Result<DataStream, RemoteError> {
    let StreamSpec { id, flow, carrier } = spec;
    if carrier == Carrier::Udp {
        let start = clock::now();
        let stream = narrows_traffic::open_udp(address, &key, id, flow, plan)
            .map_err(|error| RemoteError::Here(error.to_string()))?;
        return Ok(DataStream { id, flow, socket: Socket::Udp(stream), connect_ns: Some(nanos(start)) });
    }
    let start = clock::now();
    let options = plan.tcp_options(id).unwrap_or_default();
    let carried = if options.transport == Transport::Multipath { Carried::Multipath } else { Carried::Plain };
    let before =
        |socket: BorrowedFd<'_>| prepare(socket, Place::Client, flow, &options).map_err(|error| error.to_string());
    let mut socket = connect(address, carried, before)?;
    let connect_ns = Some(nanos(start));
    greet(&mut socket, &DataHello { key, wanted: Wanted::Stream { id, flow } })
        .map_err(|why| RemoteError::Data(address.to_string(), why))?;
    Ok(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns })
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// All data connections of a trial, several at a time.
pub(super) fn open_all(address: SocketAddr, key: Key, plan: &LoadPlan) -> Result<Vec<DataStream>, RemoteError> {
    let specs = plan.streams();
    let mut streams = Vec::with_capacity(specs.len());
    for some in specs.chunks(AT_ONCE) {
        let opened = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|stream| scope.spawn(|| open(address, key, *stream, plan))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(RemoteError::Here("a thread panicked".to_owned()))))
                .collect::<Result<Vec<_>, _>>()
        })?;
        streams.extend(opened);
    }
    Ok(streams)
}
