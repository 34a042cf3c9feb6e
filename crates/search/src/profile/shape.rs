//! What the steps of a profile show of the path.

use super::step_view::{FILLS_US, KEEPS_UP, LOSES, StepView};
use super::trains;
use narrows_model::{Direction, ProfileEndRecord, ProfilePlan, ProfileProbe, StepRecord};

/// How a quantity spreads, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub min: f64,
    pub median: f64,
    /// Its 95th percentile.
    pub p95: f64,
}

/// The rate that the path sustains: bits of IP packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    pub bps: f64,
    /// What the steps allow.
    pub interval_bps: [f64; 2],
}

impl Capacity {
    /// What others leave of a queue: what is sent above that takes its share from them, and seems to be carried.
    fn beside(self, shared: Shared, carried_bps: f64) -> Self {
        let [low, _] = self.interval_bps;
        let left_bps = shared.left_bps().max(carried_bps);
        if left_bps <= 0.0 || left_bps >= self.bps {
            return self;
        }
        Self { bps: left_bps, interval_bps: [low * left_bps / self.bps, self.bps] }
    }
}

/// A queue that others fill, too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shared {
    /// The rate of the link behind it …
    pub link_bps: f64,
    /// … and what the others send into it, whatever the profile sends: bits of IP packets a second.
    pub others_bps: f64,
}

impl Shared {
    /// What the others leave.
    pub fn left_bps(&self) -> f64 {
        (self.link_bps - self.others_bps).max(0.0)
    }
}

/// What happens to what exceeds the capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plateau {
    /// It waits in a queue, then it is dropped: an ordinary bottleneck.
    Queue,
    /// It waits in a queue, but so many bytes pass first at a higher rate.
    Shaper {
        /// Minimum bucket depth: the steps see only what earlier load left in it and what refilled since.
        bucket_bytes: f64,
    },
    /// It is dropped at once, though single bursts pass at a higher rate.
    Policer {
        /// Depth of the bucket, at least.
        bucket_bytes: f64,
    },
    /// It is dropped after a queue that is too short to see.
    ShortQueue,
}

/// What was sent, evenly paced, at rates below one, and how much of it was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Below {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// The same, where losses in a row count once.
    pub events: u64,
}

