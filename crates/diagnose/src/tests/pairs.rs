//! Two limits at once: which is named, and what remains without it.

use super::Scene;
use crate::testing::profile::{Excess, ProfiledPath};
use crate::testing::{fact, named, ordinary_host, slow, verdict, with};
use narrows_model::host::fact::Unit;
use narrows_model::{Place, Status};

#[test]
fn a_window_and_a_policer_of_about_the_same_rate_are_both_named_the_lower_one_first() {
    let path = ProfiledPath {
        rate_bps: 50e6,
        burst_bps: 400e6,
        excess: Excess::DroppedAfter(60),
        tried_bps: 70e6,
        ..ProfiledPath::default()
    };
    let with_window = |snd_wnd: u64, goodput_bps| Scene {
        goodput_bps,
        rwnd: 0.6,
        snd_wnd,
        rcvbuf: 350_000,
        lost: 60,
        receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 350_000_i64, Unit::Bytes)),
        profile: Some(path),
        ..slow()
    };
    let of = |scene: &Scene| {
        let verdict = verdict(scene, &[]);
        assert_eq!(verdict.status, Status::Limited, "{verdict:#?}");
        let ids: Vec<_> = verdict.causes.iter().map(|cause| cause.id.clone()).collect();
        let then = verdict.causes[0].prediction.as_ref().map(|it| it.bps / 1e6).expect("the other one");
        (ids, then, verdict.both.map(|both| both.bps / 1e6))
    };
    // 227 kB in 35 ms are 52 Mbit/s, and the policer lets 48 of goodput through: without it the window goes on to hold, without both
    // the rate of bursts, 386.
    let (ids, then, both) = of(&with_window(227_000, 45e6));
    assert_eq!(ids, ["path-policer", "tcp-receive-window"]);
    assert!((then - 51.8).abs() < 0.5 && both.is_some_and(|both| both > 300.0), "{then} {both:?}");
    let (ids, then, _) = of(&with_window(192_000, 43e6));
    assert_eq!(ids, ["tcp-receive-window", "path-policer"]);
    // Of the policer's 48.3 a window that losses go on to shrink gets from what it got so far up to all.
    assert!((then - 45.6).abs() < 0.5, "{then}");
}

#[test]
fn once_others_are_gone_a_window_has_the_round_trip_of_an_empty_queue() {
    // Beside 60 Mbit/s that fill the queue a window of 374 kB turns round in 85 ms: 35 Mbit/s; without them in 40 ms: 75, not 95.
    let path = ProfiledPath {
        rate_bps: 100e6,
        burst_bps: 100e6,
        others_bps: 60e6,
        idle_rtt_us: 40_000,
        ..ProfiledPath::default()
    };
    let bytes = Some(95_500_000);
    let of = |snd_wnd: u64, rcvbuf: u32| Scene {
        goodput_bps: 35e6,
        min_rtt_us: 40_000,
        rtt_us: 85_000,
        rwnd: 0.99,
        snd_wnd,
        rcvbuf,
        cwnd: 400,
        segments: 24_000,
        acks: Some([12_000, 12_000]),
        sender_counts: bytes.map(|it| ("nic.counter.tx_bytes", it)).into_iter().collect(),
        receiver_counts: bytes.map(|it| ("nic.counter.rx_bytes", it)).into_iter().collect(),
        receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", i64::from(rcvbuf), Unit::Bytes)),
        profile: Some(path),
        ..slow()
    };
    let finding = named(&of(374_000, 600_000), &[], "competing-traffic", Place::Path);
    let it = finding.prediction.expect("a prediction");
    assert!((70e6..=76e6).contains(&it.bps) && it.then == "tcp-receive-window", "{it:?}");
}

