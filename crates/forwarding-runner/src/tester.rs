//! The tester: makes one trial of frames through the device, and reads the counters of the hops around it.

use crate::hops::{Hop, Passed};
use crate::hosts::HostAccess;
use crate::modifier::{ModifierTraffic, Origin};
use crate::watch::Watch;
use crate::{cut, far};
use narrows_forwarding::data::modifiers::{ModifierSeen, TableSeen};
use narrows_forwarding::data::plan::Row;
use narrows_forwarding::data::{AddressPair, ForwardingPlan, ForwardingTrial, TesterMaximum, TesterPort};
use narrows_forwarding::procedures::latency::stamp_every;
use narrows_forwarding::procedures::{Load, Request};
use narrows_model::Family;
use narrows_model::host::hop::HopCount;
use narrows_model::host::table::TableFill;
use narrows_model::load::frame_traffic::Modifier;
use narrows_model::load::frames::{
    BROADCAST_STREAM, Endpoints, FrameLoad, FrameTrial, GeneratePlan, GenerateRecord, Mac, ReceivePlan,
};
use narrows_runner::port::{Ends, Port, PortError, QualifyRequest, Receiving, frame_format};
use narrows_runner::result_of;
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Frames a second of one worker, with room to spare.
const PPS_OF_ONE_WORKER: f64 = 3e6;
const LEARNING_PPS: f64 = 10_000.0;
const CONTROL_FRAMES: u64 = 100;
/// How long frames are waited for that a bridge may pass on, and a router does not.
const FLOODED: Duration = Duration::from_millis(50);
/// Longest stall after which a worker still sends the backlog. Other programs on a busy host take its CPU for about 200 us at a time;
/// that backlog leaves slightly above the load and fits into the smallest device queue (256 frames). A longer one could overflow
/// a device near its limit. A worker near its maximum rate catches up 1 ms. Workers that occupy all CPUs share them with every
/// other program on the host and catch up 4 ms, the time slice that the scheduler may give to another program.
/// A burst catches up only in the latter two cases: otherwise there is no time for it.
const fn catch_up_us(load: Load, pps: f64, on_all_cpus: bool) -> u32 {
    match (load, on_all_cpus, pps > PPS_OF_ONE_WORKER) {
        (_, true, _) => 4_000,
        (_, false, true) => 1_000,
        (Load::Burst { .. }, false, false) => 0,
        (Load::Rate { .. } | Load::Cut { .. }, false, false) => 300,
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
    /// The Ethernet address of the port where the frames arrive.
    arrives_at: Mac,
    cpus: u32,
}

/// The two ports of the tester and the hops between them.
#[derive(Debug)]
pub(super) struct Tester<'a> {
    pub(super) plan: &'a ForwardingPlan,
    hosts: &'a HostAccess,
    /// Forth, and back where any traffic is bidirectional; of each family that is sent.
    ways: Vec<Way>,
    hops: Vec<Hop>,
    modifier_traffic: ModifierTraffic,
    began: Instant,
    stop: Stop,
    /// Raised when a host is lost, too.
    halt: Stop,
}

impl End {
    pub(super) fn unfit(&self, why: &str) -> PortError {
        PortError::Unfit(self.plan.device.clone(), why.to_owned())
    }

    fn addresses(&self, family: Family) -> Result<AddressPair, PortError> {
        let name = if family == Family::Ipv4 { "IPv4" } else { "IPv6" };
        self.plan.of(family).ok_or_else(|| self.unfit(&format!("the plan has no {name} addresses for it")))
    }
}

impl Way {
    fn of(family: Family, from: &End, to: &End) -> Result<Self, PortError> {
        let (own, other) = (from.addresses(family)?, to.addresses(family)?);
        let look = from.port.look(&from.plan.device, Some(own.gateway))?;
        let gateway = look.gateway.ok_or_else(|| from.unfit("its gateway has no MAC address"))?;
        // Fail before sending if frames cannot be counted.
        let arrives_at = to.port.look(&to.plan.device, None)?.own;
        let ends = Ends { macs: [look.own, gateway], addresses: [own.address, other.address] };
        Ok(Self { family, from: from.clone(), to: to.clone(), ends, arrives_at, cpus: look.cpus })
    }
}

impl<'a> Tester<'a> {
    /// Connects to the ports and finds out the device's Ethernet addresses.
    pub(super) fn open(
        plan: &'a ForwardingPlan,
        hosts: &'a HostAccess,
        stop: &Stop,
        says: &mut dyn FnMut(&str),
    ) -> Result<Self, PortError> {
        let (began, stop, halt) = (clock::now(), stop.clone(), stop.below());
        let mut tester = Self {
            plan,
            hosts,
            ways: Vec::new(),
            hops: Vec::new(),
            modifier_traffic: ModifierTraffic::default(),
            began,
            stop,
            halt,
        };
        tester.renew(says)?;
        tester.hops = plan.hops.iter().map(|hop| Hop::of(hop, hosts)).collect();
        Ok(tester)
    }