impl Below {
    /// The part that was lost.
    pub fn loss(self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Round trips of short probes on the idle path.
    pub idle_rtt_us: Option<Spread>,
    /// Variation of the one-way delay of the idle path above its least, in the direction of the profile: 90th percentile.
    pub jitter_us: f64,
    /// What the path sustains, where a step went beyond it.
    pub capacity: Option<Capacity>,
    /// What happens beyond it.
    pub plateau: Option<Plateau>,
    /// Who else fills the queue, where that shows: the capacity is what they leave.
    pub shared: Option<Shared>,
    /// The highest rate that the path kept up with.
    pub carried_bps: f64,
    /// Whether a host, and not the path, ended the steps: it could not send more, or dropped what arrived.
    pub host_limited: bool,
    /// The longest queue, microseconds.
    pub queue_us: f64,
    /// Datagrams sent at rates that the path carries …
    pub sent_below: u64,
    /// … and those of them that were lost.
    pub lost_below: u64,
    /// The same, where losses in a row count once …
    pub loss_events_below: u64,
    /// … and the steps that had any.
    pub lossy_steps_below: u64,
    /// Rate at which short bursts pass the idle path …
    pub burst_bps: Option<f64>,
    /// … and whether the path slowed them: what passes as it was sent only bounds the rate from below.
    pub burst_slowed: bool,
    /// Of all datagrams that arrived, those after a later one, and those that came twice.
    pub reordered: f64,
    pub duplicated: f64,
    /// Whether the receiver told totals alone: neither which datagrams were lost nor in which order they came is known.
    pub by_totals: bool,
    /// Every step but the trains, in order of time.
    pub steps: Vec<StepView>,
}

impl Shape {
    /// The shape of a profile; `None` where no step was seen at both ends.
    pub fn of(plan: &ProfilePlan, record: &ProfileEndRecord) -> Option<Self> {
        let base = base_delay_ns(&record.probes, &record.steps, plan.direction, record.datagram_bytes);
        let views = || record.steps.iter().filter_map(|step| StepView::of(step, record.header_bytes, base));
        let steps: Vec<StepView> = views().filter(|view| !view.is_train).collect();
        if steps.is_empty() {
            return None;
        }
        let trains = trains::arrived_bps(&record.steps, record.header_bytes);
        let jitter_us = jitter_us(&record.probes, plan.direction);
        let all = steps;
        // A sender that was late sent bursts of it, at a rate that nobody knows.
        let mut steps: Vec<StepView> = all.iter().filter(|view| !view.disturbed).copied().collect();
        if !steps.iter().any(|view| view.saturated(0.0)) {
            steps.extend(agreeing(&all, &steps));
        }
        // A sender that was late adds losses and hides none, so its steps bound the loss at any rate, too. Behind a long queue what was lost
        // had no room there.
        let few = |view: &&StepView| view.sent >= FEW && view.queue_us <= 3.0 * jitter_us + LONG_US;
        let usual_loss = all.iter().filter(few).map(StepView::loss).reduce(f64::min).unwrap_or(0.0);
        let capacity = capacity(&sustaining(&steps, usual_loss), usual_loss);
        let carried = steps.iter().filter(|view| !view.saturated(usual_loss) && !view.unsettled);
        let kept_up_bps = carried.clone().map(|view| view.offered_bps).fold(0.0, f64::max);
        let passed_bps = carried.map(|view| view.sustained_bps.min(view.offered_bps)).fold(0.0, f64::max);
        let near_us: Vec<f64> = near(&steps, capacity, usual_loss).map(|view| view.queue_us).collect();
        let longest_queue_us = near_us.into_iter().fold(0.0, f64::max);
        // What a whole step passed at, a burst does, too: trains may have met an empty bucket.
        let burst_bps = trains.map(|(bps, _)| bps.max(passed_bps));
        let by_totals = trains::is_by_totals(&record.steps);
        let plateau = capacity.and_then(|capacity| {
            let credit = trains::credit(&record.steps, record.header_bytes, capacity.bps, jitter_us);
            let train = trains.filter(|_| by_totals).map(|(_, datagrams)| f64::from(datagrams));
            plateau(&steps, usual_loss, capacity, credit, jitter_us, by_totals.then(|| train.unwrap_or(0.0)))
        });
        let shared = shared(&steps);
        let capacity = capacity.map(|capacity| shared.map_or(capacity, |shared| capacity.beside(shared, passed_bps)));
        // What a bucket of tokens let pass is not sustained.
        let carried_bps = capacity.map_or(passed_bps, |capacity| passed_bps.min(capacity.bps));
        // Where no limit is known, the path carries what it kept up with.
        let below_bps = capacity.map_or(1.01 * kept_up_bps, |capacity| 0.93 * capacity.interval_bps[0]);
        let below = || steps.iter().filter(|view| view.offered_bps < below_bps);
        let arrived = || record.steps.iter().filter_map(|step| step.received.as_ref());
        let total: u64 = arrived().map(|received| u64::from(received.datagrams)).sum();
        let part = |count: u64| count as f64 / total.max(1) as f64;
        let rtts: Vec<f64> = record.probes.iter().map(|probe| probe.rtt_ns as f64 / 1e3).collect();
        let least = |p| narrows_stats::quantile(&rtts, p);
        Some(Self {
            idle_rtt_us: least(0.0).zip(least(0.5)).zip(least(0.95)).map(|((min, median), p95)| Spread {
                min,
                median,
                p95,
            }),
            jitter_us,
            plateau,
            shared,
            capacity,
            carried_bps,
            host_limited: steps.is_empty() || all.iter().any(StepView::host_too_slow),
            queue_us: longest_queue_us,
            sent_below: below().map(|view| u64::from(view.sent)).sum(),
            lost_below: below().map(|view| u64::from(view.lost)).sum(),
            loss_events_below: below().map(|view| u64::from(view.loss_events)).sum(),
            lossy_steps_below: below().map(|view| u64::from(view.lost > 0)).sum(),
            burst_bps,
            burst_slowed: trains.is_some_and(|(bps, length)| {
                let sent_bps = trains::sent_bps(&record.steps, record.header_bytes, length);
                let slowed = bps >= passed_bps && bps < SLOWED * sent_bps.unwrap_or_else(|| any_host_bps(&all));
                slowed && trains::agree(&record.steps, length)
            }),
            reordered: part(arrived().map(|received| u64::from(received.reordered)).sum()),
            duplicated: part(arrived().map(|received| u64::from(received.duplicates)).sum()),
            by_totals,
            steps: all,
        })
    }

