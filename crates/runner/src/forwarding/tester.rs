//! The tester: makes one trial of frames through the device, and reads the counters of the hops around it.

use super::beside::{Beside, From};
use super::broadcast;
use super::error::ForwardingError;
use super::format::{Ends, frame_format};
use super::hops::{Hop, Passed};
use super::port::{self, Port, QualifyRequest, Receiving};
use super::reach::Reach;
use super::watch::Watch;
use narrows_diagnose::forwarding::{books, device_trouble};
use narrows_model::Family;
use narrows_model::forwarding::modifiers::{Modifier, ModifierSeen};
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::{
    AddressPair, DropCount, ForwardingPlan, ForwardingTrial, HopCount, Test, TesterMaximum, TesterPort,
};
use narrows_model::load::frames::{FrameLoad, FrameTrial, GeneratePlan, GenerateRecord, ReceivePlan};
use narrows_search::procedures::latency::stamp_every;
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames a second of one worker, with room to spare.
const PPS_OF_ONE_WORKER: f64 = 3e6;
const LEARNING_PPS: f64 = 10_000.0;
/// How long frames are waited for that a bridge may pass on, and a router does not.
const FLOODED: Duration = Duration::from_millis(50);
/// How often a receiver is looked at that shall tell when frames were lost: it looks no more often.
pub(super) const LOOK_MS: u64 = 10;

/// The longest stall of a worker that is made up for. Other programs of a busy host take its CPU for some 200 us at a time: the frames
/// of that leave a little faster than the load, and the smallest queue that devices have (256 frames) holds them. More is not made
/// up for, since a device near its limit could not take it. A worker that has little time to spare makes up for a millisecond; workers
/// that have all CPUs share them with every other program of the host, and make up for the four milliseconds that the scheduler
/// may give to one of those. A burst has no time to make up for anything.
const fn make_up_us(load: Load, pps: f64, on_all_cpus: bool) -> u32 {
    match (load, on_all_cpus, pps > PPS_OF_ONE_WORKER) {
        (_, true, _) => 4_000,
        (_, false, true) => 1_000,
        (Load::Burst { .. }, false, false) => 0,
        (Load::Rate { .. }, false, false) => 300,
    }
}

/// What one trial offers, in each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Load {
    /// A rate for a time.
    Rate {
        /// Frames a second.
        pps: f64,
        /// How long.
        duration_ms: u64,
    },
    /// So many frames at a rate.
    Burst {
        /// Frames.
        frames: u64,
        /// Frames a second.
        pps: f64,
    },
}

impl Load {
    const fn pps(self) -> f64 {
        match self {
            Self::Rate { pps, .. } | Self::Burst { pps, .. } => pps,
        }
    }

    /// How long it lasts, at least.
    pub(super) fn millis(self) -> u64 {
        match self {
            Self::Rate { duration_ms, .. } => duration_ms,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Self::Burst { frames, pps } => (frames as f64 * 1e3 / pps.max(1.0)).ceil() as u64,
        }
    }
}

/// One end of a way: a port, and the host that it is of.
#[derive(Debug, Clone)]
pub(super) struct End {
    plan: TesterPort,
    pub(super) port: Arc<dyn Port>,
}

/// One way of the frames of one family: from where, to whom.
#[derive(Debug, Clone)]
pub(super) struct Way {
    family: Family,
    pub(super) from: End,
    pub(super) to: End,
    ends: Ends,
    cpus: u32,
}

/// The two ports of the tester and the hops between them.
#[derive(Debug)]
pub(super) struct Tester<'a> {
    pub(super) plan: &'a ForwardingPlan,
    /// Forth, and back where any traffic is bidirectional; of each family that is sent.
    ways: Vec<Way>,
    hops: Vec<Hop>,
    beside: Beside,
    began: Instant,
    pub(super) stop: Stop,
}