    /// Reconnects to the ports; earlier sessions are closed first.
    pub(super) fn renew(&mut self, says: &mut dyn FnMut(&str)) -> Result<(), PortError> {
        self.ways.clear();
        self.halt = self.stop.below();
        let plan = self.plan;
        let [generator, receiver] = far::ports(plan, self.hosts, &self.halt, says)?;
        let generator = End { plan: plan.generator.clone(), port: generator };
        let receiver = End { plan: plan.receiver.clone(), port: receiver };
        for family in [Family::Ipv4, Family::Ipv6] {
            let mut sent = plan.traffic.iter().filter(|traffic| traffic.family == family).peekable();
            if sent.peek().is_none() {
                continue;
            }
            self.ways.push(Way::of(family, &generator, &receiver)?);
            if sent.any(|traffic| traffic.bidirectional) {
                self.ways.push(Way::of(family, &receiver, &generator)?);
            }
        }
        Ok(())
    }

    /// Why one of the tester's hosts is lost, if one is.
    pub(super) fn lost(&self) -> Option<PortError> {
        self.ways.iter().flat_map(|way| [&way.from, &way.to]).find_map(|end| end.port.lost())
    }

    /// What the tester alone can send and count: of two hosts, what the slower one can.
    pub(super) fn qualify(&self, row: Row) -> Result<TesterMaximum, PortError> {
        let (traffic, size) = (row.traffic, row.size);
        let way = self.way(row)?;
        let request = QualifyRequest {
            traffic: self.plan.traffic[traffic].clone(),
            sizes: self.sizes(row),
            addresses: way.ends.addresses,
        };
        let sends = way.from.port.qualify(&request, &self.halt)?;
        if self.plan.one_clock() {
            return Ok(TesterMaximum { traffic, size, pps: sends.pps, method: sends.method });
        }
        let counts = way.to.port.qualify(&request, &self.halt)?;
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

    pub(super) fn way(&self, row: Row) -> Result<Way, PortError> {
        let way = self.ways(row).into_iter().next();
        let device = &self.plan.generator.device;
        way.ok_or_else(|| PortError::Unfit(device.clone(), "the plan has no such frames".to_owned()))
    }

    /// The hop under test.
    pub(super) fn dut(&self) -> Option<&Hop> {
        self.hops.iter().find(|hop| hop.is_under_test())
    }

    /// The table that trials go through from now on.
    pub(super) fn set_table(&mut self, table: Option<TableSeen>) {
        self.modifier_traffic.table = table;
    }

    /// The neighbour behind the device that a row's frames go to.
    pub(super) fn behind(&self, row: Row) -> Result<(IpAddr, Mac), PortError> {
        self.way(row).map(|way| (way.ends.addresses[1], way.arrives_at))
    }

    /// The addresses of a row's frames where they go through no table.
    pub(super) fn usual(&self, row: Row) -> Result<[IpAddr; 2], PortError> {
        self.way(row).map(|way| way.ends.addresses)
    }

    /// Sends frames that a device with the whole table does not forward: how many were sent, and how many arrived.
    pub(super) fn control(&self, row: Row, fill: TableFill) -> Result<[u64; 2], PortError> {
        let (way, load) = (self.way(row)?, Load::Burst { frames: CONTROL_FRAMES, pps: LEARNING_PPS });
        let mut plan = self.generate_plan(&way, row, load, 1);
        let [source, destination] = narrows_wire::tables::control(fill, way.ends.addresses);
        plan.format.source = Endpoints::one(source, plan.format.source.ports);
        plan.format.destination = Endpoints::one(destination, plan.format.destination.ports);
        let receiver = way.to.port.receive(&self.receive_plan(&way, load), false)?;
        let mut sent = way.from.port.generate(&[plan], &self.halt)?;
        let sent = sent.pop().ok_or_else(|| way.from.unfit("a generator has no samples"))?;
        let frames = collect(sent, receiver, Duration::from_millis(self.plan.conditions.residue_ms))?;
        Ok([frames.sent.sent(), frames.got.distinct()])
    }

    fn sizes(&self, row: Row) -> Vec<u32> {
        let mix = || self.plan.traffic.get(row.traffic).map(|traffic| traffic.mix.clone()).unwrap_or_default();
        row.size.map_or_else(mix, |size| vec![size])
    }

    /// A generator of the row's frames, one of so many that run on its host at the same time.
    pub(super) fn generate_plan(&self, way: &Way, row: Row, load: Load, at_once: u32) -> GeneratePlan {
        let traffic = &self.plan.traffic[row.traffic];
        let cpus = way.cpus.clamp(1, GeneratePlan::MAX_STREAMS);
        let pps = load.pps();
        let workers = ((pps / PPS_OF_ONE_WORKER).ceil() as u32).clamp(1, cpus);
        let workers = if matches!(load, Load::Burst { .. }) { 1 } else { workers };
        GeneratePlan {
            device: way.from.plan.device.clone(),
            mode: None,
            format: frame_format(traffic, self.sizes(row), &way.ends),
            load: FrameLoad::FramesPerSecond(pps),
            burst: GeneratePlan::usual_burst(FrameLoad::FramesPerSecond(pps), workers),
            // Who shares the host's CPUs with others of its kind has them all taken.
            catch_up_us: catch_up_us(load, pps / f64::from(workers), workers.saturating_mul(at_once) >= cpus),
            duration_ms: match load {
                Load::Rate { .. } | Load::Cut { .. } => load.millis().max(10),
                // The count ends it; a stall must not.
                Load::Burst { .. } => load.millis() + 1_000,
            },
            count: match load {
                Load::Rate { .. } | Load::Cut { .. } => None,
                Load::Burst { frames, .. } => Some(frames),
            },
            workers,
            workers_note: None,
            first_stream: 0,
            stamp_every: stamp_every(pps, load.millis()),
            broadcast_every: broadcast_every(traffic.modifier.as_ref()),
            interval_ms: 100,
        }
    }

    pub(super) fn receive_plan(&self, way: &Way, load: Load) -> ReceivePlan {
        ReceivePlan {
            device: way.to.plan.device.clone(),
            mode: None,
            duration_ms: (load.millis() + self.plan.conditions.residue_ms + 60_000).min(24 * 3600 * 1000),
            idle_ms: None,
            per_flow: false,
            gaps: false,
            interval_ms: 100,
        }
    }

    /// Frames so that hops learn where the ports are; nobody counts them.
    fn learn(&self, way: &Way, row: Row) -> Result<(), PortError> {
        if self.plan.conditions.learning_frames == 0 {
            return Ok(());
        }
        let load = Load::Burst { frames: self.plan.conditions.learning_frames.into(), pps: LEARNING_PPS };
        way.from.port.generate(&[self.generate_plan(way, row, load, 1)], &self.halt).map(drop)
    }

    /// One trial, its counts as they were read, and when a cut load was cut by the clock of the receiver. It is an error only where
    /// frames cannot be sent at all.
    pub(super) fn trial(&mut self, row: Row, request: &Request) -> Result<(ForwardingTrial, Option<u64>), PortError> {
        let mut ways = self.ways(row);
        if let Load::Cut { .. } = request.load {
            ways.truncate(1);
        }
        let begun = self.begin(&ways, row, request)?;
        let plans: Vec<Vec<GeneratePlan>> = match cut::loads(request.load) {
            Some(parts) => vec![cut::plans(parts.map(|part| self.generate_plan(&ways[0], row, part, 2)))],
            None => {
                let at_once = if self.plan.one_clock() { u32::try_from(ways.len()).unwrap_or(1) } else { 1 };
                ways.iter().map(|way| vec![self.generate_plan(way, row, request.load, at_once)]).collect()
            }
        };
        let halt = self.halt.clone();
        let (sent, modifier) = self.with_modifier(row, || send(&ways, &plans, &halt))?;
        let mut sent = sent?;
        let parts = match sent.first_mut() {
            Some(records) if records.len() > 1 => Some(records.clone()),
            _ => None,
        };
        let whole = sent.iter().filter_map(|records| cut::together(records)).collect();
        let trial = self.end(begun, row, request, whole, modifier)?;
        let got = trial.directions.first().map(|frames| &frames.got);
        let cut_ns = parts.zip(got).and_then(|(parts, got)| cut::cut_ns(got, &parts, self.plan.one_clock()));
        Ok((trial, cut_ns))
    }

    /// A trial of which nothing was seen.
    pub(super) fn empty_trial(&self, row: Row, request: &Request) -> ForwardingTrial {
        ForwardingTrial {
            test: request.test,
            traffic: row.traffic,
            size: row.size,
            repetition: request.repetition,
            at_ms: clock::micros_since(self.began) / 1000,
            directions: Vec::new(),
            hops: Vec::new(),
            modifier: None,
            devices: Vec::new(),
            incomplete: None,
        }
    }

    /// The modifier of the row's frames.
    pub(super) fn modifier(&self, row: Row) -> Option<&'a Modifier> {
        self.plan.traffic.get(row.traffic).and_then(|traffic| traffic.modifier.as_ref())
    }

