//! Which step of a path profile comes next. No clock and no socket: the caller says what time it is and what each step showed.

use super::shape::{base_delay_ns, jitter_us};
use super::step_view::StepView;
use narrows_model::{ProfilePlan, ProfileProbe, ProfileStep, StepRecord};

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait, so that the queue of the last step drains, then send this step.
    Step {
        step: ProfileStep,
        /// How long to wait first.
        wait_ns: u64,
    },
    /// Nothing more to learn, or no time left.
    Done,
}

/// Trains of datagrams back to back at the beginning: their spacing on arrival shows the rate of the slowest link, past any bucket of
/// tokens.
const TRAINS: usize = 4;
/// Datagrams of a train: fewer than common buckets and queues hold.
const TRAIN: u32 = 10;
/// How far the next rate goes up while nothing is near …
const FAR: f64 = 2.0;
/// … and where the trains say that the limit is near, or nothing is known.
const NEAR: f64 = 1.4;
/// The rate of a step that holds the path just above what it delivers.
const ABOVE: f64 = 1.15;
/// The same where a bucket of tokens lets that much pass: it runs out sooner.
const WELL_ABOVE: f64 = 2.0;
const PLATEAU_STEPS: usize = 2;
/// The rate of the step just below, where only loss that no rate explains is left.
const BELOW: f64 = 0.85;
/// A step lasts this long at least, with this many datagrams at least, and so long at most.
const STEP_NS: u64 = 250_000_000;
const STEP_DATAGRAMS: u64 = 100;
const LONGEST_NS: u64 = 1_200_000_000;
/// A step that is to be exact.
const EXACT_NS: u64 = 400_000_000;
const EXACT_DATAGRAMS: u64 = 200;
/// Between two steps, so that stragglers and credit of the last one are gone.
const PAUSE_NS: u64 = 20_000_000;
/// Most buckets of tokens are full again after so long.
const REFILL_NS: u64 = 400_000_000;
/// Maximum pause between steps: waiting longer for a queue to drain does not help.
const LONGEST_PAUSE_NS: u64 = 2_000_000_000;

/// A queue of so many pauses of the sender is not emptied by one …
const OUTLASTS: f64 = 3.0;
/// … but others on the path wait no longer than this for it.
const LONGEST_QUEUE_US: f64 = 100_000.0;

/// A first step that a host could not send or receive is repeated at a quarter of its rate, down to this: bits a second.
const STARTS_AT_MOST: f64 = 20e6;

/// Steps of a profile that are made again because the sender was late.
const MAX_REPEATED: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    Trains(usize),
    Climb(f64),
    /// Half of the rate at which loss without a queue was seen first: does it stay?
    Half {
        lossy_bps: f64,
        loss: f64,
        passed_bps: f64,
    },
    /// Just above what was delivered.
    Plateau {
        left: usize,
        bps: f64,
    },
    Below(f64),
    /// After a pause, well above a rate that bursts may exceed: how much passes first.
    Bucket(f64),
    /// Trains that the bucket just lets pass: the rate of the link before it, more exact than short trains tell.
    LongTrains {
        left: usize,
        datagrams: u32,
        bps: f64,
    },
    Done,
}

#[derive(Debug, Clone)]
pub struct Staircase {
    plan: ProfilePlan,
    header_bytes: u32,
    datagram_bytes: u32,
    probes: Vec<ProfileProbe>,
    records: Vec<StepRecord>,
    phase: Phase,
    usual_loss: f64,
    /// The highest rate that the path kept up with.
    carried_bps: f64,
    /// The lowest rate at which a step ended, by its losses, before it showed what the path sustains.
    too_fast_bps: f64,
    queue_us: f64,
    lost_without_queue: bool,
    /// What was offered and what was delivered in the steps that the path did not keep up with.
    beyond: Vec<(f64, f64)>,
    /// Steps that were made again.
    repeated: u32,
    /// How often the last one was.
    again: u32,
    /// How often a plateau turned out to be none.
    mistaken: u32,
}