impl End {
    pub(super) fn unfit(&self, why: &str) -> ForwardingError {
        ForwardingError::Port { device: self.plan.device.clone(), why: why.to_owned() }
    }

    fn addresses(&self, family: Family) -> Result<AddressPair, ForwardingError> {
        let name = if family == Family::Ipv4 { "IPv4" } else { "IPv6" };
        self.plan.of(family).ok_or_else(|| self.unfit(&format!("the plan gives it no addresses of {name}")))
    }
}

impl Way {
    fn of(family: Family, from: &End, to: &End) -> Result<Self, ForwardingError> {
        let (own, other) = (from.addresses(family)?, to.addresses(family)?);
        let look = from.port.look(&from.plan.device, Some(own.gateway))?;
        let gateway = look.gateway.ok_or_else(|| from.unfit("its gateway has no Ethernet address"))?;
        // That frames cannot be counted is to be known before any is sent.
        to.port.look(&to.plan.device, None)?;
        let ends = Ends { macs: [look.own, gateway], addresses: [own.address, other.address] };
        Ok(Self { family, from: from.clone(), to: to.clone(), ends, cpus: look.cpus })
    }
}

impl<'a> Tester<'a> {
    /// Looks at the ports and finds out the device's Ethernet addresses.
    pub(super) fn open(
        plan: &'a ForwardingPlan,
        reach: &Reach,
        stop: &Stop,
        says: &mut dyn FnMut(&str),
    ) -> Result<Self, ForwardingError> {
        let [generator, receiver] = port::of(plan, reach, stop, says)?;
        let generator = End { plan: plan.generator.clone(), port: generator };
        let receiver = End { plan: plan.receiver.clone(), port: receiver };
        let mut ways = Vec::new();
        for family in [Family::Ipv4, Family::Ipv6] {
            let mut sent = plan.traffic.iter().filter(|traffic| traffic.family == family).peekable();
            if sent.peek().is_none() {
                continue;
            }
            ways.push(Way::of(family, &generator, &receiver)?);
            if sent.any(|traffic| traffic.bidirectional) {
                ways.push(Way::of(family, &receiver, &generator)?);
            }
        }
        let hops = plan.hops.iter().map(|hop| Hop::of(hop, reach)).collect();
        Ok(Self { plan, ways, hops, beside: Beside::default(), began: clock::now(), stop: stop.clone() })
    }

    /// Why one of the tester's hosts is lost, if one is.
    pub(super) fn lost(&self) -> Option<ForwardingError> {
        self.ways.iter().flat_map(|way| [&way.from, &way.to]).find_map(|end| end.port.lost())
    }

    /// What the tester alone can send and count: of two hosts, what the slower one can.
    pub(super) fn qualify(&self, row: Row) -> Result<TesterMaximum, ForwardingError> {
        let (traffic, size) = (row.traffic, row.size);
        let way = self.way(row)?;
        let request = QualifyRequest {
            traffic: self.plan.traffic[traffic].clone(),
            sizes: self.sizes(row),
            addresses: way.ends.addresses,
        };
        let sends = way.from.port.qualify(&request, &self.stop)?;
        if self.plan.one_clock() {
            return Ok(TesterMaximum { traffic, size, pps: sends.pps, method: sends.method });
        }
        let counts = way.to.port.qualify(&request, &self.stop)?;
        let (slower, host) =
            if counts.pps < sends.pps { (counts, way.to.port.host()) } else { (sends, way.from.port.host()) };
        let method = format!("the slower of two hosts, {host}: {}", slower.method);
        Ok(TesterMaximum { traffic, size, pps: slower.pps, method })
    }

    /// The ways of a row's frames: forth, and back where they go both ways.
    fn ways(&self, row: Row) -> Vec<Way> {
        let Some(traffic) = self.plan.traffic.get(row.traffic) else { return Vec::new() };
        let all = self.ways.iter().filter(|way| way.family == traffic.family);
        all.take(if traffic.bidirectional { 2 } else { 1 }).cloned().collect()
    }

