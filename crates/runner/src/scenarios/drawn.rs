//! What is true of a drawn case, by intervention, and how its verdicts did.

use super::Diagnosed;
use super::draw::Drawn;
use narrows_model::{Place, Status};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What plain loads got through a drawn path: goodput in bits per second or, of UDP, the part that was lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interventions {
    /// Whether the figures are parts that were lost.
    pub udp: bool,
    pub with: f64,
    /// Without each part in turn: its cause, and the figure.
    pub without: Vec<(String, Place, f64)>,
    /// Without all of them.
    pub clean: f64,
    /// The part of this machine's CPU time that the hypervisor gave to others meanwhile: the emulated path stands still then.
    #[serde(default)]
    pub stolen: f64,
}

/// From here on neither the truth nor the verdict of a case says much.
const DISTURBED: f64 = 0.03;

/// A fault whose removal gives less than this is no cause.
const GAIN: f64 = 1.15;
/// If the largest gain of a single removal is in this range, it is within the variation of the loads: both answers are right.
const BORDER: [f64; 2] = [1.11, 1.2];
/// Two removals that give the same within this part are both the cause.
const SAME: f64 = 0.05;
/// Less loss of UDP than this is none, and a fault explains it where so much is left without it.
const LOST: f64 = 0.002;
const LEFT: f64 = 1.0 / 3.0;

impl Interventions {
    /// The causes that would be right, the one that costs most first; none of a healthy path.
    pub fn causes(&self) -> Vec<(&str, Place, f64)> {
        let mut causes: Vec<(&str, Place, f64)> =
            self.without.iter().map(|(id, at, figure)| (id.as_str(), *at, self.gain(*figure))).collect();
        causes.sort_by(|a, b| b.2.total_cmp(&a.2));
        if causes.first().is_some_and(|(.., gain)| *gain < GAIN) {
            // Where only both together give something, each is half of it.
            let clean = self.gain(self.clean);
            return if clean >= GAIN { causes } else { Vec::new() };
        }
        causes.retain(|(.., gain)| *gain >= GAIN);
        causes
    }

    /// The cause that costs most, where it costs so little that a healthy path is a right answer, too.
    fn at_border(&self) -> Option<(&str, Place)> {
        let gains = self.without.iter().map(|(id, at, figure)| (id.as_str(), *at, self.gain(*figure)));
        let (id, at, gain) = gains.max_by(|a, b| a.2.total_cmp(&b.2)).filter(|_| !self.udp)?;
        // Two that only together cost more are causes.
        let together = self.gain(self.clean) <= BORDER[1] * (1.0 + SAME);
        ((BORDER[0]..=BORDER[1]).contains(&gain) && together).then_some((id, at))
    }

    fn gain(&self, figure: f64) -> f64 {
        if !self.udp {
            return figure / self.with.max(1.0);
        }
        if self.with >= LOST && figure <= LEFT * self.with { self.with / figure.max(LOST / 10.0) } else { 1.0 }
    }

    /// Goodput without a cause; `None` of UDP, or where it is none of the parts.
    pub(super) fn without_bps(&self, id: &str, at: Place) -> Option<f64> {
        let found = self.without.iter().find(|(of, place, _)| of == id && *place == at)?;
        (!self.udp).then_some(found.2)
    }
}

/// How a verdict on a drawn case did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The right cause first, or healthy where nothing binds.
    Right,
    /// The right cause, but not first.
    Second,
    Unknown,
    Wrong,
    /// Limited, and called healthy.
    FalseHealthy,
    /// Nothing binds, and something is accused.
    FalseAlarm,
    /// The diagnosis itself failed.
    Failed,
}

/// Grades what was said.
pub fn outcome(truth: &Interventions, said: Option<&Diagnosed>) -> Outcome {
    let Some(said) = said else { return Outcome::Failed };
    let causes = truth.causes();
    let first = said.causes.first().map(|(id, at)| (id.as_str(), *at));
    match (said.status, causes.first()) {
        (Status::Unknown, _) => Outcome::Unknown,
        (Status::Healthy, _) if truth.at_border().is_some() => Outcome::Right,
        (Status::Limited | Status::Suspected, _) if truth.at_border().is_some_and(|it| first == Some(it)) => {
            Outcome::Right
        }
        (Status::Healthy, None) => Outcome::Right,
        (Status::Limited | Status::Suspected, None) => Outcome::FalseAlarm,
        (Status::Healthy, Some(_)) => Outcome::FalseHealthy,
        (Status::Limited | Status::Suspected, Some((.., most))) => {
            let is = |known: &(&str, Place, f64), said: &(String, Place)| known.0 == said.0 && known.1 == said.1;
            let best = |said| causes.iter().any(|cause| is(cause, said) && cause.2 >= most * (1.0 - SAME));
            match said.causes.first() {
                Some(first) if best(first) => Outcome::Right,
                _ if said.causes.iter().any(|said| causes.iter().any(|cause| is(cause, said))) => Outcome::Second,
                _ => Outcome::Wrong,
            }
        }
    }
}

