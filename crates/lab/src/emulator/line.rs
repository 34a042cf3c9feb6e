//! One direction of a path, as pure logic: a packet arrives at an instant and gets a departure time or a drop. No IO, no
//! clock.
//!
//! A packet passes, in this order: the MTU, random loss, burst loss, the policer, the queue and its rate, the delay with
//! jitter or reordering, corruption, duplication. Each segment of a super-packet counts as a packet. Segments that stay
//! together, and depart within [`COALESCE`] of each other, leave as one piece when the last bit of the last one is through,
//! as a NIC with interrupt coalescing and GRO would deliver them. So a slow rate does not bunch 64 KiB, and a fast one needs
//! no splitting.

use super::codel::CoDel;
use super::frame::Frame;
use super::gilbert_elliott::GilbertElliott;
use super::meter::{Meter, Nanos};
use super::queue::Queue;
use super::random::Random;
use narrows_model::lab::{Impairment, PathCounters};
use std::collections::VecDeque;

/// The maximum time that a piece may take on the wire.
pub const COALESCE: Nanos = 100_000;

/// Segments of one buffer that leave together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub slot: u32,
    pub first: u32,
    pub count: u32,
    /// IP bytes on the wire.
    pub bytes: u64,
    pub duplicate: bool,
    /// To be delivered with a flipped bit; such a piece is one packet.
    pub corrupt: bool,
}

/// Pieces in the order in which they leave.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<(Nanos, Piece)>,
    last: Nanos,
}

/// A piece that grows while consecutive segments stay together.
#[derive(Debug, Clone, Copy)]
struct Run {
    piece: Piece,
    began: Nanos,
    at: Nanos,
    overtakes: bool,
}

/// The state of one direction.
#[derive(Debug)]
pub struct Line {
    impairment: Impairment,
    random: Random,
    burst_loss: GilbertElliott,
    policer: Meter,
    rate: Meter,
    queue: Queue,
    codel: CoDel,
    /// When the queue is empty.
    empty_at: Nanos,
    /// Pieces that keep their order.
    main: Lane,
    /// Pieces that overtake the main lane.
    express: Lane,
    counters: PathCounters,
}

/// What happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Pieces that now wait; 0 = the buffer is free again.
    pub pieces: u32,
    /// The MTU, if some of it was too big and the sender must be notified.
    pub too_big: Option<u32>,
}

