//! Opened streams and a plan in, one end's record out. One thread a stream moves data; the caller's thread takes the samples.

use super::conductor::Conductor;
use super::counters::Counters;
use super::outcome::named;
use super::progress::UdpProgress;
use super::stream::UdpStream;
use super::worker::{Shared, Worker};
use crate::error::TrafficError;
use crate::stop::Stop;
use narrows_model::{CpuTimes, Flow, Place, Snapshot, UdpEndRecord, UdpPlan, UdpStreamRecord};
use narrows_sys::files;
use std::path::Path;
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// A receiver waits so long for the sender's last word after the planned end.
pub const GRACE: Duration = Duration::from_secs(2);
/// A data thread's stack: it calls nothing deep.
const STACK_BYTES: usize = 512 << 10;

/// Moves data on all streams until the trial is over, and blocks so long. The record's `before` and `after` are left empty.
///
/// Both ends need the same plan and the same streams. The client sends on its streams at once and asks the server to send on the
/// others; each end's clock starts with the first datagram that leaves or comes in. `cpu_times` is asked at each sampling
/// instant; `on_progress` is called on this thread after each interval and once at the end. All streams are closed on return.
///
/// Every trial stops by itself: a sender at the end of its schedule, a receiver with the sender's last word and a moment for
/// stragglers, or [`GRACE`] after the planned end.
///
/// # Errors
/// What kept the trial from starting. What goes wrong later is a remark in the record.
pub fn run(
    place: Place,
    plan: &UdpPlan,
    mut streams: Vec<UdpStream>,
    stop: &Stop,
    cpu_times: &(dyn Fn() -> Vec<CpuTimes> + Sync),
    on_progress: &mut dyn FnMut(UdpProgress),
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
        // A time-out of the handshake's is no bound of the trial's.
        let _ = stream.socket.set_read_timeout(Some(Duration::from_millis(20)));
    }
    let mut remarks = Vec::new();
    let records: Vec<UdpStreamRecord> = streams.iter().map(|stream| begin(stream, place, plan, &mut remarks)).collect();

    let shared = Shared { place, plan, stop, over: Stop::new(), gate: OnceLock::new() };
    let counters: Vec<Counters> = streams.iter().map(|_| Counters::new()).collect();
    let (outbox, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let mut turns = [0_u32; 2];
        for (index, stream) in streams.iter().enumerate() {
            let turn = &mut turns[usize::from(stream.flow == Flow::Down)];
            let worker = Worker {
                index,
                turn: *turn,
                stream,
                counters: &counters[index],
                shared: &shared,
                outbox: outbox.clone(),
            };
            *turn += 1;
            let builder = thread::Builder::new().name(format!("udp {}", stream.id)).stack_size(STACK_BYTES);
            if let Err(source) = builder.spawn_scoped(scope, move || worker.run()) {
                // Those that wait at the gate go home.
                shared.over.stop();
                let _ = shared.gate.set(());
                return Err(TrafficError::Thread { stream: stream.id, source });
            }
        }
        // Only the data threads hold it now: when all have ended, the inbox says so.
        drop(outbox);
        let conductor = Conductor::new(&shared, records, &streams, &counters, cpu_times, remarks);
        let (streams, host, remarks) = conductor.run(&inbox, on_progress);
        Ok(UdpEndRecord { place, streams, host, before: Snapshot::default(), after: Snapshot::default(), remarks })
    })
}

/// Opens the record of a stream, and says what was wanted and not obtained.
fn begin(stream: &UdpStream, place: Place, plan: &UdpPlan, remarks: &mut Vec<String>) -> UdpStreamRecord {
    let (id, buffers) = (stream.id, stream.buffers);
    let short = |obtained: u32, wanted: u32, name: &str, sysctl: &str| {
        let limit = files::read_text(&Path::new("/proc/sys").join(sysctl.replace('.', "/")));
        let limit = limit.map_or_else(|_| "not readable".to_owned(), |text| text.trim().to_owned());
        format!("stream {id}: wanted {} bytes of {name}, got {} ({sysctl} is {limit})", wanted / 2, obtained / 2)
    };
    // The kernel doubles what it grants.
    if stream.sends(place) {
        let wanted = plan.send_buffer_bytes.map(|bytes| bytes.saturating_mul(2));
        if let Some((obtained, wanted)) = buffers.send.zip(wanted).filter(|(obtained, wanted)| obtained < wanted) {
            remarks.push(short(obtained, wanted, "SO_SNDBUF", "net.core.wmem_max"));
        }
    } else if let Some((obtained, wanted)) =
        buffers.receive.zip(buffers.receive_wanted).filter(|(obtained, wanted)| obtained < wanted)
    {
        remarks.push(short(obtained, wanted, "SO_RCVBUF", "net.core.rmem_max"));
    }
    UdpStreamRecord {
        id,
        flow: stream.flow,
        local: named(stream.socket.local_addr()),
        remote: named(stream.socket.peer_addr()),
        datagram_bytes: stream.datagram_bytes,
        path_mtu_bytes: stream.path_mtu_bytes,
        sndbuf_bytes: buffers.send,
        rcvbuf_bytes: buffers.receive,
        rcvbuf_wanted_bytes: buffers.receive_wanted,
        method: String::new(),
        sent: None,
        received: None,
        samples: Vec::new(),
    }
}
