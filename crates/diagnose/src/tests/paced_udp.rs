//! UDP as an experiment of a diagnosis of TCP: where paced TCP lost too few segments to tell, UDP tells.

use crate::causes::udp::{path_capacity, path_policer, random_loss, shallow_queue};
use crate::diagnose;
use crate::evidence::paced::PacedUdp;
use crate::experiments::paced::PARTS;
use crate::judge::{Assessment, Planned};
use crate::testing::Scene;
use crate::testing::udp::{Died, UdpScene, udp_end};
use narrows_model::load::udp::record::Distribution;
use narrows_model::run::{Purpose, TrialRecord};
use narrows_model::{Flow, Run, Trial};

/// 0.5 % at 35 ms: CUBIC carries 6 Mbit/s, and half of that loses three segments in its time.
fn lossy() -> Run {
    let slow = Scene {
        goodput_bps: 6e6,
        min_rtt_us: 35_000,
        rtt_us: 35_100,
        cwnd: 18,
        lost: 21,
        segments: 4_200,
        ..Scene::default()
    };
    let half = Scene { goodput_bps: 3e6, lost: 3, segments: 640, ..slow.clone() };
    slow.run(&[("paced-half", &half)])
}

/// The run with UDP trials: `[tenth, half, bursts, plateau, above]` as sent and lost.
fn with_udp(mut run: Run, parts: [(u64, u64); 5]) -> Run {
    for (part, (offered, path)) in PARTS.iter().zip(parts) {
        let scene = UdpScene {
            offered,
            died: Died { path, ..Died::default() },
            delay_us: [50; 3],
            span_us: 1_000_000,
            ..UdpScene::default()
        };
        let purpose = Purpose::Experiment { round: 0, id: part.id.to_owned() };
        run.trials.push(TrialRecord { purpose, at_us: 0, trial: scene.trial() });
    }
    run
}

#[test]
fn paced_udp_is_asked_for_where_tcp_lost_too_few_and_is_believed() {
    let run = lossy();
    let next = |run: &Run| -> Vec<Planned> {
        let next = diagnose(run, 0).expect("a baseline").next;
        next.into_iter().filter(|planned| planned.id.starts_with("paced-udp")).collect()
    };
    let plans = next(&run);
    assert_eq!(plans.iter().map(|planned| planned.id).collect::<Vec<_>>(), PARTS.each_ref().map(|part| part.id));
    assert!(plans.iter().all(|planned| planned.plan.check().is_ok()));

    // Enough datagrams at any rate: the same part is lost at each.
    let run = with_udp(run, [(4_000, 20), (20_000, 101), (20_000, 99), (42_000, 210), (60_000, 300)]);
    assert_eq!(next(&run), [], "they were made");
    let finding = crate::testing::udp::random_loss(run);
    let experiments = finding.witnesses.iter().filter(|witness| witness.kind == "experiment");
    assert_eq!(experiments.count(), 2, "a tenth and half of the rate");
}

#[test]
fn a_path_that_carries_more_udp_without_loss_is_no_lossy_one() {
    let run = with_udp(lossy(), [(4_000, 0), (20_000, 0), (20_000, 0), (42_000, 0), (60_000, 0)]);
    let verdict = diagnose(&run, 0).expect("a baseline").verdict;
    let of_the_path = ["random-loss", "path-policer"];
    assert!(verdict.causes.iter().all(|cause| !of_the_path.contains(&cause.id.as_str())), "{verdict:#?}");
}

fn trial(sent: u64, lost: u64, delay_us: u64) -> Trial {
    let died = Died { path: lost, ..Died::default() };
    UdpScene {
        offered: sent,
        died,
        delay_us: [delay_us, delay_us, delay_us],
        span_us: 1_000_000,
        ..UdpScene::default()
    }
    .trial()
}

/// `[tenth, half, bursts, plateau, above]` as sent, lost, delay; judged against 100 Mbit/s of goodput.
fn judged(parts: [(u64, u64, u64); 5]) -> PacedUdp {
    judged_as(parts, |trial| trial)
}

fn judged_as(parts: [(u64, u64, u64); 5], seen: fn(Trial) -> Trial) -> PacedUdp {
    let trials: Vec<_> = PARTS
        .iter()
        .zip(parts)
        .filter(|(_, (sent, ..))| *sent > 0)
        .map(|(part, (sent, lost, delay))| (part.id, seen(trial(sent, lost, delay))))
        .collect();
    PacedUdp::of(trials.iter().map(|(id, trial)| (*id, trial.of().expect("UDP"))), Flow::Up, 100e6)
}

