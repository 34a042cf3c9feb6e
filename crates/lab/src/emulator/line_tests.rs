//! Properties that hold for every impairment and every arrival.

use super::frame::{Frame, Segmentation};
use super::line::{COALESCE, Line, Piece};
use narrows_model::lab::{Impairment, PathCounters};
use proptest::prelude::*;

fn packet(bytes: u32) -> Frame {
    Frame {
        ip_bytes: bytes,
        header_bytes: bytes,
        transport_at: bytes,
        segment_payload: 0,
        segments: 1,
        segmentation: Segmentation::None,
    }
}

fn super_packet(segments: u32) -> Frame {
    Frame {
        ip_bytes: 52 + segments * 1448,
        header_bytes: 52,
        transport_at: 20,
        segment_payload: 1448,
        segments,
        segmentation: Segmentation::Tcp,
    }
}

fn path(change: impl FnOnce(&mut Impairment)) -> Impairment {
    let mut impairment = Impairment::default();
    change(&mut impairment);
    impairment
}

/// All departures, each with its instant.
fn drain(line: &mut Line) -> Vec<(u64, Piece)> {
    let mut out = Vec::new();
    while let Some(at) = line.next_departure() {
        out.push((at, line.depart_by(at).expect("it is due")));
    }
    out
}

fn balances(counters: &PathCounters) -> bool {
    let dropped = counters.dropped_loss
        + counters.dropped_queue
        + counters.dropped_policer
        + counters.dropped_mtu
        + counters.dropped_device;
    counters.taken_packets == counters.delivered_packets + dropped + counters.waiting_packets
}

#[test]
fn a_super_packet_passes_whole_if_only_delayed() {
    let mut line = Line::new(path(|path| path.delay_us = 1000), 1);
    assert_eq!(line.accept(500, 0, &super_packet(44)).pieces, 1);
    assert_eq!(line.depart_by(1_000_499), None);
    let piece = line.depart_by(1_000_500).expect("due");
    assert_eq!((piece.first, piece.count), (0, 44));
}

#[test]
fn a_rate_counts_every_segment_with_its_overhead() {
    let mut line = Line::new(path(|path| path.rate_bps = 1_000_000_000), 1);
    line.accept(0, 0, &super_packet(44));
    let pieces = drain(&mut line);
    assert_eq!(pieces.last().map(|(at, _)| *at), Some(44 * 12_304), "44 packets of 1538 bytes");
    assert!(pieces.iter().all(|(_, piece)| u64::from(piece.count - 1) * 12_304 <= COALESCE));
    assert_eq!(pieces.iter().map(|(_, piece)| piece.count).sum::<u32>(), 44);
}

#[test]
fn a_slow_rate_takes_segments_apart() {
    let mut line = Line::new(path(|path| path.rate_bps = 10_000_000), 1);
    line.accept(0, 0, &super_packet(4));
    let times: Vec<_> = drain(&mut line).iter().map(|(at, piece)| (*at, piece.count)).collect();
    assert_eq!(times, [(1_230_400, 1), (2_460_800, 1), (3_691_200, 1), (4_921_600, 1)]);
}

#[test]
fn of_a_burst_exactly_the_queue_passes() {
    for (packets, bytes, expected) in [(10, 0, 10), (0, 15_380, 10), (0, 15_379, 9), (0, 0, 1000), (5, 15_380, 5)] {
        let mut line = Line::new(
            path(|path| {
                path.rate_bps = 1_000_000;
                path.queue_packets = packets;
                path.queue_bytes = bytes;
            }),
            1,
        );
        for _ in 0..60 {
            line.accept(0, 0, &super_packet(20));
        }
        drain(&mut line);
        let counters = line.counters();
        assert_eq!(counters.delivered_packets, expected, "limits {packets} packets, {bytes} bytes");
        assert_eq!(counters.dropped_queue, 1200 - expected);
    }
}

#[test]
fn a_loss_cuts_a_super_packet_in_two() {
    let mut line = Line::new(path(|path| path.mtu = 1000), 1);
    let mut frame = super_packet(3);
    frame.ip_bytes -= 1000; // the last one is small enough
    let accepted = line.accept(0, 0, &frame);
    assert_eq!((accepted.pieces, accepted.too_big), (1, Some(1000)));
    let pieces = drain(&mut line);
    assert_eq!((pieces[0].1.first, pieces[0].1.count, line.counters().dropped_mtu), (2, 1, 2));
}

