//! A case as one line of JSON: what was made, what is true of it, what was said, and how long that took.

use super::{Case, CaseFault, Diagnosed, DrawnResult, Grade, Interventions, Outcome};
use narrows_model::{Direction, Place, Status};
use serde::Serialize;

/// A cause and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedCause {
    pub id: String,
    pub at: Place,
}

impl NamedCause {
    fn of(id: &str, at: Place) -> Self {
        Self { id: id.to_owned(), at }
    }
}

/// The line of a case. Rates in bits a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseLine {
    /// Of a drawn one `draw-SEED-NUMBER`.
    pub scenario: String,
    pub direction: Direction,
    pub rtt_us: u64,
    /// Of the emulated path in the direction of the data; 0: not limited.
    pub rate_bps: u64,
    pub ipv6: bool,
    pub injected: Vec<CaseFault>,
    /// Flags of `narrows diagnose`.
    pub args: Vec<String>,
    /// The causes that are right as a first one; none: nothing binds, and *healthy* is right.
    pub truth: Vec<NamedCause>,
    /// By what plain loads with and without each part the truth of a drawn case is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interventions: Option<Interventions>,
    /// Absent where the diagnosis failed.
    pub status: Option<Status>,
    pub causes: Vec<NamedCause>,
    /// In the first cause.
    pub confidence: Option<f64>,
    /// Of the first cause.
    pub witnesses: usize,
    pub goodput_bps: Option<f64>,
    /// Without the first cause, where that is foretold, its interval, and what a plain load got without it.
    pub predicted_bps: Option<f64>,
    pub predicted_interval_bps: Option<[f64; 2]>,
    pub measured_without_bps: Option<f64>,
    /// How long the diagnosis took.
    pub seconds: Option<f64>,
    /// `right`, `suspected`, `second`, `unknown`, `wrong`, `false_healthy`, `false_alarm` or `failed`.
    pub outcome: &'static str,
}

impl CaseLine {
    fn of(case: &Case, said: Option<&Diagnosed>, outcome: &'static str) -> Self {
        let data = &case.ways[usize::from(case.flow.direction() == Direction::Down)];
        Self {
            scenario: case.scenario.clone(),
            direction: case.flow.direction(),
            rtt_us: case.rtt_us(),
            rate_bps: data.rate_bps,
            ipv6: case.ipv6,
            injected: case.faults.clone(),
            args: case.args.clone(),
            truth: case.truth.iter().map(|(id, at)| NamedCause::of(id, *at)).collect(),
            interventions: None,
            status: said.map(|said| said.status),
            causes: said.iter().flat_map(|said| &said.causes).map(|(id, at)| NamedCause::of(id, *at)).collect(),
            confidence: said.and_then(|said| said.confidence),
            witnesses: said.map_or(0, |said| said.witnesses),
            goodput_bps: said.map(|said| said.goodput_bps),
            predicted_bps: said.and_then(|said| said.predicted).map(|(bps, _)| bps),
            predicted_interval_bps: said.and_then(|said| said.predicted).map(|(_, interval)| interval),
            measured_without_bps: None,
            seconds: said.map(|said| said.seconds),
            outcome,
        }
    }

    /// The line of a named case.
    pub fn named(case: &Case, said: Option<&Diagnosed>) -> Self {
        let outcome = match super::grade(case, said) {
            Grade::Right => "right",
            Grade::Suspected => "suspected",
            Grade::Second => "second",
            Grade::Unknown => "unknown",
            Grade::Wrong if said.is_some_and(|said| said.status == Status::Healthy) => "false_healthy",
            Grade::Wrong => "wrong",
            Grade::FalseAlarm => "false_alarm",
            Grade::Failed => "failed",
        };
        Self::of(case, said, outcome)
    }

    /// The line of a drawn case.
    pub fn drawn(result: &DrawnResult) -> Self {
        let said = result.said.as_ref().ok();
        let outcome = match result.outcome() {
            Outcome::Right => "right",
            Outcome::Second => "second",
            Outcome::Unknown => "unknown",
            Outcome::Wrong => "wrong",
            Outcome::FalseHealthy => "false_healthy",
            Outcome::FalseAlarm => "false_alarm",
            Outcome::Failed => "failed",
        };
        let first = said.and_then(|said| said.causes.first());
        Self {
            truth: result.truth.causes().iter().map(|(id, at, _)| NamedCause::of(id, *at)).collect(),
            measured_without_bps: first.and_then(|(id, at)| result.truth.without_bps(id, *at)),
            interventions: Some(result.truth.clone()),
            ..Self::of(&result.drawn.case, said, outcome)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::draw;

    fn said(status: Status, causes: &[(&str, Place)]) -> Diagnosed {
        Diagnosed {
            status,
            causes: causes.iter().map(|(id, at)| ((*id).to_owned(), *at)).collect(),
            goodput_bps: 30e6,
            confidence: Some(0.9),
            witnesses: 2,
            predicted: Some((90e6, [80e6, 100e6])),
            seconds: 8.5,
        }
    }

    #[test]
    fn a_line_holds_the_case_its_truth_and_the_verdict() {
        let case = Case {
            truth: Some(("random-loss".to_owned(), Place::Path)),
            faults: vec![CaseFault { id: "random-loss".to_owned(), at: Place::Path, value: Some("1%".to_owned()) }],
            ..draw(1, 0, false).case
        };
        let of = |said: Option<&Diagnosed>| CaseLine::named(&case, said);
        let right = of(Some(&said(Status::Limited, &[("random-loss", Place::Path)])));
        let json = serde_json::to_value(&right).expect("plain data");
        assert_eq!((&json["outcome"], &json["truth"][0]["id"]), (&"right".into(), &"random-loss".into()));
        assert_eq!(
            (&json["witnesses"], &json["seconds"], &json["injected"][0]["value"]),
            (&2.into(), &8.5.into(), &"1%".into())
        );
        assert_eq!(of(Some(&said(Status::Healthy, &[]))).outcome, "false_healthy");
        assert_eq!((of(None).outcome, of(None).status), ("failed", None));
    }

    #[test]
    fn a_drawn_line_holds_the_interventions() {
        let drawn = (0..).map(|number| draw(1, number, false)).find(|it| it.parts.len() == 1).expect("one of them");
        let (id, at) = drawn.parts[0].cause.clone();
        let truth =
            Interventions { udp: false, with: 30e6, without: vec![(id.clone(), at, 92e6)], clean: 92e6, stolen: 0.0 };
        let result = DrawnResult { drawn, truth, said: Ok(said(Status::Limited, &[(&id, at)])) };
        let line = CaseLine::drawn(&result);
        assert_eq!((line.outcome, line.measured_without_bps, line.truth.len()), ("right", Some(92e6), 1));
        assert!(line.interventions.is_some() && line.scenario.starts_with("draw-1-"));
    }
}
