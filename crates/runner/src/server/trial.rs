//! One trial of a session: it waits for its data connections, runs the engine on them, and tells what this end saw.

use super::audit;
use super::limits::{CONNECT_ALL, Standing, longest};
use super::running::{Expected, Over, Phase, Running};
use super::session::Session;
use super::shared::Shared;
use super::unauthenticated::Pending;
use crate::instruments::LiveInstruments;
use crate::lock;
use narrows_model::{Carrier, Flow, LoadPlan, LoadRecord, Place, Sample};
use narrows_sys::clock::{self, micros_since};
use narrows_sys::tcp;
use narrows_sys::udp::Arrival;
use narrows_traffic::rr::{ANSWER_LIMIT, Answering, Answers, Step};
use narrows_traffic::tcp::prepare;
use narrows_traffic::{Connections, DataStream, PerTransaction, Socket, Stop};
use narrows_wire::api::Event;
use narrows_wire::hello::Answer;
use narrows_wire::{DataHello, Key, Wanted, probe};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

/// So long the record waits for the client to read its counters: for the last packets on their way, and for a client that has
/// forgotten.
const HOLD: Duration = Duration::from_secs(5);

/// What a client asks of the server's end beside its plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Of this host only the CPU times are read.
    pub(super) light: bool,
    /// The client runs on this machine, on the same CPUs.
    pub(super) beside: bool,
}

/// Opens a trial: from here on its data connections are expected.
pub(super) fn open(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    plan: LoadPlan,
    key: Key,
    Asked { light, beside }: Asked,
) -> Result<u32, &'static str> {
    shared.renew_buffers();
    let instruments = match shared.config.instruments {
        LiveInstruments::All if light => LiveInstruments::Cpu,
        own => own,
    };
    let phase = watch::Sender::new(Phase::Gathers);
    let running = Running { stop: Stop::new(), phase, cookies: Arc::default(), instruments, beside };
    let number = {
        let mut slot = lock(&session.trial);
        if session.end.is_raised() {
            return Err("the session has ended");
        }
        if slot.0.is_some() {
            return Err("a trial of this session is still running; stop it, or wait for its end");
        }
        slot.0 = Some(running.clone());
        slot.1 += 1;
        slot.1
    };
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let missing: BTreeSet<_> = plan.streams().into_iter().collect();
    let count = missing.len();
    let answers = narrows_traffic::answers(&plan);
    shared.expect(
        key,
        Expected {
            missing,
            plan: plan.clone(),
            client: session.address.filter(|_| !shared.config.stdio),
            arrived,
            answers: answers.clone(),
        },
    );
    let (shared, session) = (shared.clone(), session.clone());
    tokio::spawn(async move {
        let over = Over(running.clone());
        let since = clock::now();
        let outcome = conduct(&shared, &session, &plan, number, count, arrivals, answers, &running).await;
        shared.expect_no_more(&key);
        if outcome.is_ok() {
            tokio::select! {
                _ = session.end.wait() => {}
                _ = timeout(HOLD, running.reach(Phase::Released)) => {}
            }
        }
        let noted = measured(&plan, &outcome, micros_since(since) / 1_000);
        if let audit::Event::Measured { bytes, .. } = &noted {
            shared.tally.load(outcome.is_ok(), *bytes);
        }
        shared.audit.note(&session.by(), &noted);
        let event = match outcome {
            Ok(record) => Event::Finished { trial: number, record },
            Err(why) => Event::Failed { trial: number, why },
        };
        // The next trial may be asked for as soon as the client has read of the end of this one.
        lock(&session.trial).0 = None;
        drop(over);
        session.events.tell(&event).await;
    });
    Ok(number)
}

/// What a trial was, for the audit log. A load of requests and responses does not count bytes.
fn measured(plan: &LoadPlan, outcome: &Result<Box<LoadRecord>, String>, duration_ms: u64) -> audit::Event {
    let bytes = match outcome {
        Ok(record) if !matches!(plan, LoadPlan::Rr(_) | LoadPlan::Profile(_)) => {
            let last = |samples: Vec<&dyn Sample>| samples.last().map_or(0, |sample| sample.bytes());
            Some(record.end().samples().into_iter().map(last).sum::<u64>())
        }
        _ => None,
    };
    let rate_bps =
        bytes.and_then(|bytes| u64::try_from(u128::from(bytes) * 8_000 / u128::from(duration_ms.max(1))).ok());
    let failure = outcome.as_ref().err().map(|why| audit::text(why));
    audit::Event::Measured { kind: plan.kind(), duration_ms, bytes, rate_bps, failure }
}

