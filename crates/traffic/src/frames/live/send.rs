//! Workers that run the program `generate` on live frames.

use super::super::error::FrameError;
use super::super::generator::{Crew, Device, Meter, StartAt, Worker};
use super::super::pace::{FRACTION, Share};
use super::super::tally::Counts;
use super::{GENERATE, layout};
use narrows_model::frames::{FCS_BYTES, GeneratePlan};
use narrows_sys::bpf::Object;
use narrows_wire::frame::Template;
use std::sync::Arc;

/// Frames, or refusals to make one, after which what was made is handed on; the queue of a virtual pair takes four times as
/// many. Each takes some 60 ns: where frames are further apart, fewer of them wait for each other.
const fn batch(share: &Share) -> u32 {
    match share.interval >> FRACTION {
        0..900 => 64,
        _ => 8,
    }
}
/// How often the program runs in one call: half a minute or more. Each call makes and unmakes its pages, which takes tens of
/// milliseconds, so there is one call if possible, and it is interrupted when all is sent.
const TIMES: u32 = 1 << 30;
const EINTR: i32 = 4;
/// The largest frame without FCS that fits the page of a live frame: 4096 less the headroom (256), `struct xdp_page_head`
/// and the room at its end (320).
const FRAME_MOST: u32 = 3_400;

struct Live {
    object: Arc<Object>,
    device: u32,
    frame: Vec<u8>,
    batch: u32,
}

struct LiveMeter(Arc<Object>);

impl Meter for LiveMeter {
    fn counts(&self) -> Counts {
        state(&self.0).map(|(counts, _)| counts).unwrap_or_default()
    }

    fn done(&self) -> bool {
        state(&self.0).is_ok_and(|(_, done)| done)
    }
}

fn state(object: &Object) -> Result<(Counts, bool), FrameError> {
    let values = object.read("state", &0_u32.to_ne_bytes())?;
    Ok(layout::counts(values.first().map(Vec::as_slice).unwrap_or_default()))
}

impl Worker for Live {
    fn work(&mut self) -> Result<bool, FrameError> {
        match self.object.run_live(self.device, &self.frame, TIMES, self.batch) {
            Ok(()) => {}
            Err(error) if error.errno() == Some(EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!state(&self.object)?.1)
    }
}

/// A worker for each share.
pub(in super::super) fn prepare(
    plan: &GeneratePlan,
    device: &Device,
    shares: &[Share],
    start: StartAt,
) -> Result<Crew, String> {
    let largest = plan.format.largest() - FCS_BYTES;
    if largest > FRAME_MOST {
        return Err(format!(
            "a frame of {} bytes does not fit a page; the largest that does has {}",
            plan.format.largest(),
            FRAME_MOST + FCS_BYTES
        ));
    }
    if let Some(features) = device.features
        && !features.transmits()
    {
        return Err(
            "the driver takes no frames from XDP programs (no ndo_xdp_xmit); a virtual pair does once its other end \
                    has GRO on or an XDP program, and no more queues to send than this end has to receive"
                .to_owned(),
        );
    }
    let load = |share: &Share| -> Result<Arc<Object>, String> {
        let config = layout::config(plan, share)?;
        Object::load("generate", GENERATE, &config).map(Arc::new).map_err(|error| match error.errno() {
            Some(1 | 13) => "it needs root (CAP_BPF and CAP_NET_ADMIN)".to_owned(),
            _ => error.to_string(),
        })
    };
    let objects = shares.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let frame = Template::build(&plan.format, plan.format.largest()).bytes;
    // A state that is done sends nothing: the kernel says whether it knows live frames at all.
    if let Some(object) = objects.first() {
        let idle = layout::state(plan, &shares[0], u64::MAX / 2)?;
        object.write("state", &0_u32.to_ne_bytes(), &idle).map_err(|error| error.to_string())?;
        object.run_live(device.index, &frame, 1, 1).map_err(|error| match error.errno() {
            Some(22) => "this kernel makes no live frames (Linux 5.18 does)".to_owned(),
            _ => error.to_string(),
        })?;
    }
    let start_ns = start();
    let mut workers: Vec<(Box<dyn Worker>, Arc<dyn Meter>)> = Vec::new();
    for (object, share) in objects.into_iter().zip(shares) {
        let state = layout::state(plan, share, start_ns)?;
        object.write("state", &0_u32.to_ne_bytes(), &state).map_err(|error| error.to_string())?;
        let worker =
            Live { object: Arc::clone(&object), device: device.index, frame: frame.clone(), batch: batch(share) };
        workers.push((Box::new(worker), Arc::new(LiveMeter(object))));
    }
    Ok(Crew { start_ns, workers })
}
