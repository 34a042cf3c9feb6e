//! Connections and a plan in, one end's record out.

use super::answer::Answers;
use super::budget::Budget;
use super::requester::{Left, Requester, Worker};
use super::sockets::{self, settle};
use super::streams::RrStreams;
use super::tally::Tally;
use super::tcp_requester::TcpRequester;
use super::transactor::Transactor;
use super::udp_requester::UdpRequester;
use super::{tcp_responder, udp_responder};
use crate::common::connections::{Connections, DataStream, PerTransaction, Socket};
use crate::common::engine::{End, Engine};
use crate::common::error::TrafficError;
use crate::common::outcome::Outcome;
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::{Schedule, Starts};
use crate::common::sockets::rtt;
use crate::common::threads::{Control, Work};
use crate::tcp;
use crate::udp::UdpStream;
use narrows_model::{
    DatagramSizes, Flow, LoadRecord, Place, RrEndRecord, RrPlan, RrStreamRecord, Snapshot, Transaction, UdpPlan,
};
use narrows_sys::{net, thread};
use narrows_wire::hello;
use std::net::SocketAddr;

impl Engine for RrPlan {
    fn run(&self, connections: Connections, end: End<'_>) -> Result<LoadRecord, TrafficError> {
        run(self, connections, end).map(Into::into)
    }

    /// Small datagrams that need no particular path MTU.
    fn handshake(&self) -> UdpPlan {
        UdpPlan {
            sizes: DatagramSizes::Sequence(vec![self.request_bytes.max(self.response_bytes)]),
            allow_fragments: true,
            ..UdpPlan::default()
        }
    }

    /// The first requests may come before the trial begins here.
    fn prepare_udp(&self, stream: &UdpStream) {
        // The trial does it again, and remarks an error.
        let _ = sockets::prepare(&stream.socket, self);
    }

    fn answers(&self) -> Option<Answers> {
        (self.transaction == Transaction::TcpConnect).then(|| Answers::new(self))
    }
}

