//! Workers that run the program `generate` on live frames.

use super::super::device::Device;
use super::super::error::FrameError;
use super::super::pace::{FRACTION, Share};
use super::super::tally::Counts;
use super::super::worker::{Crew, Meter, Worker};
use super::layout;
use super::programs::{GENERATE, load_error};
use narrows_model::load::frames::{FCS_BYTES, GeneratePlan};
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
/// How often the program runs in one call: two minutes or more, as often as 32 bits count. Each call makes and unmakes its pages, which takes tens of
/// milliseconds, so there is one call if possible, and it is interrupted when all is sent.
const TIMES: u32 = u32::MAX - 65_536;
const EINTR: i32 = 4;
/// The largest frame without FCS that fits the page of a live frame: 4096 less the headroom (256), `struct xdp_page_head`
/// and the room at its end (320).
const MAX_FRAME_BYTES: u32 = 3_400;

struct Live {
    object: Arc<Object>,
    device: u32,
    frame: Vec<u8>,
    batch: u32,
}

struct LiveMeter {
    object: Arc<Object>,
    plan: GeneratePlan,
    share: Share,
}

impl Meter for LiveMeter {
    fn counts(&self) -> Counts {
        state(&self.object).map(|state| state.counts).unwrap_or_default()
    }

    fn done(&self) -> bool {
        state(&self.object).is_ok_and(|state| state.done)
    }

    fn ready(&self) -> bool {
        state(&self.object).is_ok_and(|state| state.ready)
    }

    fn start(&self, at_ns: u64) -> narrows_sys::Result<()> {
        set_state(&self.object, &self.plan, &self.share, at_ns)
    }
}

/// The start of a worker before the start is announced.
const NEVER: u64 = u64::MAX / 2;

fn state(object: &Object) -> Result<layout::State, FrameError> {
    let values = object.read("state", &0_u32.to_ne_bytes())?;
    Ok(layout::State::read(values.first().map(Vec::as_slice).unwrap_or_default()))
}

fn set_state(object: &Object, plan: &GeneratePlan, share: &Share, start_ns: u64) -> narrows_sys::Result<()> {
    object.write("state", &0_u32.to_ne_bytes(), &layout::state(plan, share, start_ns))
}

impl Worker for Live {
    fn work(&mut self) -> Result<bool, FrameError> {
        match self.object.run_live(self.device, &self.frame, TIMES, self.batch) {
            Ok(()) => {}
            Err(error) if error.errno() == Some(EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(!state(&self.object)?.done)
    }
}

/// A worker for each share.
pub(in super::super) fn prepare(plan: &GeneratePlan, device: &Device, shares: &[Share]) -> Result<Crew, String> {
    let largest = plan.format.largest() - FCS_BYTES;
    if largest > MAX_FRAME_BYTES {
        return Err(format!(
            "a frame of {} bytes does not fit a page; the maximum is {}",
            plan.format.largest(),
            MAX_FRAME_BYTES + FCS_BYTES
        ));
    }
    if let Some(features) = device.features
        && !features.transmits()
    {
        return Err(
            "the driver has no XDP transmit (ndo_xdp_xmit); on a veth pair the peer needs GRO or an XDP program, and \
            no more send queues than this end has receive queues"
                .to_owned(),
        );
    }
    let load = |share: &Share| -> Result<Arc<Object>, String> {
        let config = layout::config(plan, share)?;
        Object::load("generate", GENERATE, &config).map(Arc::new).map_err(|error| load_error(&error))
    };
    let objects = shares.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let frame = Template::build(&plan.format, plan.format.largest()).bytes;
    for (object, share) in objects.iter().zip(shares) {
        set_state(object, plan, share, NEVER).map_err(|error| error.to_string())?;
    }
    // Nothing is sent before the start: this only tests whether the kernel supports live frames.
    if let Some(object) = objects.first() {
        object.run_live(device.index, &frame, 1, 1).map_err(|error| match error.errno() {
            Some(22) => "this kernel has no XDP live frames (Linux 5.18 and later)".to_owned(),
            _ => error.to_string(),
        })?;
        set_state(object, plan, &shares[0], NEVER).map_err(|error| error.to_string())?;
    }
    let mut workers: Vec<(Box<dyn Worker>, Arc<dyn Meter>)> = Vec::new();
    for (object, share) in objects.into_iter().zip(shares) {
        let worker =
            Live { object: Arc::clone(&object), device: device.index, frame: frame.clone(), batch: batch(share) };
        workers.push((Box::new(worker), Arc::new(LiveMeter { object, plan: plan.clone(), share: *share })));
    }
    Ok(Crew { workers })
}