/// One case, once it was run.
#[derive(Debug, Clone)]
pub struct DrawnResult {
    pub drawn: Drawn,
    /// What is true of it.
    pub truth: Interventions,
    /// What was said of it, or why the diagnosis failed.
    pub said: Result<Diagnosed, String>,
}

impl DrawnResult {
    pub fn outcome(&self) -> Outcome {
        outcome(&self.truth, self.said.as_ref().ok())
    }

    /// `Right: path-policer at path 4.2 times; Limited 37 Mbit/s [...]`.
    pub fn words(&self) -> String {
        let causes: Vec<String> =
            self.truth.causes().iter().map(|(id, at, gain)| format!("{id} at {at} ({gain:.1} times)")).collect();
        let truth = if causes.is_empty() { "nothing binds".to_owned() } else { causes.join(", ") };
        let said = self.said.as_ref().map_or_else(Clone::clone, Diagnosed::words);
        let stolen = match self.truth.stolen {
            part if part > DISTURBED => format!(" ({:.0} % of the CPU time stolen)", 100.0 * part),
            _ => String::new(),
        };
        format!("{:?}: {truth}; said: {said}{stolen}", self.outcome())
    }

    /// Predicted against measured goodput without the cause that was named first, and whether it lies in the interval.
    fn prediction(&self) -> Option<(f64, bool)> {
        let said = self.said.as_ref().ok().filter(|_| self.outcome() == Outcome::Right)?;
        let ((id, at), (bps, [low, high])) = (said.causes.first()?, said.predicted?);
        let measured = self.truth.without_bps(id, *at).filter(|bps| *bps > 0.0)?;
        Some((bps / measured - 1.0, (low..=high).contains(&measured)))
    }
}

/// The table of all results, and of those that were not disturbed.
pub fn table(results: &[DrawnResult]) -> String {
    let calm: Vec<DrawnResult> = results.iter().filter(|result| result.truth.stolen <= DISTURBED).cloned().collect();
    let mut text = part_of_table(results);
    if calm.len() < results.len() {
        let _ = writeln!(
            text,
            "\nwithout the {} cases in which more than {:.0} % of the CPU time was stolen from this machine:\n\n{}",
            results.len() - calm.len(),
            100.0 * DISTURBED,
            part_of_table(&calm)
        );
    }
    text
}

