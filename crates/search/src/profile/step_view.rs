//! One step in terms of rates and delays.

use narrows_model::{StepPart, StepRecord};

/// What one step showed. Rates are bits of IP packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepView {
    /// What the sender put onto the path.
    pub offered_bps: f64,
    /// What arrived over the later half of the step, or since the first loss or queue where that came later: what the path sustains, once
    /// bursts that it lets pass are over.
    pub sustained_bps: f64,
    /// Datagrams that `sustained_bps` was read off.
    pub sustained_count: u32,
    /// Of the datagrams sent in the time of `sustained_bps`, the part that the path lost.
    pub sustained_loss: f64,
    /// Whether loss or a queue began so late that the step shows the rate neither with nor without it: a bucket of tokens ran out.
    pub unsettled: bool,
    pub sent: u32,
    /// Datagrams that the path lost.
    pub lost: u32,
    /// Datagrams before the first one that was lost.
    pub before_loss: u32,
    /// Delay of the last quarter above the least delay of the profile, microseconds.
    pub queue_us: f64,
    /// How fast the delay rose: seconds per second of arrivals.
    pub rising: f64,
    /// Datagrams before the delay began to rise for good.
    pub before_queue: u32,
    /// Whether the receiving socket dropped so many that the step says nothing of the path.
    pub receiver_behind: bool,
    /// Whether datagrams left back to back.
    pub is_train: bool,
    /// What was asked for; 0 of a train.
    pub asked_bps: f64,
    /// Whether the sender fell far behind its plan.
    pub sender_behind: bool,
    /// Whether it was late, so that the step is of another rate than was asked for, or has bursts of what was late; not where a queue
    /// outlasted each pause of the sender, since the link behind it sends at its own rate then. Or the path carried nothing for a time.
    pub disturbed: bool,
    /// How long the path carried nothing, though it carried the rest of the step; microseconds, 0 where it did not stop.
    pub outage_us: f64,
    /// Gaps in what arrived: losses in a row count once.
    pub loss_events: u32,
    /// The longest time that the sender was behind its schedule, microseconds.
    pub late_us: f64,
    /// Bits of one IP packet.
    pub packet_bits: f64,
}

