//! Request/response trials: what is asked of the two ends, and what the requesting end saw. The client requests, the server
//! responds. Meanings as in netperf: `TCP_RR`, `UDP_RR`, `TCP_CRR`.

pub mod report;

use crate::host::fact::Snapshot;
use crate::load::host::HostSample;
use crate::load::kind::{Cap, Carrier, Load, Plan, Sample, StreamSpec, TrialOf, check_omitted, is_below, within};
use crate::load::tcp::{TcpEndRecord, TcpPlan};
use crate::load::udp::record::Distribution;
use crate::words::place::{Direction, Flow, Place};
use crate::words::units;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Transaction {
    /// Over one TCP connection a stream, Nagle's algorithm off.
    #[default]
    Tcp,
    /// Over UDP; a lost one is given up after [`RrPlan::UDP_TIMEOUT_MS`] and counted.
    Udp,
    /// Each over a TCP connection of its own: connect, request, response, close.
    TcpConnect,
}

/// One request/response trial, the same words for both ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrPlan {
    /// What carries a transaction.
    pub transaction: Transaction,
    /// Requesters at the same time, each with a connection or socket of its own.
    pub streams: u32,
    /// Requests that a stream has on their way at the same time; 1 with [`Transaction::TcpConnect`].
    pub outstanding: u32,
    /// Payload of a request.
    pub request_bytes: u32,
    /// Payload of a response.
    pub response_bytes: u32,
    /// How long requests are made.
    pub duration_ms: u64,
    /// The first part of the trial that no summary counts.
    pub omit_ms: u64,
    /// How often both ends take a sample.
    pub interval_ms: u64,
    /// Transactions a second over all streams; `None`: the next as soon as one is done.
    pub rate_per_s: Option<f64>,
    /// The most requests that the server answers in a second over all streams, however many come; for clients without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_answers_per_s: Option<f64>,
    /// A TCP load on the same path during the trial, so that the latency of the loaded path is seen.
    pub load: Option<TcpPlan>,
}

impl RrPlan {
    /// The most streams that an end admits.
    pub const MAX_STREAMS: u32 = 128;
    /// The most requests on their way on one stream.
    pub const MAX_OUTSTANDING: u32 = 1024;
    /// The largest request or response over TCP.
    pub const MAX_BYTES: u32 = 16 << 20;
    /// A response over UDP that took longer is lost.
    pub const UDP_TIMEOUT_MS: u64 = 1_000;
    /// The smallest UDP request or response, and the smallest request that opens a connection: their header.
    pub const MIN_UDP_BYTES: u32 = 20;
    /// The longest trial that an end admits.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;
}

impl Default for RrPlan {
    /// One byte each way over one TCP connection for ten seconds: netperf's `TCP_RR`.
    fn default() -> Self {
        Self {
            transaction: Transaction::Tcp,
            streams: 1,
            outstanding: 1,
            request_bytes: 1,
            response_bytes: 1,
            duration_ms: 10_000,
            omit_ms: 0,
            interval_ms: 1_000,
            rate_per_s: None,
            max_answers_per_s: None,
            load: None,
        }
    }
}

impl Plan for RrPlan {
    fn check(&self) -> Result<(), String> {
        within("streams", self.streams, 1, Self::MAX_STREAMS)?;
        let (outstanding, least, most) = match self.transaction {
            Transaction::Tcp => (Self::MAX_OUTSTANDING, 1, Self::MAX_BYTES),
            Transaction::Udp => (Self::MAX_OUTSTANDING, Self::MIN_UDP_BYTES, crate::load::udp::UdpPlan::MAX_BYTES),
            Transaction::TcpConnect => (1, 1, Self::MAX_BYTES),
        };
        within("outstanding requests", self.outstanding, 1, outstanding)?;
        within("request bytes", self.request_bytes, least, most)?;
        within("response bytes", self.response_bytes, least, most)?;
        within("duration in ms", self.duration_ms, 10, Self::LONGEST_MS)?;
        check_omitted(self.omit_ms, self.duration_ms)?;
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        for (what, rate) in [("transactions", self.rate_per_s), ("answers", self.max_answers_per_s)] {
            if let Some(rate) = rate.filter(|rate| !(0.01..=1e12).contains(rate)) {
                return Err(format!("{what} per second is {rate}, but must be from 0.01 to 10^12"));
            }
        }
        self.load.as_ref().map_or(Ok(()), Plan::check)
    }

    fn duration_ms(&self) -> Option<u64> {
        Some(self.duration_ms)
    }

    /// Those of a load beside the requests come last.
    fn streams(&self) -> Vec<StreamSpec> {
        let requests = |carrier| StreamSpec::list(0, self.streams, Direction::Up.flows(), carrier);
        let mut streams = match self.transaction {
            Transaction::Tcp => requests(Carrier::Tcp),
            Transaction::Udp => requests(Carrier::Udp),
            Transaction::TcpConnect => Vec::new(),
        };
        if let Some(load) = &self.load {
            streams.extend(StreamSpec::list(self.streams, load.streams, load.flows(), Carrier::Tcp));
        }
        streams
    }

    fn tcp_options(&self, id: u32) -> Option<TcpPlan> {
        match &self.load {
            Some(load) if id >= self.streams => Some(load.clone()),
            _ => Some(TcpPlan { no_delay: true, ..TcpPlan::default() }),
        }
    }

    fn connects_per_transaction(&self) -> bool {
        self.transaction == Transaction::TcpConnect
    }

