//! Figures of a program's own health, as scrapers read them (OpenMetrics 1.0): of a server, and of an agent of a fleet.

use narrows_model::words::figures::float;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What the answer to a scraper is, in the words of HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server since it began.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerFigures {
    pub started_unix_ms: u64,
    /// Sessions that load the path, that wait for that, and that only read.
    pub sessions: [usize; 3],
    /// Loads that were made, and that failed.
    pub loads: [u64; 2],
    /// Payload of those that were made, of both directions.
    pub load_bytes: u64,
    /// When the last one ended; 0: there was none.
    pub last_load_unix_ms: u64,
    pub refused: u64,
}

/// An agent since it began.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentFigures {
    /// When the controller answered last; 0: never.
    pub answered_unix_ms: u64,
    pub running: usize,
    /// Outcomes that the controller does not have yet.
    pub waiting: usize,
    /// Whether the disk takes them.
    pub is_kept: bool,
    /// Tests that found something, and that failed.
    pub tests: [u64; 2],
}

/// A server, and the agent that it belongs to, as a scraper reads them.
pub fn metrics(server: &ServerFigures, agent: Option<&AgentFigures>) -> String {
    let mut all = Exposition::default();
    all.build();
    of_server(&mut all, server);
    if let Some(agent) = agent {
        of_agent(&mut all, agent);
    }
    all.text()
}

fn of_server(all: &mut Exposition, it: &ServerFigures) {
    let began = "When the server began, seconds since 1970.";
    all.one("narrows_server_start_time_seconds", "seconds", began, seconds(it.started_unix_ms));
    let sessions = ["loading", "waiting", "reading"].into_iter().zip(it.sessions);
    let sessions = sessions.map(|(state, count)| (labels(&[("state", state)]), float(count as u64)));
    all.family(Kind::Gauge, "narrows_server_sessions", "", "Sessions of clients, by what they do.", sessions);
    let loads = ["done", "failed"].into_iter().zip(it.loads);
    let loads = loads.map(|(end, count)| (labels(&[("end", end)]), float(count)));
    all.family(Kind::Counter, "narrows_server_loads", "", "Loads that ended, by how.", loads);
    let bytes = "Payload of the loads, of both directions.";
    all.family(Kind::Counter, "narrows_server_load_bytes", "bytes", bytes, [(Labels::new(), float(it.load_bytes))]);
    let last = (it.last_load_unix_ms > 0).then(|| (Labels::new(), seconds(it.last_load_unix_ms)));
    let help = "When the last load ended, seconds since 1970.";
    all.family(Kind::Gauge, "narrows_server_last_load_timestamp_seconds", "seconds", help, last);
    let refused = "Requests that were refused.";
    all.family(Kind::Counter, "narrows_server_refused_requests", "", refused, [(Labels::new(), float(it.refused))]);
}

fn of_agent(all: &mut Exposition, it: &AgentFigures) {
    let answered = (it.answered_unix_ms > 0).then(|| (Labels::new(), seconds(it.answered_unix_ms)));
    let help = "When the controller answered last, seconds since 1970.";
    all.family(Kind::Gauge, "narrows_agent_controller_answer_timestamp_seconds", "seconds", help, answered);
    all.one("narrows_agent_tests_running", "", "Tests that run now.", float(it.running as u64));
    let help = "Outcomes of tests that the controller does not have yet.";
    all.one("narrows_agent_outcomes_waiting", "", help, float(it.waiting as u64));
    all.one("narrows_agent_spool_up", "", "Whether the disk takes outcomes: 1 yes, 0 no.", flag(it.is_kept));
    let tests = ["done", "failed"].into_iter().zip(it.tests);
    let tests = tests.map(|(end, count)| (labels(&[("end", end)]), float(count)));
    all.family(Kind::Counter, "narrows_agent_tests", "", "Tests that ended, by how.", tests);
}

/// Names with values, which others gave them.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The labels of a series, and its value.
pub(crate) type Sample = (Labels, f64);

/// What series of one name are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Gauge,
    /// It only grows.
    Counter,
    Info,
}

struct Family {
    kind: Kind,
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    /// Each series once.
    samples: Vec<Sample>,
}

