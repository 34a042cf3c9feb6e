//! A run that ended before its diagnosis was complete: what was measured, and no verdict.
//!
//! Evidence that is incomplete accuses no one: a load that was cut in slow start looks like a small window, and an experiment that was
//! not made might have contradicted the first cause.

use crate::diagnosis::{Diagnosis, untried};
use narrows_model::run::report::AccountsView;
use narrows_model::run::{Ending, Purpose};
use narrows_model::words::units;
use narrows_model::{LoadPlan, Run, Status, Trial, Verdict};

/// How a round was cut short.
pub(crate) struct Interrupted<'a> {
    run: &'a Run,
    round: u32,
    /// The load itself, and not only what was to follow it.
    load: bool,
}

impl<'a> Interrupted<'a> {
    /// `None` of a round that was diagnosed: the run is complete, or it went on to a fix.
    pub(crate) fn of(run: &'a Run, round: u32) -> Option<Self> {
        let fixes = run.attempts.iter().any(|attempt| attempt.round >= round);
        let (mut last, mut load) = (false, false);
        for record in &run.trials {
            if let Purpose::Baseline { round: of } = record.purpose {
                last = of == round;
            }
            load = last && matches!(record.purpose, Purpose::Baseline { .. });
        }
        (run.ending != Ending::Complete && last && !fixes).then_some(Self { run, round, load })
    }

    /// Takes the verdict back, since the run was to tell more; without a diagnosis, what the receiving end got.
    pub(crate) fn amend(&self, diagnosis: Option<Diagnosis>) -> Option<Diagnosis> {
        let lost = matches!(self.run.ending, Ending::Failed(_));
        // What the receiving end of datagrams counted is lost with its record: only its samples are left.
        let of_udp = self.trial().is_some_and(|trial| matches!(trial.plan, LoadPlan::Udp(_)));
        let diagnosis = diagnosis.filter(|_| !(of_udp && self.load && lost));
        let Some(Diagnosis { mut accounts, mut verdict, next }) = diagnosis else { return self.plain() };
        let decided = matches!(verdict.status, Status::Limited | Status::Healthy);
        let so_far = std::mem::take(&mut verdict.headline);
        let seconds = self.seconds();
        verdict.headline = format!(
            "{} {seconds}; what limits it is unknown, since the run was interrupted before its diagnosis was complete",
            units::bps(verdict.goodput_bps)
        );
        verdict.status = Status::Unknown;
        verdict.causes.clear();
        verdict.both = None;
        if self.load {
            verdict.missing.clear();
            verdict.hazards.clear();
        } else {
            if decided {
                untried(&mut verdict, &next);
            }
            verdict.missing.insert(0, format!("what further experiments would show; so far: {so_far}"));
        }
        if self.load && lost {
            // The receiving end's counters are lost, or those of its last moments: whatever was on its way would count as dropped.
            accounts.ledger.clear();
        }
        Some(Diagnosis { accounts, verdict, next: Vec::new() })
    }

    /// How much of the load was measured, in words.
    fn seconds(&self) -> String {
        let elapsed_us = self.trial().map_or(0, |trial| trial.elapsed_us);
        format!("over {}", units::micros(elapsed_us))
    }

