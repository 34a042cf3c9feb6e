//! Frames sent through a packet socket: works on every device, and is the slowest.

use super::device::Device;
use super::error::FrameError;
use super::frame_writer::FrameWriter;
use super::pace::Share;
use super::tally::{Counts, Tally};
use super::worker::{Crew, Meter, Worker};
use narrows_model::load::frames::GeneratePlan;
use narrows_sys::clock;
use narrows_sys::packet_io::{BATCH, PacketSender};
use std::sync::Arc;

/// How long a worker sends before it checks for a stop.
const SLICE_NS: u64 = 20_000_000;

struct Sender {
    socket: PacketSender,
    author: FrameWriter,
    buffers: Vec<Vec<u8>>,
    tally: Arc<Tally>,
}

impl Meter for Arc<Tally> {
    fn counts(&self) -> Counts {
        self.get()
    }

    fn ready(&self) -> bool {
        self.is_ready()
    }

    fn start(&self, at_ns: u64) -> narrows_sys::Result<()> {
        self.start_at(at_ns);
        Ok(())
    }
}

impl Worker for Sender {
    fn work(&mut self) -> Result<bool, FrameError> {
        let until = clock::monotonic_ns() + SLICE_NS;
        loop {
            let now = clock::monotonic_ns();
            let Some(due) = self.author.due(now) else {
                self.tally.set(self.author.counts);
                return Ok(false);
            };
            if now >= until {
                self.tally.set(self.author.counts);
                return Ok(true);
            }
            if due == 0 {
                self.author.rest(now);
                continue;
            }
            let count = usize::try_from(due).unwrap_or(BATCH).min(BATCH);
            let mut lengths = [0; BATCH];
            for (ahead, (buffer, length)) in (0_u64..).zip(self.buffers.iter_mut().zip(&mut lengths)).take(count) {
                *length = self.author.write(ahead, now, buffer);
            }
            let frames = self.buffers.iter().zip(&lengths).take(count).map(|(buffer, length)| &buffer[..*length]);
            let sent = self.socket.send(frames)?;
            self.author.sent(sent.taken as u64, clock::monotonic_ns());
            self.author.bounced(sent.refused);
            self.tally.set(self.author.counts);
        }
    }
}

pub(super) fn prepare(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> Result<Crew, String> {
    let open = |_: &Share| PacketSender::open(device.index).map_err(|error| error.to_string());
    let sockets = shares.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let largest = plan.format.largest() as usize;
    let workers = sockets.into_iter().zip(shares).map(|(socket, share)| {
        let tally = Arc::new(Tally::default());
        let author = FrameWriter::new(plan, *share, Arc::clone(&tally));
        let sender = Sender { socket, author, buffers: vec![vec![0; largest]; BATCH], tally: Arc::clone(&tally) };
        (Box::new(sender) as Box<dyn Worker>, Arc::new(tally) as Arc<dyn Meter>)
    });
    Ok(Crew { workers: workers.collect() })
}
