//! What the tests ask of the diagnosis: one rule's assessment, or the whole verdict.

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
