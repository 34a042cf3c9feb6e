//! Connected sockets and a plan in, one end's record out.

use super::payload::Payload;
use super::streams::{Seen, TcpStreams};
use super::worker::{Counters, Paces, Shared, Worker};
use super::{batch, layered, options, receiver, sender};
use crate::common::awake;
use crate::common::connections::{Connections, DataStream, Layer, Socket};
use crate::common::engine::{End, Engine};
use crate::common::error::TrafficError;
use crate::common::placing::{Placing, Together};
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::{Schedule, Starts};
use crate::common::threads::{Control, Work};
use narrows_model::{LoadRecord, Plan as _, Snapshot, TcpEndRecord, TcpPlan, TcpStreamRecord, ZeroCopy};
use narrows_sys::cpu;
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

impl Engine for TcpPlan {
    fn run(&self, connections: Connections, end: End<'_>) -> Result<LoadRecord, TrafficError> {
        run(self, connections, end).map(Into::into)
    }
}

/// Moves data on all streams until the trial is over, and blocks until then.
///
/// The clock starts with the first byte written or, on a receive-only end, with the first byte received; if that is
/// much later than it was due, when it was due. All streams are closed on return: a sender whose time was up closes abortively, so that nothing queued drains into the path after
/// the trial.
///
/// Every trial stops by itself: a sender at its deadline, a receiver [`crate::GRACE`] later at the latest, a stream of bytes when
/// nothing moved for [`crate::common::limits::STALL`], and anything after [`TcpPlan::LONGEST_MS`].
pub(crate) fn run(
    plan: &TcpPlan,
    Connections { streams, beside, .. }: Connections,
    end: End<'_>,
) -> Result<TcpEndRecord, TrafficError> {
    let place = end.place;
    let mut remarks = Vec::new();
    let (mut records, mut seen, mut ways) = (Vec::new(), Vec::new(), Vec::new());
    for DataStream { id, flow, socket, .. } in streams {
        let (one, way) = match socket {
            Socket::Tcp(socket) => {
                let socket = Arc::new(socket);
                (Seen::Kernel(Arc::clone(&socket)), Way::Socket(socket))
            }
            Socket::Layered(socket, layer) => (Seen::Kernel(Arc::new(socket)), Way::Layer(layer)),
            Socket::Own(witness, layer) => (Seen::Own(witness), Way::Layer(layer)),
            Socket::Udp(_) => continue,
        };
        records.push(match &one {
            Seen::Kernel(socket) => options::settle(id, flow, socket, place, plan, &mut remarks)?,
            Seen::Own(witness) => options::of_own(id, flow, &**witness),
        });
        seen.push(one);
        ways.push(way);
    }

    let sends = records.iter().any(|record| record.flow.sender() == place);
    let control = Control::new(end.stop);
    let shared = Shared {
        place,
        plan,
        control: &control,
        payload: sends.then(|| payload(plan, &mut remarks)),
        plain: OnceLock::new(),
        paces: Paces::new(plan),
        together: Together::default(),
    };
    let counters: Vec<_> = records.iter().map(|_| Counters::new()).collect();
    let mut works = Vec::with_capacity(records.len());
    for ((record, counters), way) in records.iter().zip(&counters).zip(ways) {
        let (shared, flow) = (&shared, record.flow);
        let body = Box::new(move |start, moving: &dyn Fn(_)| {
            let worker = Worker::new(shared, flow, counters, start);
            let sends = flow.sender() == place;
            match (way, &shared.payload) {
                (Way::Layer(layer), _) => layered::run(&worker, layer, sends, moving),
                (Way::Socket(socket), Some(payload)) if sends => sender::run(&worker, &socket, payload),
                (Way::Socket(socket), _) => receiver::run(&worker, &socket, moving),
            }
        });
        works.push(Work { id: record.id, name: "stream", clock: &counters.thread, body });
    }
    let sampling = Sampling {
        streams: records.iter().map(|record| (record.id, record.flow)).collect(),
        schedule: Schedule::new(plan.interval_ms, plan.omit_ms, plan.duration_ms()),
        starts: if sends { Starts::AtGate } else { Starts::WithData { rtt: rtt(&seen) } },
        graces: 1,
        when_idle: true,
        after_senders: false,
        remarks,
    };
    let is_kernels = seen.iter().all(|it| it.kernel().is_some());
    let placing = Placing::new(
        &plan.placement.as_deref().cloned().unwrap_or_default(),
        place,
        beside,
        (records.len(), plan.duration_ms()),
        &shared.together,
        (cpu::machine(), cpu::allowed_cpus().unwrap_or_default()),
    );
    let placing = is_kernels.then_some(placing);
    let seen = seen.into_iter().map(Some).collect();
    let mut streams = TcpStreams {
        shared: &shared,
        records,
        seen,
        counters: &counters,
        placing,
        last_calls: false,
        parting: Vec::new(),
    };
    let Sampled { samples, host, remarks } = sampler::run(&control, works, &mut streams, sampling, end, |scope| {
        plan.awake.then(|| awake::keep(scope, &control.over).err()).flatten()
    })?;
    streams.part();
    let streams = streams.records.into_iter().zip(samples);
    Ok(TcpEndRecord {
        place,
        streams: streams.map(|(record, samples)| TcpStreamRecord { samples, ..record }).collect(),
        host,
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks,
    })
}

/// How the data of a stream moves.
enum Way {
    Socket(Arc<TcpStream>),
    Layer(Box<dyn Layer>),
}

/// The round-trip time of the path before the load, from the handshake of the first stream.
fn rtt(seen: &[Seen]) -> Option<Duration> {
    seen.first()?.info().rtt_us.filter(|us| *us > 0).map(Duration::from_micros)
}

/// The payload of the senders.
fn payload(plan: &TcpPlan, remarks: &mut Vec<String>) -> Payload {
    if plan.zero_copy == ZeroCopy::On {
        match Payload::pages() {
            Ok(pages) => return pages,
            Err(error) => remarks.push(format!("zero copy is not possible: {error}; data is copied")),
        }
    }
    Payload::buffer(batch::Calls::most(plan))
}
