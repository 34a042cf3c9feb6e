//! Scenarios: one TOML file each, which names its truth and multiplies into cases.

use narrows_model::lab::Impairment;
use narrows_model::{Flow, Place, words::units};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// What is wrong with a scenario file.
#[derive(Debug, Error)]
#[error("scenario {file}: {why}")]
pub struct ScenarioError {
    pub file: String,
    pub why: String,
}

/// A role in the flow, so that one scenario serves both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeatWord {
    /// The host that sends.
    Sender,
    /// The host that receives.
    Receiver,
    Path,
}

impl SeatWord {
    /// The place of the seat in a flow.
    pub const fn place(self, flow: Flow) -> Place {
        match self {
            Self::Sender => flow.sender(),
            Self::Receiver => flow.receiver(),
            Self::Path => Place::Path,
        }
    }
}

/// A value for all round-trip times or one for each.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum PerRtt {
    One(String),
    Each(BTreeMap<String, String>),
}

impl PerRtt {
    fn at(&self, rtt: &str) -> Option<&str> {
        match self {
            Self::One(value) => Some(value),
            Self::Each(values) => values.get(rtt).map(String::as_str),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultWords {
    id: String,
    at: SeatWord,
    value: Option<PerRtt>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    about: String,
    truth: String,
    at: Option<SeatWord>,
    /// Other causes that may stand first without being wrong, each with its reason in `about`.
    #[serde(default)]
    also: Vec<String>,
    #[serde(default = "both")]
    directions: Vec<String>,
    #[serde(default = "short_and_long")]
    rtts: Vec<String>,
    #[serde(default)]
    rate: Option<PerRtt>,
    /// The rate against the direction of the data, where it is another one.
    #[serde(default)]
    rate_back: Option<PerRtt>,
    #[serde(default)]
    queue_packets: Option<u64>,
    #[serde(default)]
    fault: Vec<FaultWords>,
    #[serde(default)]
    args: BTreeMap<String, PerRtt>,
    #[serde(default)]
    family: Option<String>,
    #[serde(default)]
    busy_cores: u32,
    #[serde(default)]
    neighbours: u32,
}

fn both() -> Vec<String> {
    vec!["up".into(), "down".into()]
}

fn short_and_long() -> Vec<String> {
    vec!["1ms".into(), "35ms".into()]
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseFault {
    /// Its id in the lab.
    pub id: String,
    pub at: Place,
    /// Its parameter in the lab's words; `None` is the fault's default.
    pub value: Option<String>,
}

/// One case: everything resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub scenario: String,
    pub about: String,
    /// The cause that is injected; `None` for a healthy path.
    pub truth: Option<(String, Place)>,
    /// Other causes that may stand first.
    pub also: Vec<String>,
    /// Which way the data goes.
    pub flow: Flow,
    /// What the path does from the client to the server and back, before anything is injected.
    pub ways: [Impairment; 2],
    pub faults: Vec<CaseFault>,
    /// Flags for `narrows diagnose`.
    pub args: Vec<String>,
    /// Whether it runs over IPv6.
    pub ipv6: bool,
    /// Cores that something else keeps busy.
    pub busy_cores: u32,
    /// Other loads on the same path.
    pub neighbours: u32,
}

impl Case {
    /// `tcp-receive-window up 35 ms`.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.scenario, self.flow.direction(), units::micros(self.rtt_us()))
    }

    /// Round-trip time, microseconds.
    pub const fn rtt_us(&self) -> u64 {
        self.ways[0].delay_us + self.ways[1].delay_us
    }
}

/// Reads a scenario and multiplies it into its cases.
pub fn cases(file: &str, text: &str) -> Result<Vec<Case>, ScenarioError> {
    let wrong = |why: String| ScenarioError { file: file.to_owned(), why };
    let words: Words = toml::from_str(text).map_err(|error| wrong(error.message().to_owned()))?;
    let mut cases = Vec::new();
    for direction in &words.directions {
        let flow = match direction.as_str() {
            "up" => Flow::Up,
            "down" => Flow::Down,
            other => return Err(wrong(format!("direction `{other}` is neither up nor down"))),
        };
        for rtt in &words.rtts {
            cases.push(case(file, &words, flow, rtt).map_err(&wrong)?);
        }
    }
    Ok(cases)
}

fn case(file: &str, words: &Words, flow: Flow, rtt: &str) -> Result<Case, String> {
    let rtt_us = units::parse_duration(rtt).map_err(|error| error.to_string())?.as_micros();
    let bps = |rate: &Option<PerRtt>| {
        let word = rate.as_ref().and_then(|rate| rate.at(rtt));
        word.map(units::parse_bps).transpose().map_err(|error| error.to_string())
    };
    let rate_bps = bps(&words.rate)?.unwrap_or(0);
    let truth = match (words.truth.as_str(), words.at) {
        ("healthy", None) => None,
        ("healthy", Some(_)) => return Err("a healthy path has no `at`".into()),
        (id, Some(at)) => {
            let known = narrows_diagnose::causes::names().any(|(known, _)| known == id);
            known.then_some(()).ok_or_else(|| format!("unknown cause `{id}`"))?;
            Some((id.to_owned(), at.place(flow)))
        }
        (id, None) => return Err(format!("the place of `{id}` (`at`) is missing")),
    };
    let mut args = Vec::new();
    for (flag, value) in &words.args {
        let value = value.at(rtt).ok_or_else(|| format!("`{flag}` has no value for {rtt}"))?;
        args.push(format!("--{flag}"));
        // A flag without a value is written with an empty one.
        args.extend((!value.is_empty()).then(|| value.to_owned()));
    }
    let way = Impairment {
        rate_bps,
        delay_us: u64::try_from(rtt_us).unwrap_or(u64::MAX) / 2,
        queue_packets: words.queue_packets.unwrap_or(0),
        ..Impairment::default()
    };
    let back = Impairment { rate_bps: bps(&words.rate_back)?.unwrap_or(rate_bps), ..way.clone() };
    Ok(Case {
        scenario: file.to_owned(),
        about: words.about.clone(),
        truth,
        also: words.also.clone(),
        flow,
        ways: if flow == Flow::Up { [way, back] } else { [back, way] },
        faults: words
            .fault
            .iter()
            .map(|fault| CaseFault {
                id: fault.id.clone(),
                at: fault.at.place(flow),
                value: fault.value.as_ref().and_then(|value| value.at(rtt)).map(str::to_owned),
            })
            .collect(),
        args,
        ipv6: words.family.as_deref() == Some("ipv6"),
        busy_cores: words.busy_cores,
        neighbours: words.neighbours,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        about = "a test"
        truth = "tcp-receive-window"
        at = "receiver"
        rate = "1G"
        [[fault]]
        id = "tcp-receive-window"
        at = "receiver"
        value = { "1ms" = "32k", "35ms" = "256k" }
    "#;

    #[test]
    fn a_scenario_multiplies_into_directions_and_round_trip_times() {
        let cases = cases("window", TEXT).expect("a good scenario");
        assert_eq!(cases.len(), 4);
        assert_eq!(cases[1].name(), "window up 35.0 ms");
        assert_eq!(cases[1].truth, Some(("tcp-receive-window".into(), Place::Server)));
        assert_eq!(cases[1].faults[0].value.as_deref(), Some("256k"));
        assert_eq!(cases[2].truth, Some(("tcp-receive-window".into(), Place::Client)));
    }

    #[test]
    fn the_way_back_has_its_own_rate_in_either_direction() {
        let cases = cases("window", &format!("rate_back = \"1M\"\n{TEXT}")).expect("a good scenario");
        let rates = |case: &Case| case.ways.each_ref().map(|way| way.rate_bps);
        assert_eq!((rates(&cases[0]), rates(&cases[2])), ([1_000_000_000, 1_000_000], [1_000_000, 1_000_000_000]));
    }

    #[test]
    fn an_unknown_cause_or_word_is_named() {
        let error = cases("x", &TEXT.replace("\"tcp-receive-window\"\n        at", "\"gremlins\"\n        at"));
        assert!(error.expect_err("no such cause").to_string().contains("gremlins"));
        let error = cases("x", &format!("nonsense = 1\n{TEXT}"));
        assert!(error.expect_err("no such word").to_string().contains("nonsense"));
    }
}
