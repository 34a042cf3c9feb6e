//! A fix that did not help speaks against the diagnosis that proposed it: what was proven is a suspicion again.

use narrows_model::run::report::ProofView;
use narrows_model::{Finding, Status, Verdict, Witness, words::units};
use narrows_stats::difference;

/// The most that a cause is believed once its own fix changed nothing: less than one witness alone is worth, since the
/// trial with the fix is a witness against it.
const CONFIDENCE: f64 = 0.3;

/// What is proven is believed so much at least.
const PROVEN: f64 = 0.8;

/// A fix that gives less than this part of what was foretold was no fix of what limited.
const GOOD_PART: f64 = 0.5;

/// Whether a proof shows that a fix did not help: its interval excludes half of the gain that was foretold, or of the loss that it was to
/// mend. What neither helped nor is excluded is not decided.
pub fn is_disproved(proof: &ProofView) -> bool {
    let mean = |values: &[f64]| ProofView::mean(values).unwrap_or(0.0);
    let lost = mean(&proof.before_loss);
    if proof.helped {
        return false;
    }
    if let Some(less) = difference(&proof.before_loss, &proof.after_loss, 0.95).filter(|_| lost > 0.0) {
        return less.interval[0] > -GOOD_PART * lost;
    }
    match proof.gain_interval {
        Some([_, most]) => most < proof.gain_to_exclude(),
        // Nothing has no multiple.
        None => difference(&proof.before_bps, &proof.after_bps, 0.95)
            .is_some_and(|more| more.interval[1] <= GOOD_PART * proof.predicted_bps),
    }
}

/// Lowers the verdict of a round whose fix, for `cause`, was tried with `proof` as its outcome. Nothing where it
/// helped or that is not decided, or where the verdict no longer names that cause first (an old run under newer rules): then the proof is
/// of something else.
pub(crate) fn lower(verdict: &mut Verdict, cause: &str, proof: &ProofView) {
    if !is_disproved(proof) {
        return;
    }
    let Some(finding) = verdict.causes.first_mut().filter(|finding| finding.id == cause) else { return };
    if !matches!(verdict.status, Status::Limited | Status::Suspected) {
        return;
    }
    let says = format!("its fix did not help: {}", proof.gain_words());
    finding.confidence = finding.confidence.min(CONFIDENCE);
    // What was tried in vain is neither foretold nor advised.
    (finding.prediction, finding.fix) = (None, narrows_model::Fix::default());
    finding.witnesses.push(Witness { kind: "experiment".to_owned(), says: format!("against it: {says}") });
    let (goodput, tried) = (units::bps(verdict.goodput_bps), format!("{} at {}", finding.id, finding.at));
    // A cause that more speaks for than for the one that was tried comes first.
    let better = |other: &Finding| other.confidence >= PROVEN;
    let (status, headline) = match verdict.causes.get(1).filter(|other| better(other)) {
        Some(other) => (
            Status::Limited,
            format!(
                "limited to {goodput} by {} at {}: {}; {tried} was tried first: {says}",
                other.id, other.at, other.summary
            ),
        ),
        None => {
            let summary = &verdict.causes[0].summary;
            (Status::Suspected, format!("{goodput}; {tried} was suspected ({summary}), but {says}"))
        }
    };
    (verdict.status, verdict.headline) = (status, headline);
    let better = verdict.causes.iter().skip(1).take_while(|other| better(other)).count();
    verdict.causes[..=better].rotate_left(1);
}

#[cfg(test)]
mod tests {
    use super::{Finding, Verdict, is_disproved, lower};
    use crate::report;
    use crate::testing::udp::{Died, UdpScene};
    use crate::testing::{Scene, fact, ordinary_host, with};
    use narrows_model::host::fact::Unit;
    use narrows_model::run::report::ProofView;
    use narrows_model::run::{Attempt, Purpose, TrialRecord};
    use narrows_model::{Report, Run, Status, UdpPlan};

    fn small_window() -> Scene {
        Scene {
            goodput_bps: 37e6,
            rtt_us: 35_100,
            rwnd: 0.97,
            snd_wnd: 162_000,
            rcvbuf: 262_144,
            receiver_facts: with(ordinary_host(), fact("tcp.rmem.max", 262_144_i64, Unit::Bytes)),
            ..Scene::default()
        }
    }