/// Families of series, one after the other.
#[derive(Default)]
pub(crate) struct Exposition(Vec<Family>);

impl Exposition {
    /// Adds a family: what it is, and each series of it once.
    pub(crate) fn family(
        &mut self,
        kind: Kind,
        name: &'static str,
        unit: &'static str,
        help: &'static str,
        samples: impl IntoIterator<Item = Sample>,
    ) {
        let mut known = BTreeSet::new();
        let mut is_first = |(labels, value): &Sample| value.is_finite() && known.insert(labels.clone());
        let samples = samples.into_iter().filter(|it| is_first(it)).collect();
        self.0.push(Family { kind, name, unit, help, samples });
    }

    /// What is built in.
    pub(crate) fn build(&mut self) {
        let build = (labels(&[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
        self.family(Kind::Info, "narrows_build", "", "The version of the program.", [build]);
    }

    /// A figure without labels.
    pub(crate) fn one(&mut self, name: &'static str, unit: &'static str, help: &'static str, value: f64) {
        self.family(Kind::Gauge, name, unit, help, [(Labels::new(), value)]);
    }

    /// As a scraper reads it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for Family { kind, name, unit, help, samples } in &self.0 {
            let (word, end) = match kind {
                Kind::Gauge => ("gauge", ""),
                Kind::Counter => ("counter", "_total"),
                Kind::Info => ("info", "_info"),
            };
            text += &format!("# TYPE {name} {word}\n");
            if !unit.is_empty() {
                text += &format!("# UNIT {name} {unit}\n");
            }
            text += &format!("# HELP {name} {help}\n");
            for (labels, value) in samples {
                text += &format!("{name}{end}{} {value}\n", braced(labels));
            }
        }
        text + "# EOF\n"
    }

    /// As a collector takes it: an `ExportMetricsServiceRequest` in JSON (opentelemetry-proto, `metrics.proto`). `names`: what the figures are of.
    /// They are as at a time; those that only grow have done so since another.
    pub(crate) fn otlp(&self, names: &[(&'static str, &str)], since_unix_ms: u64, at_unix_ms: u64) -> Value {
        let word = |(key, value): (&str, &str)| json!({ "key": key, "value": { "stringValue": value } });
        let nanos = |unix_ms: u64| format!("{unix_ms}000000");
        let metric = |it: &Family| {
            let point = |(labels, value): &Sample| {
                let labels: Vec<Value> = labels.iter().map(|(key, value)| word((key, value))).collect();
                let mut point = json!({ "attributes": labels, "timeUnixNano": nanos(at_unix_ms), "asDouble": value });
                if it.kind == Kind::Counter {
                    point["startTimeUnixNano"] = nanos(since_unix_ms).into();
                }
                point
            };
            let points: Vec<Value> = it.samples.iter().map(point).collect();
            // As UCUM has them.
            let unit = match it.unit {
                "seconds" => "s",
                "bytes" => "By",
                "bytes_per_second" => "By/s",
                _ => "1",
            };
            let mut metric = json!({ "name": it.name, "description": it.help, "unit": unit });
            match it.kind {
                // Cumulative
                Kind::Counter => {
                    metric["sum"] = json!({ "dataPoints": points, "aggregationTemporality": 2, "isMonotonic": true });
                }
                Kind::Gauge | Kind::Info => metric["gauge"] = json!({ "dataPoints": points }),
            }
            metric
        };
        // A metric without a point is none.
        let metrics: Vec<Value> = self.0.iter().filter(|it| !it.samples.is_empty()).map(metric).collect();
        let version = env!("CARGO_PKG_VERSION");
        let own = [("service.name", "narrows"), ("service.version", version)];
        let resource: Vec<Value> = own.into_iter().chain(names.iter().copied()).map(word).collect();
        json!({ "resourceMetrics": [{
            "resource": { "attributes": resource },
            "scopeMetrics": [{ "scope": { "name": "narrows", "version": version }, "metrics": metrics }],
        }] })
    }
}

pub(crate) fn labels(all: &[(&'static str, &str)]) -> Labels {
    all.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn braced(labels: &Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", all.join(","))
}

pub(crate) fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

pub(crate) fn seconds(unix_ms: u64) -> f64 {
    float(unix_ms) / 1e3
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What is behind labels, each `name="value"` with its escapes.
    fn behind_labels(text: &str) -> &str {
        let mut rest = text.strip_prefix('{').expect("an opening brace");
        loop {
            let (name, value) = rest.split_once("=\"").expect("a label");
            assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase()), "{text}");
            let mut is_escaped = false;
            let is_end = |c: char| {
                assert!(c != '\n' && (!is_escaped || "\\\"n".contains(c)), "{text}");
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            };
            let end = value.find(is_end).expect("a closing quote");
            rest = &value[end + 1..];
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => return rest.strip_prefix('}').expect("a closing brace"),
            }
        }
    }

    /// Reads an exposition as a strict reader does: its series, each with its value.
    pub(crate) fn read(text: &str) -> BTreeMap<String, f64> {
        let body = text.strip_suffix("# EOF\n").expect("an end");
        let (mut families, mut found) = (Vec::new(), BTreeMap::new());
        let mut end = "";
        for line in body.split_terminator('\n') {
            if let Some(says) = line.strip_prefix("# ") {
                let parts: Vec<&str> = says.splitn(3, ' ').collect();
                match parts[..] {
                    ["TYPE", name, kind] => {
                        assert!(!families.contains(&name), "{name} is not in one piece");
                        families.push(name);
                        end = [("gauge", ""), ("counter", "_total"), ("info", "_info")]
                            .into_iter()
                            .find_map(|(it, end)| (it == kind).then_some(end))
                            .expect("a type");
                    }
                    ["UNIT", name, unit] => {
                        assert!(families.last() == Some(&name) && name.ends_with(&format!("_{unit}")), "{line}");
                    }
                    ["HELP", name, help] => assert!(families.last() == Some(&name) && !help.is_empty(), "{line}"),
                    _ => panic!("what is this: {line}"),
                }
                continue;
            }
            let name = format!("{}{end}", families.last().expect("a family"));
            let rest = line.strip_prefix(name.as_str()).expect("a series of the family");
            let value = if rest.starts_with('{') { behind_labels(rest) } else { rest };
            let number: f64 = value.strip_prefix(' ').and_then(|it| it.parse().ok()).expect("a number");
            assert!(number.is_finite() && value.bytes().all(|b| b" -.0123456789".contains(&b)), "{line}");
            let series = line[..line.len() - value.len()].to_owned();
            assert!(found.insert(series, number).is_none(), "twice: {line}");
        }
        found
    }

    #[test]
    fn a_server_and_its_agent_as_a_strict_reader_finds_them() {
        let server = ServerFigures {
            started_unix_ms: 1_700_000_000_250,
            sessions: [1, 2, 3],
            loads: [4, 5],
            load_bytes: 6,
            last_load_unix_ms: 0,
            refused: 7,
        };
        let found = read(&metrics(&server, None));
        assert_eq!(found["narrows_server_start_time_seconds"], 1_700_000_000.25);
        assert_eq!(found["narrows_server_sessions{state=\"waiting\"}"], 2.0);
        assert_eq!(found["narrows_server_loads_total{end=\"failed\"}"], 5.0);
        assert_eq!(
            (found["narrows_server_load_bytes_total"], found["narrows_server_refused_requests_total"]),
            (6.0, 7.0)
        );
        assert!(
            !found.keys().any(|it| it.contains("last_load") || it.contains("agent")),
            "what is not known has no series"
        );
        let agent = AgentFigures { answered_unix_ms: 2_000, running: 3, waiting: 9, is_kept: true, tests: [8, 1] };
        let found = read(&metrics(&ServerFigures { last_load_unix_ms: 5_500, ..server }, Some(&agent)));
        assert_eq!(found["narrows_server_last_load_timestamp_seconds"], 5.5);
        assert_eq!(found["narrows_agent_controller_answer_timestamp_seconds"], 2.0);
        assert_eq!((found["narrows_agent_outcomes_waiting"], found["narrows_agent_spool_up"]), (9.0, 1.0));
        assert_eq!(found["narrows_agent_tests_total{end=\"done\"}"], 8.0);
    }
}
