//! Reports of `iperf3 -J` (3.1 and later; `--format iperf3` of narrows, too), one or several in a file, as iperf3 itself writes them
//! (iperf_api.c). What a report does not have is `None`.

use serde::Deserialize;
use serde_json::Value;
use std::net::IpAddr;
use std::ops::Range;
use thiserror::Error;

/// The maximum number of reports of one file.
pub const REPORTS_MAX: usize = 10_000;

/// Why a file is not made of reports.
#[derive(Debug, Error)]
pub enum ReportError {
    /// It is not JSON, or a key has another type: with line and column.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// Another program's JSON: the number of the object, from 1.
    #[error("object {0} has no `start` of an iperf3 report")]
    Other(usize),
    /// There are too many.
    #[error("more than {REPORTS_MAX} reports")]
    TooMany,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Report {
    /// What was set and known at the start.
    pub start: Option<Start>,
    #[serde(default)]
    pub end: End,
    /// Why the test failed.
    pub error: Option<String>,
}

/// The start of a test.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Start {
    /// `iperf 3.12`.
    pub version: Option<String>,
    /// As `uname -a`.
    pub system_info: Option<String>,
    pub timestamp: Option<Timestamp>,
    /// The server, in the client's report.
    pub connecting_to: Option<Place>,
    /// The client, in the server's report.
    pub accepted_connection: Option<Place>,
    #[serde(default)]
    pub connected: Vec<Connected>,
    pub test_start: Option<Value>,
}

/// When a test began.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Timestamp {
    /// Seconds since the Unix epoch.
    pub timesecs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// Its name or address.
    pub host: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Connected {
    /// The address at this end.
    pub local_host: Option<String>,
}

/// The totals of a test.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct End {
    /// UDP: both ends in one.
    pub sum: Option<Sum>,
    pub sum_sent: Option<Sum>,
    pub sum_received: Option<Sum>,
    /// With `--bidir`: what was sent and received in the other direction.
    pub sum_sent_bidir_reverse: Option<Sum>,
    pub sum_received_bidir_reverse: Option<Sum>,
    #[serde(default)]
    pub streams: Vec<Stream>,
    pub cpu_utilization_percent: Option<Cpu>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Sum {
    /// Rate of payload, bit/s.
    pub bits_per_second: Option<f64>,
    /// TCP segments that were sent again.
    pub retransmits: Option<u64>,
    /// Datagrams lost, in percent.
    pub lost_percent: Option<f64>,
    pub jitter_ms: Option<f64>,
}

/// A stream of TCP.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Stream {
    pub sender: Option<Sender>,
}

/// What the sending kernel says of it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Sender {
    /// Microseconds; 0: unknown.
    pub min_rtt: Option<u64>,
    pub mean_rtt: Option<u64>,
}

/// Use of a CPU in percent, of one core.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Cpu {
    pub host_total: Option<f64>,
    pub remote_total: Option<f64>,
}

impl Report {
    /// Whether the server sent; `None` if the report does not tell.
    pub fn is_reverse(&self) -> Option<bool> {
        Some(self.start.as_ref()?.test_start.as_ref()?.get("reverse")?.as_u64()? != 0)
    }

    /// `ipv4` or `ipv6`, from the first data connection.
    pub fn family(&self) -> Option<&'static str> {
        let address: IpAddr = self.start.as_ref()?.connected.first()?.local_host.as_ref()?.parse().ok()?;
        Some(if address.is_ipv6() { "ipv6" } else { "ipv4" })
    }
}

/// Each report of a file, and where it is.
/// Errors: the first object that is not a report.
pub fn read(bytes: &[u8]) -> Result<Vec<(Report, Range<usize>)>, ReportError> {
    let mut stream = serde_json::Deserializer::from_slice(bytes).into_iter::<Report>();
    let mut reports = Vec::new();
    let mut from = 0;
    while let Some(report) = stream.next() {
        let report = report?;
        if report.start.is_none() {
            return Err(ReportError::Other(reports.len() + 1));
        }
        if reports.len() == REPORTS_MAX {
            return Err(ReportError::TooMany);
        }
        reports.push((report, from..stream.byte_offset()));
        from = stream.byte_offset();
    }
    Ok(reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: &str = r#"{"start":{"version":"iperf 3.12","timestamp":{"timesecs":5},"connecting_to":{"host":"s","port":5201},
        "connected":[{"local_host":"2001:db8::1"}],"test_start":{"reverse":1}},"intervals":[],
        "end":{"sum_received":{"bits_per_second":9.5e8}}}"#;

    #[test]
    fn several_reports_one_after_the_other() {
        let two = format!("{ONE}\n{ONE}\n");
        let reports = read(two.as_bytes()).unwrap();
        assert_eq!(reports.len(), 2);
        assert_eq!(two[reports[1].1.clone()].trim(), ONE);
        let (first, second) = (&reports[0].0, &reports[1].0);
        assert_eq!(first, second);
        assert_eq!((first.is_reverse(), first.family()), (Some(true), Some("ipv6")));
        assert_eq!(first.end.sum_received.as_ref().unwrap().bits_per_second, Some(9.5e8));
    }

    #[test]
    fn errors_have_their_place() {
        let cut = read(format!("{ONE}\n{{\"start\": [").as_bytes()).unwrap_err().to_string();
        assert!(cut.contains("line 4 column"), "{cut}");
        assert_eq!(read(b"{\"a\":1}").unwrap_err().to_string(), "object 1 has no `start` of an iperf3 report");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, cut in 0..ONE.len(), put: u8) {
            let _ = read(&bytes);
            let mut near = ONE.as_bytes().to_vec();
            near[cut] = put;
            let _ = read(&near);
            let _ = read(&near[..cut]);
        }
    }
}