type Rule = fn(&PacedUdp) -> Result<Assessment, Assessment>;

const RULES: [(&str, Rule); 4] = [
    ("random-loss", random_loss::by_paced_udp),
    ("shallow-queue", shallow_queue::by_paced_udp),
    ("path-policer", path_policer::by_paced_udp),
    ("path-capacity", path_capacity::by_paced_udp),
];

/// The causes that are said, and that none of the others is.
fn said(paced: &PacedUdp) -> Vec<&'static str> {
    RULES.iter().filter(|(_, rule)| matches!(rule(paced), Ok(Assessment::Supports { .. }))).map(|(id, _)| *id).collect()
}

#[test]
fn each_cause_has_its_own_picture() {
    // A tenth for 2 s, the others for 1 s: 850 datagrams are a tenth of 100 Mbit/s for a second.
    for (parts, cause) in [
        ([(1700, 17, 50), (4250, 42, 50), (4250, 44, 50), (8925, 90, 50), (12_750, 130, 50)], "random-loss"),
        ([(1700, 0, 50), (4250, 0, 50), (4250, 900, 50), (8925, 300, 900), (12_750, 4200, 900)], "shallow-queue"),
        ([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 425, 60), (12_750, 4250, 60)], "path-policer"),
        ([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 425, 40_000), (12_750, 4250, 40_000)], "path-capacity"),
        // TCP stayed below what the policer lets through: 105 % of it passes, 150 % does not.
        ([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 0, 60), (12_750, 2000, 60)], "path-policer"),
    ] {
        let paced = judged(parts);
        assert_eq!(said(&paced), [cause], "{parts:?}: {:?}", RULES.map(|(_, rule)| rule(&paced)));
    }
}

#[test]
fn a_path_with_room_denies_them_all() {
    let paced = judged([(1700, 0, 50), (4250, 0, 50), (4250, 0, 50), (8925, 0, 50), (12_750, 0, 50)]);
    for (id, rule) in RULES {
        assert!(matches!(rule(&paced), Err(Assessment::Contradicts(_))), "{id}: {:?}", rule(&paced));
    }
}

/// As a receiver of iperf3 has it: how many were lost, and neither in how many runs nor how long the others waited.
fn by_iperf3(mut trial: Trial) -> Trial {
    for stream in &mut udp_end(&mut trial.server).streams {
        if let Some(got) = &mut stream.received {
            (got.loss_bursts, got.delay_variation_ns) = (0, Distribution::default());
        }
    }
    trial
}

#[test]
fn what_a_receiver_does_not_measure_is_no_measurement_of_nothing() {
    // Nobody knows whether a queue stood before the loss.
    let full = [(1700, 0, 0), (4250, 0, 0), (4250, 0, 0), (8925, 425, 0), (12_750, 4250, 0)];
    let paced = judged_as(full, by_iperf3);
    assert!(said(&paced).is_empty());
    for (id, rule) in &RULES[2..] {
        assert!(matches!(rule(&paced), Err(Assessment::CannotTell { .. })), "{id}: {:?}", rule(&paced));
    }
    // Losses that may have come in a row: it takes ten times as many.
    let some = [(1700, 17, 50), (4250, 42, 50), (4250, 44, 50), (8925, 90, 50), (12_750, 130, 50)];
    assert_eq!((said(&judged(some)), said(&judged_as(some, by_iperf3))), (vec!["random-loss"], vec![]));
    let many = some.map(|(sent, lost, delay)| (10 * sent, 10 * lost, delay));
    assert_eq!(said(&judged_as(many, by_iperf3)), ["random-loss"]);
}

#[test]
fn too_few_losses_or_trials_say_nothing() {
    let few = judged([(1700, 1, 50), (4250, 3, 50), (4250, 3, 50), (0, 0, 0), (0, 0, 0)]);
    assert!(said(&few).is_empty());
    assert!(matches!(random_loss::by_paced_udp(&few), Err(Assessment::CannotTell { .. })));
    let none = PacedUdp::default();
    for (id, rule) in RULES {
        assert!(matches!(rule(&none), Err(Assessment::CannotTell { .. })), "{id}");
    }
}