    /// The same where counters say that a host dropped what the steps lost: nothing is known of the path beyond what it carried.
    pub fn limited_by_host(self) -> Self {
        // What arrived was carried, whatever held back the rest.
        let delivered =
            self.steps.iter().filter(|view| !view.unsettled).map(|view| view.sustained_bps.min(view.offered_bps));
        Self {
            carried_bps: delivered.fold(self.carried_bps, f64::max),
            capacity: None,
            plateau: None,
            shared: None,
            host_limited: true,
            sent_below: 0,
            lost_below: 0,
            loss_events_below: 0,
            lossy_steps_below: 0,
            ..self
        }
    }

    /// Losses that lie apart: on average no more than so many are lost in a row.
    pub const BUNCH: u64 = 4;
    /// Twice what a sender of a profile catches up in one burst after it was late (1.5 ms): a queue that holds so much is not overflowed
    /// below its rate.
    const CATCH_UP_US: f64 = 3_000.0;

    /// Whether datagrams were lost again and again at rates that the path carries. Many at one moment are lost by a host that was stopped,
    /// and by the burst that follows: losses in longer runs must be in several steps, and no burst may be what overflowed a queue.
    pub const fn loses_below(&self) -> bool {
        let apart = self.lost_below <= Self::BUNCH * self.loss_events_below;
        let overflows = self.capacity.is_some() && self.queue_us < Self::CATCH_UP_US;
        self.loss_events_below >= 3 && (apart || (self.lossy_steps_below >= 2 && !overflows))
    }

    /// Whether more was delivered the more was offered beyond the capacity: others in the queue gave way.
    pub fn gives_way(&self) -> bool {
        let Some(capacity) = self.capacity else { return false };
        let beyond = self.steps.iter().filter(|view| !view.disturbed && view.offered_bps > capacity.bps);
        gives_way(&beyond.map(|view| (view.offered_bps, view.delivered_bps())).collect::<Vec<_>>())
    }

    /// How many are lost in a row at rates that the path carries, on average; 1 where none is.
    pub fn run_below(&self) -> f64 {
        (self.lost_below as f64 / self.loss_events_below.max(1) as f64).max(1.0)
    }

    /// The step in which the path carried nothing for the longest time, where there is one.
    pub fn longest_outage(&self) -> Option<&StepView> {
        let outages = self.steps.iter().filter(|view| view.outage_us > 0.0);
        outages.max_by(|a, b| a.outage_us.total_cmp(&b.outage_us))
    }

    /// What was sent at rates that the path carries.
    pub const fn below(&self) -> Below {
        Below { sent: self.sent_below, lost: self.lost_below, events: self.loss_events_below }
    }

    /// What was sent at rates of up to `part` of the capacity.
    pub fn well_below(&self, part: f64) -> Below {
        let below_bps = self.capacity.map_or(f64::MAX, |capacity| part * capacity.bps);
        let steps = self.steps.iter().filter(|view| !view.disturbed && view.offered_bps < below_bps);
        steps.fold(Below::default(), |sum, view| Below {
            sent: sum.sent + u64::from(view.sent),
            lost: sum.lost + u64::from(view.lost),
            events: sum.events + u64::from(view.loss_events),
        })
    }

