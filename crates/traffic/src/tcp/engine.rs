//! Connected sockets and a plan in, one end's record out.

use super::counters::Counters;
use super::options;
use super::payload::Payload;
use super::stream::Stream;
use super::streams::TcpStreams;
use super::worker::{Paces, Shared};
use crate::common::awake;
use crate::common::error::TrafficError;
use crate::common::limits::CALL_LIMIT;
use crate::common::progress::Progress;
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::Schedule;
use crate::common::stop::Stop;
use crate::common::threads::{Control, Work};
use narrows_model::{CpuTimes, Limit, Place, Snapshot, TcpEndRecord, TcpPlan, TcpSample, TcpStreamRecord, ZeroCopy};
use narrows_sys::tcp;
use std::sync::{Arc, OnceLock};

/// Moves data on all streams until the trial is over, and blocks until then. The record's `before` and `after` are left empty.
///
/// The end's clock starts with its first written byte or, on an end that only receives, with the first byte that comes in.
/// `cpu_times` is called at each sampling instant; `on_progress` is called on this thread after each interval and once at the
/// end. All streams are closed on return: a sender whose time was up closes abortively, so that nothing queued drains into
/// the path after the trial.
///
/// Every trial stops by itself: a sender at its deadline, a receiver [`GRACE`] later at the latest, a stream of bytes when
/// nothing moved for [`STALL`], and anything after [`TcpPlan::LONGEST_MS`].
///
/// # Errors
/// Why the trial did not start. Later failures are remarks in the record.
pub fn run(
    place: Place,
    plan: &TcpPlan,
    mut streams: Vec<Stream>,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress<TcpSample>),
) -> Result<TcpEndRecord, TrafficError> {
    plan.check().map_err(TrafficError::Plan)?;
    if place == Place::Path {
        return Err(TrafficError::NotAnEnd);
    }
    if streams.is_empty() {
        return Err(TrafficError::NoStreams);
    }
    streams.sort_by_key(|stream| stream.id);
    let mut remarks = Vec::new();
    let mut records = Vec::with_capacity(streams.len());
    for stream in &streams {
        records.push(options::settle(stream, place, plan, &mut remarks)?);
        tcp::set_call_limit(&stream.socket, CALL_LIMIT)
            .map_err(|source| TrafficError::option(&format!("stream {}", stream.id), source, ""))?;
    }

    let sends = streams.iter().any(|stream| stream.flow.sender() == place);
    let control = Control::new(stop);
    let shared = Shared {
        place,
        plan,
        control: &control,
        payload: sends.then(|| payload(plan, &mut remarks)),
        plain: OnceLock::new(),
        paces: Paces::new(plan),
    };
    let counters: Vec<Counters> = streams.iter().map(|_| Counters::new()).collect();
    let sockets: Vec<_> = streams.into_iter().map(|stream| Arc::new(stream.socket)).collect();
    let mut works = Vec::with_capacity(records.len());
    for ((record, socket), counters) in records.iter().zip(&sockets).zip(&counters) {
        let (shared, flow, socket) = (&shared, record.flow, Arc::clone(socket));
        let body = Box::new(move |start, moving: &dyn Fn(_)| shared.work(flow, &socket, counters, start, moving));
        works.push(Work { id: record.id, name: "stream", clock: &counters.thread, body });
    }
    let duration_ms = match plan.limit {
        Limit::DurationMs(ms) => Some(ms),
        Limit::BytesPerStream(_) => None,
    };
    let sampling = Sampling {
        schedule: Schedule::new(plan.interval_ms, plan.omit_ms, duration_ms),
        cpu_times,
        starts_at_gate: sends,
        remarks,
    };
    let sockets = sockets.into_iter().map(Some).collect();
    let mut streams = TcpStreams { shared: &shared, records, sockets, counters: &counters, last_calls: false };
    let Sampled { samples, host, remarks } =
        sampler::run(&control, works, &mut streams, sampling, on_progress, |scope| {
            plan.awake.then(|| awake::keep(scope, &control.over).err()).flatten()
        })?;
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

/// The payload of the senders. `Auto` is plain `send`: measured on veth with Linux 6.18, `sendfile` costs more than the copy that
/// it avoids, because each call passes at most 16 pages and so wakes the receiver more often.
fn payload(plan: &TcpPlan, remarks: &mut Vec<String>) -> Payload {
    let message = plan.message_bytes as usize;
    if plan.zero_copy == ZeroCopy::On {
        match Payload::pages(message) {
            Ok(pages) => return pages,
            Err(error) => remarks.push(format!("zero copy is not possible: {error}; sending copies")),
        }
    }
    Payload::buffer(message)
}
