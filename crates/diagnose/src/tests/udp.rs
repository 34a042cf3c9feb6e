//! The verdict on UDP as a whole: healthy trials are never accused, each place has its cause, missing evidence makes no other one, and
//! whatever the counters say, a verdict keeps its own rules.

use crate::causes::udp::TABLE;
use crate::diagnose;
use crate::experiments::paced::PARTS;
use crate::testing::udp::{self, Died, UdpScene, diagnosis, healthy, lost, verdict_with};
use narrows_model::load::udp::UdpRate;
use narrows_model::load::udp::record::Unsent;
use narrows_model::{Flow, Place, Run, Snapshot, Status};
use proptest::prelude::*;

#[test]
fn what_loses_nothing_is_healthy_however_it_was_sent() {
    for flow in [Flow::Up, Flow::Down] {
        healthy(&UdpScene { flow, ..UdpScene::default() });
        healthy(&UdpScene { flow, others: 5_000, ..UdpScene::default() });
        healthy(&UdpScene { flow, one_kernel: true, rate: UdpRate::Max, intended: Some(0), ..UdpScene::default() });
        // Full cores, squeezed buffers, foreign drops: nothing of it cost a datagram.
        healthy(&UdpScene { flow, sender_thread: 1.0, receiver_thread: 1.0, buffer_full: true, ..UdpScene::default() });
        healthy(&UdpScene { flow, receiver_counts: vec![("nic.counter.rx_dropped", 900)], ..UdpScene::default() });
        healthy(&UdpScene { flow, copies: 40, ..UdpScene::default() });
    }
    healthy(&UdpScene {
        hidden: &["nic", "qdisc", "snmp", "netstat", "softnet", "filter", "drop"],
        ..UdpScene::default()
    });
}

#[test]
fn what_any_long_path_loses_is_healthy_and_ten_times_as_much_is_not() {
    let of = |path| {
        verdict_with(&UdpScene { offered: 100_000, died: Died { path, ..no_death() }, ..UdpScene::default() }, &[])
    };
    let few = of(9);
    assert_eq!(few.status, Status::Healthy, "{few:#?}");
    assert!(few.headline.contains("only 9 of 100000 datagrams lost"), "{}", few.headline);
    assert_ne!(of(90).status, Status::Healthy);
}

#[test]
fn the_load_that_was_asked_for_is_the_next_limit_where_the_path_shows_none() {
    let died = Died { buffer: 20_000, ..no_death() };
    let verdict = verdict_with(&UdpScene { offered: 100_000, died, ..UdpScene::default() }, &[]);
    let prediction = verdict.causes[0].prediction.as_ref().expect("what the drops would have added");
    assert!(prediction.then.is_empty() && prediction.bps > verdict.goodput_bps, "{prediction:?}");
}

