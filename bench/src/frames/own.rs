//! narrows itself: a generator on one end, a receiver on the other, with the reports of both.

use super::setup::Bench;
use crate::network::{DEVICE, End};
use crate::task::{Order, Output, Task};
use crate::tools::words;
use serde_json::Value;
use std::time::Duration;

/// Time for both ends to start and end, beyond the time of sending.
const AROUND: Duration = Duration::from_secs(20);
/// Source ports, one flow each.
pub(super) const FLOWS: u32 = 2000;

/// Addresses of the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
        }
    }

    fn ends(self) -> String {
        let last = 2000 + FLOWS - 1;
        match self {
            Self::Ipv4 => format!("--source 198.18.0.1:2000-198.18.0.1:{last} --destination 198.18.0.2:2000"),
            Self::Ipv6 => format!("--source [2001:2::1]:2000-[2001:2::1]:{last} --destination [2001:2::2]:2000"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Both {
    pub(super) modes: [String; 2],
    pub(super) frame_bytes: f64,
    /// Frames due, and frames sent.
    pub(super) due: u64,
    pub(super) sent: u64,
    pub(super) unsent: u64,
    pub(super) sent_pps: f64,
    /// Frames received, without duplicates.
    pub(super) received: u64,
    pub(super) received_pps: f64,
    pub(super) reordered: u64,
    pub(super) duplicates: u64,
    /// Nanoseconds between two arrivals.
    pub(super) gaps: Option<Quantiles>,
    /// Nanoseconds from departure to arrival.
    pub(super) latency: Option<Quantiles>,
}

/// Quantiles of a distribution, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Quantiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p99_9: f64,
}

impl Both {
    /// Sent and not received; negative if more arrived.
    pub(super) fn lost(&self) -> i64 {
        self.sent.cast_signed() - self.received.cast_signed()
    }
}

/// One trial: starts the receiver first, then the generator with these extra arguments.
pub(super) fn trial(
    bench: &Bench<'_>,
    family: Family,
    seconds: u32,
    send: &str,
    receive: &str,
) -> Result<Both, String> {
    let (program, network) = (&bench.args.narrows, &bench.network);
    let time = Duration::from_secs(seconds.into());
    let limit = time + AROUND;
    let hear = format!("receive {DEVICE} --idle 1s --duration {}s --format json {receive}", limit.as_secs());
    let mut receiver = Task::start(
        network,
        End::Server,
        &Order { program, words: &words(&hear), limit: limit + AROUND, nice: 0, heard: true },
    )?;
    // It prints a line once it counts.
    if let Err(why) = receiver.await_line() {
        return Err(receiver.finish()?.failure.unwrap_or(why));
    }
    let (mac, ends) = (&bench.mac, family.ends());
    let say =
        format!("generate {DEVICE} --destination-mac {mac} {ends} --duration {seconds}s --format json --quiet {send}");
    let sent = Task::start(network, End::Client, &Order { program, words: &words(&say), limit, nice: 0, heard: true })?
        .finish()?;
    let json = |report: Output| -> Result<Value, String> {
        report.failure.map_or(Ok(()), Err)?;
        serde_json::from_str(&report.output).map_err(|error| format!("narrows gave no JSON: {error}"))
    };
    let sent = json(sent)?;
    both(&sent, &json(receiver.finish()?)?)
        .ok_or_else(|| "the reports of narrows do not say what was sent and received".to_owned())
}

fn both(generator: &Value, receiver: &Value) -> Option<Both> {
    let (sent, got) = (generator.get("sent")?, receiver.get("received")?);
    let count = |of: &Value, path: &str| of.pointer(path)?.as_u64();
    let mode = |of: &Value| of.get("mode")?.as_str().map(str::to_owned);
    Some(Both {
        modes: [mode(sent)?, mode(got)?],
        frame_bytes: got.get("frame_bytes")?.as_f64()?,
        due: count(sent, "/due")?,
        sent: count(sent, "/sent")?,
        unsent: count(sent, "/unsent")?,
        sent_pps: sent.pointer("/rate/pps")?.as_f64()?,
        received: count(got, "/received")?,
        received_pps: got.pointer("/rate/pps")?.as_f64()?,
        reordered: count(got, "/reordered")?,
        duplicates: count(got, "/duplicates")?,
        gaps: quantiles(got.get("gaps_ns")),
        latency: quantiles(got.get("latency_ns")),
    })
}

/// Quantiles of a distribution that is not empty.
fn quantiles(of: Option<&Value>) -> Option<Quantiles> {
    let of = of?;
    let number = |name: &str| of.get(name)?.as_f64();
    number("count").filter(|count| *count > 0.0)?;
    Some(Quantiles { p50: number("p50")?, p99: number("p99")?, p99_9: number("p99_9")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_reports_make_one_row() {
        let sent =
            json!({"sent": {"mode": "live-frames", "due": 110, "sent": 100, "unsent": 10, "rate": {"pps": 50.0}}});
        let gaps = json!({"count": 9, "p50": 10, "p99": 20, "p99_9": 30});
        let got = json!({"received": {
            "mode": "xdp-native", "frame_bytes": 64.0, "received": 98, "reordered": 1, "duplicates": 2,
            "rate": {"pps": 49.0}, "gaps_ns": gaps, "latency_ns": {"count": 0},
        }});
        let row = both(&sent, &got).expect("whole reports");
        assert_eq!((row.lost(), row.unsent, row.received_pps), (2, 10, 49.0));
        assert_eq!(row.gaps, Some(Quantiles { p50: 10.0, p99: 20.0, p99_9: 30.0 }));
        assert_eq!(row.latency, None);
        assert_eq!(both(&got, &sent), None);
    }
}
