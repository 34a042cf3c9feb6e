//! One trial of a session: it waits for its data connections, runs the engine on them, and tells what this end saw.

use super::limits::{CONNECT_ALL, longest};
use super::listen::part;
use super::session::{Session, lock};
use super::shared::Shared;
use crate::instruments::{Connections, DataStream, Each, Socket};
use crate::stop::Stop;
use narrows_model::load::Wanted as Needed;
use narrows_model::{Carrier, Flow, LoadPlan, LoadRecord, Place, Snapshot, Transaction};
use narrows_sys::udp::Arrival;
use narrows_traffic::rr::{ANSWER_LIMIT, Answering, Answers, Step};
use narrows_wire::api::Event;
use narrows_wire::hello::Answer;
use narrows_wire::{DataHello, Key, Wanted, probe};
use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// A trial as its session sees it.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) stop: Stop,
    /// Becomes true when nothing of it is left.
    over: watch::Receiver<bool>,
}

impl Running {
    pub(super) async fn wait_for_end(&self) {
        // An error means that the task is gone, which is as over as can be.
        let _ = self.over.clone().wait_for(|over| *over).await;
    }
}

/// A trial as its data connections see it, while they come.
#[derive(Debug)]
pub(super) struct Expected {
    missing: BTreeSet<Needed>,
    plan: LoadPlan,
    arrived: mpsc::UnboundedSender<DataStream>,
    answers: Option<Answers>,
}

impl Expected {
    /// Takes the place of one stream, so that no other connection can.
    fn claim(
        &mut self,
        id: u32,
        flow: Flow,
        carrier: Carrier,
    ) -> Option<(LoadPlan, mpsc::UnboundedSender<DataStream>)> {
        self.missing.remove(&Needed { id, flow, carrier }).then(|| (self.plan.clone(), self.arrived.clone()))
    }
}

/// Begins a trial: from here on its data connections are expected. `before` was read right before.
pub(super) fn begin(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    plan: LoadPlan,
    key: Key,
    before: Snapshot,
) -> Result<u32, &'static str> {
    let (over, watching) = watch::channel(false);
    let stop = Stop::new();
    let number = {
        let mut slot = lock(&session.trial);
        if session.has_ended() {
            return Err("the session has ended");
        }
        if slot.0.is_some() {
            return Err("a trial of this session is still running; stop it, or wait for its end");
        }
        slot.0 = Some(Running { stop: stop.clone(), over: watching });
        slot.1 += 1;
        slot.1
    };
    let (arrived, arrivals) = mpsc::unbounded_channel();
    let missing: BTreeSet<_> = plan.streams().into_iter().collect();
    let count = missing.len();
    let answers = answers_of(&plan);
    shared.expect(key, Expected { missing, plan: plan.clone(), arrived, answers: answers.clone() });
    let (shared, session) = (shared.clone(), session.clone());
    tokio::spawn(async move {
        let outcome = conduct(&shared, &session, &plan, number, count, arrivals, answers, &stop, before).await;
        shared.expect_no_more(&key);
        let event = match outcome {
            Ok(record) => Event::Finished { trial: number, record },
            Err(why) => Event::Failed { trial: number, why },
        };
        // The next trial may be asked for as soon as the client has read of the end of this one.
        lock(&session.trial).0 = None;
        over.send_replace(true);
        session.events.tell(&event).await;
    });
    Ok(number)
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
    stop: &Stop,
    before: Snapshot,
) -> Result<Box<LoadRecord>, String> {
    let gathering = timeout(CONNECT_ALL, gather(arrivals, count));
    let streams = tokio::select! {
        why = session.wait_for_end() => return Err(why.to_owned()),
        () = raised(stop) => return Err("it was stopped before its data connections had come".to_owned()),
        gathered = gathering => gathered.map_err(|_| {
            format!(
                "not all of its {count} data connections came within {} s; does a firewall let port {} through?",
                CONNECT_ALL.as_secs(),
                shared.port
            )
        })?,
    };
    let engine = {
        let (shared, session, plan, stop) = (shared.clone(), session.clone(), plan.clone(), stop.clone());
        let each = answers.map_or(Each::Nothing, Each::Answer);
        let connections = Connections { streams, each };
        tokio::task::spawn_blocking(move || run(&shared, &session, &plan, number, connections, &stop, before))
    };
    tokio::pin!(engine);
    let backstop = tokio::time::sleep(longest(plan, session.standing));
    tokio::pin!(backstop);
    let mut late = false;
    loop {
        tokio::select! {
            done = &mut engine => return done.unwrap_or_else(|error| Err(format!("the engine broke: {error}"))),
            () = &mut backstop, if !late => {
                late = true;
                stop.stop();
            }
        }
    }
}

