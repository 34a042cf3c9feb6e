//! Ports that are devices of this host, in the network namespace of the calling thread.

use super::error::PortError;
use super::qualify::qualify;
use super::{Port, PortState, Qualified, QualifyRequest, Receiving};
use crate::result_of;
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, Mac, ReceivePlan, ReceiveRecord};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, cpu, neighbour, thread};
use narrows_traffic::Stop;
use narrows_traffic::frames::{FrameError, Receiver, generate};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a receiver is looked at while frames are waited for.
const STEP: Duration = Duration::from_millis(5);
/// How much before ordinary programs a receiver is looked at.
const LOOK_NICE: i32 = -10;

#[derive(Debug, Clone, Copy)]
pub struct Here;

fn unfit(device: &str, why: impl Into<String>) -> PortError {
    PortError::Unfit(device.to_owned(), why.into())
}

impl Port for Here {
    fn host(&self) -> &str {
        "this host"
    }

    fn look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, PortError> {
        let link = Links::open().and_then(|mut links| links.get(device));
        let link = link.map_err(|error| unfit(device, error.to_string()))?;
        if !link.up || !link.carrier {
            return Err(unfit(device, "it is down or has no link; set it up and check the cable"));
        }
        let own = link.address.ok_or_else(|| unfit(device, "it has no MAC address"))?;
        let resolve = |gateway: IpAddr| {
            neighbour::resolve(gateway, link.index)
                .map_err(|error| unfit(device, format!("{error}; check that {gateway} is the DUT's address")))
        };
        let gateway = gateway.map(resolve).transpose()?.map(Mac);
        let cpus = cpu::allowed_cpus().map_or(1, |cpus| cpus.len().max(1));
        Ok(PortState { own: Mac(own), gateway, cpus: u32::try_from(cpus).unwrap_or(1) })
    }

    fn qualify(&self, request: &QualifyRequest, stop: &Stop) -> Result<Qualified, PortError> {
        qualify(request, stop)
    }

    fn generate(&self, plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, PortError> {
        if let [plan] = plans {
            return Ok(vec![send(plan, stop)?]);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(move || send(plan, stop))).collect();
            threads.into_iter().map(|thread| Ok(result_of(thread.join())?)).collect()
        })
    }

    fn receive(&self, plan: &ReceivePlan, watched: bool) -> Result<Box<dyn Receiving>, PortError> {
        let receiver = Receiver::start(plan)?;
        Ok(if watched { Box::new(Watched::start(receiver)?) } else { Box::new(Alone(receiver)) })
    }
}

fn send(plan: &GeneratePlan, stop: &Stop) -> Result<GenerateRecord, FrameError> {
    generate(plan, stop, |_| {})
}

/// Reads a receiver's count until it is high enough or the time is over.
fn await_frames(
    least: u64,
    within: Duration,
    mut count: impl FnMut() -> Result<u64, PortError>,
) -> Result<u64, PortError> {
    let since = clock::now();
    loop {
        let frames = count()?;
        if frames >= least || since.elapsed() >= within {
            return Ok(frames);
        }
        clock::sleep(STEP);
    }
}

/// A receiver that is not read while frames arrive.
struct Alone(Receiver);

impl Receiving for Alone {
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, PortError> {
        await_frames(least, within, || Ok(self.0.frames()?))
    }

    fn finish(self: Box<Self>) -> Result<ReceiveRecord, PortError> {
        Ok(self.0.finish()?)
    }
}

/// A receiver whose counters are read at each interval of its plan.
struct Watched {
    over: Ending,
    frames: Arc<AtomicU64>,
    thread: JoinHandle<Result<Receiver, FrameError>>,
}

/// Ends the watch when dropped.
struct Ending(Stop);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Watched {
    fn start(mut receiver: Receiver) -> Result<Self, PortError> {
        let (over, frames) = (Stop::new(), Arc::new(AtomicU64::new(0)));
        let (end, told) = (over.clone(), frames.clone());
        let watch = move || {
            // Before ordinary programs, where that is allowed: a look that comes late says nothing of the time between.
            let _ = thread::set_nice(LOOK_NICE);
            receiver.wait(&end, |seen| told.store(seen.frames, Ordering::Relaxed))?;
            Ok(receiver)
        };
        let thread = std::thread::Builder::new().name("frames-watch".to_owned()).spawn(watch);
        let thread = thread.map_err(|source| FrameError::Thread { worker: 0, source })?;
        Ok(Self { over: Ending(over), frames, thread })
    }
}

impl Receiving for Watched {
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, PortError> {
        await_frames(least, within, || Ok(self.frames.load(Ordering::Relaxed)))
    }

    fn finish(self: Box<Self>) -> Result<ReceiveRecord, PortError> {
        let Self { over, thread, .. } = *self;
        drop(over);
        Ok(result_of(thread.join())?.finish()?)
    }
}
