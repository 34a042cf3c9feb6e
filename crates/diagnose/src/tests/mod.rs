//! The diagnosis as a whole, on scenes: the three rounds of the story, and healthy paths that must not be accused.

mod healthy;
mod paced_udp;
mod pairs;
mod profiled;
mod profiled_udp;
mod properties;
mod udp;

use crate::causes;
use crate::diagnose;
use crate::experiments::tcp::PACED_HALF;
use crate::judge::Cause;
use crate::testing::profile::ProfiledPath;
use crate::testing::{Scene, fact, next, no_more, ordinary_host, tcp_end, with};
use narrows_model::host::fact::Unit;
use narrows_model::{Place, Status, TcpPlan};
use std::collections::BTreeSet;

fn small_receive_window() -> Scene {
    Scene {
        goodput_bps: 37e6,
        rtt_us: 35_100,
        rwnd: 0.97,
        snd_wnd: 162_000,
        rcvbuf: 262_144,
        sndbuf_bytes: 400_000,
        receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
        sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 4_194_304_i64, Unit::Bytes)),
        ..Scene::default()
    }
}

#[test]
fn act_one_names_the_receive_window_and_foresees_the_send_buffer() {
    // Only a profile says that the path carries as much as that buffer.
    let scene = Scene { segments: 25_500, profile: Some(ProfiledPath::default()), ..small_receive_window() };
    let verdict = diagnose(&scene.run(&[]), 0).expect("a baseline").verdict;
    assert_eq!(verdict.status, Status::Limited, "{verdict:#?}");
    let cause = &verdict.causes[0];
    assert_eq!((cause.id.as_str(), cause.at), ("tcp-receive-window", Place::Server));
    assert!(cause.witnesses.len() >= 2);
    let prediction = cause.prediction.as_ref().expect("a prediction");
    assert_eq!((prediction.then.as_str(), prediction.then_at), ("tcp-send-buffer", Place::Client));
    assert!(cause.fix.commands[0].run.starts_with("sysctl -w net.ipv4.tcp_rmem='4096 131072 "), "{:?}", cause.fix);
}

#[test]
fn act_two_names_the_send_buffer_and_foresees_the_link_where_more_connections_reach_it() {
    let scene = Scene {
        goodput_bps: 690e6,
        rtt_us: 35_300,
        sndbuf: 0.9,
        sndbuf_bytes: 4_194_304,
        sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 4_194_304_i64, Unit::Bytes)),
        ..Scene::default()
    };
    let foretold = |more_bps: Option<f64>| {
        let load = TcpPlan { streams: 4, ..scene.load.clone() };
        let more = more_bps.map(|goodput_bps| Scene { goodput_bps, load, ..scene.clone() });
        let more: Vec<_> = more.iter().map(|more| ("more-streams", more)).collect();
        let verdict = diagnose(&scene.run(&more), 0).expect("a baseline").verdict;
        assert_eq!(verdict.status, Status::Limited, "{verdict:#?}");
        assert_eq!((verdict.causes[0].id.as_str(), verdict.causes[0].at), ("tcp-send-buffer", Place::Client));
        verdict.causes[0].prediction.as_ref().map(|it| ((it.bps / 1e6).round(), it.interval_bps.is_some()))
    };
    // The label of a card says what the path carries at most.
    assert_eq!(foretold(None), None);
    assert_eq!(foretold(Some(800e6)), Some((800.0, false)));
    assert_eq!(foretold(Some(930e6)), Some((941.0, true)));
}

#[test]
fn act_three_is_healthy() {
    let verdict = diagnose(&Scene::default().run(&[]), 0).expect("a baseline").verdict;
    assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
    assert_eq!(verdict.causes[0].id, "path-capacity");
    assert!(verdict.headline.starts_with("healthy: at capacity"), "{}", verdict.headline);
}