type Expected = (&'static str, Place, fn(u64) -> Died);

/// Each place with the cause that it is.
const PLACES: [Expected; 8] = [
    ("qdisc-drop", Place::Client, |n| Died { qdisc: n, ..no_death() }),
    ("udp-send-queue", Place::Client, |n| Died { device: n, ..no_death() }),
    ("nic-ring-overrun", Place::Server, |n| Died { ring: n, ..no_death() }),
    ("softnet-backlog", Place::Server, |n| Died { softnet: n, ..no_death() }),
    ("filter-drop", Place::Server, |n| Died { filter: n, ..no_death() }),
    ("checksum-errors", Place::Path, |n| Died { corrupt: n, ..no_death() }),
    ("udp-receive-buffer", Place::Server, |n| Died { buffer: n, ..no_death() }),
    ("udp-memory", Place::Server, |n| Died { memory: n, ..no_death() }),
];

fn no_death() -> Died {
    Died::default()
}

#[test]
fn each_place_is_its_cause_and_two_places_are_both() {
    for (id, at, died) in PLACES {
        for n in [200, 30_000] {
            let verdict = verdict_with(&UdpScene { died: died(n), ..UdpScene::default() }, &[]);
            let first = verdict.causes.first().map(|cause| (cause.id.as_str(), cause.at));
            assert_eq!(
                (verdict.status, first, verdict.causes.len()),
                (Status::Limited, Some((id, at)), 1),
                "{verdict:#?}"
            );
        }
    }
    let died = Died { qdisc: 9_000, buffer: 6_000, ..Died::default() };
    let verdict = verdict_with(&UdpScene { died, ..UdpScene::default() }, &[]);
    let ids: Vec<&str> = verdict.causes.iter().map(|cause| cause.id.as_str()).collect();
    assert_eq!(ids, ["qdisc-drop", "udp-receive-buffer"]);
}

#[test]
fn without_evidence_a_cause_becomes_unknown_or_a_suspicion_and_never_another_one() {
    let families: [&'static [&'static str]; 8] = [
        &["nic"],
        &["qdisc"],
        &["snmp"],
        &["netstat"],
        &["softnet"],
        &["filter"],
        &["drop"],
        &["snmp", "drop", "filter", "softnet", "qdisc", "nic"],
    ];
    for (id, at, died) in PLACES {
        for hidden in families {
            for socket_tells in [true, false] {
                let scene = UdpScene { died: died(9_000), hidden, socket_tells, ..UdpScene::default() };
                let verdict = verdict_with(&scene, &[]);
                for cause in verdict.causes.iter().filter(|cause| cause.witnesses.len() >= 2) {
                    assert_eq!((cause.id.as_str(), cause.at), (id, at), "without {hidden:?}: {verdict:#?}");
                }
            }
        }
    }
}

#[test]
fn loss_on_the_path_alone_asks_for_the_paced_trials() {
    let diagnosis = diagnosis(&UdpScene { died: Died { path: 900, ..Died::default() }, ..UdpScene::default() }, &[]);
    assert_eq!(diagnosis.verdict.status, Status::Unknown, "{:#?}", diagnosis.verdict);
    let next: Vec<&str> = diagnosis.next.iter().map(|planned| planned.id).collect();
    assert_eq!(next, [&PARTS.each_ref().map(|part| part.id)[..], &["many-ports"]].concat());
    assert!(diagnosis.verdict.missing.iter().any(|missing| missing.starts_with("random-loss at path")));
    assert_eq!(diagnosis.accounts.ledger.len(), 1);
}

#[test]
fn what_is_lost_behind_an_end_that_gives_no_counters_makes_no_path_full() {
    let with: Vec<_> = [(0, 50), (0, 50), (0, 50), (425, 40_000)].map(|(path, delay_us)| lost(path, delay_us)).into();
    let with: Vec<_> = PARTS.iter().map(|part| part.id).zip(&with).collect();
    let mut run = udp::run(&lost(425, 40_000), &with);
    let judged = |run: &Run| diagnose(run, 0).expect("a baseline").verdict;
    assert_eq!(judged(&run).status, Status::Healthy);
    let server = udp::udp_end(&mut run.trials[0].trial.server);
    (server.before, server.after) = (Snapshot::default(), Snapshot::default());
    let verdict = judged(&run);
    assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
    let says = |it: &String| it.starts_with("path-capacity at path: the server gave no counters");
    assert!(verdict.missing.iter().any(says), "{:?}", verdict.missing);
}

#[test]
fn a_sender_that_says_only_what_it_sent_is_held_against_the_plan() {
    let of = |offered| {
        let scene = UdpScene { flow: Flow::Down, offered, ..UdpScene::default() };
        let mut run = udp::run(&scene, &[]);
        for sent in udp::udp_end(&mut run.trials[0].trial.server).streams.iter_mut().filter_map(|it| it.sent.as_mut()) {
            (sent.intended, sent.calls) = (0, 0);
        }
        diagnose(&run, 0).expect("a baseline").verdict
    };
    assert_eq!(of(67_935).status, Status::Healthy);
    let slow = of(50_000);
    assert_eq!(slow.status, Status::Unknown, "{slow:#?}");
    assert!(slow.headline.contains("below the requested rate"), "{}", slow.headline);
}

