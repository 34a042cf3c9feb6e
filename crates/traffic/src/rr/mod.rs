//! The request/response engine: `TCP_RR`, `UDP_RR` and `TCP_CRR` as netperf means them. The client requests, the server responds.
//! Plain threads and blocking calls: one thread a stream, the caller's thread takes the samples.
//!
//! **Closed loop** (no rate): each stream keeps [`RrPlan::outstanding`] requests on their way, the next one goes as soon as one is
//! answered or given up. A latency counts from the request's first byte out.
//!
//! **Open loop** (a rate): each request has an instant at which it is due, whatever became of those before it. No more than
//! `outstanding` are on their way; one that has to wait for that is sent as soon as it may, and its latency counts from
//! the instant at which it was **due**. So a path that stands still for a second shows as a second of latency in all requests of that
//! second, and not in one alone (coordinated omission). Requests that were due and could not be made before the end are told
//! in a remark.
//!
//! A latency ends when this thread has the response's last byte: wake-ups of both ends are in it. Latencies before
//! `omit_ms` are not in the distributions; all counts hold the whole trial.

mod answer;
mod conductor;
mod outcome;
mod pace;
mod seat;
mod tally;
mod tcp_requester;
mod tcp_responder;
mod transactor;
mod udp_requester;
mod udp_responder;

pub use answer::{ANSWER_LIMIT, Answering, Answers, Step, answer};

use crate::engine::{self, CALL_LIMIT};
use crate::stop::Stop;
use crate::{Stream, TrafficError};
use conductor::{Conductor, Event, Source};
use narrows_model::{
    CpuTimes, Distribution, Place, RrEndRecord, RrPlan, RrSample, RrStreamRecord, Snapshot, TcpEndRecord, Transaction,
};
use narrows_stats::Histogram;
use narrows_sys::{net, tcp, thread as kernel_thread, udp};
use narrows_wire::{Key, hello};
use outcome::Leaves;
use seat::Seat;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Instant;
use tally::Tally;

/// What requests and responses over TCP are filled with. The first byte of a response is never that of a line of words.
static FILL: [u8; 64 << 10] = [0xA5; 64 << 10];
/// A stream's thread's stack: it calls nothing deep.
const STACK_BYTES: usize = 256 << 10;
/// What a socket's buffer takes without being asked (`net.core.rmem_default`).
const DEFAULT_BUFFER_BYTES: u64 = 200 << 10;
/// More is not asked for: the kernel doubles it and counts in 31 bits.
const MOST_BUFFER_BYTES: u32 = 256 << 20;

/// A connected socket of a stream.
#[derive(Debug)]
pub enum Socket {
    /// For [`Transaction::Tcp`]. Its options are the engine's to set.
    Tcp(TcpStream),
    /// For [`Transaction::Udp`], connected to the other end's socket of the same stream.
    Udp(UdpSocket),
}

/// One stream.
#[derive(Debug)]
pub struct RrStream {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Its socket.
    pub socket: Socket,
    /// How long its connection took to be made, in nanoseconds, where that was measured.
    pub connect_ns: Option<u64>,
}

/// What carries the transactions on this end.
#[derive(Debug)]
pub enum Exchange {
    /// Connected sockets, either end: as many as the plan has streams.
    Streams(Vec<RrStream>),
    /// The client's end of [`Transaction::TcpConnect`].
    Connect {
        /// Of the server's one port.
        address: SocketAddr,
        /// Of the trial.
        key: Key,
    },
    /// The server's end of [`Transaction::TcpConnect`]: what the accept path answers.
    Answer(Answers),
}

/// All connections of this end of a trial.
#[derive(Debug)]
pub struct Connections {
    /// What is measured.
    pub exchange: Exchange,
    /// The streams of the plan's load, connected with [`crate::prepare`] and the load's plan; empty without one.
    pub load: Vec<Stream>,
}

/// All streams of one end at the end of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RrProgress {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// By id. A stream that has ended shows its last sample.
    pub streams: Vec<RrStreamProgress>,
    /// Whether it is the last word.
    pub done: bool,
}

/// One stream at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RrStreamProgress {
    /// Its number.
    pub id: u32,
    /// Totals so far.
    pub sample: RrSample,
}

/// What all threads of a trial see.
struct Shared<'a> {
    place: Place,
    plan: &'a RrPlan,
    stop: &'a Stop,
    /// The conductor's word.
    over: Stop,
    /// Opens once, with the start of the trial.
    gate: OnceLock<Instant>,
}