impl Staircase {
    /// The steps of a plan, in datagrams of this size, after these probes of the idle path.
    pub fn new(plan: &ProfilePlan, header_bytes: u32, datagram_bytes: u32, probes: &[ProfileProbe]) -> Self {
        Self {
            plan: plan.clone(),
            header_bytes,
            datagram_bytes,
            probes: probes.to_vec(),
            records: Vec::new(),
            phase: Phase::Trains(TRAINS),
            usual_loss: 0.0,
            carried_bps: 0.0,
            too_fast_bps: f64::MAX,
            queue_us: 0.0,
            lost_without_queue: false,
            beyond: Vec::new(),
            repeated: 0,
            again: 0,
            mistaken: 0,
        }
    }

    /// The next step, `at_ns` after the trial began.
    pub fn next(&self, at_ns: u64) -> Next {
        if at_ns >= self.plan.limit_ms * 1_000_000 {
            return Next::Done;
        }
        let drain_ns = (self.queue_us * 1_300.0) as u64;
        let pause_ns = match self.phase {
            Phase::Bucket(_) => REFILL_NS,
            Phase::LongTrains { datagrams, bps, .. } => (REFILL_NS / 4)
                .saturating_add((1.5e9 * f64::from(datagrams) * self.packet_bits() / bps.max(1.0)) as u64),
            _ => PAUSE_NS,
        };
        let wait_ns = drain_ns.saturating_add(pause_ns).min(LONGEST_PAUSE_NS);
        let step = match self.phase {
            Phase::Trains(_) => self.train(TRAIN),
            Phase::LongTrains { datagrams, .. } => self.train(datagrams),
            Phase::Climb(bps) => self.step(bps, STEP_NS, STEP_DATAGRAMS),
            Phase::Half { lossy_bps, .. } => self.step(0.5 * lossy_bps, EXACT_NS, EXACT_DATAGRAMS),
            Phase::Plateau { bps, .. } => self.step(self.above() * bps, EXACT_NS, EXACT_DATAGRAMS),
            Phase::Below(bps) => ProfileStep { stop_above_us: 0, ..self.step(BELOW * bps, EXACT_NS, EXACT_DATAGRAMS) },
            Phase::Bucket(bps) => self.step(WELL_ABOVE * bps, STEP_NS, STEP_DATAGRAMS),
            Phase::Done => return Next::Done,
        };
        Next::Step { step, wait_ns }
    }

    fn train(&self, datagrams: u32) -> ProfileStep {
        ProfileStep { datagrams, gap_ns: 0, stop_above_us: 0, ..self.step(1.0, 0, 1) }
    }

    fn packet_bits(&self) -> f64 {
        f64::from(self.datagram_bytes + self.header_bytes) * 8.0
    }

    fn step(&self, bps: f64, least_ns: u64, datagrams: u64) -> ProfileStep {
        let bits = self.packet_bits();
        let bps = bps.clamp(ProfilePlan::MIN_BPS as f64, self.plan.max_bps as f64);
        let gap_ns = ((bits * 1e9 / bps).ceil() as u64).max(1);
        let long_ns = (datagrams * gap_ns).clamp(least_ns, LONGEST_NS);
        let count = (long_ns / gap_ns).clamp(10, ProfilePlan::MAX_DATAGRAMS.into());
        ProfileStep {
            id: u16::try_from(self.records.len() + 1).unwrap_or(u16::MAX),
            datagrams: u32::try_from(count).unwrap_or(ProfilePlan::MAX_DATAGRAMS),
            datagram_bytes: self.datagram_bytes,
            gap_ns,
            stop_above_us: self.stop_above_us(),
        }
    }