/// Makes requests (client) or answers them (server) until the trial is over, and blocks until then.
///
/// The client's clock starts at once, the server's with the first request that comes in or, where that is much later, when it was
/// due. The load, where there is one, runs
/// beside it on threads of its own by the TCP engine and under the same flag: give it the same duration, and omit the time that
/// it needs to fill the path.
///
/// Every trial stops by itself: a client begins no request after the plan's duration and waits [`crate::GRACE`] for the last
/// answers; a server ends when its clients close, 0.3 s after the last request after the planned end, or [`crate::GRACE`] after
/// it.
fn run(plan: &RrPlan, connections: Connections, end: End<'_>) -> Result<RrEndRecord, TrafficError> {
    let place = end.place;
    let Connections { streams, per_transaction, .. } = connections;
    // The streams of requests come first, those of the load beside them after.
    let (load, mut streams): (Vec<_>, Vec<_>) = streams.into_iter().partition(|stream| stream.id >= plan.streams);
    check(place, plan, &streams, &per_transaction, &load)?;
    let mut remarks = Vec::new();
    let mut records = Vec::new();
    for stream in &mut streams {
        records.push(settle(stream, plan, &mut remarks)?);
    }
    match &per_transaction {
        PerTransaction::Nothing => {}
        PerTransaction::Connect { address, .. } => {
            if (plan.request_bytes as usize) < hello::LENGTH {
                let bytes = hello::LENGTH;
                remarks.push(format!("requests were {bytes} bytes long, the size of the connection header"));
            }
            let remote = SocketAddr::new(net::canonical(*address).ip(), 0).to_string();
            let record = |id| RrStreamRecord { id, remote: remote.clone(), ..Default::default() };
            records.extend((0..plan.streams).map(record));
        }
        PerTransaction::Answer(answers) => {
            records.extend((0..answers.count()).map(|id| RrStreamRecord { id: id as u32, ..Default::default() }));
        }
    }

    let control = Control::new(end.stop);
    let tallies: Vec<Tally> = records.iter().map(|_| Tally::new()).collect();
    let budget = &Budget::new(plan);
    let mut works = Vec::new();
    for (index, (record, tally)) in records.iter().zip(&tallies).enumerate() {
        let socket = streams.get(index).map(|stream| &stream.socket);
        let worker = Worker { plan, control: &control, tally, budget, id: record.id, index, count: records.len() };
        let per_transaction = &per_transaction;
        let body = Box::new(move |start, moving: &dyn Fn(_)| {
            thread::exact_timers();
            let requester = || Requester::new(worker, start);
            match (socket, per_transaction, place) {
                (Some(Socket::Tcp(socket)), _, Place::Client) => TcpRequester::new(requester(), socket).run(),
                (Some(Socket::Tcp(socket)), ..) => tcp_responder::respond(socket, worker, moving),
                (Some(Socket::Udp(stream)), _, Place::Client) => {
                    UdpRequester::new(requester(), &stream.socket, start).run()
                }
                (Some(Socket::Udp(stream)), ..) => udp_responder::respond(&stream.socket, worker, moving),
                (None, PerTransaction::Connect { address, key }, _) => {
                    Transactor::new(requester(), *address, *key).run()
                }
                // Requests pass no other protocol.
                (Some(Socket::Layered(..) | Socket::Own(..)) | None, ..) => Left::of(Outcome::Complete, Vec::new()),
            }
        });
        // The accept path answers by itself.
        if !matches!(per_transaction, PerTransaction::Answer(_)) {
            works.push(Work { id: record.id, name: "rr", clock: &tally.thread, body });
        }
    }
    // A requester ends a moment after the grace by itself, and reports what is missing.
    let server = place == Place::Server;
    let connections = streams.iter().filter_map(|stream| match &stream.socket {
        Socket::Tcp(socket) => Some(socket),
        _ => None,
    });
    let sampling = Sampling {
        streams: records.iter().map(|record| (record.id, Flow::Up)).collect(),
        schedule: Schedule::new(plan.interval_ms, plan.omit_ms, Some(plan.duration_ms)),
        starts: if server { Starts::WithData { rtt: rtt(connections) } } else { Starts::AtGate },
        graces: if server { 1 } else { 2 },
        when_idle: server,
        after_senders: false,
        remarks,
    };
    let answers = match &per_transaction {
        PerTransaction::Answer(answers) => Some(answers),
        _ => None,
    };
    let mut sampled = RrStreams { place, records, tallies: &tallies, answers };
    let mut load_record = None;
    let (control, load_slot, stop, cpu_times) = (&control, &mut load_record, end.stop, end.cpu_times);
    let run_load = move |load_plan| {
        let done = tcp::run(load_plan, Connections::of(load), End { place, stop, cpu_times, on_progress: &mut |_| {} });
        if done.is_err() {
            control.over.stop();
        }
        *load_slot = Some(done);
    };
    let Sampled { samples, host, remarks } = sampler::run(control, works, &mut sampled, sampling, end, |scope| {
        if let Some(load_plan) = &plan.load {
            scope.spawn(move || run_load(load_plan));
        }
        None
    })?;
    let streams = sampled.records.into_iter().zip(samples);
    Ok(RrEndRecord {
        place,
        streams: streams.map(|(record, samples)| RrStreamRecord { samples, ..record }).collect(),
        load: load_record.transpose()?,
        host,
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks,
    })
}

/// Whether the connections are those of the plan.
fn check(
    place: Place,
    plan: &RrPlan,
    requests: &[DataStream],
    per_transaction: &PerTransaction,
    load: &[DataStream],
) -> Result<(), TrafficError> {
    let wrong = |why: &str| Err(TrafficError::Sockets(why.to_owned()));
    if plan.load.is_some() == load.is_empty() {
        return wrong("a load needs a plan and streams, or neither");
    }
    match (per_transaction, plan.transaction, place) {
        (PerTransaction::Nothing, Transaction::Tcp | Transaction::Udp, _) if requests.is_empty() => {
            Err(TrafficError::NoStreams)
        }
        (PerTransaction::Nothing, Transaction::Tcp | Transaction::Udp, _)
        | (PerTransaction::Connect { .. }, Transaction::TcpConnect, Place::Client)
        | (PerTransaction::Answer(_), Transaction::TcpConnect, Place::Server) => Ok(()),
        _ => wrong(
            "with a connection for each transaction the client connects and the server answers; else both have streams",
        ),
    }
}