#[allow(clippy::too_many_arguments)] // one call, and each is a thing of its own
async fn conduct(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    plan: &LoadPlan,
    number: u32,
    count: usize,
    arrivals: mpsc::UnboundedReceiver<DataStream>,
    answers: Option<Answers>,
    running: &Running,
) -> Result<Box<LoadRecord>, String> {
    let stop = &running.stop;
    let gathering = timeout(CONNECT_ALL, gather(arrivals, count));
    let streams = tokio::select! {
        why = session.end.wait() => return Err(why.to_owned()),
        () = raised(stop) => return Err("stopped before its data connections were open".to_owned()),
        gathered = gathering => gathered.map_err(|_| {
            format!(
                "not all {count} data connections were opened within {} s; check that firewalls allow port {}",
                CONNECT_ALL.as_secs(),
                shared.port
            )
        })?,
    };
    tokio::select! {
        why = session.end.wait() => return Err(why.to_owned()),
        () = raised(stop) => return Err("stopped before the start".to_owned()),
        called = timeout(CONNECT_ALL, running.reach(Phase::Called)) => called.map_err(|_| {
            format!("the client did not start it within {} s", CONNECT_ALL.as_secs())
        })?,
    }
    receives(&streams, &lock(&running.cookies))?;
    let streams = ranked(streams, session.standing);
    let engine = {
        let (shared, session, plan, running) = (shared.clone(), session.clone(), plan.clone(), running.clone());
        let per_transaction = answers.map_or(PerTransaction::Nothing, PerTransaction::Answer);
        let connections = Connections { streams, per_transaction, beside: running.beside };
        tokio::task::spawn_blocking(move || run(&shared, &session, &plan, number, connections, &running))
    };
    tokio::pin!(engine);
    let backstop = tokio::time::sleep(longest(plan, session.standing));
    tokio::pin!(backstop);
    let mut late = false;
    loop {
        tokio::select! {
            done = &mut engine => return done.unwrap_or_else(|error| Err(format!("the engine failed: {error}"))),
            () = &mut backstop, if !late => {
                late = true;
                stop.stop();
            }
        }
    }
}

/// Checks that the client receives at the address of each UDP stream, so that nobody has a load sent to a third host.
fn receives(streams: &[DataStream], cookies: &BTreeMap<u32, u64>) -> Result<(), String> {
    let unproved = streams.iter().find_map(|stream| match &stream.socket {
        Socket::Udp(udp) if cookies.get(&stream.id) != Some(&udp.cookie) => Some(udp.peer),
        _ => None,
    });
    unproved.map_or(Ok(()), |peer| Err(format!("the client did not prove that it receives UDP at {peer}")))
}

/// A client without a token gets no thread that runs before the ordinary ones of this host.
fn ranked(mut streams: Vec<DataStream>, standing: Standing) -> Vec<DataStream> {
    for stream in &mut streams {
        if let Socket::Udp(udp) = &mut stream.socket {
            udp.real_time = standing == Standing::Trusted;
        }
    }
    streams
}

async fn gather(mut arrivals: mpsc::UnboundedReceiver<DataStream>, count: usize) -> Vec<DataStream> {
    let mut streams = Vec::with_capacity(count);
    while streams.len() < count {
        match arrivals.recv().await {
            Some(stream) => streams.push(stream),
            None => return std::future::pending().await,
        }
    }
    streams.sort_by_key(|stream| stream.id);
    streams
}

/// The flag belongs to threads that do not wait for it, so it is looked at now and then.
async fn raised(stop: &Stop) {
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
    while !stop.is_set() {
        tick.tick().await;
    }
}

/// The engine, between two readings of the counters. Blocks.
fn run(
    shared: &Shared,
    session: &Session,
    plan: &LoadPlan,
    number: u32,
    connections: Connections,
    running: &Running,
) -> Result<Box<LoadRecord>, String> {
    let peer = session.address.or_else(|| connections.peer());
    let instruments = running.instruments;
    let mut before = shared.reading.counters(instruments, peer);
    let watches = shared.reading.watch(instruments);
    session.liveness.watch(&connections.streams);
    running.raise(Phase::Begun);
    let record = instruments.run(Place::Server, plan, connections, &running.stop, &mut |progress| {
        session.events.mention(&Event::Progress { trial: number, progress });
    });
    session.liveness.forget();
    let mut after = shared.reading.counters(instruments, peer);
    watches.end(&mut before, &mut after);
    let [before, after] = [before, after].map(|snapshot| session.standing.visible(snapshot));
    Ok(Box::new(record?.between(before, after)))
}