    /// A queue that ends a step: well above what the idle path varies by, so that others on the path are not held up for long; after steps
    /// of a late sender one that outlasts its pauses.
    fn stop_above_us(&self) -> u32 {
        let late_ns = self.records.iter().rev().take(3).map(|record| record.sent.late_ns).max().unwrap_or(0);
        let outlasts_us = (OUTLASTS * late_ns as f64 / 1e3).min(LONGEST_QUEUE_US);
        (3.0 * jitter_us(&self.probes, self.plan.direction)).max(outlasts_us).clamp(8_000.0, 500_000.0) as u32
    }

    /// The rate of the slowest link by the trains, where they agree with each other.
    fn train_bps(&self) -> Option<f64> {
        super::trains::arrived_bps(&self.records, self.header_bytes).map(|(bps, _)| bps)
    }

    /// Takes what a step showed.
    pub fn observe(&mut self, record: StepRecord) {
        self.records.push(record);
        let base = base_delay_ns(&self.probes, &self.records, self.plan.direction, self.datagram_bytes);
        let view = self.records.last().and_then(|record| StepView::of(record, self.header_bytes, base));
        let Some(view) = view else {
            // Nothing arrived, or the account of it was lost: once more, at half of the rate.
            self.queue_us = 100_000.0;
            let failed = self.records.iter().rev().take_while(|record| record.received.is_none()).count();
            self.phase = match self.phase {
                _ if failed >= 3 => Phase::Done,
                Phase::Trains(left) if left > 1 => Phase::Trains(left - 1),
                Phase::Climb(bps) if self.carried_bps == 0.0 => Phase::Climb(0.5 * bps),
                Phase::Climb(_) | Phase::LongTrains { .. } | Phase::Done => Phase::Done,
                Phase::Trains(_) => Phase::Climb(self.start_bps()),
                other => other,
            };
            return;
        };
        self.queue_us = view.queue_us;
        let saturated = view.saturated(self.usual_loss);
        if !saturated && !view.is_train && !view.disturbed && !view.unsettled {
            self.carried_bps = self.carried_bps.max(view.sustained_bps.min(view.offered_bps));
        }
        if view.saturated(0.0) && !view.disturbed && !view.unsettled {
            self.beyond.push(view.offered_and_delivered());
        }
        self.phase = self.after(&view, saturated);
    }

    fn after(&mut self, view: &StepView, saturated: bool) -> Phase {
        let queued = view.queue_us > self.queue_from_us(view);
        // A busy host was late with it: once more, though a host that cannot send so fast is late each time.
        if view.disturbed && self.again < 2 && self.repeated < MAX_REPEATED {
            self.again += 1;
            self.repeated += 1;
            return self.phase;
        }
        self.again = 0;
        if let Phase::Climb(bps) = self.phase
            && view.host_too_slow()
            && !view.far_behind()
            && self.carried_bps == 0.0
            && bps > STARTS_AT_MOST
        {
            return Phase::Climb(0.25 * bps);
        }
        match self.phase {
            Phase::Trains(left) if left > 1 => Phase::Trains(left - 1),
            Phase::Trains(_) => Phase::Climb(self.start_bps()),
            Phase::Climb(_) if view.unsettled && view.lost >= 30 && 0.5 * view.offered_bps > self.carried_bps => {
                self.too_fast_bps = self.too_fast_bps.min(view.offered_bps);
                let down_bps = (0.25 * view.offered_bps).max((self.carried_bps * view.offered_bps).sqrt());
                Phase::Climb(down_bps)
            }
            Phase::Climb(bps) if !saturated => self.further(bps, view),
            Phase::Climb(_) => {
                self.lost_without_queue = !queued;
                if !queued && self.carried_bps == 0.0 && !view.unsettled {
                    return Phase::Half {
                        lossy_bps: view.offered_bps,
                        loss: view.loss(),
                        passed_bps: view.sustained_bps,
                    };
                }
                Phase::Plateau { left: PLATEAU_STEPS, bps: view.sustained_bps }
            }
            // The same part is lost at half of the rate, and half as much passes: it is no limit of the rate.
            Phase::Half { lossy_bps, loss, passed_bps }
                if !view.unsettled && view.loss() > 0.5 * loss && view.sustained_bps < 0.75 * passed_bps =>
            {
                self.usual_loss = view.loss();
                self.carried_bps = view.offered_bps;
                Phase::Climb(NEAR * lossy_bps)
            }
            Phase::Half { passed_bps, .. } => Phase::Plateau { left: PLATEAU_STEPS, bps: passed_bps },
            // The path carried more than it seemed: a bucket was not empty yet, or it changed.
            Phase::Plateau { bps, .. } if !saturated && self.mistaken < 3 => {
                let tried_bps = self.above() * bps;
                self.mistaken += 1;
                self.further(tried_bps, view)
            }
            Phase::Plateau { left, .. } if left > 1 => Phase::Plateau { left: left - 1, bps: view.sustained_bps },
            Phase::Plateau { .. } => {
                self.lost_without_queue = !queued;
                Phase::Below(view.sustained_bps)
            }
            Phase::Below(bps) if self.lost_without_queue || self.bursts_may_pass(bps) => Phase::Bucket(bps),
            Phase::Bucket(bps) => self.long_trains(view, bps),
            Phase::LongTrains { left, datagrams, bps } if left > 1 => {
                Phase::LongTrains { left: left - 1, datagrams, bps }
            }
            Phase::Below(_) | Phase::LongTrains { .. } | Phase::Done => Phase::Done,
        }
    }

