//! Frames through `AF_XDP` rings, one queue a worker.

use super::device::Device;
use super::error::FrameError;
use super::frame_writer::FrameWriter;
use super::pace::Share;
use super::tally::Tally;
use super::worker::{Crew, Meter, Worker};
use narrows_model::load::frames::{FCS_BYTES, GeneratePlan};
use narrows_sys::clock;
use narrows_sys::xsk::{FRAME_BYTES, XskSender};
use std::sync::Arc;
use std::time::Duration;

const SLICE_NS: u64 = 20_000_000;
const BATCH: u64 = 64;
/// How long frames under way are waited for at the end.
const DRAIN_NS: u64 = 50_000_000;

const EBUSY: i32 = 16;
/// How long a queue is waited for: the kernel lets go of it a moment after its last socket is closed.
const QUEUE_WAIT: Duration = Duration::from_secs(1);
/// The largest frame with FCS that fits one of its places, of which the first 256 bytes are the kernel's.
const MAX_FRAME_BYTES: u32 = FRAME_BYTES as u32 - 256 + FCS_BYTES;

struct Sender {
    socket: XskSender,
    author: FrameWriter,
    tally: Arc<Tally>,
}

impl Worker for Sender {
    fn work(&mut self) -> Result<bool, FrameError> {
        let until = clock::monotonic_ns() + SLICE_NS;
        loop {
            let now = clock::monotonic_ns();
            let Some(due) = self.author.due(now) else {
                self.tally.set(self.author.counts);
                while !self.socket.idle()? && clock::monotonic_ns() < now + DRAIN_NS {}
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
            let count = usize::try_from(due.min(BATCH)).unwrap_or(1);
            let (author, mut ahead) = (&self.author, 0);
            let taken = self.socket.send(count, |place| {
                let length = author.write(ahead, now, place);
                ahead += 1;
                length
            })?;
            self.author.sent(taken as u64, clock::monotonic_ns());
            self.tally.set(self.author.counts);
        }
    }
}

fn open(device: u32, queue: u32) -> narrows_sys::Result<XskSender> {
    let since = clock::now();
    loop {
        match XskSender::open(device, queue) {
            Err(error) if error.errno() == Some(EBUSY) && since.elapsed() < QUEUE_WAIT => {
                clock::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

pub(super) fn prepare(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> Result<Crew, String> {
    if plan.format.largest() > MAX_FRAME_BYTES {
        return Err(format!(
            "a frame of {} bytes does not fit; the largest that does has {MAX_FRAME_BYTES}",
            plan.format.largest()
        ));
    }
    let open = |(queue, _): (u32, &Share)| {
        open(device.index, queue).map_err(|error| match error.errno() {
            Some(22) => format!("the device has no queue {queue} for it; use fewer workers"),
            Some(EBUSY) => format!("queue {queue} is taken by another AF_XDP socket"),
            Some(97) => "this kernel was built without AF_XDP".to_owned(),
            _ => error.to_string(),
        })
    };
    let sockets = (0_u32..).zip(shares).map(open).collect::<Result<Vec<_>, _>>()?;
    let workers = sockets.into_iter().zip(shares).map(|(socket, share)| {
        let tally = Arc::new(Tally::default());
        let sender =
            Sender { socket, author: FrameWriter::new(plan, *share, Arc::clone(&tally)), tally: Arc::clone(&tally) };
        (Box::new(sender) as Box<dyn Worker>, Arc::new(tally) as Arc<dyn Meter>)
    });
    Ok(Crew { workers: workers.collect() })
}