impl Line {
    /// An idle direction; the same seed and the same packets at the same instants give the same drops.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        let mut line = Self {
            impairment: Impairment::default(),
            random: Random::new(seed),
            burst_loss: GilbertElliott::default(),
            policer: Meter::new(1, 0),
            rate: Meter::new(1, 0),
            queue: Queue::default(),
            codel: CoDel::default(),
            empty_at: 0,
            main: Lane::default(),
            express: Lane::default(),
            counters: PathCounters::default(),
        };
        line.configure(impairment);
        line
    }

    /// Replaces the impairment from now on. Packets under way keep their time and order.
    pub fn configure(&mut self, impairment: Impairment) {
        self.rate.change(impairment.rate_bps, impairment.burst_bytes);
        self.policer.change(impairment.police_bps, impairment.police_burst_bytes);
        self.queue.limit(impairment.queue_packets, impairment.queue_bytes);
        self.impairment = impairment;
    }

    /// The counters so far.
    pub fn counters(&self) -> PathCounters {
        PathCounters { queue_bytes_max: self.queue.bytes_max(), ..self.counters }
    }

    /// Accepts the frame in `slot`.
    pub fn accept(&mut self, now: Nanos, slot: u32, frame: &Frame) -> Accepted {
        self.queue.advance(now);
        let mut accepted = Accepted { pieces: 0, too_big: None };
        let mut run: Option<Run> = None;
        for index in 0..frame.segments {
            let bytes = frame.segment_bytes(index);
            self.counters.taken_packets += 1;
            self.counters.taken_bytes += u64::from(bytes);
            let Some(through) = self.enter(now, bytes, &mut accepted) else {
                self.flush(&mut run, &mut accepted);
                continue;
            };
            let (at, overtakes) = self.depart(through);
            self.counters.waiting_packets += 1;
            let corrupt = self.random.chance(self.impairment.corrupt);
            let piece = Piece { slot, first: index, count: 1, bytes: u64::from(bytes), duplicate: false, corrupt };
            let alone = corrupt || self.impairment.single_packets;
            match &mut run {
                Some(run) if !alone && run.overtakes == overtakes && at - run.began <= COALESCE => {
                    run.piece.count += 1;
                    run.piece.bytes += u64::from(bytes);
                    run.at = at;
                }
                _ => {
                    self.flush(&mut run, &mut accepted);
                    run = Some(Run { piece, began: at, at, overtakes });
                }
            }
            if alone {
                self.flush(&mut run, &mut accepted);
            }
            if self.random.chance(self.impairment.duplicate) {
                self.flush(&mut run, &mut accepted);
                let copy = Piece { duplicate: true, ..piece };
                self.flush(&mut Some(Run { piece: copy, began: at, at, overtakes }), &mut accepted);
            }
        }
        self.flush(&mut run, &mut accepted);
        accepted
    }

    /// Counts a frame that there was no memory for as a drop of the queue.
    pub fn refuse(&mut self, frame: &Frame) {
        self.counters.taken_packets += u64::from(frame.segments);
        self.counters.taken_bytes += frame.wire_bytes(0, frame.segments);
        self.counters.dropped_queue += u64::from(frame.segments);
    }

    /// Up to the end of the rate: the instant at which the packet is through, or `None` if it was dropped.
    fn enter(&mut self, now: Nanos, bytes: u32, accepted: &mut Accepted) -> Option<Nanos> {
        let path = &self.impairment;
        if path.mtu > 0 && bytes > path.mtu {
            self.counters.dropped_mtu += 1;
            accepted.too_big = path.mtu_icmp.then_some(path.mtu);
            return None;
        }
        let (each, out) = (path.outage_each_us.saturating_mul(1000), path.outage_us.saturating_mul(1000));
        if each > 0 && now % each < out {
            self.counters.dropped_loss += 1;
            return None;
        }
        let (enter, leave, loss) = (path.burst_loss_enter, path.burst_loss_leave, path.burst_loss);
        if self.random.chance(path.loss) || self.burst_loss.loses(&mut self.random, enter, leave, loss) {
            self.counters.dropped_loss += 1;
            return None;
        }
        let wire = bytes.saturating_add(path.overhead_bytes);
        if path.police_bps > 0 && !self.policer.police(now, u64::from(wire)) {
            self.counters.dropped_policer += 1;
            return None;
        }
        if path.rate_bps == 0 {
            return Some(now);
        }
        if !self.queue.has_room(wire) {
            self.counters.dropped_queue += 1;
            return None;
        }
        // A queue of a fixed rate knows on arrival how long a packet will stay.
        let stay = self.empty_at.saturating_sub(now);
        if path.codel && self.codel.drops(now + stay, stay) {
            self.counters.dropped_queue += 1;
            return None;
        }
        let through = self.rate.pass(now, u64::from(wire));
        self.empty_at = through;
        if through > now {
            self.queue.push(through, wire);
        }
        Some(through)
    }

    /// After the rate: the instant of departure, and whether the packet overtakes.
    fn depart(&mut self, through: Nanos) -> (Nanos, bool) {
        let delay = self.impairment.delay_us.saturating_mul(1000);
        let jitter = self.impairment.jitter_us.saturating_mul(1000);
        let skips = delay + jitter > 0 && self.random.chance(self.impairment.reorder);
        let wanted = match jitter {
            _ if skips => through,
            0 => through.saturating_add(delay),
            most => through.saturating_add(delay).saturating_add(self.random.up_to(most)),
        };
        let gather = self.impairment.gather_us.saturating_mul(1000);
        let wanted = if gather == 0 { wanted } else { wanted.checked_next_multiple_of(gather).unwrap_or(wanted) };
        let lane = if skips { &mut self.express } else { &mut self.main };
        let at = wanted.max(lane.last);
        lane.last = at;
        if skips && at < self.main.last {
            self.counters.reordered += 1;
        }
        (at, skips)
    }

    fn flush(&mut self, run: &mut Option<Run>, accepted: &mut Accepted) {
        if let Some(run) = run.take() {
            let lane = if run.overtakes { &mut self.express } else { &mut self.main };
            lane.waiting.push_back((run.at, run.piece));
            accepted.pieces += 1;
        }
    }

    /// The instant at which the next piece leaves.
    pub fn next_departure(&self) -> Option<Nanos> {
        let front = |lane: &Lane| lane.waiting.front().map(|(at, _)| *at);
        match (front(&self.main), front(&self.express)) {
            (Some(main), Some(express)) => Some(main.min(express)),
            (main, express) => main.or(express),
        }
    }

    /// The next piece that has left by `now`; it counts as delivered.
    pub fn depart_by(&mut self, now: Nanos) -> Option<Piece> {
        let due = self.next_departure().filter(|at| *at <= now)?;
        let main = self.main.waiting.front().is_some_and(|(at, _)| *at == due);
        let lane = if main { &mut self.main } else { &mut self.express };
        let (_, piece) = lane.waiting.pop_front()?;
        self.counters.corrupted += u64::from(piece.corrupt);
        if piece.duplicate {
            self.counters.duplicated += u64::from(piece.count);
        } else {
            self.counters.waiting_packets -= u64::from(piece.count);
            self.counters.delivered_packets += u64::from(piece.count);
            self.counters.delivered_bytes += piece.bytes;
        }
        Some(piece)
    }

    /// Reverts a delivery that the receiving device refused.
    pub fn refused_by_device(&mut self, piece: &Piece) {
        self.counters.corrupted -= u64::from(piece.corrupt);
        if piece.duplicate {
            self.counters.duplicated -= u64::from(piece.count);
        } else {
            self.counters.delivered_packets -= u64::from(piece.count);
            self.counters.delivered_bytes -= piece.bytes;
            self.counters.dropped_device += u64::from(piece.count);
        }
    }
}