/// A data connection has said what it is for: it is answered, and handed to its trial. It is admitted by the key of the trial.
pub(super) async fn attend(shared: &Shared, hello: &DataHello, mut stream: TcpStream, pending: &Pending) {
    let (id, flow) = match hello.wanted {
        Wanted::Stream { id, flow } => (id, flow),
        Wanted::Transaction { id } => return transact(shared, hello, id, stream, pending).await,
        Wanted::Probe => {
            let _ = stream.write_all(&Answer::Ok.encode()).await;
            return;
        }
    };
    let claimed = shared.with_expected(&hello.key, |expected| expected.claim(id, flow, Carrier::Tcp)).flatten();
    let Some((plan, arrived)) = claimed else {
        let why = "no trial with this key expects this stream".to_owned();
        return part(stream, &Answer::No(why).encode()).await;
    };
    pending.admit();
    let options = plan.tcp_options(id).unwrap_or_default();
    // Elsewhere: the helper may have to set an option, and may be late.
    let preparing = move || {
        let prepared = prepare(stream.as_fd(), Place::Server, flow, &options);
        (stream, prepared)
    };
    let Ok((mut stream, prepared)) = tokio::task::spawn_blocking(preparing).await else { return };
    if let Err(why) = prepared {
        return part(stream, &Answer::No(why.to_string()).encode()).await;
    }
    // Where it is gone again, the trial will miss it and say so.
    if stream.write_all(&Answer::Ok.encode()).await.is_ok()
        && let Ok(socket) = stream.into_std()
        && socket.set_nonblocking(false).is_ok()
    {
        let _ = arrived.send(DataStream { id, flow, socket: Socket::Tcp(socket), connect_ns: None });
    }
}

/// A connection that is a transaction: its request is read and answered here, for it lives no longer.
async fn transact(shared: &Shared, hello: &DataHello, id: u32, mut stream: TcpStream, pending: &Pending) {
    let answers = shared.with_expected(&hello.key, |expected| expected.answers.clone()).flatten();
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let begun = answers.ok_or("no trial with this key expects transactions").and_then(|a| a.begin(id, local, peer));
    match begun {
        Ok(mut answering) => {
            // Until then it counts as a stranger's.
            while let Step::Wait(time) = answering.step() {
                sleep(time).await;
            }
            pending.admit();
            if let Some(bytes_per_s) = answering.bytes_per_s()
                && tcp::set_max_pacing(&stream, bytes_per_s).is_err()
            {
                return;
            }
            let _ = timeout(ANSWER_LIMIT, exchange(answering, &mut stream)).await;
        }
        Err(why) => part(stream, &Answer::No(why.to_owned()).encode()).await,
    }
}

async fn exchange(mut answering: Answering, stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        match answering.step() {
            Step::Wait(time) => sleep(time).await,
            Step::Read(most) => {
                buffer.resize(most, 0);
                match stream.read(&mut buffer).await? {
                    0 => return Ok(()),
                    count => answering.read(count),
                }
            }
            Step::Write(bytes) => {
                let count = stream.write(bytes).await?;
                answering.wrote(count);
            }
            Step::Close => return Ok(()),
        }
    }
}

/// A UDP stream that a trial waits for, and whose hello has come.
pub(super) struct Claimed {
    id: u32,
    flow: Flow,
    plan: LoadPlan,
    arrived: mpsc::UnboundedSender<DataStream>,
}

/// A hello of a UDP stream has come. `None`: it came twice, and the stream's own socket answers.
/// Errors: why there is no trial for it, for the client.
pub(super) fn claim_datagram(
    shared: &Shared,
    hello: &probe::Hello,
    arrival: &Arrival,
) -> Result<Option<Claimed>, String> {
    let (id, flow) = (u32::from(hello.stream), hello.flow);
    let source = arrival.source.ip().to_canonical();
    let claimed =
        shared.with_expected(&hello.key, |expected| match expected.client.map(|client| client.to_canonical()) {
            Some(client) if client != source => {
                Err(format!("this hello came from {source}, but the session is of {client}"))
            }
            _ => Ok(expected.claim(id, flow, Carrier::Udp)),
        });
    let claimed = claimed.ok_or("no trial with this key expects this stream")??;
    Ok(claimed.map(|(plan, arrived)| Claimed { id, flow, plan, arrived }))
}

impl Claimed {
    /// Makes the stream's own socket. Blocks.
    /// Errors: why there is none, for the client.
    pub(super) fn accept(self, hello: &probe::Hello, arrival: &Arrival) -> Result<(), String> {
        let Self { id, flow, plan, arrived } = self;
        let stream = narrows_traffic::accept_udp(hello, arrival, &plan).map_err(|error| error.to_string())?;
        // Where the trial is gone again, nobody misses it.
        let _ = arrived.send(DataStream { id, flow, socket: Socket::Udp(stream), connect_ns: None });
        Ok(())
    }
}

/// Sends a last message and closes so that it arrives: what the peer still sends is read for a moment, because a socket that is
/// closed with unread bytes resets the connection (RFC 1122, section 4.2.2.13).
pub(super) async fn part(mut stream: TcpStream, word: &[u8]) {
    if stream.write_all(word).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut left = [0; 1024];
    let mut budget = 64;
    let drain = async {
        while budget > 0 && matches!(stream.read(&mut left).await, Ok(1..)) {
            budget -= 1;
        }
    };
    let _ = timeout(Duration::from_secs(1), drain).await;
}