/// One stream's means on this end.
enum Means<'a> {
    Tcp(&'a TcpStream),
    Udp(&'a UdpSocket),
    Connect(SocketAddr, Key),
}

/// Makes requests (client) or answers them (server) until the trial is over, and blocks so long. The record's `before` and `after`
/// are left empty, as those of its load.
///
/// The client's clock starts at once, the server's with the first request that comes in. `cpu_times` is asked at each sampling
/// instant; `on_progress` is called on this thread after each interval and once at the end. The load, where there is one, runs
/// beside it on threads of its own by [`crate::run`] and under the same flag: give it the same duration, and omit the time that it
/// needs to fill the path.
///
/// Every trial stops by itself: a client begins no request after the plan's duration and waits [`engine::GRACE`] for the last
/// answers; a server ends when its clients close, 0.3 s after the last request beyond the planned end, or [`engine::GRACE`] after
/// it.
///
/// # Errors
/// What kept the trial or its load from starting. What goes wrong later is a remark in the record.
pub fn run(
    place: Place,
    plan: &RrPlan,
    connections: Connections,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(RrProgress),
) -> Result<RrEndRecord, TrafficError> {
    plan.check().map_err(TrafficError::Plan)?;
    let Connections { exchange, load } = connections;
    check(place, plan, &exchange, &load)?;
    let mut remarks = Vec::new();
    let (mut streams, answers, connect) = match exchange {
        Exchange::Streams(streams) => (streams, None, None),
        Exchange::Connect { address, key } => (Vec::new(), None, Some((address, key))),
        Exchange::Answer(answers) => (Vec::new(), Some(answers), None),
    };
    streams.sort_by_key(|stream| stream.id);
    let mut records = Vec::new();
    for stream in &streams {
        records.push(settle(stream, plan, &mut remarks)?);
    }
    if let Some((address, _)) = connect {
        if (plan.request_bytes as usize) < hello::LENGTH {
            remarks.push(format!("requests were {} bytes long: that is what a connection begins with", hello::LENGTH));
        }
        let remote = SocketAddr::new(net::canonical(address).ip(), 0).to_string();
        let record = |id| RrStreamRecord { id, local: String::new(), remote: remote.clone(), ..Default::default() };
        records.extend((0..plan.streams).map(record));
    }
    if let Some(answers) = &answers {
        records.extend((0..answers.count()).map(|id| RrStreamRecord { id: id as u32, ..Default::default() }));
    }

    let shared = Shared { place, plan, stop, over: Stop::new(), gate: OnceLock::new() };
    let tallies: Vec<Tally> = records.iter().map(|_| Tally::new()).collect();
    let (outbox, inbox) = mpsc::channel();
    thread::scope(|scope| {
        if answers.is_none() {
            for (index, record) in records.iter().enumerate() {
                let means = match (streams.get(index).map(|stream| &stream.socket), connect) {
                    (Some(Socket::Tcp(socket)), _) => Means::Tcp(socket),
                    (Some(Socket::Udp(socket)), _) => Means::Udp(socket),
                    (None, Some((address, key))) => Means::Connect(address, key),
                    (None, None) => continue,
                };
                let (id, of, shared, tally, outbox) =
                    (record.id, records.len(), &shared, &tallies[index], outbox.clone());
                let body = move || {
                    let start = *shared.gate.wait();
                    kernel_thread::exact_timers();
                    tally.thread.begin();
                    let moving = |at| {
                        let _ = outbox.send(Event::Moving(at));
                    };
                    let leaves = work(shared, tally, &means, (id, index, of), start, moving);
                    tally.thread.end();
                    // The conductor is gone only when the trial is.
                    let _ = outbox.send(Event::Ended { index, leaves: Box::new(leaves) });
                };
                let builder = thread::Builder::new().name(format!("rr {id}")).stack_size(STACK_BYTES);
                if let Err(source) = builder.spawn_scoped(scope, body) {
                    // Those that wait at the gate go home.
                    shared.over.stop();
                    let _ = shared.gate.set(narrows_sys::clock::now());
                    return Err(TrafficError::Thread { stream: id, source });
                }
            }
        }
        drop(outbox);
        let load = plan.load.as_ref().map(|load_plan| {
            let shared = &shared;
            scope.spawn(move || -> Result<TcpEndRecord, TrafficError> {
                let done = engine::run(place, load_plan, load, stop, cpu_times, &mut |_| {});
                if done.is_err() {
                    shared.over.stop();
                }
                done
            })
        });
        let sources = records.into_iter().enumerate().map(|(index, record)| {
            let source = match &answers {
                Some(answers) => Source::Accept(answers, index),
                None => Source::Thread(&tallies[index]),
            };
            (record, source)
        });
        let conductor = Conductor::new(&shared, sources.collect(), answers.as_ref(), cpu_times, remarks);
        let (streams, host, remarks) = conductor.run(&inbox, on_progress);
        let load = match load.map(thread::ScopedJoinHandle::join) {
            None => None,
            Some(Ok(record)) => Some(record?),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        };
        let (before, after) = (Snapshot::default(), Snapshot::default());
        Ok(RrEndRecord { place, streams, load, host, before, after, remarks })
    })
}

/// A stream's work on this end.
fn work(
    shared: &Shared<'_>,
    tally: &Tally,
    means: &Means<'_>,
    seat: (u32, usize, usize),
    start: Instant,
    moving: impl FnOnce(Instant),
) -> Leaves {
    let ends = (shared.stop, &shared.over);
    let requester = || Seat::new(seat, shared.plan, tally, ends, start);
    match (means, shared.place) {
        (Means::Tcp(socket), Place::Client) => tcp_requester::TcpRequester::new(requester(), socket).run(),
        (Means::Tcp(socket), _) => tcp_responder::respond(socket, shared.plan, tally, ends, moving),
        (Means::Udp(socket), Place::Client) => udp_requester::UdpRequester::new(requester(), socket, start).run(),
        (Means::Udp(socket), _) => udp_responder::respond(socket, seat.0, shared.plan, tally, ends, moving),
        (Means::Connect(address, key), _) => transactor::Transactor::new(requester(), *address, *key).run(),
    }
}

/// Whether the sockets are those of the plan.
fn check(place: Place, plan: &RrPlan, exchange: &Exchange, load: &[Stream]) -> Result<(), TrafficError> {
    let wrong = |why: &str| Err(TrafficError::Sockets(why.to_owned()));
    if place == Place::Path {
        return Err(TrafficError::NotAnEnd);
    }
    if plan.load.is_some() == load.is_empty() {
        return wrong("a load needs a plan and streams, or neither");
    }
    match (exchange, plan.transaction, place) {
        (Exchange::Streams(streams), Transaction::Tcp | Transaction::Udp, _) => {
            if streams.is_empty() {
                return Err(TrafficError::NoStreams);
            }
            let tcp = plan.transaction == Transaction::Tcp;
            if streams.iter().any(|stream| matches!(stream.socket, Socket::Tcp(_)) != tcp) {
                return wrong("the plan and the sockets are of different protocols");
            }
            Ok(())
        }
        (Exchange::Connect { .. }, Transaction::TcpConnect, Place::Client)
        | (Exchange::Answer(_), Transaction::TcpConnect, Place::Server) => Ok(()),
        _ => wrong(
            "with a connection for each transaction the client connects and the server answers; else both have streams",
        ),
    }
}

/// Gives a UDP socket room for all requests or answers that may be on their way. [`run`] does it too; do it as soon as the socket
/// is made where the other end may begin before, or its first requests find no room.
///
/// # Errors
/// What the kernel said; the socket works all the same.
pub fn prepare(socket: &UdpSocket, plan: &RrPlan) -> Result<(), TrafficError> {
    // With the kernel's overhead of up to as much again, and at least 768 bytes each.
    let each = 2 * u64::from(plan.request_bytes.max(plan.response_bytes)) + 768;
    let wanted = u64::from(plan.outstanding) * each;
    if wanted <= DEFAULT_BUFFER_BYTES {
        return Ok(());
    }
    let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(MOST_BUFFER_BYTES);
    udp::set_receive_buffer(socket, wanted).map_err(|error| TrafficError::option("new socket", error, ""))
}

/// Sets what a socket needs, and opens its stream's record.
fn settle(stream: &RrStream, plan: &RrPlan, remarks: &mut Vec<String>) -> Result<RrStreamRecord, TrafficError> {
    let on = format!("stream {}", stream.id);
    let plain = |operation: &'static str| {
        let on = on.clone();
        move |error| TrafficError::option(&on, narrows_sys::Error::new(operation, "the socket", error), "")
    };
    let limit = |socket: BorrowedFd<'_>| {
        tcp::set_call_limit(socket, CALL_LIMIT).map_err(|error| TrafficError::option(&on, error, ""))
    };
    let address = |address: std::io::Result<SocketAddr>| {
        address.map_or_else(|_| "unknown".to_owned(), |address| net::canonical(address).to_string())
    };
    let (local, remote) = match &stream.socket {
        Socket::Tcp(socket) => {
            socket.set_nonblocking(false).map_err(plain("make blocking"))?;
            socket.set_nodelay(true).map_err(plain("set TCP_NODELAY of"))?;
            limit(socket.as_fd())?;
            (address(socket.local_addr()), address(socket.peer_addr()))
        }
        Socket::Udp(socket) => {
            socket.set_nonblocking(false).map_err(plain("make blocking"))?;
            limit(socket.as_fd())?;
            if let Err(error) = prepare(socket, plan) {
                remarks.push(format!("{on}: {error}"));
            }
            (address(socket.local_addr()), address(socket.peer_addr()))
        }
    };
    let connect_ns = stream.connect_ns.map_or_else(Distribution::default, |nanos| {
        let mut one = Histogram::new();
        one.record(nanos);
        one.distribution()
    });
    Ok(RrStreamRecord { id: stream.id, local, remote, connect_ns, ..RrStreamRecord::default() })
}
