//! UDP as an experiment of a diagnosis of TCP: where paced TCP lost too few segments to tell, UDP tells.

use crate::evidence::paced::Part;
use crate::testing::Scene;
use crate::testing::udp::{Died, UdpScene};
use crate::{Experiment, diagnose_tcp};
use narrows_model::run::{Purpose, UdpTrialRecord};
use narrows_model::{Run, Status};

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
    for (part, (offered, path)) in Part::ALL.into_iter().zip(parts) {
        let scene = UdpScene {
            offered,
            died: Died { path, ..Died::default() },
            delay_us: [50; 3],
            span_us: 1_000_000,
            ..UdpScene::default()
        };
        let purpose = Purpose::Experiment { act: 0, id: part.id().to_owned() };
        run.udp.push(UdpTrialRecord { purpose, at_us: 0, trial: scene.trial() });
    }
    run
}

#[test]
fn paced_udp_is_asked_for_where_tcp_lost_too_few_and_is_believed() {
    let run = lossy();
    let first = diagnose_tcp(&run, 0).expect("a baseline");
    assert!(first.wanted.contains(&Experiment::PacedUdp), "{:?}", first.wanted);
    let evidence = crate::Evidence::of(&run, 0).expect("a baseline");
    let plans = Experiment::PacedUdp.udp_plans(&evidence);
    assert_eq!(plans.iter().map(|(id, _)| *id).collect::<Vec<_>>(), Part::ALL.map(Part::id));
    assert!(plans.iter().all(|(_, plan)| plan.check().is_ok()));

    // Enough datagrams at any rate: the same part is lost at each.
    let run = with_udp(run, [(4_000, 20), (20_000, 101), (20_000, 99), (42_000, 210), (60_000, 300)]);
    let second = diagnose_tcp(&run, 0).expect("a baseline");
    assert!(!second.wanted.contains(&Experiment::PacedUdp), "it was made: {:?}", second.wanted);
    let verdict = second.verdict;
    assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Limited, "random-loss"), "{verdict:#?}");
    let experiments = verdict.causes[0].witnesses.iter().filter(|witness| witness.kind == "experiment");
    assert_eq!(experiments.count(), 2, "a tenth and half of the rate");
}

#[test]
fn a_path_that_carries_more_udp_without_loss_is_no_lossy_one() {
    let run = with_udp(lossy(), [(4_000, 0), (20_000, 0), (20_000, 0), (42_000, 0), (60_000, 0)]);
    let verdict = diagnose_tcp(&run, 0).expect("a baseline").verdict;
    let of_the_path = ["random-loss", "path-policer"];
    assert!(verdict.causes.iter().all(|cause| !of_the_path.contains(&cause.id.as_str())), "{verdict:#?}");
}
