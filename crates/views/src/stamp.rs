//! A STAMP session as a report: what each direction lost, delayed, reordered and copied.
//!
//! A reflector that counts by itself tells which requests came: what is missing in its count was lost on the way there, what is missing
//! here of what it counted on the way back (RFC 8762 section 4.3).

use narrows_model::Distribution;
use narrows_model::load::stamp::{
    ClockBound, SCHEMA, StampDirection, StampInterval, StampPacket, StampRecord, StampReply, StampReport,
};
use narrows_model::words::figures::float;
use narrows_model::words::units::micros;
use narrows_stats::{Histogram, proportion, quantile};
use std::collections::BTreeMap;

/// The hop count is told by a TTL only where the sender began with this one (RFC 8762 section 4.1).
const FIRST_TTL: u8 = 255;
/// A TTL below this was hardly 255 at the sender.
const LEAST_TTL: u8 = 192;

pub fn report(record: &StampRecord) -> StampReport {
    let sent = record.packets.len() as u64 - u64::from(record.unsent);
    let back: Vec<(u32, &StampPacket, StampReply)> = (0..)
        .zip(&record.packets)
        .filter_map(|(sequence, packet)| packet.reply.map(|reply| (sequence, packet, reply)))
        .collect();
    let replies = back.len() as u64;
    let lost = sent.saturating_sub(replies);
    let [mut up, mut down] = [true, false].map(|up| direction(record, &back, up));
    let mut lost_unknown = lost;
    if record.stateful == Some(true)
        && let Some(split) = Split::of(record, &back)
    {
        (up.known, up.lost) = (split.asked, Some(split.lost_up));
        (down.known, down.lost) = (split.asked - split.lost_up, Some(split.lost_down));
        lost_unknown = lost.saturating_sub(split.lost_up + split.lost_down);
    } else if lost == 0 {
        (up.known, up.lost, down.known, down.lost) = (sent, Some(0), sent, Some(0));
    }
    for way in [&mut up, &mut down] {
        way.loss_interval = way.lost.and_then(|lost| proportion::wilson(lost, way.known, 0.95));
    }
    let rtt = back.iter().map(|(_, packet, reply)| round_trip(packet, reply));
    StampReport {
        schema: SCHEMA.to_owned(),
        plan: record.plan.clone(),
        asked: record.asked.clone(),
        address: record.address.clone(),
        sent,
        replies,
        lost,
        lost_unknown,
        stateful: record.stateful,
        rtt_ns: distribution(rtt),
        reflector_ns: distribution(back.iter().map(|(_, _, reply)| held(reply))),
        up,
        down,
        series: series(record, lost_unknown < lost || lost == 0),
        remarks: remarks(record, replies, lost_unknown),
    }
}

const fn held(reply: &StampReply) -> u64 {
    reply.replied_ns.saturating_sub(reply.received_ns)
}

const fn round_trip(packet: &StampPacket, reply: &StampReply) -> u64 {
    reply.arrived_ns.saturating_sub(packet.sent_ns).saturating_sub(held(reply))
}

/// The most intervals of a series, and the shortest one, ns.
const INTERVALS_MAX: u64 = 600;
const INTERVAL_NS: u64 = 1_000_000_000;

/// The session over time. `known`: whether the losses of each direction are.
fn series(record: &StampRecord, known: bool) -> Vec<StampInterval> {
    let Some((first, last)) = record.packets.first().zip(record.packets.last()) else { return Vec::new() };
    let of = |packet: &StampPacket| packet.sent_ns.saturating_sub(first.sent_ns);
    let width = (of(last) / INTERVALS_MAX + 1).max(INTERVAL_NS);
    let by_direction = known.then(|| directions(record));
    let mut rest = &record.packets[..];
    let mut series = Vec::new();
    while let Some(packet) = rest.first() {
        let (nth, at) = (of(packet) / width, record.packets.len() - rest.len());
        let (now, later) = rest.split_at(rest.iter().position(|it| of(it) / width > nth).unwrap_or(rest.len()));
        let mut times: Vec<u64> =
            now.iter().filter_map(|packet| Some(round_trip(packet, packet.reply.as_ref()?))).collect();
        times.sort_unstable();
        let us = |ns: Option<&u64>| ns.map(|ns| float(*ns) / 1e3);
        let lost = |up| {
            let fates = &by_direction.as_ref()?[at..at + now.len()];
            Some(fates.iter().filter(|fate| **fate == Some(up)).count() as u64)
        };
        series.push(StampInterval {
            from_s: float(nth * width) / 1e9,
            to_s: float((nth + 1) * width) / 1e9,
            sent: now.len() as u64,
            lost: (now.len() - times.len()) as u64,
            lost_up: lost(true),
            lost_down: lost(false),
            rtt_p50_us: us(times.get(times.len() / 2)),
            rtt_max_us: us(times.last()),
        });
        rest = later;
    }
    series
}