    /// Forth.
    pub(super) fn way(&self, row: Row) -> Result<Way, ForwardingError> {
        let way = self.ways(row).into_iter().next();
        way.ok_or_else(|| ForwardingError::Port {
            device: self.plan.generator.device.clone(),
            why: "the plan has no such frames".to_owned(),
        })
    }

    pub(super) fn at_ms(&self) -> u64 {
        clock::micros_since(self.began) / 1000
    }

    fn sizes(&self, row: Row) -> Vec<u32> {
        let mix = || self.plan.traffic.get(row.traffic).map(|traffic| traffic.mix.clone()).unwrap_or_default();
        row.size.map_or_else(mix, |size| vec![size])
    }

    /// A generator of the row's frames, one of so many that run on its host at the same time.
    pub(super) fn generate_plan(&self, way: &Way, row: Row, load: Load, at_once: u32) -> GeneratePlan {
        let traffic = &self.plan.traffic[row.traffic];
        let cpus = way.cpus.clamp(1, GeneratePlan::MOST_STREAMS);
        let pps = load.pps();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let workers = ((pps / PPS_OF_ONE_WORKER).ceil() as u32).clamp(1, cpus);
        let workers = if matches!(load, Load::Burst { .. }) { 1 } else { workers };
        GeneratePlan {
            device: way.from.plan.device.clone(),
            mode: None,
            format: frame_format(traffic, self.sizes(row), &way.ends),
            load: FrameLoad::FramesPerSecond(pps),
            burst: GeneratePlan::usual_burst(FrameLoad::FramesPerSecond(pps), workers),
            // Who shares the host's CPUs with others of its kind has them all taken.
            make_up_us: make_up_us(load, pps / f64::from(workers), workers.saturating_mul(at_once) >= cpus),
            duration_ms: match load {
                Load::Rate { duration_ms, .. } => duration_ms.max(10),
                // The count ends it; a stall must not.
                Load::Burst { .. } => load.millis() + 1_000,
            },
            count: match load {
                Load::Rate { .. } => None,
                Load::Burst { frames, .. } => Some(frames),
            },
            workers,
            workers_note: None,
            first_stream: 0,
            stamp_every: stamp_every(pps, load.millis()),
            broadcast_every: broadcast::every(traffic.modifier.as_ref()),
            interval_ms: 100,
        }
    }

    pub(super) fn receive_plan(&self, way: &Way, load: Load) -> ReceivePlan {
        ReceivePlan {
            device: way.to.plan.device.clone(),
            mode: None,
            duration_ms: (load.millis() + self.plan.residue_ms + 60_000).min(24 * 3600 * 1000),
            idle_ms: None,
            per_flow: false,
            gaps: false,
            interval_ms: 100,
        }
    }

    /// Frames so that hops learn where the ports are; nobody counts them.
    fn learn(&self, way: &Way, row: Row) -> Result<(), ForwardingError> {
        if self.plan.learning_frames == 0 {
            return Ok(());
        }
        let load = Load::Burst { frames: self.plan.learning_frames.into(), pps: LEARNING_PPS };
        way.from.port.generate(&[self.generate_plan(way, row, load, 1)], &self.stop).map(drop)
    }

    /// One trial. What goes wrong with its counts makes it invalid; it is an error only where frames cannot be sent at all.
    pub(super) fn trial(
        &mut self,
        test: Test,
        row: Row,
        repetition: u32,
        load: Load,
    ) -> Result<ForwardingTrial, ForwardingError> {
        let ways = self.ways(row);
        // An outage is seen by looks that are near to one another; else nobody disturbs the receiver.
        let looks_ms = (test == Test::Reset).then(|| looks_ms(load.millis()));
        let begun = self.begin(&ways, row, load, looks_ms)?;
        let at_once = if self.plan.one_clock() { u32::try_from(ways.len()).unwrap_or(1) } else { 1 };
        let plans: Vec<GeneratePlan> = ways.iter().map(|way| self.generate_plan(way, row, load, at_once)).collect();
        let stop = self.stop.clone();
        let (sent, beside) = self.beside(row, || send(&ways, &plans, &stop))?;
        self.end(begun, test, row, repetition, sent?, beside)
    }