#[test]
fn without_the_kernels_chronographs_it_is_unknown_and_not_another_cause() {
    let mut run = small_receive_window().run(&[]);
    for sample in &mut tcp_end(&mut run.trials[0].trial.client).streams[0].samples {
        sample.tcp.rwnd_limited_us = None;
    }
    let verdict = diagnose(&run, 0).expect("a baseline").verdict;
    assert!(matches!(verdict.status, Status::Unknown | Status::Suspected), "{verdict:#?}");
    assert!(!verdict.missing.is_empty());
}

#[test]
fn a_full_window_behind_a_deep_queue_is_capacity_and_not_a_small_buffer() {
    // 100 Mbit/s with a queue of 200 ms: the send buffer fills, yet at the smallest RTT it would carry far more.
    let scene = Scene {
        goodput_bps: 94.1e6,
        min_rtt_us: 1_000,
        rtt_us: 200_000,
        sndbuf: 0.95,
        sndbuf_bytes: 4_194_304,
        early_peak_bps: 95e6,
        sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 4_194_304_i64, Unit::Bytes)),
        ..Scene::default()
    };
    let verdict = diagnose(&scene.run(&no_more(&scene)), 0).expect("a baseline").verdict;
    assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
}

#[test]
fn loss_without_a_queue_asks_for_the_paced_trial_and_believes_it() {
    // 0.1 % at 1 ms: CUBIC averages 39 segments, 449 Mbit/s.
    let lossy = Scene {
        goodput_bps: 300e6,
        min_rtt_us: 1_000,
        rtt_us: 1_100,
        lost: 200,
        segments: 200_000,
        cwnd: 30,
        ..Scene::default()
    };
    let first = next(&lossy, &[]);
    assert!(first.contains(&PACED_HALF.id), "{first:?}");
    let still = Scene { goodput_bps: 140e6, segments: 40_000, lost: 41, ..lossy.clone() };
    crate::testing::udp::random_loss(lossy.run(&[("paced-half", &still)]));
    let clean = Scene { goodput_bps: 140e6, segments: 40_000, lost: 0, ..lossy.clone() };
    let verdict = diagnose(&lossy.run(&[("paced-half", &clean)]), 0).expect("a baseline").verdict;
    assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Limited, "path-policer"), "{verdict:#?}");
}

/// What holds of each table, whatever its protocol.
fn check<E>(table: &[&Cause<E>]) {
    let ids: BTreeSet<_> = table.iter().map(|cause| cause.id).collect();
    assert_eq!(ids.len(), table.len());
    for cause in table {
        assert!(!cause.id.is_empty() && !cause.about.is_empty() && !cause.roles.is_empty(), "{}", cause.id);
        for id in cause.look_alikes {
            assert!(ids.contains(id) && *id != cause.id, "{}: no cause {id}", cause.id);
        }
    }
    assert_eq!(table.iter().filter(|cause| cause.healthy).count(), 1, "a prediction names the healthy cause");
}

#[test]
fn every_cause_has_documentation_and_look_alikes_that_exist() {
    check(causes::tcp::TABLE);
    check(causes::udp::TABLE);
}

#[test]
fn the_judge_knows_no_cause_by_its_id() {
    let judge = [
        include_str!("../judge/assessment.rs"),
        include_str!("../judge/cause.rs"),
        include_str!("../judge/ceilings.rs"),
        include_str!("../judge/experiment.rs"),
        include_str!("../judge/predict.rs"),
        include_str!("../judge/verdict.rs"),
        include_str!("../judge/disproof.rs"),
        include_str!("../evidence/tcp/judged.rs"),
        include_str!("../evidence/udp/judged.rs"),
        include_str!("../diagnosis.rs"),
    ];
    for code in judge.map(|file| file.split("#[cfg(test)]").next().unwrap_or_default()) {
        for (id, _) in causes::names() {
            assert!(!code.contains(&format!("\"{id}\"")), "a field of the cause says what the judge knows of {id}");
        }
    }
}
