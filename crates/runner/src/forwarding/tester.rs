//! The tester: makes one trial of frames through the device, and reads the counters of the hops around it.

use super::error::ForwardingError;
use super::hops::{Hop, Passed};
use narrows_diagnose::forwarding::books;
use narrows_model::forwarding::{DropCount, ForwardingPlan, ForwardingTrial, HopCount, Test, TesterPort, Traffic};
use narrows_model::forwarding_plan::Row;
use narrows_model::frames::{
    Endpoints, FrameFormat, FrameInterval, FrameLoad, FrameTrial, GeneratePlan, GenerateRecord, Mac, ReceivePlan, Walk,
};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, cpu, neighbour};
use narrows_traffic::Stop;
use narrows_traffic::frames::{FrameError, Receiver, generate};
use std::time::{Duration, Instant};

/// Frames a second of one worker, with room to spare.
const PPS_OF_ONE_WORKER: f64 = 3e6;
/// Stamps a second.
const STAMPS_A_SECOND: f64 = 5_000.0;
const LEARNING_PPS: f64 = 10_000.0;
/// How often a receiver is looked at while the last frames are waited for.
const STEP: Duration = Duration::from_millis(5);

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

/// One way of the frames: from where, to whom.
#[derive(Debug, Clone)]
struct Way {
    from: TesterPort,
    to: TesterPort,
    source_mac: Mac,
    destination_mac: Mac,
}

/// The two ports of the tester and the hops between them.
#[derive(Debug)]
pub(super) struct Tester<'a> {
    plan: &'a ForwardingPlan,
    ways: Vec<Way>,
    hops: Vec<Hop>,
    began: Instant,
    pub(super) stop: Stop,
}

fn port_error(port: &TesterPort, why: impl Into<String>) -> ForwardingError {
    ForwardingError::Port { device: port.device.clone(), why: why.into() }
}

impl Way {
    fn of(from: &TesterPort, to: &TesterPort) -> Result<Self, ForwardingError> {
        let mut links = Links::open().map_err(|error| port_error(from, error.to_string()))?;
        let link = links.get(&from.device).map_err(|error| port_error(from, error.to_string()))?;
        if !link.up || !link.carrier {
            return Err(port_error(from, "it is down or has no link; set it up and check the cable"));
        }
        let source = link.address.ok_or_else(|| port_error(from, "it has no Ethernet address"))?;
        let destination = neighbour::resolve(from.gateway, link.index)
            .map_err(|error| port_error(from, format!("{error}; is {} the device's address there?", from.gateway)))?;
        Ok(Self { from: from.clone(), to: to.clone(), source_mac: Mac(source), destination_mac: Mac(destination) })
    }

    fn format(&self, traffic: &Traffic, sizes: Vec<u32>) -> FrameFormat {
        let last_port = Traffic::FIRST_PORT.saturating_add(u16::try_from(traffic.flows.max(1) - 1).unwrap_or(u16::MAX));
        let several = traffic.networks > 1;
        FrameFormat {
            source_mac: self.source_mac,
            destination_mac: self.destination_mac,
            vlan: None,
            family: traffic.family,
            transport: traffic.transport,
            source: Endpoints::one(self.from.address, [Traffic::FIRST_PORT, last_port]),
            destination: Endpoints::networks(self.to.address, traffic.networks, [Traffic::FIRST_PORT; 2])
                .unwrap_or_else(|| Endpoints::one(self.to.address, [Traffic::FIRST_PORT; 2])),
            // In turns a walk stays in one network for seconds: several are visited pseudo-randomly (RFC 4814).
            walk: if several && traffic.walk == Walk::Odometer { Walk::Random { seed: 1 } } else { traffic.walk },
            sizes,
            ttl: 64,
        }
    }
}

impl<'a> Tester<'a> {
    /// Looks at the ports and finds out the device's Ethernet addresses.
    pub(super) fn open(plan: &'a ForwardingPlan, stop: &Stop) -> Result<Self, ForwardingError> {
        let mut ways = vec![Way::of(&plan.generator, &plan.receiver)?];
        if plan.traffic.iter().any(|traffic| traffic.bidirectional) {
            ways.push(Way::of(&plan.receiver, &plan.generator)?);
        }
        let hops = plan.hops.iter().map(Hop::of).collect();
        Ok(Self { plan, ways, hops, began: clock::now(), stop: stop.clone() })
    }