#[test]
fn what_is_unexplained_is_said_and_names_no_one() {
    let verdict =
        verdict_with(&UdpScene { died: Died { nowhere: 5_000, ..Died::default() }, ..UdpScene::default() }, &[]);
    assert_eq!((verdict.status, verdict.causes.len()), (Status::Unknown, 0), "{verdict:#?}");
    assert!(verdict.missing[0].starts_with("no counter accounts for 5000 (± "), "{:?}", verdict.missing);
}

#[test]
fn a_trial_without_a_baseline_has_no_verdict() {
    let run = Run { trials: Vec::new(), ..crate::testing::Scene::default().run(&[]) };
    assert!(diagnose(&run, 0).is_none());
}

/// Every count that a rule or the ledger reads.
fn counts() -> Vec<&'static str> {
    let needs = TABLE.iter().flat_map(|cause| cause.needs).chain(crate::ledger::NEEDS);
    needs.filter(|key| key.unit == narrows_model::Unit::Count).map(|key| key.name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_trial_is_judged_within_the_rules_of_a_verdict(
        replaced in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![0_i64..5, 100_i64..90_000, any::<i64>()]), 0..14),
        died in proptest::collection::vec(0_u64..9_000, 6),
        thread in 0.0_f64..1.0,
        size in prop_oneof![Just(64_u32), Just(1472), Just(9000)],
        offered in prop_oneof![Just(54_000_u64), Just(67_935), Just(5_000_000)],
        one_kernel: bool,
        intended in prop_oneof![Just(None), Just(Some(0_u64)), Just(Some(u64::MAX))],
        delay in 0_u64..1_000_000,
    ) {
        let keys = counts();
        let replaced: Vec<(&'static str, i64)> = replaced.iter().map(|(key, n)| (*key.get(&keys), *n)).collect();
        let died = Died {
            refused: Unsent { would_block: died[0], ..Unsent::default() },
            qdisc: died[1],
            path: died[2],
            softnet: died[3],
            buffer: died[4],
            nowhere: died[5],
            ..Died::default()
        };
        let base = UdpScene {
            offered, died, size, one_kernel, intended, sender_thread: thread, receiver_thread: thread,
            delay_us: [delay / 2, delay, delay], sender_counts: replaced.clone(), receiver_counts: replaced, ..UdpScene::default()
        };
        let other = UdpScene { died: Died { path: died.path, ..Died::default() }, ..base.clone() };
        let experiments: Vec<(&str, &UdpScene)> = PARTS.iter().map(|part| (part.id, &other)).collect();
        for with in [&experiments[..], &experiments[..2], &[]] {
            let diagnosis = diagnosis(&base, with);
            let verdict = diagnosis.verdict;
            prop_assert!(verdict.goodput_bps.is_finite());
            for cause in &verdict.causes {
                prop_assert!((0.0..=1.0).contains(&cause.confidence), "{cause:?}");
                let finite = |prediction: &narrows_model::Prediction| {
                    prediction.bps.is_finite() && prediction.interval_bps.iter().flatten().all(|bps| bps.is_finite())
                };
                prop_assert!(cause.prediction.as_ref().is_none_or(finite));
                prop_assert!(cause.fix.load.as_ref().is_none_or(|load| load.check().is_ok()), "{:?}", cause.fix);
            }
            match verdict.status {
                Status::Limited => prop_assert!(verdict.causes[0].witnesses.len() >= 2),
                Status::Healthy => prop_assert!(verdict.causes.iter().all(|cause| cause.fix.commands.is_empty())),
                Status::Suspected => prop_assert!(verdict.causes[0].confidence <= 0.5),
                Status::Unknown => prop_assert!(verdict.causes.is_empty()),
            }
            prop_assert!(diagnosis.next.iter().all(|next| !with.iter().any(|(made, _)| *made == next.id)));
        }
    }
}
