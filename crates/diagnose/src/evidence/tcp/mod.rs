//! What a run says of one round of TCP, in the terms that its rules are written in.
//!
//! Nothing here decides. A quantity that the kernel did not give is `None`; a rule that needs it says that it cannot
//! tell.

mod acks;
pub mod budget;
mod counted;
mod flow_view;
mod judged;
mod loss;
mod outages;
mod path_wait;
pub mod phases;
mod shares;
mod signals;

pub use acks::Acks;
pub use flow_view::{EndView, FlowView, WAITS};
pub use judged::NO_MORE;
pub use loss::Loss;
pub use outages::Outage;
pub use path_wait::PathWait;
pub use phases::Phase;
pub use shares::Shares;
pub use signals::Signal;

use crate::connection;
use crate::evidence::cores::CoreShare;
use crate::evidence::paced::PacedUdp;
use crate::evidence::profile::{PathProfile, Probes};
use crate::experiments::profile::REVERSE_PROFILE;
use crate::experiments::tcp::{AGAIN, AWAKE_CORES, OTHER_CONGESTION_CONTROL};
use crate::judge::{Evidence as _, Experiment};
use crate::ledger::tcp_ledger;
use crate::role::Role;
use narrows_model::load::tcp::{TcpPlan, TcpTrial};
use narrows_model::words::{figures::float, units};
use narrows_model::{Direction, FactKey, Flow, Ledger, Place, ProfilePlan, Run, Snapshot, keys};
use std::collections::BTreeMap;

/// Everything known of one round.
#[derive(Debug, Clone)]
pub struct TcpEvidence {
    /// Which way the data went.
    pub flow: Flow,
    /// The load as it was planned.
    pub load: TcpPlan,
    /// What the server allowed the load at most, where it is open to clients without a token and lowered it, bits a second.
    pub server_limit_bps: Option<f64>,
    /// The baseline trial, or the same load once more where that was disturbed less.
    pub base: FlowView,
    /// What was stolen of a host's CPU time during the baseline that `base` replaces.
    pub replaced: Option<f64>,
    /// The experiments of this round, by id.
    pub experiments: BTreeMap<String, FlowView>,
    /// What UDP below and above the goodput showed of the path.
    pub paced_udp: PacedUdp,
    /// What the path does by itself, where it was measured.
    pub profile: Option<PathProfile>,
    /// The same of the reverse path, where that was measured by itself.
    pub reverse_path: Option<PathProfile>,
    /// Whether that was tried.
    pub reverse_tried: bool,
    /// The probes of that measurement, where it was begun.
    pub probes: Option<Probes>,
    /// Why the two sockets are the ends of two connections, with a proxy between them, where that is certain.
    pub split: Option<String>,
    /// Where its segments went; `None` where the counters do not say.
    pub ledger: Option<Ledger>,
    /// Smallest RTT seen on the idle path or under load, microseconds.
    pub min_rtt_us: Option<f64>,
    /// Its phases, where its rate changed for good; else none.
    pub phases: Vec<Phase>,
    /// Bits of IP packets a second that the devices of both hosts carried in the flow's direction beyond its own.
    pub others_bps: Option<f64>,
    has_largest_buffer: bool,
    sender: Snapshot,
    receiver: Snapshot,
    header_bytes: u32,
}

const ETHERNET_BYTES: u32 = 14;

/// With this much stolen of all cores, pauses of many milliseconds disturb what was measured.
pub const DISTURBS: f64 = 0.05;

/// Other traffic that takes less of the path leaves the connection too little to matter.
pub const TAKEN: f64 = 0.15;

/// A repetition is the better witness where no more than this part of it was stolen.
const CALMER: f64 = 0.7;

fn again(run: &Run, round: u32) -> Option<TcpTrial<'_>> {
    run.experiments(round).find_map(|(id, trial)| (id == AGAIN.id).then_some(trial))
}

/// Whether the send buffer is about as large as the kernel lets it grow.
fn has_largest_buffer(evidence: &TcpEvidence) -> bool {
    let most = evidence.number(Role::Sender, keys::TCP_WMEM_MAX).zip(evidence.base.sndbuf_bytes);
    most.is_some_and(|(most, buffer)| buffer >= 0.9 * most)
}