    pub(super) fn at_ms(&self) -> u64 {
        clock::micros_since(self.began) / 1000
    }

    fn sizes(&self, row: Row) -> Vec<u32> {
        let mix = || self.plan.traffic.get(row.traffic).map(|traffic| traffic.mix.clone()).unwrap_or_default();
        row.size.map_or_else(mix, |size| vec![size])
    }

    fn generate_plan(&self, way: &Way, row: Row, load: Load) -> GeneratePlan {
        let traffic = &self.plan.traffic[row.traffic];
        let cpus = u32::try_from(cpu::allowed_cpus().map_or(1, |cpus| cpus.len().max(1))).unwrap_or(1);
        let pps = load.pps();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let workers = ((pps / PPS_OF_ONE_WORKER).ceil() as u32).clamp(1, cpus);
        let workers = if matches!(load, Load::Burst { .. }) { 1 } else { workers };
        GeneratePlan {
            device: way.from.device.clone(),
            mode: None,
            format: way.format(traffic, self.sizes(row)),
            load: FrameLoad::FramesPerSecond(pps),
            burst: GeneratePlan::usual_burst(FrameLoad::FramesPerSecond(pps), workers, cpus),
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
            first_stream: 0,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            stamp_every: (pps / STAMPS_A_SECOND).ceil().clamp(1.0, 1e9) as u32,
            interval_ms: 100,
        }
    }

    fn receive_plan(&self, way: &Way, load: Load) -> ReceivePlan {
        ReceivePlan {
            device: way.to.device.clone(),
            mode: None,
            duration_ms: (load.millis() + self.plan.residue_ms + 60_000).min(24 * 3600 * 1000),
            idle_ms: None,
            per_flow: false,
            gaps: false,
            interval_ms: 100,
        }
    }

    /// Frames so that hops learn where the ports are; nobody counts them.
    fn learn(&self, way: &Way, row: Row) -> Result<(), FrameError> {
        if self.plan.learning_frames == 0 {
            return Ok(());
        }
        let load = Load::Burst { frames: self.plan.learning_frames.into(), pps: LEARNING_PPS };
        generate(&self.generate_plan(way, row, load), &self.stop, |_| {}).map(drop)
    }

    /// One trial. What goes wrong with its counts makes it invalid; it is an error only where frames cannot be sent at all.
    pub(super) fn trial(
        &mut self,
        test: Test,
        row: Row,
        repetition: u32,
        load: Load,
    ) -> Result<ForwardingTrial, ForwardingError> {
        let both = self.plan.traffic[row.traffic].bidirectional;
        let ways: Vec<Way> = self.ways.iter().take(if both { 2 } else { 1 }).cloned().collect();
        for way in &ways {
            self.learn(way, row)?;
        }
        let receivers: Vec<Receiver> =
            ways.iter().map(|way| Receiver::start(&self.receive_plan(way, load))).collect::<Result<_, _>>()?;
        self.hops.iter_mut().for_each(Hop::begin);
        let at_ms = self.at_ms();
        let plans: Vec<GeneratePlan> = ways.iter().map(|way| self.generate_plan(way, row, load)).collect();
        let sent = send(&plans, &self.stop)?;
        let residue = Duration::from_millis(self.plan.residue_ms);
        let mut directions = sent
            .into_iter()
            .zip(receivers)
            .map(|(sent, receiver)| collect(sent, receiver, residue))
            .collect::<Result<Vec<_>, _>>()?;
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
        let mut trial = ForwardingTrial {
            test,
            traffic: row.traffic,
            size: row.size,
            repetition,
            at_ms,
            directions,
            hops,
            invalid: None,
        };
        trial.invalid = self.hops.iter().find_map(Hop::trouble).or_else(|| judge(self.plan, &trial));
        Ok(trial)
    }
}