    fn trial(&self) -> Option<&'a Trial> {
        let is_load = |purpose: &Purpose| matches!(purpose, Purpose::Baseline { round } if *round == self.round);
        self.run.trials.iter().find(|record| is_load(&record.purpose)).map(|record| &record.trial)
    }

    /// The goodput alone, from the samples of the receiving end.
    fn plain(&self) -> Option<Diagnosis> {
        let trial = self.trial()?;
        let direction = trial.plan.streams().first()?.flow.direction();
        let receiver = direction.flows().first()?.receiver();
        let record = if receiver == trial.client.end().place() { &trial.client } else { &trial.server };
        let goodput = |samples: Vec<&dyn narrows_model::Sample>| {
            let (first, last) = (samples.first()?, samples.last()?);
            let span_us = last.at_us().checked_sub(first.at_us()).filter(|us| *us > 0)?;
            Some(last.bytes().saturating_sub(first.bytes()) as f64 * 8e6 / span_us as f64)
        };
        let streams: Vec<f64> = record.end().samples().into_iter().filter_map(goodput).collect();
        let goodput_bps: f64 = streams.iter().sum();
        (goodput_bps > 0.0).then(|| Diagnosis {
            accounts: AccountsView {
                underlay: None,
                roofline: Vec::new(),
                time_budget: None,
                path_profile: None,
                latency: None,
                phases: Vec::new(),
                ledger: Vec::new(),
            },
            verdict: Verdict {
                status: Status::Unknown,
                headline: format!(
                    "{} {}; what limits it is unknown, since the run was interrupted",
                    units::bps(goodput_bps),
                    self.seconds()
                ),
                goodput_bps,
                direction,
                causes: Vec::new(),
                both: None,
                missing: Vec::new(),
                hazards: Vec::new(),
            },
            next: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::report;
    use crate::testing::{Scene, fact, ordinary_host, with};
    use narrows_model::host::fact::Unit;
    use narrows_model::run::Ending;
    use narrows_model::{Report, Run, Status};

    /// A path whose loss asks for experiments.
    fn lossy() -> Scene {
        let seen = Scene { goodput_bps: 300e6, min_rtt_us: 1_000, rtt_us: 1_100, cwnd: 30, ..Scene::default() };
        Scene { lost: 200, segments: 200_000, ..seen }
    }

    fn cut(run: Run, ending: Ending) -> Report {
        report(&Run { ending, ..run }).expect("what was measured")
    }

    #[test]
    fn a_load_that_was_cut_accuses_no_one_and_keeps_its_accounts() {
        let small = fact("tcp.rmem.max", 262_144_i64, Unit::Bytes);
        let slow = Scene {
            goodput_bps: 37e6,
            rtt_us: 35_100,
            rwnd: 0.97,
            snd_wnd: 162_000,
            rcvbuf: 262_144,
            receiver_facts: with(ordinary_host(), small),
            ..Scene::default()
        };
        assert_eq!(
            report(&slow.run(&[])).expect("a baseline").verdict.status,
            Status::Limited,
            "else nothing is shown"
        );
        for ending in [Ending::Interrupted, Ending::Failed("the server is lost".to_owned())] {
            let report = cut(slow.run(&[]), ending.clone());
            let verdict = &report.verdict;
            assert_eq!((verdict.status, verdict.causes.len(), &report.run.ending), (Status::Unknown, 0, &ending));
            assert!(verdict.headline.contains("the run was interrupted"), "{}", verdict.headline);
            assert!(report.accounts.time_budget.is_some() && (verdict.goodput_bps - 37e6).abs() < 1e6);
        }
    }

    #[test]
    fn a_run_that_ended_among_its_experiments_says_what_it_has_so_far() {
        let still = Scene { goodput_bps: 140e6, segments: 40_000, lost: 41, ..lossy() };
        let short = Scene { goodput_bps: 1e6, ..lossy() };
        let made = [("paced-half", &still), ("more-streams", &short)];
        let whole = report(&lossy().run(&made[..1])).expect("a baseline").verdict;
        assert_eq!(whole.status, Status::Suspected);
        // The last experiment was cut: a part of it is not taken for the whole.
        let report = cut(lossy().run(&made), Ending::Interrupted);
        let (verdict, ids) = (&report.verdict, report.experiments.iter().map(|it| it.id.as_str()).collect::<Vec<_>>());
        assert_eq!((verdict.status, verdict.causes.len(), ids), (Status::Unknown, 0, vec!["paced-half"]));
        assert!(verdict.missing[0].ends_with(&whole.headline), "{:?}", verdict.missing);
    }

    #[test]
    fn without_evidence_the_goodput_is_told_and_without_bytes_nothing() {
        let mut run = lossy().run(&[]);
        run.ending = Ending::Failed("the server is lost".to_owned());
        let end = crate::testing::tcp_end(&mut run.trials[0].trial.client);
        end.streams.clear();
        let told = report(&run).expect("the receiver's bytes").verdict;
        assert_eq!((told.status, told.headline.contains("interrupted")), (Status::Unknown, true));
        assert!((told.goodput_bps - 300e6).abs() < 30e6, "{}", told.goodput_bps);
        crate::testing::tcp_end(&mut run.trials[0].trial.server).streams.clear();
        assert!(report(&run).is_none());
    }
}
