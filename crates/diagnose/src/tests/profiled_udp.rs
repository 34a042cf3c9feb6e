//! Loads of UDP on paths that were profiled, and loss in bursts.

use super::Scene;
use crate::diagnose;
use crate::testing::profile::{Excess, ProfiledPath};
use crate::testing::udp::{self, Died, UdpScene};
use crate::testing::{fact, slow, with};
use narrows_model::load::host::CpuTimes;
use narrows_model::{Status, Unit, Verdict};

fn of_udp(path: ProfiledPath) -> Verdict {
    let scene = UdpScene { died: Died { path: 3_400, ..Died::default() }, ..UdpScene::default() };
    diagnose(&path.beside(udp::run(&scene, &[]), None), 0).expect("a baseline").verdict
}

#[test]
fn what_udp_met_on_the_path_is_told_by_its_profile() {
    let first = |path| {
        let verdict = of_udp(path);
        (verdict.status, verdict.causes.first().map(|finding| finding.id.clone()).unwrap_or_default())
    };
    let at = |excess| ProfiledPath { rate_bps: 96.5e6, excess, ..ProfiledPath::default() };
    assert_eq!(first(at(Excess::DroppedAfter(30))), (Status::Limited, "path-policer".to_owned()));
    // 95 Mbit/s arrived while the bucket emptied.
    let advice = of_udp(ProfiledPath { rate_bps: 64e6, ..at(Excess::DroppedAfter(30)) }).causes.remove(0).fix.advice;
    assert!(advice.starts_with("offer less than the policer's rate (64.0 Mbit/s, headers included)"), "{advice}");
    assert_eq!(
        first(ProfiledPath { burst_bps: 96.5e6, ..at(Excess::Waits) }),
        (Status::Healthy, "path-capacity".to_owned())
    );
    // The bucket of a shaper counts where it gives a transfer of a second 15 % more, as with TCP.
    let shaper = |datagrams| ProfiledPath { burst_bps: 400e6, ..at(Excess::WaitsAfter(datagrams)) };
    assert_eq!(first(shaper(1_500)), (Status::Limited, "path-shaper".to_owned()));
    assert_eq!(first(shaper(60)), (Status::Healthy, "path-capacity".to_owned()));
    let lossy = ProfiledPath { one_lost_of: Some(20), ..ProfiledPath::default() };
    assert_eq!(first(lossy), (Status::Suspected, "random-loss".to_owned()));
}

#[test]
fn a_full_path_does_not_make_healthy_what_a_host_loses_beside_it() {
    let path = ProfiledPath { rate_bps: 96.5e6, burst_bps: 96.5e6, excess: Excess::Waits, ..ProfiledPath::default() };
    let first = |buffer| {
        let scene = UdpScene { died: Died { path: 3_400, buffer, ..Died::default() }, ..UdpScene::default() };
        let verdict = diagnose(&path.beside(udp::run(&scene, &[]), None), 0).expect("a baseline").verdict;
        (verdict.status, verdict.causes[0].id.clone())
    };
    // 85 %, 23 % and 8 % of what is missing.
    assert_eq!(first(20_000), (Status::Limited, "udp-receive-buffer".to_owned()));
    assert_eq!(first(1_000), (Status::Limited, "udp-receive-buffer".to_owned()));
    assert_eq!(first(300), (Status::Healthy, "path-capacity".to_owned()));
}

#[test]
fn a_core_that_packets_fill_or_that_encrypts_makes_no_path_of_udp_healthy() {
    let path = ProfiledPath { rate_bps: 96.5e6, burst_bps: 96.5e6, excess: Excess::Waits, ..ProfiledPath::default() };
    let of =
        |scene: &UdpScene| diagnose(&path.beside(udp::run(scene, &[]), None), 0).expect("a baseline").verdict.status;
    let full = UdpScene { died: Died { path: 3_400, ..Died::default() }, ..UdpScene::default() };
    let core = |softirq_us, system_us| CpuTimes {
        softirq_us,
        system_us,
        idle_us: 8_000_000 - softirq_us - system_us,
        ..CpuTimes::default()
    };
    let at = |receiver_core, kind: &str| {
        let facts = with(full.receiver_facts.clone(), fact("nic.kind", kind, Unit::Text));
        UdpScene { receiver_core, receiver_facts: facts, ..full.clone() }
    };
    assert_eq!(of(&full), Status::Healthy);
    assert_eq!(of(&at(core(7_600_000, 0), "physical")), Status::Unknown);
    assert_eq!(of(&at(core(0, 7_600_000), "wireguard")), Status::Unknown);
    assert_eq!(of(&at(core(0, 7_600_000), "physical")), Status::Healthy);
}