    /// A run whose round proved its fix with these goodputs, in Mbit/s.
    fn proved(mut run: Run, round: u32, cause: &str, before: [f64; 3], after: [f64; 3]) -> Run {
        for (fixed, goodputs) in [(false, before), (true, after)] {
            for (pair, mbps) in (0..).zip(goodputs) {
                run.trials.push(TrialRecord {
                    purpose: Purpose::Proof { round, pair, fixed },
                    at_us: 0,
                    trial: Scene { goodput_bps: mbps * 1e6, ..small_window() }.trial(),
                });
            }
        }
        run.attempts.push(Attempt {
            round,
            cause: cause.to_owned(),
            predicted_bps: 900_000_000,
            predicted_interval_bps: Some([800_000_000, 1_000_000_000]),
            changes: Vec::new(),
            load: None,
            kept_for_next_round: after[0] > before[0],
        });
        run
    }

    fn reported(run: &Run) -> Report {
        report(run).expect("a baseline")
    }

    const BEFORE: [f64; 3] = [37.0, 37.2, 36.9];

    #[test]
    fn a_fix_that_did_not_help_leaves_a_suspicion_that_says_so() {
        let run = proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, [37.1, 36.8, 37.0]);
        let report = reported(&run);
        let verdict = &report.verdict;
        assert_eq!(verdict.status, Status::Suspected);
        assert!(verdict.headline.contains("did not help: 1.00 times"), "{}", verdict.headline);
        assert!(verdict.causes[0].confidence <= 0.3, "{}", verdict.causes[0].confidence);
        let last = verdict.causes[0].witnesses.last().expect("witnesses");
        assert!(last.kind == "experiment" && last.says.contains("did not help"), "{last:?}");
        let cause = &verdict.causes[0];
        assert!(
            cause.predicted_bps.is_none() && cause.fix.advice.is_empty() && cause.fix.commands.is_empty(),
            "{cause:?}"
        );
        // The round says the same as the whole.
        assert_eq!((report.rounds[0].status, &report.rounds[0].headline), (Status::Suspected, &verdict.headline));
        assert!(!report.rounds[0].proof.as_ref().expect("a proof").helped);
    }

    #[test]
    fn what_is_proven_beside_it_comes_first_once_its_fix_did_not_help() {
        let proof = |helped| ProofView {
            helped,
            ..reported(&proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, BEFORE))
                .proof
                .expect("a proof")
        };
        let verdict = |confidence| {
            let mut verdict = crate::diagnose(&small_window().run(&[]), 0).expect("a baseline").verdict;
            let other = Finding { id: "path-policer".to_owned(), confidence, ..verdict.causes[0].clone() };
            verdict.causes.push(other);
            lower(&mut verdict, "tcp-receive-window", &proof(false));
            verdict
        };
        let ids = |verdict: &Verdict| verdict.causes.iter().map(|cause| cause.id.clone()).collect::<Vec<_>>();
        let proven = verdict(0.95);
        assert_eq!(
            (proven.status, ids(&proven)),
            (Status::Limited, vec!["path-policer".to_owned(), "tcp-receive-window".to_owned()])
        );
        assert!(
            proven.headline.starts_with("limited to 37.0 Mbit/s by path-policer")
                && proven.headline.contains("did not help"),
            "{}",
            proven.headline
        );
        let weak = verdict(0.45);
        assert_eq!((weak.status, &*ids(&weak)[0]), (Status::Suspected, "tcp-receive-window"));
    }

    #[test]
    fn a_gain_that_the_noise_could_make_is_no_help_either() {
        let run = proved(small_window().run(&[]), 0, "tcp-receive-window", [37.0, 60.0, 20.0], [70.0, 25.0, 55.0]);
        assert_eq!(reported(&run).verdict.status, Status::Suspected);
    }

    #[test]
    fn a_gain_that_may_be_half_of_what_was_foretold_is_not_decided_and_lowers_nothing() {
        let run = proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, [37.1, 41.0, 33.5]);
        let far = reported(&run).proof.expect("a proof");
        let near = ProofView { predicted_bps: 45e6, predicted_interval_bps: Some([42e6, 47e6]), ..far.clone() };
        assert!(!far.helped && is_disproved(&far) && !is_disproved(&near), "{far:#?}");
        let mut verdict = crate::diagnose(&run, 0).expect("a baseline").verdict;
        lower(&mut verdict, "tcp-receive-window", &near);
        assert_eq!(verdict.status, Status::Limited);
        // What is steady to the last bit may differ by less than any trial tells.
        let hardly = proved(small_window().run(&[]), 0, "tcp-receive-window", [37.0; 3], [37.2; 3]);
        let hardly = reported(&hardly).proof.expect("a proof");
        assert!(!hardly.helped && is_disproved(&hardly), "{hardly:#?}");
    }

    #[test]
    fn a_path_that_carried_nothing_and_then_something_was_helped() {
        let of = |after| reported(&proved(small_window().run(&[]), 0, "tcp-receive-window", [0.0; 3], after));
        let proof = of([47.0, 46.8, 47.2]).proof.expect("a proof");
        assert!(proof.helped && proof.gain.is_none(), "{proof:#?}");
        assert_eq!(proof.gain_words(), "nothing arrived without it, 47.0 Mbit/s with it");
        for after in [[0.0; 3], [0.0, 0.0, 47.0]] {
            let report = of(after);
            assert!(!report.proof.expect("a proof").helped, "{after:?}");
            assert!(
                report.verdict.headline.contains("did not help: nothing arrived without it"),
                "{}",
                report.verdict.headline
            );
        }
    }

    #[test]
    fn a_fix_that_helped_leaves_the_verdict_as_it_was() {
        let run = proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, [634.0, 630.0, 641.0]);
        let report = reported(&run);
        assert_eq!((report.verdict.status, report.rounds[0].status), (Status::Limited, Status::Limited));
        assert!(report.verdict.causes[0].confidence > 0.5);
    }

    /// The proof of a fix for UDP after which so many of 100,000 datagrams are lost.
    fn udp_proof(before: [u64; 3], after: [u64; 3]) -> ProofView {
        let mut run = small_window().run(&[]);
        for (fixed, losses) in [(false, before), (true, after)] {
            for (pair, buffer) in (0..).zip(losses) {
                let died = Died { buffer, ..Died::default() };
                let trial = UdpScene { offered: 100_000, died, ..UdpScene::default() }.trial();
                run.trials.push(TrialRecord { purpose: Purpose::Proof { round: 0, pair, fixed }, at_us: 0, trial });
            }
        }
        let mut run = proved(run, 0, "udp-receive-buffer", [0.0; 3], [0.0; 3]);
        run.trials.retain(|record| record.trial.of::<UdpPlan>().is_some());
        crate::report::proof(&run, &run.attempts[0]).expect("a proof")
    }

    #[test]
    fn less_loss_is_help_where_the_goodput_hardly_grows() {
        let proof = udp_proof([310, 290, 500], [0, 0, 2]);
        assert!(proof.helped && proof.gain.is_some_and(|gain| gain < 1.01), "{proof:#?}");
        assert_eq!((proof.before_loss[0], proof.after_loss[0]), (0.0031, 0.0));
        assert!(!udp_proof([310, 290, 300], [305, 295, 301]).helped);
        assert!(!udp_proof([0, 2, 1], [310, 290, 300]).helped);
    }

    #[test]
    fn a_later_act_is_lowered_by_itself_and_the_first_stays_proven() {
        let mut run = proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, [634.0, 630.0, 641.0]);
        let second = Scene { goodput_bps: 60e6, snd_wnd: 263_000, ..small_window() }.trial();
        run.trials.push(TrialRecord { purpose: Purpose::Baseline { round: 1 }, at_us: 0, trial: second });
        let run = proved(run, 1, "tcp-receive-window", [60.0, 60.1, 59.9], [60.0, 59.8, 60.2]);
        let report = reported(&run);
        assert_eq!(report.verdict.status, Status::Limited);
        let statuses: Vec<Status> = report.rounds.iter().map(|round| round.status).collect();
        assert_eq!(statuses, [Status::Limited, Status::Suspected], "{:#?}", report.rounds);
    }

    #[test]
    fn a_proof_of_another_cause_says_nothing_of_this_one() {
        let run = proved(small_window().run(&[]), 0, "offloads-off", BEFORE, [37.1, 36.8, 37.0]);
        assert_eq!(reported(&run).verdict.status, Status::Limited);
    }

    #[test]
    fn an_attempt_that_was_cut_before_its_proof_lowers_nothing() {
        let mut run = proved(small_window().run(&[]), 0, "tcp-receive-window", BEFORE, [37.1, 36.8, 37.0]);
        run.trials.retain(|record| !matches!(record.purpose, Purpose::Proof { fixed: true, .. }));
        let report = reported(&run);
        assert_eq!(report.verdict.status, Status::Limited);
        assert!(report.rounds[0].proof.is_none() && report.proof.is_none());
    }
}