fn part_of_table(results: &[DrawnResult]) -> String {
    let mut text = String::from("truth -> verdicts (? = suspected)\n");
    let mut matrix: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for result in results {
        let truth = result.truth.causes().first().map_or_else(|| "nothing".to_owned(), |(id, ..)| (*id).to_owned());
        *matrix.entry(truth).or_default().entry(super::judge::class(result.said.as_ref().ok())).or_default() += 1;
    }
    for (truth, verdicts) in &matrix {
        let verdicts: Vec<String> = verdicts.iter().map(|(verdict, n)| format!("{verdict} {n}")).collect();
        let _ = writeln!(text, "  {truth:<26} {}", verdicts.join(", "));
    }
    text.push('\n');
    let of = |parts: &dyn Fn(&DrawnResult) -> bool, outcomes: &[Outcome]| {
        let among: Vec<&DrawnResult> = results.iter().filter(|result| parts(result)).collect();
        (among.iter().filter(|result| outcomes.contains(&result.outcome())).count(), among.len())
    };
    let border = |result: &DrawnResult| result.truth.at_border().is_some();
    let causes = |result: &DrawnResult| result.truth.at_border().is_none().then(|| result.truth.causes().len());
    let one = |result: &DrawnResult| causes(result) == Some(1);
    let pair = |result: &DrawnResult| causes(result).is_some_and(|count| count > 1);
    let free = |result: &DrawnResult| causes(result) == Some(0);
    let bound = |result: &DrawnResult| causes(result).is_some_and(|count| count > 0);
    for (words, (hits, of)) in [
        ("one cause: right first", of(&one, &[Outcome::Right])),
        ("two causes: the larger first", of(&pair, &[Outcome::Right])),
        ("two causes: first or second", of(&pair, &[Outcome::Right, Outcome::Second])),
        ("nothing binds: not accused", of(&free, &[Outcome::Right])),
        ("nothing binds: accused", of(&free, &[Outcome::FalseAlarm])),
        ("at the border: either answer", of(&border, &[Outcome::Right])),
        ("limited: called healthy", of(&bound, &[Outcome::FalseHealthy])),
        ("unknown", of(&|_| true, &[Outcome::Unknown])),
        ("failed", of(&|_| true, &[Outcome::Failed])),
    ] {
        let interval = narrows_stats::wilson(hits as u64, of as u64, 0.95);
        let interval = interval.map_or_else(String::new, |[low, high]| {
            format!("{:5.1} %  (95 % interval {:.1} to {:.1} %)", 100.0 * part(hits, of), 100.0 * low, 100.0 * high)
        });
        let _ = writeln!(text, "  {words:<30} {hits:>4} of {of:<4} {interval}");
    }
    let predictions: Vec<(f64, bool)> = results.iter().filter_map(DrawnResult::prediction).collect();
    let errors: Vec<f64> = predictions.iter().map(|(error, _)| error.abs()).collect();
    if let Some((median, high)) = narrows_stats::quantile(&errors, 0.5).zip(narrows_stats::quantile(&errors, 0.9)) {
        let inside = predictions.iter().filter(|(_, inside)| *inside).count();
        let _ = writeln!(
            text,
            "  predicted against measured: median error {:.1} %, 90th percentile {:.1} %, {inside} of {} inside the interval",
            100.0 * median,
            100.0 * high,
            errors.len()
        );
    }
    let times: Vec<f64> = results.iter().filter_map(|result| Some(result.said.as_ref().ok()?.seconds)).collect();
    if let Some((median, most)) = narrows_stats::quantile(&times, 0.5).zip(narrows_stats::quantile(&times, 1.0)) {
        let _ = writeln!(text, "  time of a diagnosis: median {median:.1} s, longest {most:.1} s");
    }
    text.push_str(&reliability(results));
    text
}

fn part(hits: usize, of: usize) -> f64 {
    hits as f64 / of.max(1) as f64
}