/// See [`TcpEvidence::others_bps`]; of one trial.
fn others_bps(evidence: &TcpEvidence, base: &FlowView) -> Option<f64> {
    let header_bytes = f64::from(evidence.segment_header_bytes() + ETHERNET_BYTES);
    let own = base.loss_whole?.sent as f64 * (base.mss_bytes? + header_bytes);
    let beyond = |end: &EndView, key: FactKey| Some((*end.counts.get(key.name)? as f64 - own).max(0.0));
    let bytes =
        beyond(&base.sender, keys::NIC_COUNTER_TX_BYTES)?.min(beyond(&base.receiver, keys::NIC_COUNTER_RX_BYTES)?);
    // The control connection is less.
    Some(if bytes > 0.05 * own { bytes * 8.0 / base.whole_s.max(1e-3) } else { 0.0 })
}

impl TcpEvidence {
    /// The evidence of one round; `None` where its baseline was not measured.
    pub fn of(run: &Run, round: u32) -> Option<Self> {
        let trial = run.baseline::<TcpPlan>(round)?;
        let flow = *trial.plan.flows().first()?;
        let mut base = FlowView::of(trial, flow)?;
        let mut experiments: BTreeMap<String, FlowView> = run
            .experiments::<TcpPlan>(round)
            .filter_map(|(id, trial)| {
                // An experiment in the other direction is evaluated in that direction.
                let flow = if trial.plan.direction == Direction::Both { flow } else { *trial.plan.flows().first()? };
                Some((id.to_owned(), FlowView::of(trial, flow)?))
            })
            .collect();
        let disturbed = base.stolen();
        let calmer = |again: &&mut FlowView| disturbed >= DISTURBS && again.stolen() <= CALMER * disturbed;
        let replaced = experiments.get_mut(AGAIN.id).filter(calmer).map(|again| {
            std::mem::swap(again, &mut base);
            disturbed
        });
        let trial = replaced.and_then(|_| again(run, round)).unwrap_or(trial);
        let idle = run.idle_rtt_us.iter().min().map(|&us| us as f64);
        let min_rtt_us = [idle, base.min_rtt_us].into_iter().flatten().reduce(f64::min).filter(|us| *us > 0.0);
        let host = |place| if place == Place::Client { &run.client } else { &run.server };
        let mut evidence = Self {
            flow,
            load: trial.plan.clone(),
            server_limit_bps: run.server_limit_bps(round).map(float),
            paced_udp: PacedUdp::of(run.experiments(round), flow, base.goodput_bps),
            profile: PathProfile::of(run, round, flow),
            reverse_path: PathProfile::by(&REVERSE_PROFILE, run, round, flow.reversed()),
            reverse_tried: (0..=round)
                .any(|round| run.experiments::<ProfilePlan>(round).any(|(id, _)| id == REVERSE_PROFILE.id)),
            probes: Probes::of(run, round, flow),
            ledger: tcp_ledger(trial, flow),
            split: connection::split(trial, flow),
            others_bps: None,
            has_largest_buffer: false,
            phases: Vec::new(),
            replaced,
            base,
            experiments,
            min_rtt_us,
            sender: host(flow.sender()).clone(),
            receiver: host(flow.receiver()).clone(),
            header_bytes: run.target.family.header_bytes() + 20,
        };
        evidence.others_bps = others_bps(&evidence, &evidence.base);
        evidence.has_largest_buffer = has_largest_buffer(&evidence);
        if evidence.ends_by_time() {
            let base = &evidence.base;
            evidence.phases = phases::of(&base.counted_bps, base.counted_s, trial, flow);
        }
        Some(evidence)
    }

