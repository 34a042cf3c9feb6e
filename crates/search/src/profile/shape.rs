//! What the steps of a profile show of the path.

use super::step_view::StepView;
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

/// What happens to what exceeds the capacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Plateau {
    /// It waits in a queue, then it is dropped: an ordinary bottleneck.
    Queue,
    /// It waits in a queue, but so many bytes pass first at a higher rate.
    Shaper {
        /// Depth of the bucket.
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
    /// The same, where losses in a row count once.
    pub loss_events_below: u64,
    /// Rate at which short bursts pass the idle path …
    pub burst_bps: Option<f64>,
    /// … and whether the path slowed them: what passes as it was sent only bounds the rate from below.
    pub burst_slowed: bool,
    /// Of all datagrams that arrived, those after a later one, and those that came twice.
    pub reordered: f64,
    pub duplicated: f64,
    /// Every step but the trains, in order of time.
    pub steps: Vec<StepView>,
}

impl Shape {
    /// The shape of a profile; `None` where no step was seen at both ends.
    #[allow(clippy::cast_precision_loss)] // counts of one trial
    pub fn of(plan: &ProfilePlan, record: &ProfileEndRecord) -> Option<Self> {
        let base = base_delay_ns(&record.probes, &record.steps, plan.direction, record.datagram_bytes);
        let views = || record.steps.iter().filter_map(|step| StepView::of(step, record.header_bytes, base));
        let steps: Vec<StepView> = views().filter(|view| !view.is_train).collect();
        if steps.is_empty() {
            return None;
        }
        let trains = train_bps(&record.steps, record.header_bytes);
        let burst_bps = trains.map(|(bps, _)| bps);
        let jitter_us = jitter_us(&record.probes, plan.direction);
        let all = steps;
        // A sender that was late sent bursts of it, at a rate that nobody knows.
        let mut steps: Vec<StepView> = all.iter().filter(|view| !view.disturbed).copied().collect();
        if !steps.iter().any(|view| view.saturated(0.0)) {
            steps.extend(agreeing(&all, &steps));
        }
        // A sender that was late adds losses and hides none, so its steps bound the loss at any rate, too.
        let usual_loss = all.iter().filter(|view| view.sent >= FEW).map(StepView::loss).reduce(f64::min).unwrap_or(0.0);
        let capacity = capacity(&steps, usual_loss);
        let carried = steps.iter().filter(|view| !view.saturated(usual_loss) && !view.unsettled);
        let carried_bps = carried.map(|view| view.sustained_bps.min(view.offered_bps)).fold(0.0, f64::max);
        // What a bucket of tokens let pass is not sustained.
        let carried_bps = capacity.map_or(carried_bps, |capacity| carried_bps.min(capacity.bps));
        let below_bps = capacity.map_or(f64::MAX, |capacity| 0.93 * capacity.interval_bps[0]);
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
            plateau: capacity.map(|capacity| {
                let credit = credit(&record.steps, record.header_bytes, capacity.bps);
                plateau(&steps, usual_loss, capacity.bps, credit, jitter_us)
            }),
            capacity,
            carried_bps,
            host_limited: steps.is_empty() || all.iter().any(StepView::host_too_slow),
            queue_us: steps.iter().map(|view| view.queue_us).fold(0.0, f64::max),
            sent_below: below().map(|view| u64::from(view.sent)).sum(),
            lost_below: below().map(|view| u64::from(view.lost)).sum(),
            loss_events_below: below().map(|view| u64::from(view.loss_events)).sum(),
            burst_bps,
            burst_slowed: trains.is_some_and(|(bps, length)| {
                trains_sent_bps(&record.steps, record.header_bytes, length).is_none_or(|sent| bps < SLOWED * sent)
            }),
            reordered: part(arrived().map(|received| u64::from(received.reordered)).sum()),
            duplicated: part(arrived().map(|received| u64::from(received.duplicates)).sum()),
            steps: all,
        })
    }

    /// The same where counters say that a host dropped what the steps lost: nothing is known of the path beyond what it carried.
    pub fn limited_by_host(self) -> Self {
        Self {
            capacity: None,
            plateau: None,
            host_limited: true,
            sent_below: 0,
            lost_below: 0,
            loss_events_below: 0,
            ..self
        }
    }

    /// Losses that no rate explains lie apart: on average no more than so many are lost in a row.
    pub const BUNCH: u64 = 4;

    /// Whether datagrams were lost again and again at rates that the path carries. Many at one moment are lost by a host that was stopped,
    /// and by the burst that follows.
    pub const fn loses_below(&self) -> bool {
        self.loss_events_below >= 3 && self.lost_below <= Self::BUNCH * self.loss_events_below
    }

    /// Datagrams that were sent at rates of up to `part` of the capacity, and those of them that were lost.
    pub fn well_below(&self, part: f64) -> (u64, u64) {
        let below_bps = self.capacity.map_or(f64::MAX, |capacity| part * capacity.bps);
        let steps = self.steps.iter().filter(|view| !view.disturbed && view.offered_bps < below_bps);
        steps.fold((0, 0), |(sent, lost), view| (sent + u64::from(view.sent), lost + u64::from(view.lost)))
    }

    /// The part of datagrams that is lost at rates that the path carries.
    #[allow(clippy::cast_precision_loss)] // counts of one trial
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
#[allow(clippy::cast_precision_loss)] // differences of delays
pub(super) fn jitter_us(probes: &[ProfileProbe], way: Direction) -> f64 {
    let least = |bytes| probes.iter().filter(|probe| probe.bytes == bytes).map(|probe| one_way(probe, way)).min();
    let above = |probe: &ProfileProbe| Some((one_way(probe, way) - least(probe.bytes)?) as f64 / 1e3);
    let above: Vec<f64> = probes.iter().filter_map(above).collect();
    narrows_stats::quantile(&above, 0.9).unwrap_or(0.0)
}

