//! The climb: apply the fix, measure alternately without and with it, find the next bottleneck, and roll everything back at the end.

use super::Diagnosis;
use crate::ends::{EndsError, On};
use narrows_diagnose::report;
use narrows_model::run::{Attempt, Purpose};
use narrows_model::{Change, Finding, LoadPlan, Setting, Status, Verdict, words::units};

/// More rounds than this is no climb but a loop.
const MAX_ROUNDS: u32 = 6;

impl Diagnosis<'_> {
    /// Climbs from the first round until the path is healthy or no fix remains; then rolls back whatever is not to be kept.
    pub(super) fn climb(&mut self, first: Verdict, load: LoadPlan) -> Result<(), EndsError> {
        let mut in_force: Vec<Change> = Vec::new();
        let outcome = self.rounds(first, load, &mut in_force);
        let keep = self.plan.keep && outcome.is_ok();
        let mut left = Vec::new();
        for change in in_force.iter().rev() {
            let done = if keep { self.ends.keep(change) } else { self.ends.undo(change) };
            match done {
                Ok(()) => self.note(&change.id, keep),
                Err(why) => left.push(format!("`{}` at {}: {why}", change.set, change.at)),
            }
        }
        if !in_force.is_empty() {
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
        Err(EndsError::Failed(format!(
            "cannot roll back {}; run `narrows tune undo all` on that host",
            left.join(
                ", \
            "
            )
        )))
    }

    fn rounds(&mut self, first: Verdict, mut load: LoadPlan, in_force: &mut Vec<Change>) -> Result<(), EndsError> {
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

    /// Pairs of trials without and with the fix, the first of each pair in turn, so that drift hits both alike. At the end
    /// the fix is in force if it helped.
    fn prove(
        &mut self,
        round: u32,
        finding: &Finding,
        load: &LoadPlan,
        fixed_load: &LoadPlan,
        in_force: &mut Vec<Change>,
    ) -> Result<bool, EndsError> {
        let settings: Vec<(narrows_model::Place, Setting)> = finding.fix.settings.clone();
        let mut applied: Vec<Change> = Vec::new();
        let outcome = self.pairs(round, &settings, load, fixed_load, &mut applied);
        let helped = outcome.is_ok() && self.helped(round);
        if helped {
            if applied.is_empty() {
                self.switch(true, &settings, &mut applied)?;
            }
            in_force.append(&mut applied.clone());
        } else {
            self.switch(false, &settings, &mut applied)?;
        }
        if let Some(attempt) = self.run.attempts.last_mut() {
            attempt.kept_for_next_round = helped;
            if helped {
                attempt.changes = applied;
            }
        }
        self.save();
        outcome.map(|()| helped)
    }

    fn pairs(
        &mut self,
        round: u32,
        settings: &[(narrows_model::Place, Setting)],
        load: &LoadPlan,
        fixed_load: &LoadPlan,
        applied: &mut Vec<Change>,
    ) -> Result<(), EndsError> {
        for pair in 0..self.plan.proof_pairs {
            // A B, B A, A B, …
            for fixed in if pair % 2 == 0 { [false, true] } else { [true, false] } {
                let word = if fixed { "with" } else { "without" };
                self.watch.step(&format!("proof {} of {}: {word} the fix", pair + 1, self.plan.proof_pairs));
                self.switch(fixed, settings, applied)?;
                let plan = if fixed { fixed_load } else { load }.for_proof();
                self.trial(Purpose::Proof { round, pair, fixed }, &plan, On::Path)?;
            }
        }
        Ok(())
    }

    /// Brings the fix into force or out of it; nothing where it is so already.
    fn switch(
        &mut self,
        on: bool,
        settings: &[(narrows_model::Place, Setting)],
        applied: &mut Vec<Change>,
    ) -> Result<(), EndsError> {
        if on && applied.is_empty() {
            for (place, setting) in settings {
                let change = self.ends.apply(*place, setting)?;
                self.write_down(&change);
                applied.push(change);
            }
        } else if !on {
            while let Some(change) = applied.last() {
                self.ends.undo(change)?;
                let id = change.id.clone();
                applied.pop();
                self.note(&id, false);
            }
        }
        Ok(())
    }

    /// The run says what was changed as soon as it is.
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
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
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

#[allow(clippy::cast_precision_loss)]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