    /// What the row's frames have beside them.
    pub(super) fn modifier(&self, row: Row) -> Option<&'a Modifier> {
        self.plan.traffic.get(row.traffic).and_then(|traffic| traffic.modifier.as_ref())
    }

    /// Makes the load with what the modifier wants beside it.
    pub(super) fn beside<T>(
        &mut self,
        row: Row,
        load: impl FnOnce() -> T,
    ) -> Result<(T, Option<ModifierSeen>), ForwardingError> {
        let way = self.way(row)?;
        let from = From { device: way.from.plan.device.clone(), mac: way.ends.macs[0], address: way.ends.addresses[0] };
        let under_test = self.hops.iter().find(|hop| hop.is_under_test());
        Ok(self.beside.during(self.modifier(row), &from, under_test, load))
    }

    /// Everything before the load: learning frames, receivers at work, the counters of the hops.
    pub(super) fn begin(
        &mut self,
        ways: &[Way],
        row: Row,
        load: Load,
        looks_ms: Option<u64>,
    ) -> Result<Begun, ForwardingError> {
        for way in ways {
            self.learn(way, row)?;
        }
        let receive = |way: &Way| {
            let plan = self.receive_plan(way, load);
            let plan = ReceivePlan { interval_ms: looks_ms.unwrap_or(plan.interval_ms), ..plan };
            way.to.port.receive(&plan, looks_ms.is_some())
        };
        let receivers = ways.iter().map(receive).collect::<Result<Vec<_>, _>>()?;
        let watch = Watch::begin(&mut self.hops);
        self.hops.iter_mut().for_each(Hop::begin);
        Ok(Begun { receivers, watch, at_ms: self.at_ms() })
    }

    /// Everything after it: frames under way, the receivers, the counters of the hops, and what they come to.
    pub(super) fn end(
        &mut self,
        begun: Begun,
        test: Test,
        row: Row,
        repetition: u32,
        sent: Vec<GenerateRecord>,
        beside: Option<ModifierSeen>,
    ) -> Result<ForwardingTrial, ForwardingError> {
        let devices = begun.watch.end(&mut self.hops);
        let residue = Duration::from_millis(self.plan.residue_ms);
        let mut directions = sent
            .into_iter()
            .zip(begun.receivers)
            .map(|(sent, receiver)| collect(sent, receiver, residue))
            .collect::<Result<Vec<_>, _>>()?;
        if let (Some(ModifierSeen::Routes(routes)), Some(forth)) = (&beside, directions.first_mut()) {
            // Counted by the port as dropped, and no frames of the load.
            forth.sent.refused = forth.sent.refused.map(|refused| refused.saturating_sub(routes.refused));
        }
        if !self.plan.one_clock() {
            // Stamped by one clock and read by another: how far those are apart, and nothing of the device.
            directions.iter_mut().for_each(|frames| frames.got.latency_ns = None);
        }
        let received = |way: usize| directions.get(way).map_or(0, |trial| trial.got.distinct());
        let sizes = self.sizes(row);
        let passed = Passed {
            received: [received(0), received(1)],
            bytes: [sizes.iter().min(), sizes.iter().max()].map(|size| size.copied().unwrap_or(64)),
        };
        let mut hops: Vec<HopCount> = self.hops.iter_mut().flat_map(|hop| hop.end(directions.len(), &passed)).collect();
        if let (Some(first), Some(forth)) = (self.plan.hops.first(), directions.first_mut()) {
            rings_of_a_pair(&mut forth.sent, &first.input, hops.iter_mut().find(|count| count.hop == first.name));
        }
        let broadcasts = broadcast::set_all_aside(self.modifier(row), &mut directions);
        let mut trial = ForwardingTrial {
            test,
            traffic: row.traffic,
            size: row.size,
            repetition,
            at_ms: begun.at_ms,
            directions,
            hops,
            modifier: beside.or(broadcasts),
            devices,
            invalid: None,
        };
        // A reset that was asked for is no trouble.
        let reset = device_trouble(&trial.devices).filter(|_| test != Test::Reset);
        let trouble = reset.or_else(|| self.hops.iter().find_map(Hop::trouble));
        trial.invalid = trouble.or_else(|| judge(self.plan, &trial));
        Ok(trial)
    }
}

