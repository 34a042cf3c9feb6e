//! What the tests ask of the diagnosis: one rule's assessment, or the whole verdict.

use super::profile::ProfiledPath;
use super::{Scene, fact, ordinary_host, with};
use crate::diagnose;
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause, Experiment};
use crate::role::Role;
use narrows_model::host::fact::{Fact, Unit};
use narrows_model::load::host::CpuTimes;
use narrows_model::{Finding, Place, Status, Verdict};

pub(crate) fn verdict(scene: &Scene, experiments: &[(&str, &Scene)]) -> Verdict {
    diagnose(&scene.run(experiments), 0).expect("a baseline").verdict
}

/// The experiment that shows that the path has no room for more connections.
pub(crate) const fn no_more(scene: &Scene) -> [(&'static str, &Scene); 1] {
    [("more-streams", scene)]
}

/// The ids of the trials that would tell more.
pub(crate) fn next(scene: &Scene, experiments: &[(&str, &Scene)]) -> Vec<&'static str> {
    diagnose(&scene.run(experiments), 0).expect("a baseline").next.iter().map(|planned| planned.id).collect()
}

/// The finding of a cause that is proven and first.
#[track_caller]
pub(crate) fn named(scene: &Scene, experiments: &[(&str, &Scene)], id: &str, at: Place) -> Finding {
    let verdict = verdict(scene, experiments);
    let first = verdict.causes.first().map(|finding| (finding.id.as_str(), finding.at));
    assert_eq!((verdict.status, first), (Status::Limited, Some((id, at))), "{verdict:#?}");
    verdict.causes.into_iter().next().expect("it is there")
}

/// Not one cause is proven: neither this one for want of evidence nor another in its place.
#[track_caller]
pub(crate) fn none_proven(scene: &Scene, experiments: &[(&str, &Scene)]) {
    let verdict = verdict(scene, experiments);
    assert!(matches!(verdict.status, Status::Unknown | Status::Suspected), "{verdict:#?}");
}

#[track_caller]
pub(crate) fn assert_rejects(finding: &Finding, id: &str, why: &str) {
    let rejected = finding.rejected.iter().find(|rejected| rejected.id == id);
    assert!(rejected.is_some_and(|rejected| rejected.why.contains(why)), "{id}, {why}: {:#?}", finding.rejected);
}

/// What one rule says of a scene.
pub(crate) fn assessment(
    cause: &Cause<TcpEvidence>,
    role: Role,
    scene: &Scene,
    experiments: &[(&str, &Scene)],
) -> Assessment {
    (cause.assess)(&TcpEvidence::of(&scene.run(experiments), 0).expect("a baseline"), role)
}

#[track_caller]
pub(crate) fn assert_supports(assessment: &Assessment) {
    assert!(matches!(assessment, Assessment::Supports { .. }), "{assessment:?}");
}

#[track_caller]
pub(crate) fn assert_contradicts(assessment: &Assessment, words: &str) {
    assert!(matches!(assessment, Assessment::Contradicts(why) if why.contains(words)), "{words}: {assessment:?}");
}

#[track_caller]
pub(crate) fn assert_cannot_tell(assessment: &Assessment, words: &str) {
    assert!(matches!(assessment, Assessment::CannotTell { why, .. } if why.contains(words)), "{words}: {assessment:?}");
}

#[track_caller]
pub(crate) fn assert_asks(assessment: &Assessment, experiment: &Experiment) {
    assert!(
        matches!(assessment, Assessment::CannotTell { ask: Some(asked), .. } if *asked == experiment),
        "{assessment:?}"
    );
}

/// Facts with another link speed.
pub(crate) fn link(mbps: i64, facts: Vec<Fact>) -> Vec<Fact> {
    with(facts, fact("nic.speed", mbps * 1_000_000, Unit::BitsPerSecond))
}

/// Hosts whose devices are virtual and say nothing that could be believed: what a path carries must then be seen.
pub(crate) fn virtual_hosts(scene: Scene) -> Scene {
    let host = || with(ordinary_host(), fact("nic.kind", "veth", Unit::Text));
    Scene { sender_facts: host(), receiver_facts: host(), ..scene }
}

/// A core that spends these parts of eight seconds in softirq and in system calls.
pub(crate) fn core(softirq: f64, system: f64) -> CpuTimes {
    let us = |part: f64| (part * 8e6) as u64;
    CpuTimes {
        softirq_us: us(softirq),
        system_us: us(system),
        idle_us: us(1.0 - softirq - system),
        ..CpuTimes::default()
    }
}

/// A receive buffer of 128 KiB, which `tcp_rmem` lets no longer grow, on veth devices without a limit: one super-packet fills it.
pub(crate) fn small_buffer() -> Scene {
    let scene = virtual_hosts(Scene {
        goodput_bps: 15.5e9,
        min_rtt_us: 50,
        rtt_us: 57,
        segments: 5_285_000,
        cwnd: 700,
        rwnd: 0.81,
        snd_wnd: 116_352,
        rcvbuf: 131_072,
        recv_q: 116_352,
        rcvbuf_filled: 0.78,
        receiver_thread: 0.8,
        ..Scene::default()
    });
    let receiver_facts = with(scene.receiver_facts.clone(), fact("tcp.rmem.max", 16_384_i64, Unit::Bytes));
    Scene { receiver_facts, ..scene }
}

/// A path of 1 Gbit/s and 35 ms that TCP gets 37 Mbit/s of.
pub(crate) fn slow() -> Scene {
    Scene {
        goodput_bps: 37e6,
        rtt_us: 35_100,
        segments: 25_500,
        cwnd: 112,
        early_peak_bps: 40e6,
        profile: Some(ProfiledPath::default()),
        ..Scene::default()
    }
}

/// The same with one segment of 150 lost, which the receiver's device saw or did not see.
pub(crate) fn lossy(seen: i64, counts: &[(&'static str, i64)]) -> Scene {
    let mut receiver_counts = vec![("nic.counter.rx_packets", seen)];
    receiver_counts.extend(counts);
    let sender_counts = vec![("nic.counter.tx_packets", 25_500), ("qdisc.drops", 0)];
    Scene { lost: 170, receiver_counts, sender_counts, ..slow() }
}

/// The same hosts where the path is at capacity: all of the gigabit that the profile found, behind a queue.
pub(crate) fn full_path(scene: Scene) -> Scene {
    let profile = Some(ProfiledPath::default());
    Scene {
        goodput_bps: 941e6,
        early_peak_bps: 941e6,
        segments: 600_000,
        cwnd: 3600,
        min_rtt_us: 35_000,
        rtt_us: 44_000,
        profile,
        ..scene
    }
}
