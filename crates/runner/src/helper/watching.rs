//! The helper [`Role::Watch`](super::Role): readings of a fixed list, drops by reason, BPF programs, socket buffers, raw frames by the devices that
//! were named at the start.

use super::answering::answer;
use super::order::{Bounds, MAX_ORDER, Refusal, WatchOrder, Word};
use crate::port::{Here, Port as _, Receiving, counters};
use crate::server::bounds;
use narrows_collect::{Live, Watched};
use narrows_model::load::frames::{GeneratePlan, ReceivePlan};
use narrows_sys::channel::Channel;
use narrows_sys::deputy::Wish;
use narrows_sys::{clock, fulfil};
use narrows_traffic::Stop;
use narrows_wire::api::frames::{FramesOrder, LinksAnswer, MAX_WAIT_MS};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How often a receiver's time limit is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// The longest count: a trial of a day, and its begin and end.
const COUNT: Duration = Duration::from_secs(25 * 3600);

pub(super) struct Watches(Bounds);

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(error.to_string())
}

impl Watches {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self(bounds)
    }

    /// This host as the network process sees it.
    fn host(&self) -> Live {
        Live::of_process(self.0.process)
    }

    /// Carries out the order of a channel.
    pub(super) fn attend(&self, channel: &Channel) {
        let Ok(Some((bytes, descriptor))) = channel.receive(MAX_ORDER) else { return };
        match serde_json::from_slice(&bytes) {
            Ok(order) => self.carry_out(channel, order, descriptor),
            Err(error) => refuse(channel, format!("invalid order: {error}")),
        }
    }

    fn carry_out(&self, channel: &Channel, order: WatchOrder, descriptor: Option<OwnedFd>) {
        let say = channel;
        match order {
            WatchOrder::Inventory(peer) => answer(say, &Ok(narrows_collect::inventory(&self.host(), peer))),
            WatchOrder::Counters(peer) => answer(say, &Ok(narrows_collect::counters(&self.host(), peer))),
            WatchOrder::Tokens => answer(say, &crate::tokens::read(&self.0.state).map_err(failed)),
            WatchOrder::Interfaces => answer(say, &narrows_collect::interfaces().map_err(failed)),
            WatchOrder::Links(request, peer) => {
                let read = counters(&request.input, &request.output, request.state, peer);
                answer(say, &Ok(read.unwrap_or_else(|missing| LinksAnswer::Missing { why: missing.to_string() })));
            }
            WatchOrder::Count(watched) => count(channel, watched),
            WatchOrder::Socket(Wish::RealTime(thread)) => {
                answer(say, &fulfil::real_time(thread, self.0.process).map_err(failed));
            }
            WatchOrder::Socket(wish) => {
                let none = || Refusal::NotAllowed("no socket came with the order".to_owned());
                let set = descriptor.ok_or_else(none);
                answer(say, &set.and_then(|socket| fulfil::fulfil(socket.as_fd(), &wish, self.0.port).map_err(failed)));
            }
            WatchOrder::Look(request) => {
                let allowed = bounds::by_device(&self.0.frames, &request.device, None).map_err(Refusal::NotAllowed);
                answer(say, &allowed.and_then(|()| Here.look(&request.device, request.gateway).map_err(failed)));
            }
            WatchOrder::Qualify(request) => {
                let allowed = bounds::calibration(&self.0.frames, &request).map_err(Refusal::NotAllowed);
                answer(say, &allowed.and_then(|()| Here.qualify(&request, &Stop::new()).map_err(failed)));
            }
            WatchOrder::Generate(plans, peer) => {
                let order = FramesOrder::Generate { plans };
                match bounds::by_order(&self.0.frames, &order, peer) {
                    Ok(_) => generate(channel, order),
                    Err(why) => refuse(channel, why),
                }
            }
            WatchOrder::Receive(plan, watched, peer) => {
                let order = FramesOrder::Receive { plan: plan.clone(), watched };
                match bounds::by_order(&self.0.frames, &order, peer) {
                    Ok(_) => receive(channel, &plan, watched),
                    Err(why) => refuse(channel, why),
                }
            }
        }
    }
}

fn refuse(channel: &Channel, why: String) {
    answer::<()>(channel, &Err(Refusal::NotAllowed(why)));
}

/// The next word of a channel; `None`: it ended, or the time is over.
fn next(channel: &Channel, until: Instant) -> Option<Word> {
    while clock::now() < until {
        if channel.is_readable(LOOK).ok()? {
            let (bytes, _) = channel.receive(MAX_ORDER).ok()??;
            return serde_json::from_slice(&bytes).ok();
        }
    }
    None
}

fn count(channel: &Channel, watched: Watched) {
    match watched.start() {
        Err(why) => refuse(channel, why.to_string()),
        Ok(watch) => {
            answer(channel, &Ok(()));
            if let Some(Word::Finish) = next(channel, clock::now() + COUNT) {
                answer(channel, &Ok(watch.finish()));
            }
        }
    }
}

/// Sends until the plans end, or a word or the end of the channel stops it.
fn generate(channel: &Channel, order: FramesOrder) {
    let FramesOrder::Generate { plans } = order else { return };
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Whatever comes ends it.
            next(channel, clock::now() + longest(&plans));
            stop.stop();
        });
        let sent = Here.generate(&plans, &stop).map_err(failed);
        answer(channel, &sent);
        channel.close();
    });
}

/// No plan lasts longer; the engine ends by itself before.
fn longest(plans: &[GeneratePlan]) -> Duration {
    let ms = plans.iter().map(|plan| plan.duration_ms).max().unwrap_or(0);
    Duration::from_millis(ms) + Duration::from_secs(3600)
}

fn receive(channel: &Channel, plan: &ReceivePlan, watched: bool) {
    let until = clock::now() + Duration::from_millis(plan.duration_ms);
    let mut receiver: Box<dyn Receiving> = match Here.receive(plan, watched) {
        Ok(receiver) => receiver,
        Err(error) => return answer::<()>(channel, &Err(failed(error))),
    };
    answer(channel, &Ok(()));
    loop {
        match next(channel, until) {
            Some(Word::Wait(least, within_ms)) => {
                let within = Duration::from_millis(within_ms.min(MAX_WAIT_MS));
                answer(channel, &receiver.wait(least, within).map_err(failed));
            }
            Some(Word::Finish) => return answer(channel, &receiver.finish().map_err(failed)),
            None => return,
        }
    }
}
