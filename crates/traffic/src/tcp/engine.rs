//! The TCP engine: connected sockets and a plan in, one end's record out. One thread a stream moves data; the caller's thread
//! takes the samples.

use crate::conductor::Conductor;
use crate::counters::Counters;
use crate::error::TrafficError;
use crate::options;
use crate::payload::Payload;
use crate::stop::Stop;
use crate::worker::{Paces, Shared, Worker};
use crate::{Progress, Stream};
use narrows_model::{CpuTimes, Place, Snapshot, TcpEndRecord, TcpPlan, ZeroCopy};
use narrows_sys::tcp;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// No call on a data socket blocks longer; it bounds how late a stop takes effect.
pub const CALL_LIMIT: Duration = Duration::from_millis(50);
/// A receiver waits so long for the sender's last word after the planned end.
pub const GRACE: Duration = Duration::from_secs(2);
/// A stream that is ended by bytes is given up when none moved for so long.
pub const STALL: Duration = Duration::from_secs(30);
/// A data thread's stack: it calls nothing deep.
const STACK_BYTES: usize = 256 << 10;

/// Moves data on all streams until the trial is over, and blocks so long. The record's `before` and `after` are left empty.
///
/// The end's clock starts with its first written byte or, on an end that only receives, with the first byte that comes in.
/// `cpu_times` is asked at each sampling instant; `on_progress` is called on this thread after each interval and once at the
/// end. All streams are closed on return: a sender whose time was up closes abortively, so that nothing queued drains into
/// the path after the trial.
///
/// Every trial stops by itself: a sender at its deadline, a receiver [`GRACE`] later at the latest, a stream of bytes when
/// nothing moved for [`STALL`], and anything after [`TcpPlan::LONGEST_MS`].
///
/// # Errors
/// What kept the trial from starting. What goes wrong later is a remark in the record.
pub fn run(
    place: Place,
    plan: &TcpPlan,
    mut streams: Vec<Stream>,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress),
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
    let shared = Shared {
        place,
        plan,
        stop,
        over: Stop::new(),
        payload: sends.then(|| payload(plan, &mut remarks)),
        plain: OnceLock::new(),
        paces: Paces::new(plan),
        gate: OnceLock::new(),
    };
    let counters: Vec<Counters> = streams.iter().map(|_| Counters::new()).collect();
    let sockets: Vec<_> = streams.into_iter().map(|stream| Arc::new(stream.socket)).collect();
    let (outbox, inbox) = mpsc::channel();

    thread::scope(|scope| {
        for (index, (record, socket)) in records.iter().zip(&sockets).enumerate() {
            let worker = Worker {
                index,
                flow: record.flow,
                socket: Arc::clone(socket),
                counters: &counters[index],
                shared: &shared,
                outbox: outbox.clone(),
            };
            let builder = thread::Builder::new().name(format!("stream {}", record.id)).stack_size(STACK_BYTES);
            if let Err(source) = builder.spawn_scoped(scope, move || worker.run()) {
                // Those that wait at the gate go home.
                shared.over.stop();
                let _ = shared.gate.set(narrows_sys::clock::now());
                return Err(TrafficError::Thread { stream: record.id, source });
            }
        }
        // Only the data threads hold it now: when all have ended, the inbox says so.
        drop(outbox);
        if plan.awake
            && let Err(remark) = crate::awake::keep(scope, &shared.over)
        {
            remarks.push(remark);
        }
        let conductor = Conductor::new(&shared, records, sockets, &counters, cpu_times, remarks);
        let (streams, host, remarks) = conductor.run(&inbox, sends, on_progress);
        shared.over.stop();
        Ok(TcpEndRecord { place, streams, host, before: Snapshot::default(), after: Snapshot::default(), remarks })
    })
}

/// What the senders hand over. `Auto` is plain `send`: measured on veth with 6.18, `sendfile` costs more than the copy that it
/// avoids, because each of its calls passes at most 16 pages on, and so the receiver is woken up more often.
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
