//! Grades of the scenario suite: a confusion matrix with *healthy* and *unknown*, not a single score.

use super::Case;
use narrows_model::{Place, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a diagnosis said of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosed {
    pub status: Status,
    /// The causes, best first.
    pub causes: Vec<(String, Place)>,
    /// Goodput, bits per second.
    pub goodput_bps: f64,
    /// Confidence in the first cause.
    pub confidence: Option<f64>,
    /// Witnesses of the first cause.
    pub witnesses: usize,
    /// Goodput that is predicted without the first cause, and its interval.
    pub predicted: Option<(f64, [f64; 2])>,
    /// How long the diagnosis took.
    pub seconds: f64,
}

impl Diagnosed {
    /// `Limited 37 Mbit/s [tcp-receive-window at server]`.
    pub fn words(&self) -> String {
        let causes: Vec<String> = self.causes.iter().map(|(id, at)| format!("{id} at {at}")).collect();
        format!("{:?} {} [{}]", self.status, narrows_model::words::units::bps(self.goodput_bps), causes.join(", "))
    }
}

/// How a diagnosis did on a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The right cause at the right place first, or a healthy path not accused.
    Right,
    /// The right cause, but only suspected.
    Suspected,
    /// The right cause, but not first.
    Second,
    Unknown,
    /// Another cause, or a faulty path called healthy.
    Wrong,
    /// A healthy path accused.
    FalseAlarm,
    /// The diagnosis itself failed.
    Failed,
}

/// Grades what was said of a case.
pub fn grade(case: &Case, said: Option<&Diagnosed>) -> Grade {
    let Some(said) = said else { return Grade::Failed };
    let Some((id, at)) = &case.truth else {
        return match said.status {
            Status::Healthy => Grade::Right,
            Status::Unknown => Grade::Unknown,
            Status::Limited | Status::Suspected => Grade::FalseAlarm,
        };
    };
    let is_right = |cause: &(String, Place)| (cause.0 == *id && cause.1 == *at) || case.also.contains(&cause.0);
    match said.status {
        Status::Unknown => Grade::Unknown,
        Status::Limited if said.causes.first().is_some_and(is_right) => Grade::Right,
        Status::Suspected if said.causes.first().is_some_and(is_right) => Grade::Suspected,
        _ if said.causes.iter().skip(1).any(is_right) => Grade::Second,
        Status::Limited | Status::Suspected | Status::Healthy => Grade::Wrong,
    }
}

/// The class of a verdict in the matrix.
pub(super) fn class(said: Option<&Diagnosed>) -> String {
    match said {
        None => "(failed)".to_owned(),
        Some(said) => match (said.status, said.causes.first()) {
            (Status::Healthy, _) => "healthy".to_owned(),
            (Status::Unknown, _) | (_, None) => "unknown".to_owned(),
            (Status::Suspected, Some((id, _))) => format!("{id}?"),
            (Status::Limited, Some((id, _))) => id.clone(),
        },
    }
}

#[derive(Debug, Clone, Default)]
pub struct Tally {
    graded: Vec<(Case, Option<Diagnosed>, Grade)>,
}

impl Tally {
    pub fn add(&mut self, case: Case, said: Option<Diagnosed>) -> Grade {
        let grade = grade(&case, said.as_ref());
        self.graded.push((case, said, grade));
        grade
    }

    fn count(&self, faulty: bool, grade: Grade) -> usize {
        self.graded.iter().filter(|(case, _, of)| case.truth.is_some() == faulty && *of == grade).count()
    }

    fn of(&self, faulty: bool) -> usize {
        self.graded.iter().filter(|(case, ..)| case.truth.is_some() == faulty).count()
    }

    /// Whether no healthy path was accused and the right cause came first in nine of ten faulty ones.
    pub fn passes(&self) -> bool {
        self.count(false, Grade::FalseAlarm) == 0
            && self.count(false, Grade::Failed) == 0
            && self.count(true, Grade::Right) * 10 >= self.of(true) * 9
    }

    /// The mean over all truths of the harmonic mean of precision and recall; *unknown* is an answer that is no truth's. A cause that may stand
    /// first counts as the truth.
    fn cause_f1(&self) -> Option<f64> {
        let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
        for (case, said, grade) in &self.graded {
            let truth = case.truth.as_ref().map_or_else(|| "healthy".to_owned(), |(id, _)| id.clone());
            let hit = matches!(grade, Grade::Right | Grade::Suspected);
            let said = if hit { truth.clone() } else { class(said.as_ref()).trim_end_matches('?').to_owned() };
            counts.entry(said).or_default()[1] += 1;
            let of = counts.entry(truth).or_default();
            (of[0], of[2]) = (of[0] + usize::from(hit), of[2] + 1);
        }
        let of_truths = counts.values().filter(|[.., are]| *are > 0);
        let each: Vec<f64> = of_truths.map(|[hits, said, are]| 2.0 * *hits as f64 / (said + are) as f64).collect();
        narrows_stats::mean(&each)
    }