/// What the accept path answers by itself, where the plan is one of a connection for each transaction.
fn answers_of(plan: &LoadPlan) -> Option<Answers> {
    match plan {
        LoadPlan::Rr(plan) if plan.transaction == Transaction::TcpConnect => Some(Answers::new(plan)),
        _ => None,
    }
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
    stop: &Stop,
    mut before: Snapshot,
) -> Result<Box<LoadRecord>, String> {
    let peer = connections.peer();
    let instruments = &shared.config.instruments;
    let drops = instruments.watch_drops();
    session.signs.watch(&connections.streams);
    let record = instruments.run(Place::Server, plan, connections, stop, &mut |progress| {
        session.events.mention(&Event::Progress { trial: number, progress });
    });
    session.signs.forget();
    let mut after = instruments.counters(session.address.or(peer));
    drops.end(&mut before, &mut after);
    let (before, after) = (shared.as_seen_by(session.standing, before), shared.as_seen_by(session.standing, after));
    Ok(Box::new(record?.between(before, after)))
}

/// A data connection has said what it is for: it is answered, and handed to its trial.
pub(super) async fn attend(shared: &Shared, hello: &DataHello, mut stream: TcpStream) {
    let (id, flow) = match hello.wanted {
        Wanted::Stream { id, flow } => (id, flow),
        Wanted::Transaction { id } => return transact(shared, hello, id, stream).await,
        Wanted::Probe => {
            let _ = stream.write_all(&Answer::Ok.encode()).await;
            return;
        }
    };
    let claimed = shared.with_expected(&hello.key, |expected| expected.claim(id, flow, Carrier::Tcp)).flatten();
    let Some((plan, arrived)) = claimed else {
        let why = "no trial of this key waits for this stream".to_owned();
        return part(stream, &Answer::No(why).encode()).await;
    };
    let options = plan.tcp_of(id).unwrap_or_default();
    if let Err(why) = shared.config.instruments.prepare(stream.as_fd(), Place::Server, flow, &options) {
        return part(stream, &Answer::No(why).encode()).await;
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
async fn transact(shared: &Shared, hello: &DataHello, id: u32, mut stream: TcpStream) {
    let answers = shared.with_expected(&hello.key, |expected| expected.answers.clone()).flatten();
    let (Ok(local), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return };
    let begun = answers.ok_or("no trial of this key waits for transactions").and_then(|a| a.begin(id, local, peer));
    match begun {
        Ok(answering) => {
            let _ = timeout(ANSWER_LIMIT, exchange(answering, &mut stream)).await;
        }
        Err(why) => part(stream, &Answer::No(why.to_owned()).encode()).await,
    }
}

async fn exchange(mut answering: Answering, stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        match answering.step() {
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

/// A hello of a UDP stream has come: its trial gets a socket for it.
///
/// # Errors
/// Why there is none, for the client. A hello that came twice is none: the stream's own socket answers.
pub(super) fn attend_datagram(shared: &Shared, hello: &probe::Hello, arrival: &Arrival) -> Result<(), String> {
    let (id, flow) = (u32::from(hello.stream), hello.flow);
    let claimed = shared.with_expected(&hello.key, |expected| expected.claim(id, flow, Carrier::Udp));
    let Some(claimed) = claimed else { return Err("no trial of this key waits for this stream".to_owned()) };
    let Some((plan, arrived)) = claimed else { return Ok(()) };
    let stream = shared.config.instruments.accept_udp(hello, arrival, &plan)?;
    // Where the trial is gone again, nobody misses it.
    let _ = arrived.send(DataStream { id, flow, socket: Socket::Udp(stream), connect_ns: None });
    Ok(())
}