/// Whether each lost packet was lost on the forward path: the reflector did not count it between two replies. Of the losses in
/// one gap, the forward losses are assumed to come first.
fn directions(record: &StampRecord) -> Vec<Option<bool>> {
    let mut fates = vec![None; record.packets.len()];
    let (mut gap, mut copies, mut counted) = (0, 0, 0);
    for (at, packet) in record.packets.iter().enumerate() {
        let Some(reply) = packet.reply else {
            copies += u64::from(packet.copies_up);
            continue;
        };
        let arrived = u64::from(reply.reflector_sequence).saturating_sub(counted);
        let up = ((at - gap) as u64 + copies).saturating_sub(arrived);
        (gap..at).zip(0..).for_each(|(lost, nth)| fates[lost] = Some(nth < up));
        (gap, copies, counted) = (at + 1, packet.copies_up.into(), u64::from(reply.reflector_sequence) + 1);
    }
    fates
}

/// The losses by direction.
struct Split {
    /// Requests of which it is known whether they arrived.
    asked: u64,
    lost_up: u64,
    lost_down: u64,
}

impl Split {
    fn of(record: &StampRecord, back: &[(u32, &StampPacket, StampReply)]) -> Option<Self> {
        // All requests up to the one with the highest number of the reflector.
        let counted = back.iter().max_by_key(|(_, _, reply)| reply.reflector_sequence)?;
        let asked =
            back.iter().filter(|it| it.2.reflector_sequence <= counted.2.reflector_sequence).map(|it| it.0).max()?;
        let copies: u64 = record.packets.iter().map(|packet| u64::from(packet.copies_up)).sum();
        let (asked, arrived) = (u64::from(asked) + 1, u64::from(counted.2.reflector_sequence) + 1);
        let lost_up = (asked + copies).saturating_sub(arrived).min(asked);
        let lost_down = (asked - lost_up).saturating_sub(back.len() as u64);
        Some(Self { asked, lost_up, lost_down })
    }
}

fn direction(record: &StampRecord, back: &[(u32, &StampPacket, StampReply)], up: bool) -> StampDirection {
    let delay = |(_, packet, reply): &(u32, &StampPacket, StampReply)| {
        let (from, to) = if up { (packet.sent_ns, reply.received_ns) } else { (reply.replied_ns, reply.arrived_ns) };
        i128::from(to) - i128::from(from)
    };
    let delays: Vec<i128> = back.iter().map(delay).collect();
    let least = delays.iter().copied().min().unwrap_or(0);
    let above = delays.iter().map(|delay| u64::try_from(delay - least).unwrap_or(u64::MAX));
    let clocks = record.far_clock.filter(|far| far.synchronised && record.own_clock.synchronised);
    let bound = clocks.map(|ClockBound { bound_ns, .. }| bound_ns.saturating_add(record.own_clock.bound_ns));
    let median = || {
        let as_floats: Vec<f64> = delays.iter().map(|delay| *delay as f64).collect();
        Some([i64::try_from(least).ok()?, quantile::median(&as_floats)? as i64])
    };
    // In the order of arrival there or here, by the numbers of who sent.
    let mut order: Vec<(u32, u32)> = back
        .iter()
        .filter_map(|(sequence, packet, reply)| match up {
            true => Some((reply.reflector_sequence, *sequence)),
            false => packet.arrival.map(|arrival| (arrival, reply.reflector_sequence)),
        })
        .collect();
    order.sort_unstable();
    let mut next = 0;
    let late = order.iter().filter(|(_, number)| {
        let late = *number < next;
        next = next.max(number.saturating_add(1));
        late
    });
    // Numbers that are copied say nothing of the order there.
    let reordered = if up && record.stateful != Some(true) { 0 } else { late.count() as u64 };
    let ttls = back.iter().filter_map(|(_, _, reply)| if up { Some(reply.request_ttl) } else { reply.reply_ttl });
    let hops: Vec<u8> = ttls.filter(|ttl| *ttl >= LEAST_TTL).map(|ttl| FIRST_TTL - ttl).collect();
    let classes = || back.iter().filter_map(|(_, _, reply)| if up { reply.request_class } else { reply.reply_class });
    let count = |part: fn(u8) -> u8| {
        let mut counts = BTreeMap::new();
        classes().for_each(|class| *counts.entry(part(class)).or_insert(0) += 1);
        counts.into_iter().collect()
    };
    StampDirection {
        reordered,
        copies: record.packets.iter().map(|it| u64::from(if up { it.copies_up } else { it.copies_down })).sum(),
        variation_ns: distribution(above),
        delay_ns: bound.and_then(|_| median()),
        clock_error_ns: bound,
        hops: hops.iter().min().zip(hops.iter().max()).map(|(least, most)| [*least, *most]),
        dscp: count(|class| class >> 2),
        ecn: count(|class| class & 3),
        ..StampDirection::default()
    }
}