/// All generators at once.
fn send(plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, FrameError> {
    let nothing = |_: FrameInterval| {};
    if let [plan] = plans {
        return Ok(vec![generate(plan, stop, nothing)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = plans.iter().map(|plan| scope.spawn(move || generate(plan, stop, nothing))).collect();
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
fn collect(sent: GenerateRecord, mut receiver: Receiver, residue: Duration) -> Result<FrameTrial, FrameError> {
    let since = clock::now();
    while since.elapsed() < residue && receiver.frames()? < sent.sent() {
        clock::sleep(STEP);
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

/// What was lost around a cut of the load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cut {
    pub(super) overload_lost: u64,
    pub(super) after_lost: u64,
    /// From the cut to the last frame lost.
    pub(super) last_loss_ns: Option<u64>,
    pub(super) invalid: Option<String>,
}

impl Tester<'_> {
    /// An overload that becomes half of it at once: two generators, of which one ends. Frames of the second are missing after
    /// the cut as long as the device has not recovered; the receiver's looks say how long.
    pub(super) fn cut(
        &mut self,
        row: Row,
        order: &narrows_search::procedures::RecoveryPlan,
    ) -> Result<Cut, ForwardingError> {
        let Some(way) = self.ways.first().cloned() else { return Ok(Cut::default()) };
        let whole_ms = order.overload_ms + order.after_ms;
        let receive = ReceivePlan {
            interval_ms: 10,
            ..self.receive_plan(&way, Load::Rate { pps: order.after_pps, duration_ms: whole_ms })
        };
        let mut receiver = Receiver::start(&receive)?;
        let base = self.generate_plan(&way, row, Load::Rate { pps: order.after_pps, duration_ms: whole_ms });
        let more = Load::Rate { pps: order.overload_pps - order.after_pps, duration_ms: order.overload_ms };
        let extra = GeneratePlan { first_stream: 32, ..self.generate_plan(&way, row, more) };
        let watching = Stop::new();
        let (sent, cut_us) = std::thread::scope(|scope| -> Result<_, ForwardingError> {
            let began = clock::now();
            let looked = scope.spawn(|| receiver.wait(&watching, |_| {}));
            let long = scope.spawn(|| generate(&base, &self.stop, |_| {}));
            let short = generate(&extra, &self.stop, |_| {});
            let cut_us = clock::micros_since(began);
            let long = match long.join() {
                Ok(record) => record,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            clock::sleep(Duration::from_millis(self.plan.residue_ms));
            watching.stop();
            if let Ok(looked) = looked.join() {
                looked?;
            }
            Ok(([long?, short?], cut_us))
        })?;
        let got = receiver.finish()?;
        let streams = |from: u16, to: u16| {
            got.streams
                .iter()
                .filter(|stream| (from..to).contains(&stream.stream))
                .map(|stream| stream.received.saturating_sub(stream.duplicates))
                .sum::<u64>()
        };
        let lost = [sent[0].sent().saturating_sub(streams(0, 32)), sent[1].sent().saturating_sub(streams(32, 64))];
        // After the cut only the first generator sends: where an interval holds clearly fewer frames than it sent, some are lost.
        let due = order.after_pps / 1e6;
        let short_of = |pair: &[FrameInterval]| {
            let time = (pair[1].at_us - pair[0].at_us) as f64;
            let missing = due * time - (pair[1].frames - pair[0].frames) as f64;
            (missing > 0.1 * due * time).then_some((pair[1].at_us, missing))
        };
        let after: Vec<(u64, f64)> =
            got.intervals.windows(2).filter(|pair| pair[0].at_us >= cut_us).filter_map(short_of).collect();
        let end_us = cut_us + order.after_ms * 1000;
        let after: Vec<_> = after.into_iter().filter(|(at, _)| *at + 20_000 < end_us).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let after_lost = (after.iter().map(|(_, missing)| missing).sum::<f64>() as u64).min(lost[0]);
        let ended = sent.iter().find_map(|record| record.ended.clone());
        Ok(Cut {
            overload_lost: (lost[0] + lost[1]).saturating_sub(after_lost),
            after_lost,
            last_loss_ns: after.last().map(|(at, _)| at.saturating_sub(cut_us) * 1000),
            invalid: ended.map(|why| format!("the generator ended early: {why}")),
        })
    }
}
