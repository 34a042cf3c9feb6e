//! One trial of a session: it waits for its data connections, runs the engine on them, and tells what this end saw.

use super::limits::{CONNECT_ALL, longest};
use super::listen::part;
use super::session::{Session, lock};
use super::shared::Shared;
use crate::instruments::DataStream;
use crate::stop::Stop;
use narrows_model::load::Wanted as Needed;
use narrows_model::{Carrier, Flow, LoadPlan, LoadRecord, Place, Snapshot};
use narrows_wire::api::Event;
use narrows_wire::hello::Answer;
use narrows_wire::{DataHello, Key, Wanted};
use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
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
    shared.expect(key, Expected { missing, plan: plan.clone(), arrived });
    let (shared, session) = (shared.clone(), session.clone());
    tokio::spawn(async move {
        let outcome = conduct(&shared, &session, &plan, number, count, arrivals, &stop, before).await;
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
        tokio::task::spawn_blocking(move || run(&shared, &session, &plan, number, streams, &stop, before))
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
    streams: Vec<DataStream>,
    stop: &Stop,
    before: Snapshot,
) -> Result<Box<LoadRecord>, String> {
    let peer = streams.first().and_then(|stream| stream.socket.peer_addr().ok()).map(|peer| peer.ip().to_canonical());
    let instruments = &shared.config.instruments;
    session.signs.watch(&streams);
    let record = instruments.run(Place::Server, plan, streams, stop, &mut |progress| {
        session.events.mention(&Event::Progress { trial: number, progress });
    });
    session.signs.forget();
    let after = shared.as_seen_by(session.standing, instruments.counters(session.address.or(peer)));
    Ok(Box::new(record?.between(before, after)))
}

/// A data connection has said what it is for: it is answered, and handed to its trial.
pub(super) async fn attend(shared: &Shared, hello: &DataHello, mut stream: TcpStream) {
    let Wanted::Stream { id, flow } = hello.wanted else {
        let _ = stream.write_all(&Answer::Ok.encode()).await;
        return;
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
        let _ = arrived.send(DataStream { id, flow, socket });
    }
}