#[test]
fn a_packet_that_skips_the_delay_overtakes_and_is_counted() {
    let mut line = Line::new(
        path(|path| {
            path.delay_us = 1000;
            path.reorder = 0.1;
        }),
        1,
    );
    for index in 0..10_000_u64 {
        line.accept(index * 1000, u32::try_from(index).expect("small"), &packet(1500));
    }
    let order: Vec<u32> = drain(&mut line).iter().map(|(_, piece)| piece.slot).collect();
    let mut highest = 0;
    let late = order.iter().filter(|slot| {
        let late = **slot < highest;
        highest = highest.max(**slot);
        late
    });
    assert!(late.count() > 5_000, "those that were overtaken come late");
    let reordered = line.counters().reordered;
    assert!((800..1200).contains(&reordered), "{reordered}");
}

#[test]
fn a_policer_drops_what_a_shaper_delays() {
    let limits = |police: bool| {
        path(|path| {
            let (rate, burst) = (8_000_000, 30_760);
            if police {
                (path.police_bps, path.police_burst_bytes) = (rate, burst);
            } else {
                (path.rate_bps, path.burst_bytes) = (rate, burst);
            }
        })
    };
    let (mut policer, mut shaper) = (Line::new(limits(true), 1), Line::new(limits(false), 1));
    policer.accept(0, 0, &super_packet(40));
    shaper.accept(0, 0, &super_packet(40));
    assert_eq!(policer.counters().dropped_policer, 20, "the bucket holds 20 packets of 1538 bytes");
    assert_eq!(shaper.counters().waiting_packets, 40);
    let last = drain(&mut shaper).last().map(|(at, _)| *at);
    assert_eq!(last, Some(20 * 1538 * 1000), "the rest at 1 byte per microsecond");
}

#[test]
fn a_corrupt_packet_leaves_alone_and_is_counted() {
    let mut line = Line::new(path(|path| path.corrupt = 0.1), 1);
    for _ in 0..100 {
        line.accept(0, 0, &super_packet(40));
    }
    let pieces: Vec<_> = drain(&mut line).into_iter().map(|(_, piece)| piece).collect();
    let corrupt: Vec<_> = pieces.iter().filter(|piece| piece.corrupt).collect();
    assert!(corrupt.iter().all(|piece| piece.count == 1));
    assert_eq!(pieces.iter().map(|piece| piece.count).sum::<u32>(), 4000, "none is lost here");
    assert_eq!(line.counters().corrupted, corrupt.len() as u64);
    assert!((300..500).contains(&corrupt.len()), "{}", corrupt.len());
    line.refused_by_device(corrupt[0]);
    assert_eq!(line.counters().corrupted, corrupt.len() as u64 - 1);
}

#[test]
fn a_codel_keeps_a_queue_short_that_would_stand() {
    let stay = |codel| {
        let mut line =
            Line::new(path(|path| (path.rate_bps, path.queue_bytes, path.codel) = (12_000_000, 1_000_000, codel)), 1);
        // A tenth more than the rate, for five seconds.
        let mut last = 0;
        for at in (0..5_000_000_000).step_by(900_000) {
            while line.next_departure().is_some_and(|due| due <= at) {
                line.depart_by(at);
            }
            line.accept(at, 0, &packet(1462));
            last = at;
        }
        let counters = line.counters();
        assert!(balances(&counters), "{counters:?}");
        (drain(&mut line).last().expect("a queue").0 - last, counters.dropped_queue)
    };
    let (plain, codel) = (stay(false), stay(true));
    assert!(plain.0 > 400_000_000 && plain.1 == 0, "{plain:?}");
    assert!(codel.0 < 200_000_000 && codel.1 > 50, "{codel:?}");
}

#[test]
fn nothing_passes_in_an_outage() {
    let mut line = Line::new(path(|path| (path.outage_us, path.outage_each_us) = (250_000, 2_500_000)), 1);
    for at in (0..5_000_000_000).step_by(10_000_000) {
        line.accept(at, 0, &packet(100));
        line.depart_by(at);
    }
    assert_eq!((line.counters().dropped_loss, line.counters().taken_packets), (50, 500));
}

#[test]
fn single_packets_stay_single() {
    let mut line = Line::new(path(|path| path.single_packets = true), 1);
    assert_eq!(line.accept(0, 0, &super_packet(44)).pieces, 44);
    assert!(drain(&mut line).iter().enumerate().all(|(at, (_, piece))| (piece.first, piece.count) == (at as u32, 1)));
}

#[test]
fn held_packets_leave_together() {
    let mut line = Line::new(path(|path| (path.delay_us, path.gather_us) = (500, 2000)), 1);
    for index in 0..5 {
        line.accept(index * 1_000_000, 0, &packet(1500));
    }
    let times: Vec<_> = drain(&mut line).iter().map(|(at, _)| at / 1000).collect();
    assert_eq!(times, [2000, 2000, 4000, 4000, 6000]);
}

