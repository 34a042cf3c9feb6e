//! Evidence is taken away from stored runs: what is left may say less, but never something else.

use crate::{stored, the, verdicts};
use narrows_model::load::tcp::{TcpEndRecord, TcpSample};
use narrows_model::run::RunPlan;
use narrows_model::{LoadRecord, Place, Purpose, Run, Snapshot, Status, Trial, Verdict};

type Strip = fn(&mut Run);

/// What a run may lack, and how it is taken away.
const ABLATIONS: &[(&str, Strip)] = &[
    ("all facts of the server", |run| facts(run, Place::Server)),
    ("all facts of the client", |run| facts(run, Place::Client)),
    ("the chronographs", |run| {
        samples(run, |sample| {
            sample.tcp.busy_time_us = None;
            sample.tcp.rwnd_limited_us = None;
            sample.tcp.sndbuf_limited_us = None;
        });
    }),
    ("socket memory", |run| samples(run, |sample| sample.memory = None)),
    ("the times of the CPUs", |run| {
        ends(run, |end| end.host.clear());
        samples(run, |sample| sample.thread_cpu_us = None);
    }),
    ("round-trip times", |run| {
        run.idle_rtt_us.clear();
        samples(run, |sample| {
            sample.tcp.rtt_us = None;
            sample.tcp.min_rtt_us = None;
        });
    }),
    ("the locks of buffers", |run| {
        ends(run, |end| end.streams.iter_mut().for_each(|stream| stream.buffer_lock = None));
    }),
    ("the experiments", |run| run.trials.retain(|record| !matches!(record.purpose, Purpose::Experiment { .. }))),
];

fn trials(run: &mut Run) -> impl Iterator<Item = &mut Trial> {
    run.trials.iter_mut().map(|record| &mut record.trial)
}

fn ends(run: &mut Run, strip: impl Fn(&mut TcpEndRecord)) {
    for trial in trials(run) {
        for end in [&mut trial.client, &mut trial.server].into_iter().filter_map(LoadRecord::get_mut) {
            strip(end);
        }
    }
}

fn samples(run: &mut Run, strip: impl Fn(&mut TcpSample)) {
    ends(run, |end| end.streams.iter_mut().flat_map(|stream| &mut stream.samples).for_each(&strip));
}

fn facts(run: &mut Run, place: Place) {
    if place == Place::Client { &mut run.client } else { &mut run.server }.facts.clear();
    for trial in trials(run) {
        let end = if place == Place::Client { &mut trial.client } else { &mut trial.server };
        *end = end.clone().between(Snapshot::default(), Snapshot::default());
    }
}

/// The first cause, where the verdict names one.
fn named(verdict: &Verdict) -> Option<(&str, Place)> {
    verdict.causes.first().filter(|_| verdict.status != Status::Unknown).map(|cause| (cause.id.as_str(), cause.at))
}

/// Whether `less`, said with less evidence, is no other word than `full`. A mere suspicion may lose sight of the place.
fn is_no_other(full: &Verdict, less: &Verdict) -> bool {
    let id = |verdict| named(verdict).map(|(id, _)| id);
    match less.status {
        Status::Unknown => true,
        Status::Suspected => id(less) == id(full),
        Status::Limited | Status::Healthy => named(less) == named(full),
    }
}

#[test]
fn less_evidence_says_less_or_the_same_and_never_another_cause() {
    let mut wrong = Vec::new();
    for (name, run) in stored().into_iter().filter(|(_, run)| matches!(run.plan, RunPlan::Diagnose(_))) {
        let full = verdicts(&run);
        for (what, strip) in ABLATIONS {
            let mut stripped = run.clone();
            strip(&mut stripped);
            let less = verdicts(&stripped);
            assert_eq!(less.len(), full.len(), "{name} without {what}: an act is lost");
            for (round, (full, less)) in full.iter().zip(&less).enumerate() {
                if !is_no_other(full, less) {
                    wrong.push(format!("{name} act {round} without {what}: {} -> {}", full.headline, less.headline));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn without_what_decides_the_verdict_is_open_and_says_what_is_missing() {
    for (name, what) in [
        ("10g-x4-slot-up", "the experiments"),
        ("10g-x4-slot-up", "all facts of the client"),
        ("long-path-before", "the chronographs"),
        ("long-path-before", "the locks of buffers"),
    ] {
        let strip = ABLATIONS.iter().find(|(id, _)| *id == what).expect("an ablation").1;
        let mut run = the(name);
        strip(&mut run);
        let verdict = &verdicts(&run)[0];
        assert!(matches!(verdict.status, Status::Unknown | Status::Suspected), "{name} without {what}: {verdict:#?}");
        assert!(!verdict.missing.is_empty(), "{name} without {what}");
    }
}