impl StepView {
    /// The view of a step; `None` where nothing is known of its arrival or too little was sent. `base_delay_ns`: the least delay of
    /// datagrams of this size.
    pub fn of(record: &StepRecord, header_bytes: u32, base_delay_ns: i64) -> Option<Self> {
        let received = record.received.as_ref()?;
        let packet_bits = f64::from(record.step.datagram_bytes + header_bytes) * 8.0;
        let sent = record.sent.datagrams;
        if sent < 2 {
            return None;
        }
        let span_s = record.sent.span_ns.max(1) as f64 / 1e9;
        let offered_bps = f64::from(sent - 1) * packet_bits / span_s;
        let asked_bps = if record.step.gap_ns == 0 { 0.0 } else { packet_bits * 1e9 / record.step.gap_ns as f64 };
        let of_parts = received.parts[received.parts.len() * 3 / 4..].iter().filter(|part| part.received > 0);
        let mut delays: Vec<i64> = of_parts.map(|part| part.delay_ns).collect();
        if received.parts.is_empty() {
            delays.push(received.delays_ns[2]);
        }
        let last_quarter: Vec<f64> = delays.iter().map(|delay| (delay - base_delay_ns) as f64 / 1e3).collect();
        let queue_us = narrows_stats::quantile(&last_quarter, 0.5).unwrap_or(0.0).max(0.0);
        let before_loss = received.first_missing.unwrap_or(sent);
        let before_queue = before_queue(&received.parts, base_delay_ns, queue_us).unwrap_or(0);
        let first_excess =
            [(queue_us >= FILLS_US).then_some(before_queue), (before_loss < sent).then_some(before_loss)];
        let from = first_excess.into_iter().flatten().min().unwrap_or(0);
        let left = || received.parts.iter().filter(|part| part.from >= from && part.received > 0);
        let few = left().count() < 2 || (left().count() < 4 && left().map(|part| part.received).sum::<u32>() < 100);
        let unsettled = from > 0 && few;
        // An account without parts, as a path of a small MTU carries, tells the mean of the step.
        let whole = || Sustained {
            bps: f64::from(received.datagrams.saturating_sub(1)) * packet_bits * 1e9 / received.span_ns.max(1) as f64,
            count: received.datagrams,
            from: 0,
        };
        let sustained = match received.parts.is_empty() && received.datagrams > 1 {
            true => whole(),
            false => sustained(&received.parts, packet_bits, from).unwrap_or_default(),
        };
        let (sustained_bps, sustained_count) = (sustained.bps, sustained.count);
        let lost = sent.saturating_sub(received.datagrams).saturating_sub(received.socket_drops);
        let sent_then = sent.saturating_sub(sustained.from);
        let lost_then = sent_then.saturating_sub(sustained_count).min(lost);
        let late_ns = record.sent.late_ns as f64;
        let outage_us = if record.step.gap_ns == 0 || received.socket_drops > 0 {
            0.0
        } else {
            f64::from(vanished(&received.parts, sent)) * span_s / f64::from(sent - 1) * 1e6
        };
        let outage_us = if outage_us >= OUTAGE_US { outage_us } else { 0.0 };
        let later =
            if received.parts.is_empty() { Some(received.delays_ns[1]) } else { least_later_delay(&received.parts) };
        let busy = later.is_some_and(|delay| (delay - base_delay_ns) as f64 > BUSY_LATE * late_ns + BUSY_NS);
        Some(Self {
            offered_bps,
            sustained_bps,
            sustained_count,
            sustained_loss: f64::from(lost_then) / f64::from(sent_then.max(1)),
            unsettled,
            sent,
            lost,
            before_loss,
            queue_us,
            rising: rising(&received.parts).unwrap_or(0.0),
            before_queue,
            receiver_behind: received.socket_drops > sent / 50,
            is_train: record.step.gap_ns == 0,
            asked_bps,
            sender_behind: asked_bps > 0.0 && offered_bps < 0.85 * asked_bps,
            disturbed: outage_us > 0.0
                || asked_bps > 0.0
                    && !busy
                    && (offered_bps < 0.95 * asked_bps || late_ns / 1e9 > LATE_S + LATE_PART * span_s),
            outage_us,
            loss_events: received.gaps,
            late_us: late_ns / 1e3,
            packet_bits,
        })
    }

    /// Datagrams a second that any host sends.
    pub const ANY_HOST_PPS: f64 = 10_000.0;