    /// Runs the load, and the modifier's traffic with it.
    pub(super) fn with_modifier<T>(
        &mut self,
        row: Row,
        load: impl FnOnce() -> T,
    ) -> Result<(T, Option<ModifierSeen>), PortError> {
        let way = self.way(row)?;
        let from =
            Origin { interface: way.from.plan.device.clone(), mac: way.ends.macs[0], address: way.ends.addresses[0] };
        let under_test = self.hops.iter().find(|hop| hop.is_under_test());
        Ok(self.modifier_traffic.during(self.modifier(row), &from, under_test, load))
    }

    /// Everything before the load: learning frames, receivers at work, the counters of the hops.
    fn begin(&mut self, ways: &[Way], row: Row, request: &Request) -> Result<Begun, PortError> {
        for way in ways {
            self.learn(way, row)?;
        }
        let receive = |way: &Way| {
            let plan = self.receive_plan(way, request.load);
            let plan = ReceivePlan { interval_ms: request.sample_ms.unwrap_or(plan.interval_ms), ..plan };
            way.to.port.receive(&plan, request.sample_ms.is_some())
        };
        let receivers = ways.iter().map(receive).collect::<Result<Vec<_>, _>>()?;
        let watch = Watch::begin(&mut self.hops);
        self.hops.iter_mut().for_each(Hop::begin);
        Ok(Begun { receivers, watch, trial: self.empty_trial(row, request) })
    }