prop_compose! {
    fn any_path()(
        rate_bps in prop_oneof![Just(0_u64), 100_000_u64..10_000_000_000],
        burst_bytes in prop_oneof![Just(0_u64), 0_u64..200_000],
        delay_us in 0_u64..50_000, jitter_us in prop_oneof![Just(0_u64), 0_u64..5_000],
        loss in prop_oneof![Just(0.0), 0.0..0.5], enter in prop_oneof![Just(0.0), 0.0..0.2],
        reorder in prop_oneof![Just(0.0), 0.0..0.5], duplicate in prop_oneof![Just(0.0), 0.0..0.5],
        queue_packets in prop_oneof![Just(0_u64), 1_u64..100], queue_bytes in prop_oneof![Just(0_u64), 1_000_u64..200_000],
        police_bps in prop_oneof![Just(0_u64), 100_000_u64..1_000_000_000],
        mtu in prop_oneof![Just(0_u32), 600_u32..1600],
        corrupt in prop_oneof![Just(0.0), 0.0..0.5], gather_us in prop_oneof![Just(0_u64), 1_u64..5_000],
        single_packets in any::<bool>(),
    ) -> Impairment {
        Impairment {
            rate_bps, burst_bytes, delay_us, jitter_us, loss, reorder, duplicate, queue_packets, queue_bytes, police_bps, mtu,
            corrupt, gather_us, single_packets,
            burst_loss_enter: enter, burst_loss_leave: 0.3, burst_loss: 0.8, police_burst_bytes: 20_000,
            ..Impairment::default()
        }
    }
}

proptest! {
    #[test]
    fn every_packet_is_counted(
        first in any_path(), second in any_path(), seed in any::<u64>(),
        arrivals in prop::collection::vec((0_u64..2_000_000, 1_u32..45), 1..120),
    ) {
        let mut line = Line::new(first, seed);
        let (mut now, mut expected, mut seen, mut copies) = (0, 0, 0, 0);
        let half = arrivals.len() / 2;
        for (index, (gap, segments)) in arrivals.iter().enumerate() {
            if index == half {
                line.configure(second.clone());
            }
            now += gap;
            while let Some(piece) = line.depart_by(now) {
                *(if piece.duplicate { &mut copies } else { &mut seen }) += u64::from(piece.count);
            }
            let frame = if *segments == 1 { packet(1500) } else { super_packet(*segments) };
            let accepted = line.accept(now, 0, &frame);
            expected += u64::from(*segments);
            prop_assert!(accepted.pieces <= 2 * segments);
            prop_assert!(balances(&line.counters()), "{:?}", line.counters());
        }
        for (_, piece) in drain(&mut line) {
            *(if piece.duplicate { &mut copies } else { &mut seen }) += u64::from(piece.count);
        }
        let counters = line.counters();
        prop_assert!(balances(&counters));
        prop_assert_eq!(counters.waiting_packets, 0);
        prop_assert_eq!((counters.taken_packets, counters.delivered_packets, counters.duplicated), (expected, seen, copies));
    }

    #[test]
    fn order_is_kept_without_reordering(
        path in any_path(), later in any_path(), seed in any::<u64>(),
        arrivals in prop::collection::vec((0_u64..1_000_000, 1_u32..45), 1..100),
    ) {
        let mut line = Line::new(Impairment { reorder: 0.0, ..path }, seed);
        let mut now = 0;
        let half = arrivals.len() / 2;
        for (slot, (gap, segments)) in arrivals.iter().enumerate() {
            if slot == half {
                line.configure(Impairment { reorder: 0.0, ..later.clone() });
            }
            now += gap;
            line.accept(now, u32::try_from(slot).expect("small"), &super_packet(*segments));
        }
        let out = drain(&mut line);
        prop_assert!(out.is_sorted_by_key(|(at, _)| *at));
        let originals = out.iter().filter(|(_, piece)| !piece.duplicate);
        prop_assert!(originals.is_sorted_by_key(|(_, piece)| (piece.slot, piece.first)));
        prop_assert_eq!(line.counters().reordered, 0);
    }

    #[test]
    fn rate_and_delay_are_exact(
        rate in 1_000_000_u64..10_000_000_000, delay_us in 0_u64..100_000, count in 1_u32..200,
    ) {
        let mut line = Line::new(path(|path| { path.rate_bps = rate; path.delay_us = delay_us; }), 1);
        for _ in 0..count {
            line.accept(0, 0, &packet(1462));
        }
        let out = drain(&mut line);
        let bits = u128::from(count) * 1500 * 8;
        let expected = u64::try_from(bits * 1_000_000_000 / u128::from(rate)).expect("small") + delay_us * 1000;
        let last = out.last().map_or(0, |(at, _)| *at);
        prop_assert!(last.abs_diff(expected) <= 1, "{} instead of {}", last, expected);
    }
}