    /// Lost datagrams per datagram sent.
    pub fn loss(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.sent.max(1))
    }

    /// The rate of what arrived in the time of `sustained_loss`: what the path sustains, of no more than what was offered less what was
    /// lost of it (where the path stops in between, a median of the gaps does not show it).
    pub fn delivered_bps(&self) -> f64 {
        self.sustained_bps.min(self.offered_bps * (1.0 - self.sustained_loss))
    }

    /// What was offered, and [`StepView::delivered_bps`] of it.
    pub(super) fn offered_and_delivered(&self) -> (f64, f64) {
        (self.offered_bps, self.delivered_bps())
    }

    /// Whether the path delivers less than is offered, beyond a loss of `usual_loss` that it has at any rate.
    pub fn saturated(&self, usual_loss: f64) -> bool {
        // Two standard deviations of how many are lost by chance.
        let chance = 2.0 * (usual_loss * (1.0 - usual_loss) / f64::from(self.sustained_count.max(1))).sqrt();
        // Of what is cut to a fraction few arrive.
        let enough =
            self.sustained_count >= 10 || (self.sustained_count >= 3 && self.lost >= 10 * self.sustained_count);
        let known = !self.is_train && !self.receiver_behind && enough;
        let passes = self.offered_bps * (1.0 - usual_loss);
        // A sender that paused and then caught up offered more than its mean: what a full queue had no room for tells.
        let overflows = self.queue_us >= FILLS_US && self.sustained_loss > usual_loss + chance + LOSES;
        known
            && (self.sustained_bps < KEEPS_UP * (passes - chance * self.offered_bps) || self.fills(passes) || overflows)
    }

    /// Whether far less arrived than a sender sent that was late: where several steps agree, that is what the path sustains all the same.
    pub fn far_behind(&self) -> bool {
        self.disturbed
            && self.outage_us == 0.0
            && self.sustained_count >= 30
            && self.sustained_bps < FAR_LESS * self.offered_bps
    }

    /// Whether a queue fills: the delay rises as fast as what exceeds the rate of arrival makes it. A FIFO that is offered `o` and
    /// sustains `c` delays each second of arrivals by `1 - c / o` more.
    fn fills(&self, passes_bps: f64) -> bool {
        let excess = 1.0 - self.sustained_bps / passes_bps.max(1.0);
        self.queue_us >= FILLS_US && excess >= FILLS && (self.rising / excess - 1.0).abs() <= 0.4
    }

    /// Whether a host cannot send or receive so fast. One that is late with less than any host sends was stopped for a moment.
    pub fn host_too_slow(&self) -> bool {
        self.receiver_behind || (self.sender_behind && self.asked_bps > Self::ANY_HOST_PPS * self.packet_bits)
    }

    /// Bytes of IP packets that passed above the sustained rate before it held: the depth of a bucket of tokens, where `passed`
    /// datagrams went through at first. What is lost at any rate may be lost in front of it.
    pub fn bucket_bytes(&self, passed: u32, sustained_bps: f64, usual_loss: f64) -> f64 {
        let part = (1.0 - usual_loss - sustained_bps / self.offered_bps.max(1.0)).max(0.0);
        f64::from(passed) * self.packet_bits / 8.0 * part
    }
}

/// Arrivals at less than this part of what was offered fall behind. Arrivals of 50 datagrams and more that a busy host delays by a
/// millisecond or two in a tenth of a second differ by less.
pub(super) const KEEPS_UP: f64 = 0.94;

/// A step that lost so much more than any does found its limit full.
pub(super) const LOSES: f64 = 0.05;

/// Below this excess rate (as a part of the rate) or this queueing delay, a rising delay may be jitter.
const FILLS: f64 = 0.01;
pub(super) const FILLS_US: f64 = 2_000.0;

/// No burst of what was late makes the later half of a step arrive at less than this part of what was sent.
const FAR_LESS: f64 = 0.7;

/// A sender that was late by this and this part of its step was late for a moment, or for long.
const LATE_S: f64 = 0.002;
const LATE_PART: f64 = 0.05;

/// A queue that is longer than the sender's longest pause by this factor and this time is never empty.
const BUSY_LATE: f64 = 1.5;
const BUSY_NS: f64 = 1e6;

/// A path that passes some of what exceeds its rate passes one datagram in this time, from a quarter of a megabit a second on …
const OUTAGE_US: f64 = 50_000.0;
/// … and of so many, unless twenty times its rate is offered.
const VANISH: u32 = 20;
/// Of the parts that are not beside the outage this much arrived: the rate is not what is lost.
const ARRIVES: f64 = 0.8;