#[test]
fn without_its_policer_a_path_that_loses_packets_gives_what_the_losses_leave() {
    // 0.3 % of the datagrams below the policer's rate were lost: at 4 ms Reno averages about 50 Mbit/s there, not the 96 of bursts.
    let path = ProfiledPath {
        rate_bps: 30e6,
        burst_bps: 100e6,
        excess: Excess::DroppedAfter(60),
        tried_bps: 60e6,
        idle_rtt_us: 4_000,
        one_lost_of: Some(350),
        ..ProfiledPath::default()
    };
    let scene = Scene {
        goodput_bps: 26e6,
        min_rtt_us: 4_000,
        rtt_us: 4_300,
        cwnd: 10,
        lost: 260,
        segments: 18_000,
        congestion_control: "cubic",
        profile: Some(path),
        ..slow()
    };
    let it = named(&scene, &[], "path-policer", Place::Path).prediction.expect("a prediction");
    let [low, high] = it.interval_bps.expect("an interval");
    assert!(it.then == "random-loss" && (40e6..60e6).contains(&it.bps) && low < 42e6 && high > 60e6, "{it:?}");
    let clean = ProfiledPath { one_lost_of: None, ..path };
    let it = named(&Scene { profile: Some(clean), ..scene }, &[], "path-policer", Place::Path).prediction.expect("one");
    assert!(it.then == "path-capacity" && it.bps > 90e6, "{it:?}");
}

#[test]
fn what_a_policer_leaves_of_a_window_that_no_buffer_holds_may_be_less() {
    // Behind 60 Mbit/s a send buffer gave 48; without it Reno got 45.8.
    let path = ProfiledPath {
        rate_bps: 58.5e6,
        burst_bps: 194e6,
        excess: Excess::DroppedAfter(60),
        tried_bps: 120e6,
        idle_rtt_us: 20_000,
        ..ProfiledPath::default()
    };
    let scene = Scene {
        goodput_bps: 48.2e6,
        min_rtt_us: 20_000,
        rtt_us: 20_400,
        sndbuf: 0.52,
        sndbuf_bytes: 150_000,
        queued: Some(80_000),
        cwnd: 100,
        lost: 31,
        segments: 17_183,
        congestion_control: "reno",
        sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 150_000_i64, Unit::Bytes)),
        profile: Some(path),
        ..slow()
    };
    let verdict = verdict(&scene, &[]);
    let mut ids: Vec<_> = verdict.causes.iter().map(|cause| &*cause.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["path-policer", "tcp-send-buffer"], "{verdict:#?}");
    assert!(verdict.both.as_ref().is_some_and(|both| both.bps > 150e6), "{verdict:#?}");
    let buffer = verdict.causes.iter().find(|cause| cause.id == "tcp-send-buffer");
    let it = buffer.and_then(|cause| cause.prediction.as_ref()).expect("a prediction");
    assert!(it.interval_bps.is_some_and(|[low, high]| low < 45.8e6 && high > 58e6), "{it:?}");
}

#[test]
fn where_much_is_overtaken_no_queue_is_seen_and_bbr_is_not_slowed_by_little() {
    // Packets that skip the delay come 27 ms early: the smallest RTT is theirs, and the rest of the RTT is no queue.
    let path = ProfiledPath {
        rate_bps: 246e6,
        burst_bps: 360e6,
        reordered: 0.84,
        idle_rtt_us: 55_000,
        ..ProfiledPath::default()
    };
    let scene = Scene {
        goodput_bps: 297e6,
        min_rtt_us: 27_400,
        rtt_us: 55_300,
        reord_seen: 3_000,
        lost: 3_352,
        spurious: 3_300,
        segments: 106_759,
        congestion_control: "reno",
        profile: Some(path),
        ..slow()
    };
    let more = Scene { goodput_bps: 303e6, ..scene.clone() };
    assert_ne!(verdict(&scene, &[("more-streams", &more)]).status, Status::Healthy);
    let few = Scene { congestion_control: "bbr", goodput_bps: 24e6, lost: 60, spurious: 55, segments: 16_000, ..scene };
    let room = ProfiledPath { rate_bps: 31e6, burst_bps: 31e6, ..path };
    let named: Vec<_> = verdict(&Scene { profile: Some(room), ..few }, &[]).causes;
    assert!(!named.iter().any(|cause| cause.id == "reordering"), "{named:#?}");
}

#[test]
fn a_loss_that_costs_nothing_yet_is_said_where_another_limit_hides_it() {
    let path = ProfiledPath { one_lost_of: Some(150), ..ProfiledPath::default() };
    let scene = |path| Scene {
        rwnd: 0.97,
        snd_wnd: 162_000,
        rcvbuf: 262_144,
        receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
        profile: Some(path),
        ..slow()
    };
    let said = |path| verdict(&scene(path), &[]).hazards.iter().any(|it| it.contains("the path loses"));
    assert!(said(path) && !said(ProfiledPath::default()));
}
