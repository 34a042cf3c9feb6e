//! The results that both ends exchange after a test.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// What 3.12 writes for a number that it does not know: -1 as an unsigned one.
const UNKNOWN: f64 = 18_446_744_073_709_551_615.0;

/// What one end saw of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamResult {
    /// See [`super::stream_id`].
    pub id: u32,
    /// Payload without the omitted part: sent, or received.
    pub bytes: u64,
    /// Segments that the sender retransmitted.
    pub retransmits: Option<u64>,
    /// Interarrival jitter in seconds (UDP).
    pub jitter_s: f64,
    /// Datagrams lost, with those of the omitted part.
    pub lost: u64,
    /// Datagrams sent, or the highest number that arrived, with those of the omitted part.
    pub packets: u64,
    /// Those of the omitted part: lost, and datagrams.
    pub omitted: Option<(u64, u64)>,
    /// When the counted part began and ended, in seconds.
    pub seconds: (f64, f64),
}

/// What one end saw of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// CPU time in percent of one CPU: in all, user, system.
    pub cpu: [f64; 3],
    /// Whether this end counts retransmissions; `None`: it does not send.
    pub has_retransmits: Option<bool>,
    /// The congestion control of its first stream.
    pub congestion: Option<String>,
    pub streams: Vec<StreamResult>,
    /// The server's own report, if the client asked for it.
    pub server_output: Option<String>,
}

impl Results {
    /// Reads results of any version; what is missing is 0.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(text).map_err(|error| format!("no JSON: {error}"))?;
        let streams = value.get("streams").and_then(Value::as_array).ok_or("the results have no streams")?;
        let cpu = ["cpu_util_total", "cpu_util_user", "cpu_util_system"].map(|key| real(&value, key).unwrap_or(0.0));
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let output = || value.get("server_output_json").map(Value::to_string);
        Ok(Self {
            cpu,
            has_retransmits: real(&value, "sender_has_retransmits").map(|it| it > 0.0),
            congestion: text("congestion_used"),
            streams: streams.iter().map(stream).collect(),
            server_output: text("server_output_text").or_else(output),
        })
    }

    /// Whether the results of a client, which are not used, are results of at most so many streams.
    pub fn check(text: &[u8], most_streams: usize) -> Result<(), String> {
        #[derive(Deserialize)]
        struct Theirs {
            streams: Vec<IgnoredAny>,
        }
        let theirs: Theirs = serde_json::from_slice(text).map_err(|error| format!("no results: {error}"))?;
        let count = theirs.streams.len();
        if count <= most_streams { Ok(()) } else { Err(format!("results of {count} streams, above {most_streams}")) }
    }

    /// The results as they are sent.
    pub fn to_json(&self) -> Value {
        let stream = |it: &StreamResult| {
            let mut value = json!({
                "id": it.id,
                "bytes": it.bytes,
                "retransmits": it.retransmits.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)),
                "jitter": it.jitter_s,
                "errors": it.lost,
                "packets": it.packets,
                "start_time": it.seconds.0,
                "end_time": it.seconds.1,
            });
            if let Some((lost, packets)) = it.omitted {
                value["omitted_errors"] = lost.into();
                value["omitted_packets"] = packets.into();
            }
            value
        };
        let [total, user, system] = self.cpu;
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| drop(map.insert(key.to_owned(), value));
        put("cpu_util_total", total.into());
        put("cpu_util_user", user.into());
        put("cpu_util_system", system.into());
        put("sender_has_retransmits", self.has_retransmits.map_or(-1, i64::from).into());
        if let Some(name) = &self.congestion {
            put("congestion_used", name.clone().into());
        }
        if let Some(text) = &self.server_output {
            put("server_output_text", text.clone().into());
        }
        put("streams", self.streams.iter().map(stream).collect());
        Value::Object(map)
    }
}

fn stream(value: &Value) -> StreamResult {
    let whole = |key: &str| value.get(key).and_then(Value::as_u64).or_else(|| real(value, key).map(|it| it as u64));
    let known = |key: &str| real(value, key).and_then(|_| whole(key));
    let id = whole("id").and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
    StreamResult {
        id,
        bytes: known("bytes").unwrap_or(0),
        retransmits: known("retransmits"),
        jitter_s: real(value, "jitter").unwrap_or(0.0),
        lost: known("errors").unwrap_or(0),
        packets: known("packets").unwrap_or(0),
        omitted: known("omitted_errors").zip(known("omitted_packets")),
        seconds: (real(value, "start_time").unwrap_or(0.0), real(value, "end_time").unwrap_or(0.0)),
    }
}

/// A number that is known and not negative.
fn real(value: &Value, key: &str) -> Option<f64> {
    let number = value.get(key)?.as_f64()?;
    (number.is_finite() && (0.0..UNKNOWN).contains(&number)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::{Inbox, MAX_OWN_RESULTS};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let stream = StreamResult { id: 3, bytes: 1 << 50, jitter_s: 1e-6, lost: 2, packets: 9, ..Default::default() };
        let stream = StreamResult { retransmits: Some(7), omitted: Some((1, 4)), seconds: (0.0, 10.5), ..stream };
        let results =
            Results { cpu: [3.0, 1.0, 2.0], has_retransmits: Some(true), streams: vec![stream], ..Default::default() };
        assert_eq!(Results::parse(results.to_json().to_string().as_bytes()), Ok(results));
    }

    #[test]
    fn unknown_numbers_of_any_version_are_unknown() {
        for unknown in ["-1", "18446744073709551615", "1.84467440737096e+19"] {
            let text = format!(r#"{{"streams":[{{"id":1,"bytes":1.5e+09,"retransmits":{unknown},"jitter":0}}]}}"#);
            let results = Results::parse(text.as_bytes()).expect("sound");
            assert_eq!((results.streams[0].retransmits, results.streams[0].bytes), (None, 1_500_000_000));
        }
        assert!(Results::parse(b"{}").is_err());
    }

    #[test]
    fn results_of_a_client_are_bounded() {
        let of = |streams: &str| format!(r#"{{"cpu_util_total":1,"streams":[{streams}]}}"#).into_bytes();
        assert_eq!(Results::check(&of(r#"{"id":1},{"id":3}"#), 2), Ok(()));
        let many = of(&["0"; 3].join(","));
        assert_eq!(Results::check(&many, 2), Err("results of 3 streams, above 2".to_owned()));
        // The stack does not grow with it.
        let deep = "[".repeat(30_000) + &"]".repeat(30_000);
        assert!(Results::check(&of(&deep), 1).is_ok());
        // Longer ones are refused by their length, before they have come.
        let mut inbox = Inbox::default();
        inbox.push(&(65_u32 << 10).to_be_bytes());
        assert!(inbox.json(MAX_OWN_RESULTS).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Results::parse(&bytes);
        }
    }
}