    /// Everything after it: frames under way, the receivers, the counters of the hops.
    fn end(
        &mut self,
        begun: Begun,
        row: Row,
        request: &Request,
        sent: Vec<GenerateRecord>,
        modifier: Option<ModifierSeen>,
    ) -> Result<ForwardingTrial, PortError> {
        let devices = begun.watch.end(&mut self.hops);
        let residue = Duration::from_millis(self.plan.conditions.residue_ms);
        let mut directions = sent
            .into_iter()
            .zip(begun.receivers)
            .map(|(sent, receiver)| collect(sent, receiver, residue))
            .collect::<Result<Vec<_>, _>>()?;
        if !self.plan.one_clock() {
            // Stamped by one clock and read by another: how far those are apart, and nothing of the device.
            directions.iter_mut().for_each(|frames| frames.got.latency_ns = None);
        }
        let received = |way: usize| directions.get(way).map_or(0, |trial: &FrameTrial| trial.got.distinct());
        let sizes = self.sizes(row);
        let passed = Passed {
            received: [received(0), received(1)],
            bytes: [sizes.iter().min(), sizes.iter().max()].map(|size| size.copied().unwrap_or(64)),
        };
        let hops: Vec<HopCount> = self.hops.iter_mut().flat_map(|hop| hop.end(directions.len(), &passed)).collect();
        let (test, repetition) = (request.test, request.repetition);
        Ok(ForwardingTrial { test, repetition, directions, hops, modifier, devices, ..begun.trial })
    }
}

/// A trial whose load is about to come.
pub(super) struct Begun {
    receivers: Vec<Box<dyn Receiving>>,
    watch: Watch,
    trial: ForwardingTrial,
}

/// All generators at once; of each way a record for each of its plans.
fn send(ways: &[Way], plans: &[Vec<GeneratePlan>], halt: &Stop) -> Result<Vec<Vec<GenerateRecord>>, PortError> {
    let one = |way: &Way, plans: &[GeneratePlan]| -> Result<Vec<GenerateRecord>, PortError> {
        let sent = way.from.port.generate(plans, halt)?;
        if sent.len() == plans.len() { Ok(sent) } else { Err(way.from.unfit("a generator has no samples")) }
    };
    if let ([way], [plans]) = (ways, plans) {
        return Ok(vec![one(way, plans)?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = ways.iter().zip(plans).map(|(way, plans)| scope.spawn(move || one(way, plans))).collect();
        threads.into_iter().map(|thread| result_of(thread.join())).collect()
    })
}

/// Every so-manyth frame of a traffic goes to all stations; 0: none does.
const fn broadcast_every(modifier: Option<&Modifier>) -> u32 {
    match modifier {
        Some(Modifier::Broadcast { every }) => *every,
        _ => 0,
    }
}

/// Waits until all frames came, or for the residue, and reads the receiver.
fn collect(sent: GenerateRecord, mut receiver: Box<dyn Receiving>, residue: Duration) -> Result<FrameTrial, PortError> {
    let all = sent.sent();
    let to_all: u64 = sent.streams.iter().filter(|it| it.stream == BROADCAST_STREAM).map(|it| it.handed).sum();
    let expected = all.saturating_sub(to_all);
    if receiver.wait(expected, residue)? >= expected && all > expected {
        // A device that floods what goes to all: those may have come for others that are still under way.
        receiver.wait(all, residue.min(FLOODED))?;
    }
    Ok(FrameTrial { sent, got: receiver.finish()? })
}