    /// The trial that `base` is the view of.
    pub fn judged_trial<'r>(&self, run: &'r Run, round: u32) -> Option<TcpTrial<'r>> {
        self.replaced.and_then(|_| again(run, round)).or_else(|| run.baseline(round))
    }

    /// The experiment of that id, where it was made.
    pub fn made(&self, experiment: &Experiment) -> Option<&FlowView> {
        self.experiments.get(experiment.id)
    }

    /// The view of an end of the baseline.
    pub const fn end(&self, role: Role) -> Option<&EndView> {
        self.base.end(role)
    }

    /// Packets that a host dropped by a reason of its drop watch; `None` where that is not known.
    pub fn reason(&self, role: Role, name: &str) -> Option<u64> {
        crate::ledger::reasons::own(&self.end(role)?.counts, name)
    }

    /// Which part of the load [`FlowView::loss`] is of, where it is another one than the ledger's: words after a figure of it.
    pub fn after_start(&self) -> String {
        if self.base.loss == self.base.loss_whole {
            return String::new();
        }
        format!(" after the first {}", units::micros(self.load.omit_ms.saturating_mul(1000)))
    }

    /// The core of a host with the most softirq time, in the baseline or in the experiment that shows what an idle core hides.
    pub fn softirq_core(&self, role: Role) -> Option<&CoreShare> {
        let awake = self.made(&AWAKE_CORES).and_then(|view| view.end(role)?.softirq_core());
        let base = self.end(role).and_then(EndView::softirq_core);
        [base, awake].into_iter().flatten().max_by(|a, b| a.softirq.total_cmp(&b.softirq))
    }

    /// Bytes of IP and TCP header of each full segment, timestamps included where they were negotiated.
    pub const fn segment_header_bytes(&self) -> u32 {
        self.header_bytes + if self.base.timestamps { 12 } else { 0 }
    }

    /// Payload bits per bit on an Ethernet wire with full segments of `mss` payload bytes: 38 bytes a frame for header,
    /// FCS, preamble and gap.
    pub fn wire_efficiency(&self, mss_bytes: f64) -> f64 {
        mss_bytes / (mss_bytes + f64::from(self.segment_header_bytes()) + 38.0)
    }

    /// The link speed of a host's device, where the device has one: virtual devices (veth, bridges, tunnels, those that
    /// a hypervisor makes up) report a number that nothing enforces; a TUN device has one only where it was set.
    pub fn link_bps_of(&self, role: Role) -> Option<f64> {
        if !matches!(self.text(role, keys::NIC_KIND)?, "physical" | "tun") {
            return None;
        }
        self.number(role, keys::NIC_SPEED).filter(|bps| *bps > 0.0)
    }

    /// Bits of IP packets a second of the acknowledgements without payload: those that the receiver sent, and those that arrived, where
    /// the sender tells.
    pub fn acks_bps(&self) -> Option<(f64, Option<f64>)> {
        let Acks { sent_per_s, arrived_per_s, .. } = self.base.acks?;
        let bits = f64::from(self.segment_header_bytes()) * 8.0;
        (sent_per_s > 0.0).then_some((sent_per_s * bits, arrived_per_s.map(|per_s| per_s * bits)))
    }

    /// Payload bits per bit of full IP packets.
    pub fn payload_part(&self) -> Option<f64> {
        let mss = self.base.mss_bytes?;
        Some(mss / (mss + f64::from(self.segment_header_bytes())))
    }

    /// Goodput that the measured capacity of the path carries; `None` where it was not measured or not reached.
    pub fn capacity_goodput_bps(&self) -> Option<f64> {
        Some(self.profile.as_ref()?.shape.capacity?.bps * self.payload_part()?)
    }

    /// The goodput once slow start is over: of a transfer that ends by bytes, which may be all slow start, that of its fastest tenth.
    fn settled_bps(&self) -> f64 {
        let goodput = self.base.goodput_bps;
        if self.ends_by_time() {
            return goodput;
        }
        narrows_stats::quantile(&self.base.interval_bps, 0.9).map_or(goodput, |fastest| fastest.max(goodput))
    }

    /// The goodput, and what else the two hosts send each other, as a part of what the path sustains, where that was measured.
    pub fn filled(&self) -> Option<f64> {
        let others = self.others_goodput_bps();
        let capacity = if others > 0.0 { self.whole_goodput_bps()? } else { self.capacity_goodput_bps()? };
        Some((self.settled_bps() + others) / capacity)
    }

    /// Goodput that the path would carry without others in its queue, whom the capacity leaves out.
    fn whole_goodput_bps(&self) -> Option<f64> {
        let shared = self.profile.as_ref()?.shape.shared;
        shared.map_or_else(|| self.capacity_goodput_bps(), |shared| Some(shared.link_bps * self.payload_part()?))
    }

    /// What else the two hosts send each other, as a part of what the path sustains, where both are known; 0 where it does not fit.
    pub fn taken(&self) -> Option<f64> {
        self.others_bps?;
        Some(self.others_goodput_bps() / self.whole_goodput_bps()?)
    }

    /// What else the two hosts sent each other in the baseline and while an experiment carried clearly more, where that was at their
    /// cost: then both share what limits them. With the experiment's goodput.
    pub fn gave_way(&self) -> Option<([f64; 2], f64)> {
        let before = self.others_bps.filter(|bps| *bps >= TAKEN * self.goodput_bps())?;
        let greedy = self.made(&OTHER_CONGESTION_CONTROL)?;
        let gained = greedy.goodput_bps - self.goodput_bps();
        let after = others_bps(self, greedy)?;
        (gained > TAKEN * before && before - after >= gained / 2.0).then_some(([before, after], greedy.goodput_bps))
    }

    /// The goodput and what else the two hosts sent each other: of full packets, as payload.
    pub fn with_others_bps(&self) -> Option<f64> {
        Some(self.goodput_bps() + self.others_bps? * self.payload_part()?)
    }

    fn others_goodput_bps(&self) -> f64 {
        let others = self.others_bps.zip(self.payload_part()).map_or(0.0, |(bps, part)| bps * part);
        // More than the path sustains went elsewhere.
        let fits = self.whole_goodput_bps().is_none_or(|capacity| self.settled_bps() + others <= BEYOND * capacity);
        if fits { others } else { 0.0 }
    }

    /// Goodput that the path is known to carry: its measured capacity, or what it carried of UDP.
    pub fn carries_bps(&self) -> Option<f64> {
        let carried = self.profile.as_ref()?.shape.carried_bps * self.payload_part()?;
        Some(self.capacity_goodput_bps().unwrap_or(carried))
    }

    /// Whether the path is known to carry clearly more than the goodput, so that the path is not what limits it.
    pub fn path_has_room(&self) -> bool {
        self.carries_bps().is_some_and(|bps| self.settled_bps() + self.others_goodput_bps() < AT_CAPACITY * bps)
    }

    /// A goodput of more times what the path sustains is not explained by it. A bucket passes more than its rate until it is empty.
    pub fn beyond(&self) -> f64 {
        let shape = self.profile.as_ref().map(|profile| &profile.shape);
        let by_credit = shape.is_some_and(
            |shape| matches!(shape.plateau, Some(narrows_search::profile::Plateau::Shaper { bucket_bytes }) if bucket_bytes >= DEEP),
        );
        if by_credit { BY_CREDIT } else { BEYOND }
    }

    /// Whether others share the path, which left clearly more to a profile than a load took that an end held back, without a queue that
    /// stood: they are not what limits it.
    pub fn has_room_beside_others(&self) -> bool {
        let left = self.capacity_goodput_bps().filter(|_| self.others_goodput_bps() > 0.0);
        let held = [self.held_by_window(), self.held_by_buffer()].into_iter().flatten().reduce(f64::max);
        left.is_some_and(|bps| self.settled_bps() < AT_CAPACITY * bps)
            && held.is_some_and(|held| held >= 0.2)
            && self.queue_stood() == Some(false)
    }

    /// Whether one kernel runs both ends, by its boot: containers and namespaces of one machine.
    pub fn same_machine(&self) -> bool {
        let boot = self.text(Role::Sender, keys::HOST_BOOT);
        boot.is_some() && boot == self.text(Role::Receiver, keys::HOST_BOOT)
    }

    /// The slower of the two links in bits per second on the wire, where both or one are known and real.
    pub fn link_bps(&self) -> Option<f64> {
        [Role::Sender, Role::Receiver].into_iter().filter_map(|role| self.link_bps_of(role)).reduce(f64::min)
    }

    /// Goodput that the slower of the two links carries with full segments.
    pub fn link_goodput_bps(&self) -> Option<f64> {
        Some(self.link_bps()? * self.wire_efficiency(self.base.mss_bytes?))
    }

    /// Whether the goodput is what the slower of the two links carries, where its speed is known.
    pub fn at_link(&self) -> bool {
        self.link_goodput_bps().is_some_and(|link| (0.95..=1.03).contains(&(self.base.goodput_bps / link)))
    }

    /// Goodput of windows of `bytes` on each stream, each once in the RTT.
    pub fn window_bps(&self, bytes: f64) -> Option<f64> {
        let streams = self.base.streams as f64;
        Some(streams * bytes * 8.0 / (self.window_rtt_us()? / 1e6))
    }

    /// The RTT that a window takes at least: the smallest, or the lowest that it usually was where single packets overtook others.
    pub fn window_rtt_us(&self) -> Option<f64> {
        // Never above that of the idle path: a queue that stands takes windows along.
        let idle_us = self.profile.as_ref().and_then(|profile| profile.shape.idle_rtt_us).map(|rtt| rtt.median);
        Some(self.min_rtt_us?.max(idle_us.zip(self.base.low_srtt_us).map_or(0.0, |(idle, low)| low.min(idle))))
    }

    /// How much of the time the receiver's window held the sender back: by TCP's limited-time counters or, where their jiffies
    /// are too coarse (round trips of a few milliseconds, pacing), by the samples that found the window full.
    pub fn held_by_window(&self) -> Option<f64> {
        let Some(known) = self.base.shares else { return self.window_explains() };
        Some(shares::held(known.receive_window, self.base.window_full_share, known.send_buffer))
    }

    /// The same for the send buffer.
    pub fn held_by_buffer(&self) -> Option<f64> {
        let known = self.base.shares?;
        Some(shares::held(known.send_buffer, self.buffer_full(), known.receive_window))
    }

    /// The samples that found the send buffer full, as a share. A buffer well below the congestion window, which may still grow and in which
    /// no writer ever waited, was never full: the kernel gives one that finds no room twice that window
    /// (`net/ipv4/tcp_input.c`, `tcp_sndbuf_expand`), so what it holds is what the writer put there.
    fn buffer_full(&self) -> Option<f64> {
        let base = &self.base;
        let free = base.send_locked == Some(false)
            && !self.has_largest_buffer
            && base.shares.is_some_and(|shares| shares.send_buffer < 0.01)
            && base.sndbuf_bytes.zip(base.cwnd_bytes).is_some_and(|(buffer, window)| buffer < 0.75 * window);
        base.buffer_full_share.map(|share| if free { 0.0 } else { share })
    }

    /// How much of the time the sending application offered less than the connection took: the time with nothing to send or,
    /// where small writes keep TCP's clock of busy time running, the samples that found more than half of the send buffer
    /// unused, or the kernel itself waiting for the application. In the lab's scenarios a writer that was always ready and had a core
    /// to run on left so much room in 5 % of the samples at most (with a buffer of 48 KiB; else in none); one that waits for a full
    /// machine leaves it, too.
    pub fn writer_behind(&self) -> Option<f64> {
        let idle = 1.0 - self.base.shares?.busy;
        let room = self.base.buffer_room_share.filter(|share| self.ends_by_time() && *share > 0.5);
        Some(idle.max(room.unwrap_or(0.0)).max(self.starved().unwrap_or(0.0)))
    }

    /// Whether the load ends by time: one that ends by bytes has nothing more to write at its end.
    pub const fn ends_by_time(&self) -> bool {
        matches!(self.load.limit, narrows_model::Limit::DurationMs(_))
    }

    /// How often the kernel waited for the application, where it did so mostly and not for room in the send buffer.
    pub fn starved(&self) -> Option<f64> {
        // Without the samples of the buffer a full one cannot be told from a slow writer.
        let buffer = self.held_by_buffer()?.max(self.buffer_full()?);
        self.base.starved_share.filter(|share| self.ends_by_time() && *share > 0.5 && buffer < 0.2)
    }

    /// How much the RTT grew under load: its median less the smallest one, microseconds.
    pub fn queue_us(&self) -> Option<f64> {
        Some((self.base.rtt_us? - self.min_rtt_us?).max(0.0))
    }

    /// Whether the RTT grew during the load, by a tenth and by half a millisecond at least, in a queue of the path or of a host.
    ///
    /// Half a millisecond is what a busy two-core host adds by scheduling alone.
    pub fn rtt_rose(&self) -> Option<bool> {
        self.is_rise(self.queue_us()?)
    }

    /// Whether a queue stood on the path during the load: the RTT rose, and by the profile it may have been the path.
    pub fn queue_stood(&self) -> Option<bool> {
        self.is_rise(self.path_wait().limits(self.queue_us()?))
    }

    /// A queue that stood, in words: one of the path where its profile shows that it is; else what TCP saw.
    pub fn queue_words(&self) -> String {
        let [least, loaded] = [self.min_rtt_us, self.base.rtt_us].map(|us| us.unwrap_or(0.0).round());
        let [rise, least, loaded] = [loaded - least, least, loaded].map(|us| units::micros(us.max(0.0) as u64));
        let seen = if self.path_wait() == PathWait::Any { "a queue of" } else { "an RTT that rose by" };
        let at = if self.path_wait() == PathWait::Any { " on the path" } else { "" };
        format!("{seen} {rise}{at} (RTT {least} at least, {loaded} under load)")
    }

    fn is_rise(&self, us: f64) -> Option<bool> {
        Some(us >= 500.0 && us >= 0.1 * self.min_rtt_us?)
    }

    /// Whether not even the overshoot of slow start found a queue: the RTT never rose by as much as sixteen packets take at the
    /// measured rate. Links have more of a queue than that; a policer has none. `None` where sixteen packets take less
    /// than a millisecond, which scheduling hides.
    pub fn never_queued(&self) -> Option<bool> {
        let sixteen_us = 16.0 * 1538.0 * 8.0 / self.base.goodput_bps * 1e6;
        let rise = self.base.rtt_peak_us? - self.min_rtt_us?;
        (sixteen_us.is_finite() && sixteen_us >= 1_000.0).then_some(rise < sixteen_us)
    }

    /// Whether a queue was seen at all: it stood, or the RTT once rose by five milliseconds (more than a busy host's scheduling
    /// adds) and by a tenth. BBR fills a queue in its first second and then keeps it empty.
    pub fn queue_seen(&self) -> Option<bool> {
        let rise = self.base.rtt_peak_us? - self.min_rtt_us?;
        Some(self.queue_stood()? || (rise >= 5_000.0 && rise >= 0.1 * self.min_rtt_us?))
    }

    /// Whether a queue filled now and then, by a millisecond at least, though it may not have stood: a switch with a
    /// short buffer on a long path does that at capacity.
    pub fn queue_filled_at_times(&self) -> Option<bool> {
        Some(self.base.rtt_high_us? - self.min_rtt_us? >= SHORT_QUEUE_US)
    }

    /// Whether the load filled the path nearly each time that it was told to slow down, by loss or by a mark: what was in flight made
    /// up the measured capacity and had begun to wait. `None` where no queue of that capacity is known, where UDP was lost below it as
    /// well, or where there was no such time.
    pub fn slowed_by_queue(&self) -> Option<bool> {
        let shape = &self.profile.as_ref()?.shape;
        if shape.plateau.is_none() || self.policed() || shape.loses_below() {
            return None;
        }
        let (signals, jitter_us) = (&self.base.signals, shape.jitter_us);
        let (share_bps, least_us) = (self.capacity_goodput_bps()? / float(self.base.streams as u64), self.min_rtt_us?);
        let waits_us = SHORT_QUEUE_US.max(3.0 * jitter_us);
        let full = |signal: &&Signal| {
            !signal.timeout && signal.bps >= AT_CAPACITY * share_bps && signal.rtt_us - least_us >= waits_us
        };
        let count = signals.iter().filter(full).count();
        (!signals.is_empty()).then(|| 5 * count >= 4 * signals.len())
    }

    /// How far the RTT had risen where segments were lost, microseconds: what was done about the loss raises it, too.
    pub fn rise_before_loss_us(&self) -> Option<f64> {
        Some(self.base.loss?.rtt_before_us? as f64 - self.min_rtt_us?)
    }
}

/// TCP in its steady state carries this part of what a path sustains, and more: a loss-based congestion control that finds a queue of
/// half a bandwidth-delay product falls below it only for a part of the time (RFC 9438, figure 1). Nothing that is mended then gives a
/// seventh more.
pub const AT_CAPACITY: f64 = 0.88;

/// A goodput of so many times the profile's capacity is not explained by it: the profile is of another moment, or the path treats UDP
/// in a way of its own.
pub const BEYOND: f64 = 1.08;

/// A bucket of so many bytes and more, and what it passes in the seconds of a load, as a part of its rate.
const DEEP: f64 = 262_144.0;
const BY_CREDIT: f64 = 1.25;

/// A tenth of the RTT samples lies this far above the smallest RTT where a short queue fills now and then.
pub const SHORT_QUEUE_US: f64 = 1_000.0;
