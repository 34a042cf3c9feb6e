//! The climb: apply the fix, measure alternately without and with it, find the next bottleneck, and roll everything back at the end.

use super::Diagnosis;
use crate::conductor::{self, At, InForce};
use crate::ends::{EndsError, On};
use narrows_diagnose::experiments::tcp::for_proof;
use narrows_diagnose::judge::is_disproved;
use narrows_diagnose::report;
use narrows_model::run::report::ProofView;
use narrows_model::run::{Attempt, Purpose};
use narrows_model::words::{figures::float, units};
use narrows_model::{Change, Finding, LoadPlan, Setting, Status, TcpPlan, Verdict};

/// More rounds than this is no climb but a loop.
const MAX_ROUNDS: u32 = 6;

impl Diagnosis<'_> {
    /// Climbs from the first round until the path is healthy or no fix remains; then rolls back whatever is not to be kept.
    pub(super) fn climb(&mut self, first: Verdict, load: LoadPlan) -> Result<(), EndsError> {
        let mut in_force = InForce::default();
        let outcome = self.rounds(first, load, &mut in_force);
        let keep = self.plan.keep && outcome.is_ok();
        let changed = in_force.changes().to_vec();
        let left = in_force.end(self.ends, keep);
        for change in changed.iter().filter(|change| left.iter().all(|(other, _)| other.id != change.id)) {
            self.note(&change.id, keep);
        }
        if !changed.is_empty() {
            self.watch.result(if keep {
                "the fixes that helped are kept (`narrows tune list` and `narrows tune undo` on the host that was changed)"
            } else {
                "all changes are rolled back"
            });
        }
        self.save();
        outcome?;
        if left.is_empty() {
            return Ok(());
        }
        let left: Vec<_> =
            left.iter().map(|(change, why)| format!("`{}` at {}: {why}", change.set, change.at)).collect();
        Err(EndsError::Failed(format!(
            "cannot roll back {}; run `narrows tune undo all` on that host",
            left.join(", ")
        )))
    }

    fn rounds(&mut self, first: Verdict, mut load: LoadPlan, in_force: &mut InForce) -> Result<(), EndsError> {
        let mut verdict = first;
        for round in 0..MAX_ROUNDS {
            if verdict.status != Status::Limited {
                return Ok(());
            }
            let Some(finding) = verdict.causes.first().cloned() else { return Ok(()) };
            let fixed_load = finding.fix.load.clone();
            if finding.fix.settings.is_empty() && fixed_load.is_none() {
                self.watch.result(&format!("{}: no automatic fix; {}", finding.id, finding.fix.advice));
                return Ok(());
            }
            let fixed_load = fixed_load.unwrap_or_else(|| load.clone());
            let before: Vec<At> = in_force.changes().iter().map(|change| (change.at, change.set.clone())).collect();
            let after = [before.as_slice(), &finding.fix.settings].concat();
            self.run.attempts.push(attempt(round, &finding));
            if let Some(why) = self.untried([&before, &after], fixed_load == load, in_force)? {
                // What was proven before stays.
                self.run.attempts.pop();
                self.watch.result(&format!("the fix for {} {why}", finding.id));
                self.absent(&finding.id, format!("its fix {why}"));
                self.save();
                return Ok(());
            }
            let proof = self.prove(round, [(&before, &load), (&after, &fixed_load)], in_force)?;
            if !proof.as_ref().is_some_and(|proof| proof.helped) {
                let outcome = if proof.as_ref().is_some_and(is_disproved) {
                    format!("the fix for {} did not help", finding.id)
                } else {
                    format!("the proof does not decide whether the fix for {} helps", finding.id)
                };
                self.watch.result(&format!("{outcome}; rolled back"));
                // The verdict of the report, which the proof lowers.
                let rounds = narrows_diagnose::report(&self.run).map(|report| report.rounds).unwrap_or_default();
                if let Some(judged) = rounds.iter().find(|judged| judged.round == round) {
                    self.watch.result(&judged.headline);
                }
                return Ok(());
            }
            load = fixed_load;
            verdict = self.round(round + 1, &load)?;
        }
        Ok(())
    }

    /// Why a fix is not proved: its host refuses it, or has it already. What was in force before is in force again then.
    fn untried(
        &mut self,
        [before, after]: [&[At]; 2],
        same_load: bool,
        in_force: &mut InForce,
    ) -> Result<Option<String>, EndsError> {
        let why = match self.switch(after, in_force) {
            Err(EndsError::Failed(why)) => Some(format!("cannot be tried here: {why}")),
            Err(why) => return Err(why),
            Ok(()) => {
                let mut of_fix = in_force.changes().iter().filter(|it| !before.contains(&(it.at, it.set.clone())));
                (same_load && of_fix.all(changes_nothing))
                    .then(|| "changes nothing: the host is set so already".to_owned())
            }
        };
        if why.is_some() {
            self.switch(before, in_force)?;
        }
        Ok(why)
    }

    /// Pairs of trials without and with the fix. At the end the fix is in force if it helped.
    fn prove(
        &mut self,
        round: u32,
        sides: [Side<'_>; 2],
        in_force: &mut InForce,
    ) -> Result<Option<ProofView>, EndsError> {
        let outcome = self.pairs(round, sides, in_force);
        let proof = if outcome.is_ok() { self.proof(round) } else { None };
        let helped = proof.as_ref().is_some_and(|proof| proof.helped);
        let [(before, _), (after, _)] = sides;
        self.switch(if helped { after } else { before }, in_force)?;
        if let Some(attempt) = self.run.attempts.last_mut() {
            attempt.kept_for_next_round = helped;
        }
        self.save();
        outcome.map(|()| proof)
    }

    fn pairs(&mut self, round: u32, sides: [Side<'_>; 2], in_force: &mut InForce) -> Result<(), EndsError> {
        let rtt_us = self.run.idle_rtt_us.iter().min().map(|us| float(*us));
        let loads = sides.map(|(_, load)| for_proof(load, rtt_us));
        self.watch.result(&takes(2 * self.plan.proof_pairs, &loads));
        for pair in 0..self.plan.proof_pairs {
            for fixed in conductor::sides(pair as usize) {
                let word = if fixed { "with" } else { "without" };
                self.watch.step(&format!("proof {} of {}: {word} the fix", pair + 1, self.plan.proof_pairs));
                let (settings, load) = sides[usize::from(fixed)];
                self.switch(settings, in_force)?;
                self.trial(Purpose::Proof { round, pair, fixed }, &for_proof(load, rtt_us), On::Path)?;
            }
        }
        Ok(())
    }

    /// Brings these settings into force; the run says at once what was changed.
    fn switch(&mut self, wanted: &[At], in_force: &mut InForce) -> Result<(), EndsError> {
        let before: Vec<String> = in_force.changes().iter().map(|change| change.id.clone()).collect();
        let outcome = in_force.reach(self.ends, wanted);
        let now = in_force.changes();
        before.iter().filter(|id| now.iter().all(|change| change.id != **id)).for_each(|id| self.note(id, false));
        let made: Vec<Change> = now.iter().filter(|change| !before.contains(&change.id)).cloned().collect();
        made.iter().for_each(|change| self.write_down(change));
        outcome
    }

    fn write_down(&mut self, change: &Change) {
        if let Some(attempt) = self.run.attempts.last_mut() {
            attempt.changes.retain(|known| known.set != change.set || known.at != change.at);
            attempt.changes.push(change.clone());
        }
        self.save();
    }

    fn note(&mut self, id: &str, in_force: bool) {
        for change in self.run.attempts.iter_mut().flat_map(|attempt| attempt.changes.iter_mut()) {
            if change.id == id {
                change.in_force = in_force;
            }
        }
    }

    fn proof(&mut self, round: u32) -> Option<ProofView> {
        let attempt = self.run.attempts.iter().find(|attempt| attempt.round == round)?;
        let proof = report::proof(&self.run, attempt)?;
        let lost = if proof.before_loss.is_empty() {
            String::new()
        } else {
            let of = |losses: &[f64]| units::percent(mean(losses));
            format!("; lost {} -> {}", of(&proof.before_loss), of(&proof.after_loss))
        };
        self.watch.result(&format!(
            "{} -> {}: {}; {}{lost}",
            units::bps(mean(&proof.before_bps)),
            units::bps(mean(&proof.after_bps)),
            proof.gain_words(),
            proof.predicted_words()
        ));
        Some(proof)
    }
}

/// What is in force in a trial, and its load.
type Side<'a> = (&'a [At], &'a LoadPlan);

/// What a proof of so many loads takes, those without and with the fix in turn.
fn takes(count: u32, loads: &[LoadPlan; 2]) -> String {
    let is_unpaced = |load: &LoadPlan| {
        let tcp = load.get::<TcpPlan>();
        tcp.is_some_and(|tcp| tcp.pacing_bps.is_none() && tcp.application == TcpPlan::default().application)
    };
    let rate = if loads.iter().all(is_unpaced) { " at full rate" } else { "" };
    let lasts = loads[0].duration_ms().map(|ms| format!(", {} each", units::micros(ms * 1000))).unwrap_or_default();
    let limits = match loads[0] {
        LoadPlan::Tcp(_) => "--duration and --bytes limit them",
        _ => "--duration limits them",
    };
    format!("the proof takes {count} loads{rate}{lasts} ({limits})")
}

/// Whether a host had the value before that a change has set, as far as the change says it.
fn changes_nothing(change: &Change) -> bool {
    match &change.set {
        Setting::Sysctl { value, .. } => *value == change.before,
        Setting::Mtu { mtu, .. } => mtu.to_string() == change.before,
        Setting::RootQdisc { kind, .. } => *kind == change.before,
        _ => false,
    }
}

fn attempt(round: u32, finding: &Finding) -> Attempt {
    let whole = |bps: f64| bps.clamp(0.0, 1e15) as u64;
    let prediction = finding.prediction.as_ref();
    Attempt {
        round,
        cause: finding.id.clone(),
        predicted_bps: prediction.map_or(0, |prediction| whole(prediction.bps)),
        predicted_interval_bps: prediction.and_then(|prediction| Some(prediction.interval_bps?.map(whole))),
        changes: Vec::new(),
        load: finding.fix.load.clone(),
        kept_for_next_round: false,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::{self, Changes, Ends, TrialFailed};
    use crate::measure;
    use narrows_model::run::{DiagnosePlan, RunPlan};
    use narrows_model::{Application, Family, Limit, Place, Snapshot, Target, Trial, UdpPlan};
    use narrows_sys::clock;

    /// A host on which every parameter is 1; it refuses some. With what is in force.
    struct Host(Vec<String>);

    impl Changes for Host {
        fn apply(&mut self, at: Place, set: &Setting) -> Result<Change, EndsError> {
            let id = set.to_string();
            if id.contains("refused") {
                return Err(EndsError::Failed("it cannot be restored".to_owned()));
            }
            self.0.push(id.clone());
            Ok(Change { id, at, set: set.clone(), before: "1".to_owned(), made_unix_us: 0, in_force: true })
        }

        fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
            self.0.retain(|id| *id != change.id);
            Ok(())
        }

        fn keep(&mut self, _: &Change) -> Result<(), EndsError> {
            Ok(())
        }
    }

    impl Ends for Host {
        fn inventory(&mut self, _: Place) -> Result<Snapshot, EndsError> {
            Ok(Snapshot::default())
        }

        fn trial(&mut self, _: &LoadPlan, _: On, _: ends::Watch<'_>) -> Result<Trial, TrialFailed> {
            Err(TrialFailed { why: EndsError::Failed("no trial here".to_owned()), partial: None })
        }

        fn stopped(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_proof_says_what_it_takes_and_which_flags_limit_it() {
        let tcp = TcpPlan { limit: Limit::DurationMs(4_000), ..TcpPlan::default() };
        let of = |without: LoadPlan, with: TcpPlan| takes(6, &[without, with.into()]);
        let all = "the proof takes 6 loads at full rate, 4.00 s each (--duration and --bytes limit them)";
        assert_eq!(of(tcp.clone().into(), tcp.clone()), all);
        let slower = all.replace(" at full rate", "");
        let paced = TcpPlan { pacing_bps: Some(5_000_000), ..tcp.clone() };
        let slow = Application { write_bps: 5_000_000, ..tcp.application };
        let slow = TcpPlan { application: slow, ..tcp.clone() };
        assert_eq!(of(paced.clone().into(), paced), slower);
        assert_eq!(of(slow.into(), tcp.clone()), slower, "one side of two");
        let bytes = TcpPlan { limit: Limit::BytesPerStream(1 << 20), ..tcp };
        assert_eq!(of(bytes.clone().into(), bytes), all.replace(", 4.00 s each", ""));
        let udp = LoadPlan::from(UdpPlan { duration_ms: 2_000, ..UdpPlan::default() });
        assert_eq!(takes(6, &[udp.clone(), udp]), "the proof takes 6 loads, 2.00 s each (--duration limits them)");
    }

    #[test]
    fn what_a_host_refuses_or_has_already_is_not_tried_and_what_was_proven_stays() {
        let at = |key: &str, value: &str| -> At {
            (Place::Server, Setting::Sysctl { key: key.to_owned(), value: value.to_owned() })
        };
        let of = |fix: &[At], same_load| {
            let plan = DiagnosePlan::of(TcpPlan::default().into());
            let target = Target { asked: "h".into(), address: "192.0.2.1:5220".into(), family: Family::Ipv4 };
            let run = measure::empty_run(RunPlan::Diagnose(plan.clone()), target, ("test".into(), "test".into()));
            let (mut host, mut watch, mut in_force) = (Host(Vec::new()), (), InForce::default());
            let began = clock::now();
            let mut climb = Diagnosis { ends: &mut host, watch: &mut watch, plan, run, began, overhead_ms: 0 };
            let before = vec![at("net.proven", "2")];
            climb.switch(&before, &mut in_force).expect("the first one");
            let after = [before.as_slice(), fix].concat();
            let why = climb.untried([&before, &after], same_load, &mut in_force).expect("no host is lost");
            (why, host.0)
        };
        let proven = vec!["sysctl -w net.proven=2".to_owned()];
        let (why, left) = of(&[at("net.a", "2"), at("net.refused", "2")], true);
        assert_eq!((why.as_deref(), left), (Some("cannot be tried here: it cannot be restored"), proven.clone()));
        let (why, left) = of(&[at("net.a", "1"), at("net.b", "1")], true);
        assert!(why.is_some_and(|why| why.contains("is set so already")) && left == proven);
        // Another load, or another value of one of them, is to be measured.
        assert_eq!(of(&[at("net.a", "1")], false).0, None);
        assert_eq!(of(&[at("net.a", "1"), at("net.b", "2")], true).0, None);
    }
}
