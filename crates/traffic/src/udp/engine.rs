//! Opened streams and a plan in, one end's record out.

use super::stream::UdpStream;
use super::streams::UdpStreams;
use super::worker::{Counters, Worker};
use super::{receiving, sender};
use crate::common::connections::{Connections, DataStream, Socket};
use crate::common::engine::{End, Engine};
use crate::common::error::TrafficError;
use crate::common::placing::{Placing, Together};
use crate::common::sampler::{self, Sampled, Sampling};
use crate::common::schedule::{Schedule, Starts};
use crate::common::sockets::{address_text, sysctl_text};
use crate::common::threads::{Control, Work};
use narrows_model::{Direction, Flow, LoadRecord, Place, Placement, Snapshot, UdpEndRecord, UdpPlan, UdpStreamRecord};
use narrows_sys::cpu;
use std::time::Duration;

impl Engine for UdpPlan {
    fn run(&self, connections: Connections, end: End<'_>) -> Result<LoadRecord, TrafficError> {
        let udp = |stream: DataStream| match stream.socket {
            Socket::Udp(stream) => Some(stream),
            _ => None,
        };
        let beside = connections.beside;
        run(self, connections.streams.into_iter().filter_map(udp).collect(), beside, end).map(Into::into)
    }

    fn handshake(&self) -> UdpPlan {
        self.clone()
    }
}

/// Moves data on all streams until the trial is over, and blocks until then.
///
/// The client sends on its streams at once and requests the server to send on the others; each end's clock starts with the first
/// datagram sent or received, the server's at the latest when those of the client should have been there.
///
/// Every trial stops by itself: a sender at the end of its schedule, a receiver with the sender's end message and a moment for
/// stragglers, or [`crate::GRACE`] after the planned end.
fn run(plan: &UdpPlan, mut streams: Vec<UdpStream>, beside: bool, end: End<'_>) -> Result<UdpEndRecord, TrafficError> {
    let place = end.place;
    for stream in &mut streams {
        // The engine answers from here on.
        stream.answerer = None;
        // The handshake's time-out does not apply to the trial.
        let _ = stream.socket.set_read_timeout(Some(Duration::from_millis(20)));
    }
    let mut remarks = Vec::new();
    let records: Vec<UdpStreamRecord> = streams.iter().map(|stream| begin(stream, place, plan, &mut remarks)).collect();

    let control = Control::new(end.stop);
    let counters: Vec<_> = streams.iter().map(|_| Counters::new()).collect();
    let mut turns = [0_u32; 2];
    let mut works = Vec::with_capacity(streams.len());
    for (stream, counters) in streams.iter().zip(&counters) {
        let turn = &mut turns[usize::from(stream.flow == Flow::Down)];
        let worker = Worker { place, plan, control: &control, turn: *turn, stream, counters };
        *turn += 1;
        let body = Box::new(move |_, moving: &dyn Fn(_)| match stream.sends(place) {
            true => sender::run(&worker, moving),
            false => receiving::run(&worker, moving),
        });
        works.push(Work { id: stream.id, name: "udp", clock: &counters.thread, body });
    }
    let sampling = Sampling {
        streams: records.iter().map(|record| (record.id, record.flow)).collect(),
        schedule: Schedule::new(plan.interval_ms, plan.omit_ms, Some(plan.duration_ms)),
        // The client requests downstream data repeatedly until it arrives.
        starts: if plan.direction == Direction::Down { Starts::OnlyWithData } else { Starts::WithData { rtt: None } },
        graces: 1,
        when_idle: false,
        after_senders: true,
        remarks,
    };
    let together = Together::default();
    let placing = Placing::new(
        &Placement::default(),
        place,
        beside,
        (records.len(), Some(plan.duration_ms)),
        &together,
        (cpu::machine(), cpu::allowed_cpus().unwrap_or_default()),
    );
    let mut sampled = UdpStreams { place, plan, records, streams: &streams, counters: &counters, placing };
    let Sampled { samples, host, remarks } = sampler::run(&control, works, &mut sampled, sampling, end, |_| None)?;
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
    let (obtained, target, name, sysctl) = if stream.sends(place) {
        let target = plan.send_buffer_bytes.map(|bytes| bytes.saturating_mul(2));
        (buffers.send, target, "SO_SNDBUF", "net.core.wmem_max")
    } else {
        (buffers.receive, buffers.receive_target, "SO_RCVBUF", "net.core.rmem_max")
    };
    // The kernel doubles what it grants.
    if let Some((obtained, target)) = obtained.zip(target).filter(|(obtained, target)| obtained < target) {
        let (target, obtained, limit) = (target / 2, obtained / 2, sysctl_text(sysctl));
        remarks.push(format!("stream {id}: wanted {target} bytes of {name}, got {obtained} ({sysctl} is {limit})"));
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
        rcvbuf_requested_bytes: buffers.receive_target,
        method: String::new(),
        sent: None,
        received: None,
        samples: Vec::new(),
    }
}