    /// The matrix, the figures and every case that was not right.
    pub fn text(&self) -> String {
        let mut matrix: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
        for (case, said, _) in &self.graded {
            let truth = case.truth.as_ref().map_or_else(|| "healthy".to_owned(), |(id, _)| id.clone());
            *matrix.entry(truth).or_default().entry(class(said.as_ref())).or_default() += 1;
        }
        let mut text = String::from("truth -> verdicts (? = suspected)\n");
        for (truth, verdicts) in &matrix {
            let verdicts: Vec<String> = verdicts.iter().map(|(verdict, n)| format!("{verdict} {n}")).collect();
            let _ = writeln!(text, "  {truth:<26} {}", verdicts.join(", "));
        }
        let (faulty, healthy) = (self.of(true), self.of(false));
        let _ = writeln!(
            text,
            "\nfaulty runs: {faulty}; right first {}, suspected {}, second {}, unknown {}, wrong {}, failed {}",
            self.count(true, Grade::Right),
            self.count(true, Grade::Suspected),
            self.count(true, Grade::Second),
            self.count(true, Grade::Unknown),
            self.count(true, Grade::Wrong),
            self.count(true, Grade::Failed)
        );
        let alarms = self.count(false, Grade::FalseAlarm);
        let interval = narrows_stats::wilson(alarms as u64, healthy as u64, 0.95);
        let _ = writeln!(
            text,
            "healthy runs: {healthy}; not accused {}, unknown {}, false alarms {alarms}{}, failed {}",
            self.count(false, Grade::Right),
            self.count(false, Grade::Unknown),
            interval.map_or_else(String::new, |[low, high]| format!(
                " (95 % interval of their rate {low:.2} to {high:.2})"
            )),
            self.count(false, Grade::Failed)
        );
        if let Some(f1) = self.cause_f1() {
            let seconds: Vec<f64> =
                self.graded.iter().filter_map(|(_, said, _)| Some(said.as_ref()?.seconds)).collect();
            let longest = seconds.iter().copied().fold(0.0, f64::max);
            let median = narrows_stats::median(&seconds).unwrap_or(0.0);
            let _ = writeln!(
                text,
                "cause F1 {f1:.2} (mean over truths); seconds: median {median:.1}, longest {longest:.1}"
            );
        }
        let others: Vec<_> = self.graded.iter().filter(|(.., grade)| *grade != Grade::Right).collect();
        if !others.is_empty() {
            text.push_str("\nnot right:\n");
        }
        for (case, said, grade) in others {
            let _ = writeln!(text, "  {:<44} {grade:?}: {}", case.name(), describe(said.as_ref()));
        }
        text
    }
}

fn describe(said: Option<&Diagnosed>) -> String {
    said.map_or_else(|| "no verdict".to_owned(), Diagnosed::words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(truth: Option<(&str, Place)>) -> Case {
        Case {
            scenario: "x".into(),
            about: String::new(),
            truth: truth.map(|(id, at)| (id.to_owned(), at)),
            also: Vec::new(),
            flow: narrows_model::Flow::Up,
            ways: Default::default(),
            faults: Vec::new(),
            args: Vec::new(),
            ipv6: false,
            busy_cores: 0,
            neighbours: 0,
        }
    }

    fn said(status: Status, causes: &[(&str, Place)]) -> Diagnosed {
        let causes = causes.iter().map(|(id, at)| ((*id).to_owned(), *at)).collect();
        Diagnosed { status, causes, goodput_bps: 1e6, confidence: None, witnesses: 0, predicted: None, seconds: 12.0 }
    }

    #[test]
    fn an_accused_healthy_path_fails_the_bank() {
        let mut tally = Tally::default();
        assert_eq!(tally.add(case(None), Some(said(Status::Healthy, &[]))), Grade::Right);
        assert!(tally.passes());
        let accused = said(Status::Suspected, &[("random-loss", Place::Path)]);
        assert_eq!(tally.add(case(None), Some(accused)), Grade::FalseAlarm);
        assert!(!tally.passes());
    }

    #[test]
    fn the_right_cause_at_the_wrong_place_is_wrong() {
        let truth = Some(("tcp-send-buffer", Place::Client));
        let elsewhere = said(Status::Limited, &[("tcp-send-buffer", Place::Server)]);
        assert_eq!(grade(&case(truth), Some(&elsewhere)), Grade::Wrong);
        let second = said(Status::Limited, &[("random-loss", Place::Path), ("tcp-send-buffer", Place::Client)]);
        assert_eq!(grade(&case(truth), Some(&second)), Grade::Second);
    }
}
