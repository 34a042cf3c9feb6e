//! Opened streams and a plan in, one end's record out.

use super::counters::Counters;
use super::stream::UdpStream;
use super::streams::UdpStreams;
use super::worker::Worker;
use crate::common::error::TrafficError;
use crate::common::progress::Progress;
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::Schedule;
use crate::common::sockets::{address_text, sysctl_text};
use crate::common::stop::Stop;
use crate::common::threads::{Control, Work};
use narrows_model::{CpuTimes, Flow, Place, Snapshot, UdpEndRecord, UdpPlan, UdpSample, UdpStreamRecord};
use std::time::Duration;

/// Moves data on all streams until the trial is over, and blocks until then. The record's `before` and `after` are left empty.
///
/// Both ends need the same plan and the same streams. The client sends on its streams at once and requests the server to send on the
/// others; each end's clock starts with the first datagram sent or received. `cpu_times` is called at each sampling
/// instant; `on_progress` is called on this thread after each interval and once at the end. All streams are closed on return.
///
/// Every trial stops by itself: a sender at the end of its schedule, a receiver with the sender's end message and a moment for
/// stragglers, or [`crate::GRACE`] after the planned end.
///
/// # Errors
/// Why the trial did not start. Later failures are remarks in the record.
pub fn run(
    place: Place,
    plan: &UdpPlan,
    mut streams: Vec<UdpStream>,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(Progress<UdpSample>),
) -> Result<UdpEndRecord, TrafficError> {
    plan.check().map_err(TrafficError::Plan)?;
    if place == Place::Path {
        return Err(TrafficError::NotAnEnd);
    }
    if streams.is_empty() {
        return Err(TrafficError::NoStreams);
    }
    streams.sort_by_key(|stream| stream.id);
    for stream in &mut streams {
        // The engine answers from here on.
        stream.answerer = None;
        // The handshake's time-out does not apply to the trial.
        let _ = stream.socket.set_read_timeout(Some(Duration::from_millis(20)));
    }
    let mut remarks = Vec::new();
    let records: Vec<UdpStreamRecord> = streams.iter().map(|stream| begin(stream, place, plan, &mut remarks)).collect();

    let control = Control::new(stop);
    let counters: Vec<Counters> = streams.iter().map(|_| Counters::new()).collect();
    let mut turns = [0_u32; 2];
    let mut works = Vec::with_capacity(streams.len());
    for (stream, counters) in streams.iter().zip(&counters) {
        let turn = &mut turns[usize::from(stream.flow == Flow::Down)];
        let worker = Worker { place, plan, control: &control, turn: *turn, stream, counters };
        *turn += 1;
        let body = Box::new(|_, moving: &dyn Fn(_)| worker.run(moving));
        works.push(Work { id: stream.id, name: "udp", clock: &counters.thread, body });
    }
    let schedule = Schedule::new(plan.interval_ms, plan.omit_ms, Some(plan.duration_ms));
    let sampling = Sampling { schedule, cpu_times, starts_at_gate: false, remarks };
    let mut sampled = UdpStreams { place, plan, records, streams: &streams, counters: &counters };
    let Sampled { samples, host, remarks } =
        sampler::run(&control, works, &mut sampled, sampling, on_progress, |_| None)?;
    let records = sampled.records.into_iter().zip(samples);
    Ok(UdpEndRecord {
        place,
        streams: records.map(|(record, samples)| UdpStreamRecord { samples, ..record }).collect(),
        host,
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks,
    })
}

/// Opens the record of a stream; remarks buffers that were not obtained.
fn begin(stream: &UdpStream, place: Place, plan: &UdpPlan, remarks: &mut Vec<String>) -> UdpStreamRecord {
    let (id, buffers) = (stream.id, stream.buffers);
    let short = |obtained: u32, target: u32, name: &str, sysctl: &str| {
        let limit = sysctl_text(sysctl);
        format!("stream {id}: wanted {} bytes of {name}, got {} ({sysctl} is {limit})", target / 2, obtained / 2)
    };
    // The kernel doubles what it grants.
    if stream.sends(place) {
        let target = plan.send_buffer_bytes.map(|bytes| bytes.saturating_mul(2));
        if let Some((obtained, target)) = buffers.send.zip(target).filter(|(obtained, target)| obtained < target) {
            remarks.push(short(obtained, target, "SO_SNDBUF", "net.core.wmem_max"));
        }
    } else if let Some((obtained, target)) =
        buffers.receive.zip(buffers.receive_target).filter(|(obtained, target)| obtained < target)
    {
        remarks.push(short(obtained, target, "SO_RCVBUF", "net.core.rmem_max"));
    }
    UdpStreamRecord {
        id,
        flow: stream.flow,
        local: address_text(stream.socket.local_addr()),
        remote: address_text(stream.socket.peer_addr()),
        datagram_bytes: stream.datagram_bytes,
        path_mtu_bytes: stream.path_mtu_bytes,
        sndbuf_bytes: buffers.send,
        rcvbuf_bytes: buffers.receive,
        rcvbuf_wanted_bytes: buffers.receive_target,
        method: String::new(),
        sent: None,
        received: None,
        samples: Vec::new(),
    }
}
