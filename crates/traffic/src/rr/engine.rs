//! Connections and a plan in, one end's record out.

use super::connections::{Connections, Exchange, Socket};
use super::requester::Position;
use super::sockets::settle;
use super::streams::RrStreams;
use super::tally::Tally;
use super::work::{Carrier, Worker};
use crate::common::error::TrafficError;
use crate::common::progress::Progress;
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::Schedule;
use crate::common::stop::Stop;
use crate::common::threads::{Control, Work};
use crate::tcp::{self, Stream};
use narrows_model::{CpuTimes, Place, RrEndRecord, RrPlan, RrSample, RrStreamRecord, Snapshot, Transaction};
use narrows_sys::net;
use narrows_wire::hello;
use std::net::SocketAddr;

/// Makes requests (client) or answers them (server) until the trial is over, and blocks until then. The record's `before` and `after`
/// are left empty, as those of its load.
///
/// The client's clock starts at once, the server's with the first request that comes in. `cpu_times` is called at each sampling
/// instant; `on_progress` is called on this thread after each interval and once at the end. The load, where there is one, runs
/// beside it on threads of its own by [`crate::tcp::run`] and under the same flag: give it the same duration, and omit the time that it
/// needs to fill the path.
///
/// Every trial stops by itself: a client begins no request after the plan's duration and waits [`crate::GRACE`] for the last
/// answers; a server ends when its clients close, 0.3 s after the last request after the planned end, or [`crate::GRACE`] after
/// it.
///
/// # Errors
/// Why the trial or its load did not start. Later failures are remarks in the record.
pub fn run(
    place: Place,
    plan: &RrPlan,
    connections: Connections,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress<RrSample>),
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

    let control = Control::new(stop);
    let tallies: Vec<Tally> = records.iter().map(|_| Tally::new()).collect();
    let connect = connect.map(|(address, key)| Carrier::Connect(address, key));
    let mut works = Vec::new();
    for (index, (record, tally)) in records.iter().zip(&tallies).enumerate() {
        let carrier = streams.get(index).map(|stream| Carrier::from(&stream.socket)).or(connect);
        // Without a carrier the accept path answers.
        let Some(carrier) = carrier else { continue };
        let position = Position { id: record.id, index, count: records.len() };
        let worker = Worker { place, plan, control: &control, position, carrier, tally };
        let body = Box::new(|start, moving: &dyn Fn(_)| worker.run(start, moving));
        works.push(Work { id: record.id, name: "rr", clock: &tally.thread, body });
    }
    let schedule = Schedule::new(plan.interval_ms, plan.omit_ms, Some(plan.duration_ms));
    let sampling = Sampling { schedule, cpu_times, starts_at_gate: place == Place::Client, remarks };
    let mut sampled = RrStreams { place, plan, records, tallies: &tallies, answers: answers.as_ref() };
    let mut load_record = None;
    let (control, load_slot) = (&control, &mut load_record);
    let run_load = move |load_plan| {
        let done = tcp::run(place, load_plan, load, stop, cpu_times, &mut |_| {});
        if done.is_err() {
            control.over.stop();
        }
        *load_slot = Some(done);
    };
    let Sampled { samples, host, remarks } =
        sampler::run(control, works, &mut sampled, sampling, on_progress, |scope| {
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