fn distribution(values: impl Iterator<Item = u64>) -> Distribution {
    let mut all = Histogram::new();
    values.for_each(|value| all.record(value));
    all.distribution()
}

fn remarks(record: &StampRecord, replies: u64, lost_unknown: u64) -> Vec<String> {
    let mut all = Vec::new();
    if record.refused && replies == 0 {
        all.push("the port is closed: ICMP port unreachable came back; is a reflector running there?".to_owned());
    } else if replies == 0 && record.foreign == 0 {
        all.push(
            "nothing came back: no reflector there, a firewall on the way, or a reflector that answers known peers only"
                .to_owned(),
        );
    }
    if record.stateful == Some(false) && lost_unknown > 0 {
        all.push(
            "the reflector repeats the sequence numbers of requests: the direction of a loss is unknown".to_owned(),
        );
    } else if lost_unknown > 0 && replies > 0 {
        all.push("the losses after the last reply are of an unknown direction".to_owned());
    }
    if record.foreign > 0 {
        let why = if record.plan.authenticated { ", or their authentication code does not fit the key" } else { "" };
        all.push(format!("{} datagrams of the reflector were no replies to this session{why}", record.foreign));
    }
    if record.unsent > 0 {
        all.push(format!("{} packets were not sent: the queue of this host was full", record.unsent));
    }
    if replies > 0
        && record.plan.extensions
        && record.packets.iter().filter_map(|it| it.reply).all(|it| it.request_class.is_none())
    {
        all.push(
            "the reflector does not know the class-of-service extension (RFC 8972): DSCP there is unknown".to_owned(),
        );
    }
    match record.far_clock {
        Some(far) if far.synchronised && record.own_clock.synchronised => {
            let bound = far.bound_ns.saturating_add(record.own_clock.bound_ns);
            all.push(format!("one-way delays are exact to the clocks' error bound, {}", micros(bound.div_ceil(1_000))));
        }
        Some(_) => all.push("no one-way delay: a clock is not synchronised; its variation needs none".to_owned()),
        None => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::stamp::StampPlan;
    use proptest::prelude::*;

    fn plan() -> StampPlan {
        StampPlan { packets: 0, interval_us: 1_000, bytes: 44, dscp: 0, authenticated: false, extensions: false }
    }

    /// A session over a path with these fates of each packet: lost there, lost back.
    fn session(fates: &[(bool, bool)], stateful: bool) -> StampRecord {
        let (mut counted, mut arrived) = (0, 0);
        let packets = (0_u64..).zip(fates).map(|(nth, (lost_up, lost_down))| {
            let sent_ns = 1_000_000_000 + nth * 1_000_000;
            let number = counted;
            counted += u32::from(!lost_up);
            let reply = (!lost_up && !lost_down).then(|| StampReply {
                reflector_sequence: if stateful { number } else { u32::try_from(nth).expect("small") },
                received_ns: sent_ns + 5_000_000 + nth % 3 * 1_000,
                replied_ns: sent_ns + 5_100_000 + nth % 3 * 1_000,
                arrived_ns: sent_ns + 9_100_000 + nth % 3 * 1_000,
                request_ttl: 250,
                reply_ttl: Some(247),
                request_class: Some(46 << 2),
                reply_class: Some(0),
            });
            let arrival = reply.map(|_| arrived);
            arrived += u32::from(reply.is_some());
            StampPacket { sent_ns, reply, arrival, copies_down: 0, copies_up: 0 }
        });
        StampRecord {
            plan: plan(),
            asked: "far".into(),
            address: "192.0.2.7:862".into(),
            packets: packets.collect(),
            stateful: Some(stateful),
            own_clock: ClockBound { synchronised: true, bound_ns: 1_000 },
            far_clock: Some(ClockBound { synchronised: true, bound_ns: 500 }),
            foreign: 0,
            refused: false,
            unsent: 0,
            interrupted: false,
        }
    }

    #[test]
    fn a_session_without_loss() {
        let report = report(&session(&[(false, false); 30], false));
        assert_eq!((report.sent, report.lost, report.up.lost, report.down.lost), (30, 0, Some(0), Some(0)));
        assert_eq!((report.rtt_ns.min, report.reflector_ns.max), (9_000_000, 100_000));
        assert_eq!(report.up.delay_ns, Some([5_000_000, 5_001_000]));
        assert_eq!(
            (report.up.clock_error_ns, report.up.hops, report.down.hops),
            (Some(1_500), Some([5, 5]), Some([8, 8]))
        );
        assert_eq!((report.up.dscp.clone(), report.down.dscp.clone()), (vec![(46, 30)], vec![(0, 30)]));
        assert_eq!((report.up.variation_ns.max, report.down.variation_ns.max), (2_000, 0));
    }

    #[test]
    fn without_a_count_of_its_own_the_direction_is_unknown() {
        let fates: Vec<_> = (0..30).map(|nth| (nth % 10 == 3, nth % 10 == 5)).collect();
        let report = report(&session(&fates, false));
        assert_eq!((report.lost, report.lost_unknown, report.up.lost, report.down.lost), (6, 6, None, None));
        assert!(report.remarks[0].contains("direction of a loss is unknown"), "{:?}", report.remarks);
    }

    #[test]
    fn a_long_session_has_intervals() {
        let fates: Vec<_> = (0..2_500).map(|nth| (nth == 1_200, nth == 1_300 || nth == 2_499)).collect();
        let report = report(&session(&fates, true));
        let seen: Vec<_> =
            report.series.iter().map(|it| (it.to_s, it.sent, it.lost, it.lost_up, it.lost_down)).collect();
        let [none, one] = [Some(0), Some(1)];
        assert_eq!(
            seen,
            [(1.0, 1_000, 0, none, none), (2.0, 1_000, 2, one, one), (3.0, 500, 1, none, none)],
            "of the last loss the direction is unknown"
        );
        assert_eq!((report.series[0].rtt_p50_us, report.series[0].rtt_max_us), (Some(9_001.0), Some(9_002.0)));
    }

    #[test]
    fn order_and_clocks() {
        let mut record = session(&[(false, false); 4], true);
        // The third request overtook the second, and the fourth reply the third.
        let number = |record: &mut StampRecord, at: usize, number| {
            if let Some(reply) = &mut record.packets[at].reply {
                reply.reflector_sequence = number;
            }
        };
        number(&mut record, 1, 2);
        number(&mut record, 2, 1);
        record.far_clock = Some(ClockBound::default());
        let report = report(&record);
        assert_eq!((report.up.reordered, report.down.reordered, report.lost), (1, 1, 0));
        assert_eq!((report.up.delay_ns, report.up.clock_error_ns), (None, None));
    }

    proptest! {
        #[test]
        fn losses_are_of_the_direction_where_they_were(fates in prop::collection::vec((prop::bool::weighted(0.1), prop::bool::weighted(0.1)), 1..200)) {
            let report = report(&session(&fates, true));
            // Up to the last reply all is known.
            let known = fates.iter().rposition(|(up, down)| !up && !down).map_or(0, |last| last + 1);
            let up = fates[..known].iter().filter(|(up, _)| *up).count() as u64;
            let down = fates[..known].iter().filter(|(up, down)| !up && *down).count() as u64;
            if known > 0 {
                prop_assert_eq!((report.up.lost, report.down.lost), (Some(up), Some(down)));
            }
            prop_assert_eq!(report.lost_unknown, (fates.len() - known) as u64);
            // All within the first second.
            let [all] = &report.series[..] else { panic!("{:?}", report.series) };
            prop_assert_eq!((all.sent, all.lost), (report.sent, report.lost));
            if report.lost_unknown < report.lost {
                prop_assert_eq!((all.lost_up, all.lost_down), (report.up.lost, report.down.lost));
            }
        }
    }
}
