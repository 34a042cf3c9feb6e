//! Frames through `AF_XDP` rings, one queue a worker.

use super::device::Device;
use super::pace::Share;
use super::worker::{Crew, Outlet};
use narrows_model::load::frames::{FCS_BYTES, GeneratePlan};
use narrows_sys::clock;
use narrows_sys::xsk::{FRAME_BYTES, XskSender};
use std::time::Duration;

const BATCH: u64 = 64;
/// How long frames under way are waited for at the end.
const DRAIN_NS: u64 = 50_000_000;

const EBUSY: i32 = 16;
/// How long a queue is waited for: the kernel lets go of it a moment after its last socket is closed.
const QUEUE_WAIT: Duration = Duration::from_secs(1);
/// The largest frame with FCS that fits one of its places, of which the first 256 bytes are the kernel's.
const MAX_FRAME_BYTES: u32 = FRAME_BYTES as u32 - 256 + FCS_BYTES;

impl Outlet for XskSender {
    fn send(&mut self, count: u64, write: impl Fn(u64, &mut [u8]) -> usize) -> Result<(u64, u64), narrows_sys::Error> {
        let mut ahead = 0;
        let taken = Self::send(self, usize::try_from(count.min(BATCH)).unwrap_or(1), |place| {
            let length = write(ahead, place);
            ahead += 1;
            length
        })?;
        Ok((taken as u64, 0))
    }

    fn drain(&mut self, now_ns: u64) -> Result<(), narrows_sys::Error> {
        while !self.idle()? && clock::monotonic_ns() < now_ns + DRAIN_NS {}
        Ok(())
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
            "a frame of {} bytes is too large; the maximum is {MAX_FRAME_BYTES}",
            plan.format.largest()
        ));
    }
    let open = |(queue, _): (u32, &Share)| {
        open(device.index, queue).map_err(|error| match error.errno() {
            Some(22) => format!("the interface has no queue {queue}; use fewer workers"),
            Some(EBUSY) => format!("queue {queue} is in use by another AF_XDP socket"),
            Some(97) => "this kernel was built without AF_XDP".to_owned(),
            _ => error.to_string(),
        })
    };
    let outlets = (0_u32..).zip(shares).map(open).collect::<Result<Vec<_>, _>>()?;
    Ok(Crew::of(plan, shares, outlets))
}