/// A trial whose load is about to come.
pub(super) struct Begun {
    receivers: Vec<Box<dyn Receiving>>,
    watch: Watch,
    at_ms: u64,
}

/// The looks of an outage: as near to one another as a receiver can, where a record has room for so many.
fn looks_ms(duration_ms: u64) -> u64 {
    const MOST_LOOKS: u64 = 2_000;
    duration_ms.div_ceil(MOST_LOOKS).max(LOOK_MS)
}

/// All generators at once.
fn send(ways: &[Way], plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, ForwardingError> {
    let one = |way: &Way, plan: &GeneratePlan| -> Result<GenerateRecord, ForwardingError> {
        let mut sent = way.from.port.generate(std::slice::from_ref(plan), stop)?;
        sent.pop().ok_or_else(|| way.from.unfit("its generator saw nothing"))
    };
    if let ([way], [plan]) = (ways, plans) {
        return Ok(vec![one(way, plan)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = ways.iter().zip(plans).map(|(way, plan)| scope.spawn(move || one(way, plan))).collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(record) => record,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}

/// Waits until all frames came, or for the residue, and reads the receiver.
fn collect(
    sent: GenerateRecord,
    mut receiver: Box<dyn Receiving>,
    residue: Duration,
) -> Result<FrameTrial, ForwardingError> {
    let (all, expected) = (sent.sent(), broadcast::expected(&sent));
    if receiver.wait(expected, residue)? >= expected && all > expected {
        // A device that floods what goes to all: those may have come for others that are still under way.
        receiver.wait(all, residue.min(FLOODED))?;
    }
    Ok(FrameTrial { sent, got: receiver.finish()? })
}

/// The ends of a virtual pair share one ring: what finds no room in the device's receive ring is counted as dropped by the
/// sending end too (`peer_tq_xdp_xmit_err` in drivers/net/veth.c). Where the first hop's own input counts the drops, they are
/// the hop's: the frames were sent.
fn rings_of_a_pair(sent: &mut GenerateRecord, input: &str, hop: Option<&mut HopCount>) {
    let Some(refused) = sent.refused.filter(|refused| *refused > 0) else { return };
    let Some(hop) = hop else { return };
    let reason = format!("rx_dropped {input}");
    let Some(drop) = hop.drops.iter_mut().find(|drop| drop.reason == reason) else { return };
    let ring = refused.min(drop.frames);
    drop.frames -= ring;
    hop.drops.retain(|drop| drop.frames > 0);
    hop.input = hop.input.map(|taken| taken.saturating_add(ring));
    hop.drops.push(DropCount { reason: format!("the receive ring of {input} was full"), frames: ring });
    sent.refused = Some(refused - ring);
}

/// Why the trial says nothing, if so.
fn judge(plan: &ForwardingPlan, trial: &ForwardingTrial) -> Option<String> {
    for (direction, frames) in trial.directions.iter().enumerate() {
        if let Some(why) = &frames.sent.ended {
            return Some(format!("the generator ended early: {why}"));
        }
        if frames.lost() < 0 {
            return Some(format!(
                "{} frames were received, but only {} sent",
                frames.got.distinct(),
                frames.sent.sent()
            ));
        }
        if let Some(disagreement) = books(plan, trial, direction).disagreement {
            return Some(disagreement);
        }
    }
    None
}