#[test]
fn a_policer_of_each_flow_of_udp_is_told_by_more_flows() {
    let base = UdpScene { died: Died { path: 34_000, ..Died::default() }, ..UdpScene::default() };
    let path = ProfiledPath { rate_bps: 51e6, excess: Excess::DroppedAfter(30), ..ProfiledPath::default() };
    let of = |more: &[(&str, &UdpScene)]| diagnose(&path.beside(udp::run(&base, more), None), 0).expect("a baseline");
    assert_eq!(of(&[]).next.iter().map(|planned| planned.id).collect::<Vec<_>>(), ["more-flows"]);
    let all = UdpScene::default();
    let finding = of(&[("more-flows", &all)]).verdict.causes.remove(0);
    assert_eq!(finding.id, "path-policer");
    assert!(
        finding.fix.advice.starts_with("spread the load over more flows: the policer gives each 51.0"),
        "{finding:#?}"
    );
    assert!(finding.prediction.as_ref().is_some_and(|it| it.bps > 95e6 && it.interval_bps.is_none()), "{finding:#?}");
    // A bucket that is full at first is none of each flow: 2.5 MiB in three seconds.
    let deep = ProfiledPath { excess: Excess::DroppedAfter(1_740), ..path };
    let little = UdpScene { died: Died { path: 25_500, ..Died::default() }, ..UdpScene::default() };
    let run = deep.beside(udp::run(&base, &[("more-flows", &little)]), None);
    let finding = diagnose(&run, 0).expect("a baseline").verdict.causes.remove(0);
    assert_eq!((finding.id.as_str(), finding.prediction), ("path-policer", None));
    // Together they get no more.
    let shared = of(&[("more-flows", &base)]).verdict.causes.remove(0);
    assert!(shared.fix.advice.starts_with("offer less"), "{}", shared.fix.advice);
}

#[test]
fn loss_in_bursts_at_any_rate_is_the_paths_own() {
    // Ten in a row of each thousand: 1 % of any load.
    let path = ProfiledPath { one_lost_of: Some(1_000), lost_run: 10, ..ProfiledPath::default() };
    let of = |path: ProfiledPath, scene: UdpScene| {
        let scene = UdpScene { died: Died { path: 680, ..Died::default() }, ..scene };
        diagnose(&path.beside(udp::run(&scene, &[]), None), 0).expect("a baseline").verdict
    };
    let bursts = UdpScene { loss_run: 10, ..UdpScene::default() };
    let scene = UdpScene { died: Died { path: 680, ..Died::default() }, ..bursts.clone() };
    let says = &udp::random_loss(path.beside(udp::run(&scene, &[]), None)).witnesses[0].says;
    assert!(says.ends_with("; the load lost them in bursts of about 10 datagrams (1.18 ms)"), "{says}");
    // Where evenly paced datagrams of the same rate are not lost, those of the load are lost otherwise; a load of bursts says nothing.
    for (path, scene) in [
        (ProfiledPath::default(), bursts.clone()),
        (path, UdpScene { burst: Some(64), ..bursts.clone() }),
        (path, UdpScene { loss_run: 340, ..bursts }),
    ] {
        let verdict = of(path, scene);
        assert!(verdict.causes.iter().all(|finding| finding.id != "random-loss"), "{verdict:#?}");
    }
    let path = ProfiledPath {
        rate_bps: 200e6,
        burst_bps: 200e6,
        one_lost_of: Some(800),
        lost_run: 8,
        ..ProfiledPath::default()
    };
    let finding = udp::random_loss(Scene { goodput_bps: 40e6, lost: 60, profile: Some(path), ..slow() }.run(&[]));
    assert!(
        finding.witnesses.iter().any(|witness| witness.says.ends_with("in bursts of about 8 packets")),
        "{finding:#?}"
    );
}