    fn rate_limit_bps(&self) -> Option<u64> {
        self.load.as_ref()?.rate_limit_bps()
    }

    fn times_mut(&mut self) -> Option<[&mut u64; 2]> {
        Some([&mut self.interval_ms, &mut self.omit_ms])
    }

    fn describe(&self) -> String {
        format!("requests up for {}", units::micros(self.duration_ms * 1000))
    }
}

impl Load for RrPlan {
    type Record = RrEndRecord;
    type Sample = RrSample;

    /// With a load beside the requests, the idle path comes first.
    fn phases(&self) -> Vec<Self> {
        let idle = self.load.as_ref().map(|_| Self { load: None, ..self.clone() });
        idle.into_iter().chain([self.clone()]).collect()
    }

    fn capped(self, cap: &Cap) -> Result<Self, String> {
        cap.check_streams(self.streams)?;
        // The larger message of each transaction, and its headers, within the rate.
        let bits = 8.0 * (f64::from(self.request_bytes.max(self.response_bytes)) + 64.0);
        let most = cap.max_bps as f64 / bits;
        let max_answers_per_s = Some(self.max_answers_per_s.map_or(most, |rate| rate.min(most)));
        Ok(Self { load: self.load.clone().map(|load| load.capped(cap)).transpose()?, max_answers_per_s, ..self })
    }

    fn is_within(&self, asked: &Self) -> bool {
        let is_load_within = match (&self.load, &asked.load) {
            (Some(load), Some(asked)) => load.is_within(asked),
            (load, asked) => load == asked,
        };
        let (load, max_answers_per_s) = (asked.load.clone(), asked.max_answers_per_s);
        is_load_within
            && is_below(asked.max_answers_per_s, self.max_answers_per_s)
            && *asked == Self { load, max_answers_per_s, ..self.clone() }
    }

    fn partial_record(place: Place, streams: Vec<(u32, Flow, Vec<RrSample>)>, remark: String) -> RrEndRecord {
        let stream = |(id, _, samples): (u32, Flow, Vec<RrSample>)| RrStreamRecord {
            id,
            transactions: samples.last().map_or(0, |sample| sample.transactions),
            samples,
            ..RrStreamRecord::default()
        };
        RrEndRecord {
            place,
            streams: streams.into_iter().map(stream).collect(),
            load: None,
            host: Vec::new(),
            before: Snapshot::default(),
            after: Snapshot::default(),
            remarks: vec![remark],
        }
    }
}

/// One stream at one instant; counts are cumulative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RrSample {
    /// Since the trial began on this end.
    pub at_us: u64,
    /// Transactions that were completed (client) or answered (server) so far.
    pub transactions: u64,
    /// Requests that were given up so far (client).
    pub failures: u64,
    /// The latencies of all completed transactions together (client): between two samples it gives their mean.
    #[serde(default)]
    pub latency_sum_ns: u64,
    /// CPU time of the thread so far, user and system.
    pub thread_cpu_us: Option<u64>,
}

impl Sample for RrSample {
    fn at_us(&self) -> u64 {
        self.at_us
    }

    fn thread_cpu_us(&self) -> Option<u64> {
        self.thread_cpu_us
    }
}

/// One stream over a trial, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RrStreamRecord {
    /// From 0, the same on both ends.
    pub id: u32,
    /// `address:port` of this end; port 0 where each transaction has a connection of its own.
    pub local: String,
    /// `address:port` of the other end; port 0 as above.
    pub remote: String,
    /// Completed (client) or answered (server), the omitted part included.
    pub transactions: u64,
    /// Lost, timed out or refused (client).
    pub failures: u64,
    /// From a request's first byte out to its response's last byte in, ns, without the omitted part (client). With
    /// [`Transaction::TcpConnect`] from the beginning of the connection; with a rate from the instant at which the request was due,
    /// so that those which a slow answer held up count as late.
    pub latency_ns: Distribution,
    /// Connection set-up, ns: of the stream's own connection, or of each with [`Transaction::TcpConnect`] (client).
    pub connect_ns: Distribution,
    /// In the order of time.
    pub samples: Vec<RrSample>,
}

impl crate::load::Keyed for RrStreamRecord {
    fn key(&self) -> (u32, Flow) {
        (self.id, Flow::Up)
    }
}

/// What one end saw of a request/response trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RrEndRecord {
    /// Which end.
    pub place: Place,
    /// Its streams, by id.
    pub streams: Vec<RrStreamRecord>,
    /// What this end saw of the load, where there was one.
    pub load: Option<TcpEndRecord>,
    /// The host's CPUs.
    pub host: Vec<HostSample>,
    /// Counters of the host right before.
    pub before: Snapshot,
    /// Counters of the host right after.
    pub after: Snapshot,
    /// Words on anything that went otherwise than planned.
    pub remarks: Vec<String>,
}

/// A trial of requests and responses.
pub type RrTrial<'a> = TrialOf<'a, RrPlan>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_sound_and_others_say_what_is_wrong() {
        assert_eq!(RrPlan::default().check(), Ok(()));
        let plan = RrPlan { transaction: Transaction::TcpConnect, outstanding: 2, ..RrPlan::default() };
        assert_eq!(plan.check(), Err("outstanding requests is 2, but must be from 1 to 1".to_owned()));
        let plan = RrPlan { transaction: Transaction::Udp, ..RrPlan::default() };
        assert_eq!(plan.check(), Err("request bytes is 1, but must be from 20 to 65507".to_owned()));
    }
}