/// Trains of one link agree within a few percent; the host that sends them is no more exact.
const SLOWED: f64 = 0.85;

/// The rate at which trains of so many datagrams left: the median.
#[allow(clippy::cast_precision_loss)] // counts and times of one train
fn trains_sent_bps(steps: &[StepRecord], header_bytes: u32, length: u32) -> Option<f64> {
    let trains = steps.iter().filter(|it| it.step.gap_ns == 0 && it.step.datagrams == length && it.sent.span_ns > 0);
    let rates: Vec<f64> = trains
        .map(|it| {
            let bits = f64::from(it.step.datagram_bytes + header_bytes) * 8.0;
            f64::from(it.sent.datagrams.saturating_sub(1)) * bits * 1e9 / it.sent.span_ns as f64
        })
        .collect();
    narrows_stats::quantile(&rates, 0.5)
}

/// The rate at which trains arrived: the lower quartile of their rates, since a host that stalls for a moment receives
/// what arrived meanwhile in one batch; and the datagrams of such a train. Where longer trains were sent they count alone.
#[allow(clippy::cast_precision_loss)] // counts and times of one train
pub(super) fn train_bps(steps: &[StepRecord], header_bytes: u32) -> Option<(f64, u32)> {
    let rate = |record: &StepRecord| {
        let received = record.received.as_ref().filter(|received| received.datagrams >= 5 && received.span_ns > 0)?;
        let bits = f64::from(record.step.datagram_bytes + header_bytes) * 8.0;
        // What is lost at the end of a train only shortens it.
        Some(f64::from(received.datagrams - 1) * bits * 1e9 / received.span_ns as f64)
    };
    let trains = || steps.iter().filter(|record| record.step.gap_ns == 0);
    let of_length = |length: u32| {
        let rates: Vec<f64> = trains().filter(|record| record.step.datagrams == length).filter_map(rate).collect();
        let bps = (rates.len() >= 2).then(|| narrows_stats::quantile(&rates, 0.25))??;
        Some((bps, length))
    };
    let lengths = || trains().map(|record| record.step.datagrams);
    of_length(lengths().max()?).or_else(|| of_length(lengths().min()?))
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

/// Fewer datagrams do not show the loss at any rate.
const FEW: u32 = 50;

/// Bursts that pass at this many times the sustained rate pass by credit: trains of one link agree within a few percent …
const CREDIT: f64 = 1.15;
/// … and take shorter by so much: a host that wakes up late for the first datagram of a train makes it look shorter by less.
const WAKE_UP_US: f64 = 100.0;
/// A bucket holds credit for so long at least: less is the queue of a device that works in batches.
const BUCKET_US: f64 = 1_000.0;

/// Whether trains passed clearly faster than `bps`; `None` where they are too short to tell.
#[allow(clippy::cast_precision_loss)] // counts and times of one train
pub(super) fn credit(steps: &[StepRecord], header_bytes: u32, bps: f64) -> Option<bool> {
    let (burst, length) = train_bps(steps, header_bytes)?;
    let bytes = steps.iter().find(|record| record.step.datagrams == length)?.step.datagram_bytes;
    let bits = f64::from(length.saturating_sub(1)) * f64::from(bytes + header_bytes) * 8.0;
    let us = |rate: f64| bits / rate * 1e6;
    (us(bps) > 3.0 * WAKE_UP_US).then_some(burst >= CREDIT * bps && us(bps) - us(burst) > WAKE_UP_US)
}

fn plateau(steps: &[StepView], usual_loss: f64, bps: f64, credit: Option<bool>, jitter_us: f64) -> Plateau {
    let beyond = || steps.iter().filter(|view| view.saturated(usual_loss));
    let packet_bits = steps.first().map_or(12_000.0, |view| view.packet_bits);
    let us = |bits: f64| bits / bps * 1e6;
    // Against the steps that the path kept up with: what delays those is no queue. Medians of many vary less than single delays.
    let kept_up = steps.iter().filter(|view| !view.saturated(usual_loss)).map(|view| view.queue_us);
    let quiet_us = kept_up.reduce(f64::min).unwrap_or(0.0);
    let queue_us = beyond().map(|view| view.queue_us).fold(0.0, f64::max) - quiet_us;
    let least_us = (0.5 * jitter_us).max(us(3.0 * packet_bits)).max(150.0);
    // The deepest first; a sender that was late by as much says nothing.
    let buckets = |passed: fn(&StepView) -> u32| {
        let bucket = |view: &StepView| (view.bucket_bytes(passed(view), bps), view.late_us);
        let known = beyond().map(bucket).filter(|(bytes, late_us)| us(bytes * 8.0) > 3.0 * late_us);
        let mut buckets: Vec<f64> = known.map(|(bytes, _)| bytes).collect();
        buckets.sort_by(|a, b| b.total_cmp(a));
        buckets
    };
    if queue_us > least_us {
        let deep = |bytes: f64| us(bytes * 8.0) > us(12.0 * packet_bits).max(BUCKET_US);
        // What was seen once may be a host that stalled.
        return match buckets(|view| view.before_queue)[..] {
            [bucket_bytes, second, ..] if credit != Some(false) && deep(second) && queue_us > 2.0 * jitter_us => {
                Plateau::Shaper { bucket_bytes }
            }
            _ => Plateau::Queue,
        };
    }
    let bucket_bytes = buckets(|view| view.before_loss).first().copied().unwrap_or(0.0);
    // What exceeded the rate and passed waited nowhere: a queue of as many bytes would have been seen.
    let by_tokens = us(bucket_bytes * 8.0) > 2.0 * least_us && bucket_bytes * 8.0 > 6.0 * packet_bits;
    if credit == Some(true) || by_tokens { Plateau::Policer { bucket_bytes } } else { Plateau::ShortQueue }
}
