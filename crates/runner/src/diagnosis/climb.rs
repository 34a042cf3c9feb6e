//! The climb: apply the fix, measure alternately without and with it, find the next bottleneck, and roll everything back at the end.

use super::Diagnosis;
use crate::conductor::{self, At, InForce};
use crate::ends::{EndsError, On};
use narrows_diagnose::report;
use narrows_model::run::{Attempt, Purpose};
use narrows_model::{Change, Finding, LoadPlan, Status, Verdict, words::units};

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
                "the fixes that helped are kept (see `narrows tune list`)"
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
            self.run.attempts.push(attempt(round, &finding));
            let helped = self.prove(round, &finding, &load, &fixed_load, in_force)?;
            if !helped {
                self.watch.result(&format!("the fix for {} did not help; rolled back", finding.id));
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

    /// Pairs of trials without and with the fix. At the end the fix is in force if it helped.
    fn prove(
        &mut self,
        round: u32,
        finding: &Finding,
        load: &LoadPlan,
        fixed_load: &LoadPlan,
        in_force: &mut InForce,
    ) -> Result<bool, EndsError> {
        let before: Vec<At> = in_force.changes().iter().map(|change| (change.at, change.set.clone())).collect();
        let after = [before.as_slice(), &finding.fix.settings].concat();
        let outcome = self.pairs(round, [(&before, load), (&after, fixed_load)], in_force);
        let helped = outcome.is_ok() && self.helped(round);
        self.switch(if helped { &after } else { &before }, in_force)?;
        if let Some(attempt) = self.run.attempts.last_mut() {
            attempt.kept_for_next_round = helped;
        }
        self.save();
        outcome.map(|()| helped)
    }

    fn pairs(
        &mut self,
        round: u32,
        sides: [(&Vec<At>, &LoadPlan); 2],
        in_force: &mut InForce,
    ) -> Result<(), EndsError> {
        for pair in 0..self.plan.proof_pairs {
            for fixed in conductor::sides(pair as usize) {
                let word = if fixed { "with" } else { "without" };
                self.watch.step(&format!("proof {} of {}: {word} the fix", pair + 1, self.plan.proof_pairs));
                let (settings, load) = sides[usize::from(fixed)];
                self.switch(settings, in_force)?;
                self.trial(Purpose::Proof { round, pair, fixed }, &load.for_proof(), On::Path)?;
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

    fn helped(&mut self, round: u32) -> bool {
        let Some(attempt) = self.run.attempts.iter().find(|attempt| attempt.round == round) else { return false };
        let Some(proof) = report::proof(&self.run, attempt) else { return false };
        let lost = if proof.before_loss.is_empty() {
            String::new()
        } else {
            let of = |losses: &[f64]| units::percent(mean(losses));
            format!("; lost {} -> {}", of(&proof.before_loss), of(&proof.after_loss))
        };
        self.watch.result(&format!(
            "{} -> {}: {}, predicted {}{lost}",
            units::bps(mean(&proof.before_bps)),
            units::bps(mean(&proof.after_bps)),
            proof.gain_words(),
            proof.predicted_words()
        ));
        proof.helped
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