/// Confidence of the first cause against how often it was right, in ten bins, and the expected calibration error
/// (Naeini, Cooper, Hauskrecht: *Obtaining well calibrated probabilities using Bayesian binning*, 2015).
fn reliability(results: &[DrawnResult]) -> String {
    let mut bins: BTreeMap<usize, Vec<(f64, bool)>> = BTreeMap::new();
    for result in results {
        let Some(confidence) = result.said.as_ref().ok().and_then(|said| said.confidence) else { continue };
        let bin = ((confidence * 10.0) as usize).min(9);
        bins.entry(bin).or_default().push((confidence, result.outcome() == Outcome::Right));
    }
    let total: usize = bins.values().map(Vec::len).sum();
    let (mut text, mut error) = (String::from("  confidence   said   right\n"), 0.0);
    for (bin, said) in &bins {
        let mean = said.iter().map(|(confidence, _)| confidence).sum::<f64>() / said.len() as f64;
        let right = said.iter().filter(|(_, right)| *right).count();
        error += part(said.len(), total) * (mean - part(right, said.len())).abs();
        let _ = writeln!(
            text,
            "  {:>3} to {:>3} % {:4.0} %  {:4.0} %  of {}",
            bin * 10,
            bin * 10 + 10,
            100.0 * mean,
            100.0 * part(right, said.len()),
            said.len()
        );
    }
    let _ = writeln!(text, "  expected calibration error {error:.3}");
    if total == 0 { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::draw::draw;

    fn truth(without: &[(&str, f64)], clean: f64) -> Interventions {
        let without = without.iter().map(|(id, bps)| ((*id).to_owned(), Place::Path, *bps)).collect();
        Interventions { udp: false, with: 10e6, without, clean, stolen: 0.0 }
    }

    fn said(status: Status, causes: &[&str]) -> Diagnosed {
        Diagnosed {
            status,
            causes: causes.iter().map(|id| ((*id).to_owned(), Place::Path)).collect(),
            goodput_bps: 10e6,
            confidence: Some(0.9),
            witnesses: 2,
            predicted: Some((41e6, [39e6, 43e6])),
            seconds: 12.0,
        }
    }

    #[test]
    fn a_fault_is_a_cause_where_its_removal_helps() {
        let one = truth(&[("random-loss", 40e6)], 40e6);
        assert_eq!(outcome(&one, Some(&said(Status::Limited, &["random-loss"]))), Outcome::Right);
        assert_eq!(outcome(&one, Some(&said(Status::Healthy, &["path-capacity"]))), Outcome::FalseHealthy);
        assert_eq!(outcome(&one, Some(&said(Status::Limited, &["path-policer"]))), Outcome::Wrong);
        assert_eq!(outcome(&one, None), Outcome::Failed);
        let none = truth(&[("random-loss", 11e6)], 11e6);
        assert_eq!(outcome(&none, Some(&said(Status::Healthy, &[]))), Outcome::Right);
        assert_eq!(outcome(&none, Some(&said(Status::Suspected, &["random-loss"]))), Outcome::FalseAlarm);
    }

    #[test]
    fn at_the_border_both_answers_are_right_and_a_third_is_not() {
        for without in [11.3e6, 11.9e6] {
            let border = truth(&[("random-loss", without)], without);
            let of = |status, id| outcome(&border, Some(&said(status, &[id])));
            assert_eq!(of(Status::Limited, "random-loss"), Outcome::Right, "{without}");
            assert_eq!(of(Status::Healthy, "path-capacity"), Outcome::Right, "{without}");
            assert_ne!(of(Status::Limited, "path-policer"), Outcome::Right, "{without}");
        }
        let beyond = truth(&[("random-loss", 12.5e6)], 12.5e6);
        assert_eq!(outcome(&beyond, Some(&said(Status::Healthy, &["path-capacity"]))), Outcome::FalseHealthy);
        let together = truth(&[("random-loss", 11.3e6), ("path-policer", 11.2e6)], 30e6);
        assert_eq!(outcome(&together, Some(&said(Status::Healthy, &["path-capacity"]))), Outcome::FalseHealthy);
    }

    #[test]
    fn of_two_the_larger_is_right_and_equal_ones_are_both() {
        let two = truth(&[("random-loss", 20e6), ("path-policer", 30e6)], 60e6);
        assert_eq!(outcome(&two, Some(&said(Status::Limited, &["path-policer"]))), Outcome::Right);
        assert_eq!(outcome(&two, Some(&said(Status::Limited, &["random-loss"]))), Outcome::Second);
        let equal = truth(&[("random-loss", 20e6), ("path-policer", 20.5e6)], 60e6);
        assert_eq!(outcome(&equal, Some(&said(Status::Limited, &["random-loss"]))), Outcome::Right);
        // Neither alone, both together: either is right.
        let hidden = truth(&[("random-loss", 10e6), ("path-policer", 10.2e6)], 60e6);
        assert_eq!(outcome(&hidden, Some(&said(Status::Limited, &["random-loss"]))), Outcome::Right);
    }

    #[test]
    fn of_udp_what_was_lost_counts() {
        let without = vec![("random-loss".to_owned(), Place::Path, 0.0)];
        let lossy = Interventions { udp: true, with: 0.02, without: without.clone(), clean: 0.0, stolen: 0.0 };
        assert_eq!(lossy.causes().len(), 1);
        assert!(Interventions { udp: true, with: 0.001, without, clean: 0.0, stolen: 0.0 }.causes().is_empty());
    }

    #[test]
    fn the_table_counts_and_measures_predictions() {
        let result = |truth: Interventions, said| DrawnResult { drawn: draw(1, 1, false), truth, said: Ok(said) };
        let results = [
            result(truth(&[("random-loss", 40e6)], 40e6), said(Status::Limited, &["random-loss"])),
            result(truth(&[], 10e6), said(Status::Limited, &["random-loss"])),
        ];
        let text = table(&results);
        assert!(text.contains("one cause: right first            1 of 1"), "{text}");
        assert!(text.contains("nothing binds: accused            1 of 1"), "{text}");
        assert!(text.contains("median error 2.5 %") && text.contains("1 of 1 inside"), "{text}");
        assert!(text.contains("expected calibration error 0.400"), "{text}");
        assert!(!text.contains("stolen"), "{text}");
        let disturbed = Interventions { stolen: 0.2, ..truth(&[], 10e6) };
        let [first, _] = results;
        let text = table(&[first, result(disturbed, said(Status::Limited, &["random-loss"]))]);
        assert!(text.contains("nothing binds: accused            1 of 1"), "{text}");
        let (_, calm) = text.split_once("without the 1 cases in which more than 3 %").expect("both tables");
        assert!(calm.contains("nothing binds: accused            0 of 0"), "{text}");
    }
}