    const fn above(&self) -> f64 {
        if self.mistaken > 0 || self.too_fast_bps < f64::MAX { WELL_ABOVE } else { ABOVE }
    }

    /// Whether it is worth looking for a bucket of tokens, or for others in the queue.
    fn bursts_may_pass(&self, bps: f64) -> bool {
        super::trains::credit(&self.records, self.header_bytes, bps, 0.0) != Some(false)
            || super::shape::gives_way(&self.beyond)
    }

    /// Trains of what passed of a step after a pause.
    fn long_trains(&self, view: &StepView, bps: f64) -> Phase {
        let passed = if self.lost_without_queue { view.before_loss } else { view.before_queue };
        let bucket = (0.7 * view.bucket_bytes(passed, bps, 0.0) * 8.0 / view.packet_bits) as u32;
        let datagrams = bucket.min(ProfileStep::MAX_TRAIN);
        if datagrams < TRAIN * 3 / 2 {
            return Phase::Done;
        }
        Phase::LongTrains { left: TRAINS, datagrams, bps }
    }

    /// A queue of so many microseconds is one: more than the idle path varies by, and more than two packets take.
    fn queue_from_us(&self, view: &StepView) -> f64 {
        let packets_us = 3.0 * view.packet_bits / view.sustained_bps.max(1.0) * 1e6;
        (3.0 * jitter_us(&self.probes, self.plan.direction)).max(packets_us).max(300.0)
    }

    fn further(&self, bps: f64, view: &StepView) -> Phase {
        if view.host_too_slow() || bps >= 0.99 * self.plan.max_bps as f64 {
            return Phase::Done;
        }
        let near = self.train_bps().is_none_or(|train| FAR * bps > 0.75 * train);
        let next_bps = (bps * if near { NEAR } else { FAR }).min((bps * self.too_fast_bps).sqrt());
        if next_bps < 1.05 * bps { Phase::Plateau { left: PLATEAU_STEPS, bps } } else { Phase::Climb(next_bps) }
    }

    /// Half of what the trains say where that is far above what is known: steps at low rates take long and tell little.
    fn start_bps(&self) -> f64 {
        let known = self.plan.start_bps as f64;
        let far = self.train_bps().filter(|train| 0.25 * train > known);
        far.map_or(known, |train| 0.5 * train)
    }
}