    /// The part of datagrams that is lost at rates that the path carries.
    pub fn loss_below(&self) -> f64 {
        self.lost_below as f64 / self.sent_below.max(1) as f64
    }
}

/// The steps of a late sender in which far less arrived than it sent, where there are two at least, they agree, and no other step carried
/// more.
fn agreeing(all: &[StepView], others: &[StepView]) -> Vec<StepView> {
    let behind: Vec<StepView> = all.iter().filter(|view| view.far_behind()).copied().collect();
    let rates: Vec<f64> = behind.iter().map(|view| view.sustained_bps).collect();
    let (Some(middle), true) = (narrows_stats::quantile(&rates, 0.5), rates.len() >= 2) else { return Vec::new() };
    let agree = rates.iter().all(|rate| (rate / middle - 1.0).abs() <= 0.15);
    let carried = others.iter().any(|view| view.sustained_bps.min(view.offered_bps) > 1.05 * middle);
    if agree && !carried { behind } else { Vec::new() }
}

/// The least delay of datagrams of this size, by two clocks: of the idle probes and of all steps.
pub(super) fn base_delay_ns(probes: &[ProfileProbe], steps: &[StepRecord], way: Direction, bytes: u32) -> i64 {
    let large = probes.iter().filter(|probe| probe.bytes == bytes).map(|probe| one_way(probe, way));
    let steps = steps.iter().filter(|record| record.step.datagram_bytes == bytes);
    let steps = steps.filter_map(|record| record.received.as_ref()).filter(|received| received.datagrams > 0);
    large.chain(steps.map(|received| received.min_delay_ns)).min().unwrap_or(0)
}

const fn one_way(probe: &ProfileProbe, way: Direction) -> i64 {
    if matches!(way, Direction::Down) { probe.down_ns } else { probe.up_ns }
}

/// The 90th percentile of the one-way delay of the idle path above its least. Large probes take longer than small ones: each is
/// compared with the least of its size.
pub(super) fn jitter_us(probes: &[ProfileProbe], way: Direction) -> f64 {
    let least = |bytes| probes.iter().filter(|probe| probe.bytes == bytes).map(|probe| one_way(probe, way)).min();
    let above = |probe: &ProfileProbe| Some((one_way(probe, way) - least(probe.bytes)?) as f64 / 1e3);
    let above: Vec<f64> = probes.iter().filter_map(above).collect();
    narrows_stats::quantile(&above, 0.9).unwrap_or(0.0)
}

/// Trains of one link agree within a few percent; the host that sends them is no more exact.
const SLOWED: f64 = 0.85;

/// What the sender is known to send where nothing tells how fast its trains left: what its steps offered, and what any host sends.
fn any_host_bps(steps: &[StepView]) -> f64 {
    steps.iter().map(|view| view.offered_bps.max(StepView::ANY_HOST_PPS * view.packet_bits)).fold(0.0, f64::max)
}

/// The median rate of arrival in the steps that the path did not keep up with.
fn capacity(steps: &[StepView], usual_loss: f64) -> Option<Capacity> {
    let mut beyond: Vec<&StepView> = steps.iter().filter(|view| view.saturated(usual_loss)).collect();
    if beyond.iter().any(|view| !view.unsettled) {
        beyond.retain(|view| !view.unsettled);
    }
    let most = beyond.iter().map(|view| view.sustained_count).max()?;
    // A step that ended early tells less.
    let exact = || beyond.iter().filter(|view| 4 * view.sustained_count >= most);
    let rates: Vec<f64> = exact().map(|view| view.sustained_bps).collect();
    let bps = narrows_stats::quantile(&rates, 0.5)?;
    let spread = exact().map(|view| (view.sustained_bps / bps - 1.0).abs()).fold(0.0, f64::max);
    // One packet more or less at either end of what was counted.
    let grain = 2.0 / f64::from(most.max(2));
    let part = spread.max(grain).clamp(0.01, 0.2);
    // Where the path loses some at any rate, that may be before its slowest link or behind it.
    Some(Capacity { bps, interval_bps: [bps * (1.0 - part), bps * (1.0 + part) / (1.0 - usual_loss)] })
}

/// The steps that show what the path sustains. Where some lost most of what they sent without a queue, though the path carried far more in
/// others, a deep bucket was empty then and full again later, or the path changed: if two of them agree, it is what they show, else nothing is.
fn sustaining(steps: &[StepView], usual_loss: f64) -> Vec<StepView> {
    let known = |view: &&StepView| view.saturated(usual_loss) && !view.unsettled && view.outage_us == 0.0;
    let most = steps.iter().filter(known).map(|view| view.sustained_bps).fold(0.0, f64::max);
    let dry = |view: &StepView| {
        known(&view)
            && view.sustained_loss > usual_loss + EMPTY
            && view.queue_us < FILLS_US
            && view.sustained_bps * DEEP < most
    };
    let all: Vec<StepView> = steps.iter().filter(|view| dry(view)).copied().collect();
    let [low, high] =
        all.iter().fold([f64::MAX, 0.0], |[low, high], it| [it.sustained_bps.min(low), it.sustained_bps.max(high)]);
    match all.len() {
        0 => steps.to_vec(),
        _ if all.len() >= 2 && high <= 1.1 * low => all,
        _ => Vec::new(),
    }
}

/// See [`sustaining`]: more than others take that send at the same time; and how many times as much other steps carried.
const EMPTY: f64 = 0.1;
const DEEP: f64 = 1.6;

/// Between its slowest and its fastest step, a profile that shows others in the queue goes up by this factor at least, …
const LEVERAGE: f64 = 1.5;
/// … offered over delivered grows by this much, more than loss at any rate varies by, …
const GROWS: f64 = 0.1;
/// … in steps that end before the queue lost more than this, …
const OVERFLOWS: f64 = 0.02;
/// … each step lies within this part of the line, …
const ON_LINE: f64 = 0.04;
/// … and cross traffic below this part of the link cannot be distinguished from measurement error.
const OTHERS: f64 = 0.2;

/// Who else fills the queue. A FIFO gives each its share of what arrives: of `o` beside others that send `x` it delivers `o c / (o + x)`, so
/// that offered over delivered is `o / c + x / c`, a line (Melander, Björkman, Gunningberg, *TOPP*, GLOBECOM 2000). Alone, or behind a
/// policer, the line begins at 0; where a part is lost at any rate it does not rise.
fn shared(steps: &[StepView]) -> Option<Shared> {
    // Once it overflows, who loses depends on who comes at which moment.
    let beyond = steps.iter().filter(|view| view.saturated(0.0) && !view.unsettled && view.sustained_loss <= OVERFLOWS);
    let points: Vec<(f64, f64)> = beyond.map(StepView::offered_and_delivered).map(|(o, d)| (o, o / d)).collect();
    let slowest = points.iter().map(|(offered, _)| *offered).fold(f64::MAX, f64::min);
    let fastest = points.iter().map(|(offered, _)| *offered).fold(0.0, f64::max);
    // Least squares: rates that hardly differ say nothing of the slope.
    let mean = |of: fn(&(f64, f64)) -> f64| narrows_stats::mean(&points.iter().map(of).collect::<Vec<_>>());
    let (offered, ratio) = (mean(|point| point.0)?, mean(|point| point.1)?);
    let along: f64 = points.iter().map(|(o, _)| (o - offered).powi(2)).sum();
    let slope = points.iter().map(|(o, r)| (o - offered) * (r - ratio)).sum::<f64>() / along;
    let start = ratio - slope * offered;
    let fits = points.iter().all(|(offered, ratio)| (start + slope * offered - ratio).abs() <= ON_LINE * ratio);
    // Through two points there is always a line.
    let fits = fits && points.len() >= 3;
    let known =
        fits && slope > 0.0 && fastest >= LEVERAGE * slowest && slope * (fastest - slowest) >= GROWS && start >= OTHERS;
    known.then(|| Shared { link_bps: 1.0 / slope, others_bps: start / slope })
}

/// Whether more was delivered the more was offered beyond the capacity, as beside others: by this part of what was offered more, at least.
pub(super) fn gives_way(beyond: &[(f64, f64)]) -> bool {
    const PART: f64 = 0.3;
    let grows = |&(more, delivered): &(f64, f64), &(less, before): &(f64, f64)| {
        more >= 1.05 * less && delivered / before - 1.0 >= PART * (more / less - 1.0)
    };
    beyond.iter().any(|more| beyond.iter().any(|less| grows(more, less)))
}

/// Fewer datagrams do not show the loss at any rate.
const FEW: u32 = 50;

/// More delay than hosts that stall for a moment give the median of a step.
const LONG_US: f64 = 5_000.0;
/// A bucket holds credit for so long at least: less is the queue of a device that works in batches.
const BUCKET_US: f64 = 1_000.0;

/// An answer's time does not tell less, which a busy host's varies by.
const TOLD_US: f64 = 25.0;

/// A step at more than so many times the capacity may have met another queue: that of a faster link before a policer, or of a host.
const NEAR: f64 = 4.0;

/// The steps that show the queue of the capacity: all, where none of those beyond it is near.
fn near(steps: &[StepView], capacity: Option<Capacity>, usual_loss: f64) -> impl Iterator<Item = &StepView> {
    let near = move |view: &StepView| capacity.is_none_or(|capacity| view.offered_bps <= NEAR * capacity.bps);
    let shows = steps.iter().any(|view| near(view) && view.saturated(usual_loss));
    steps.iter().filter(move |view| near(view) || !shows)
}

/// What holds the capacity. `train`: of an account by totals, how many datagrams a train has that passed; nobody tells what else passed before the first
/// loss. `None`: neither a queue nor credit shows, so that it may be a short queue or a policer.
fn plateau(
    steps: &[StepView],
    usual_loss: f64,
    capacity: Capacity,
    credit: Option<bool>,
    jitter_us: f64,
    train: Option<f64>,
) -> Option<Plateau> {
    let bps = capacity.bps;
    let beyond = || steps.iter().filter(|view| view.saturated(usual_loss));
    let packet_bits = steps.first().map_or(12_000.0, |view| view.packet_bits);
    let us = |bits: f64| bits / bps * 1e6;
    // Against the steps that the path kept up with: what delays those is no queue. Medians of many vary less than single delays.
    let kept_up = steps.iter().filter(|view| !view.saturated(usual_loss)).map(|view| view.queue_us);
    let quiet_us = kept_up.reduce(f64::min).unwrap_or(0.0);
    let least_us = (0.5 * jitter_us).max(us(3.0 * packet_bits)).max(150.0);
    let beyond_us = || near(steps, Some(capacity), usual_loss).filter(|view| view.saturated(usual_loss));
    // A queue loses where it is full. Where most steps lost without one, the queue of a faster step is that of another link.
    let lossy = || beyond_us().filter(|view| view.sustained_loss > usual_loss + LOSES);
    let unqueued = lossy().filter(|view| view.queue_us - quiet_us <= least_us).count();
    let queue_us = if unqueued >= 2 && 2 * unqueued > lossy().count() {
        0.0
    } else {
        beyond_us().map(|view| view.queue_us).fold(0.0, f64::max) - quiet_us
    };
    // Steps that passed whole, at rates that would have shown as more than the path sustains, passed by credit.
    let by_credit = |view: &&StepView| {
        !view.saturated(usual_loss) && !view.unsettled && KEEPS_UP * view.offered_bps >= capacity.interval_bps[1]
    };
    let whole: Vec<f64> =
        steps.iter().filter(by_credit).map(|view| view.bucket_bytes(view.sent, bps, usual_loss)).collect();
    let credit = if whole.len() >= 2 { Some(true) } else { credit };
    // The deepest first; a sender that was late by as much says nothing.
    let buckets = |passed: fn(&StepView) -> u32| {
        let bucket = |view: &StepView| (view.bucket_bytes(passed(view), bps, usual_loss), view.late_us);
        let known = beyond().map(bucket).filter(|(bytes, late_us)| us(bytes * 8.0) > 3.0 * late_us);
        let mut buckets: Vec<f64> = known.map(|(bytes, _)| bytes).chain(whole.iter().copied()).collect();
        buckets.sort_by(|a, b| b.total_cmp(a));
        buckets
    };
    if queue_us > least_us {
        let deep = |bytes: f64| us(bytes * 8.0) > us(12.0 * packet_bits).max(BUCKET_US);
        // What was seen once may be a host that stalled.
        return Some(match buckets(|view| view.before_queue)[..] {
            [deepest, second, ..] if credit != Some(false) && deep(second) && queue_us > 2.0 * jitter_us => {
                // Where losses that are none of its own move the place at which it seems empty, the deepest is one that was seen too late.
                Plateau::Shaper { bucket_bytes: if usual_loss > 0.0 { second } else { deepest } }
            }
            _ => Plateau::Queue,
        });
    }
    let bucket_bytes = buckets(|view| view.before_loss).first().copied().unwrap_or(0.0);
    // What exceeded the rate and passed waited nowhere: a queue of as many bytes would have been seen.
    let by_tokens = us(bucket_bytes * 8.0) > 2.0 * least_us && bucket_bytes * 8.0 > 6.0 * packet_bits;
    // A policer delays nothing, and a full queue of two packets all that passes.
    let short_us = (0.5 * jitter_us).max(us(1.5 * packet_bits)).max(150.0);
    let queued = lossy().count() > 1 && lossy().all(|view| view.queue_us - quiet_us > short_us);
    // What makes an answer late makes the queue look longer, not shorter: where even half a packet did not wait at the end of some of several
    // steps that lost much, no queue was full there.
    let half_us = us(0.5 * packet_bits);
    let overflowed = || lossy().filter(|view| view.sustained_loss > usual_loss + EMPTY);
    let least_full_us = overflowed().map(|view| view.queue_us - quiet_us).fold(f64::MAX, f64::min);
    let unqueued = half_us > TOLD_US && overflowed().count() >= 3 && least_full_us < half_us;
    match train {
        _ if queued => Some(Plateau::ShortQueue),
        Some(train) => (credit == Some(true) || unqueued)
            .then_some(Plateau::Policer { bucket_bytes: bucket_bytes.max(train * packet_bits / 8.0) }),
        None if credit == Some(true) || by_tokens => Some(Plateau::Policer { bucket_bytes }),
        None => Some(Plateau::ShortQueue),
    }
}