/// Of a step, the most datagrams in a row of which nothing arrived, by whole parts; 0 where too few vanished or the others were lost, too.
fn vanished(parts: &[StepPart], sent: u32) -> u32 {
    let end = |index: usize| parts.get(index + 1).map_or(sent, |next| next.from);
    let (mut datagrams, mut within, mut from) = (0, 0..0, 0);
    for (index, part) in parts.iter().enumerate() {
        if part.received > 0 {
            from = index + 1;
        } else if end(index).saturating_sub(parts[from].from) > datagrams {
            (datagrams, within) = (end(index) - parts[from].from, from..index + 1);
        }
    }
    let beside = within.start.saturating_sub(1)..within.end + 1;
    let others = (0..parts.len()).filter(|index| !beside.contains(index));
    let (arrived, offered) = others.fold((0, 0), |(arrived, offered), index| {
        (arrived + parts[index].received, offered + end(index).saturating_sub(parts[index].from))
    });
    if datagrams >= VANISH && f64::from(arrived) >= ARRIVES * f64::from(offered) { datagrams } else { 0 }
}

/// The least delay of the later half of a step.
fn least_later_delay(parts: &[StepPart]) -> Option<i64> {
    let arrived: Vec<i64> = parts.iter().filter(|part| part.received > 0).map(|part| part.delay_ns).collect();
    arrived[arrived.len().checked_sub(1)? / 2..].iter().min().copied()
}

/// What arrived over the later half, or from a datagram on that comes later.
#[derive(Default)]
struct Sustained {
    bps: f64,
    /// The datagrams that it was read off …
    count: u32,
    /// … of those from this number on.
    from: u32,
}

/// By the median slope: a host that stalls for a moment moves single parts, and the difference of the ends with them.
fn sustained(parts: &[StepPart], packet_bits: f64, from: u32) -> Option<Sustained> {
    let arrived: Vec<&StepPart> = parts.iter().filter(|part| part.received > 0).collect();
    let half = arrived.len().checked_sub(1)? / 2;
    let settled = arrived.partition_point(|part| part.from < from).min(arrived.len().saturating_sub(3));
    let later = &arrived[half.max(settled)..];
    let mut count = 0;
    let mut points = Vec::new();
    for (index, part) in later.iter().enumerate() {
        count += if index == 0 { 0 } else { part.received };
        points.push((f64::from(count), part.last_ns as f64));
    }
    let gap_ns = median_slope(&points).filter(|ns| *ns > 0.0)?;
    Some(Sustained { bps: packet_bits * 1e9 / gap_ns, count, from: later.get(1)?.from })
}

/// The median of the slopes between any two points (Theil 1950, Sen 1968).
fn median_slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[..index].iter().map(|(before, since)| (y - since) / (x - before)));
    }
    slopes.retain(|slope| slope.is_finite());
    narrows_stats::quantile(&slopes, 0.5)
}

/// How fast the delay rises; `None` of few parts.
fn rising(parts: &[StepPart]) -> Option<f64> {
    let points = parts.iter().filter(|part| part.received > 0);
    let points: Vec<(f64, f64)> = points.map(|part| (part.last_ns as f64, part.delay_ns as f64)).collect();
    (points.len() >= 8).then(|| median_slope(&points))?
}

/// Datagrams before the delay began to rise: the line through its rise from a third to two thirds of the queue, followed back to where
/// the delay was least. `None` where it never rose.
fn before_queue(parts: &[StepPart], base_delay_ns: i64, queue_us: f64) -> Option<u32> {
    let points = parts.iter().filter(|part| part.received > 0);
    let points: Vec<(f64, f64)> =
        points.map(|part| (f64::from(part.from), (part.delay_ns - base_delay_ns) as f64 / 1e3)).collect();
    let (n1, d1) = *points.iter().find(|(_, delay)| *delay > queue_us / 3.0)?;
    let (n2, d2) = *points.iter().find(|(n, delay)| *n > n1 && *delay > queue_us * 2.0 / 3.0)?;
    if d2 <= d1 {
        return None;
    }
    // A part stands for its middle.
    let half = points.get(1).map_or(0.0, |(second, _)| second / 2.0);
    Some((n1 + half - d1 * (n2 - n1) / (d2 - d1)).clamp(0.0, n1) as u32)
}
