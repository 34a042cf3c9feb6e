//! A load of any kind, as the control plane carries it: what is asked of the two ends, and what one of them saw.

pub mod frame_words;
pub mod frames;
pub mod frames_report;
pub mod line_rate;
pub mod rr;
pub mod tcp;
pub mod tcp_info;
pub mod trial;
pub mod udp;

use crate::host::fact::Snapshot;
use crate::load::rr::{RrEndRecord, RrPlan, Transaction};
use crate::load::tcp::{Limit, TcpPlan};
use crate::load::trial::TcpEndRecord;
use crate::load::udp::{UdpEndRecord, UdpPlan};
use crate::words::place::{Direction, Flow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LoadPlan {
    /// TCP streams.
    Tcp(TcpPlan),
    /// UDP streams.
    Udp(UdpPlan),
    /// Requests and responses.
    Rr(RrPlan),
}

/// A connection or socket that a load needs, by what carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A data connection.
    Tcp,
    /// A pair of connected sockets.
    Udp,
}

/// A stream that a load needs before it can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// From 0, unique within the trial.
    pub id: u32,
    /// Which way its data goes; requests go up.
    pub flow: Flow,
    /// What carries it.
    pub carrier: Carrier,
}

impl LoadPlan {
    /// What is wrong with the plan, if anything.
    ///
    /// # Errors
    /// One sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Tcp(plan) => plan.check(),
            Self::Udp(plan) => plan.check(),
            Self::Rr(plan) => plan.check(),
        }
    }

    /// How long it is planned to last; `None` where bytes end it.
    #[must_use]
    pub const fn duration_ms(&self) -> Option<u64> {
        match self {
            Self::Tcp(TcpPlan { limit: Limit::DurationMs(ms), .. }) => Some(*ms),
            Self::Tcp(_) => None,
            Self::Udp(plan) => Some(plan.duration_ms),
            Self::Rr(plan) => Some(plan.duration_ms),
        }
    }

    /// The streams that must be there before it begins, by id: those that go up first, and those of a load beside requests
    /// last.
    #[must_use]
    pub fn streams(&self) -> Vec<Wanted> {
        let list = |first: u32, each: u32, flows: &[Flow], carrier| -> Vec<Wanted> {
            (0..)
                .zip(flows)
                .flat_map(|(nth, flow)| (0..each).map(move |id| (first + nth * each + id, *flow)))
                .map(|(id, flow)| Wanted { id, flow, carrier })
                .collect()
        };
        match self {
            Self::Tcp(plan) => list(0, plan.streams, plan.flows(), Carrier::Tcp),
            Self::Udp(plan) => list(0, plan.streams, plan.flows(), Carrier::Udp),
            Self::Rr(plan) => {
                let mut streams = match plan.transaction {
                    Transaction::Tcp => list(0, plan.streams, Direction::Up.flows(), Carrier::Tcp),
                    Transaction::Udp => list(0, plan.streams, Direction::Up.flows(), Carrier::Udp),
                    // Each transaction makes a connection of its own.
                    Transaction::TcpConnect => Vec::new(),
                };
                if let Some(load) = &plan.load {
                    streams.extend(list(plan.streams, load.streams, load.flows(), Carrier::Tcp));
                }
                streams
            }
        }
    }

    /// The plan of the TCP connection of a stream, where it has one: its socket options.
    #[must_use]
    pub fn tcp_of(&self, id: u32) -> Option<TcpPlan> {
        match self {
            Self::Tcp(plan) => Some(plan.clone()),
            Self::Udp(_) => None,
            Self::Rr(plan) => match &plan.load {
                Some(load) if id >= plan.streams => Some(load.clone()),
                _ => Some(TcpPlan { no_delay: true, ..TcpPlan::default() }),
            },
        }
    }
}

/// What one end saw of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::large_enum_variant)] // one a trial, and boxed where it travels
pub enum LoadRecord {
    /// Of TCP streams.
    Tcp(TcpEndRecord),
    /// Of UDP streams.
    Udp(UdpEndRecord),
    /// Of requests and responses.
    Rr(RrEndRecord),
}

impl LoadRecord {
    /// From the first to the last sample of any stream.
    #[must_use]
    pub fn flow_time_us(&self) -> u64 {
        let times: Vec<u64> = match self {
            Self::Tcp(end) => end.streams.iter().flat_map(|stream| stream.samples.iter().map(|s| s.at_us)).collect(),
            Self::Udp(end) => end.streams.iter().flat_map(|stream| stream.samples.iter().map(|s| s.at_us)).collect(),
            Self::Rr(end) => end.streams.iter().flat_map(|stream| stream.samples.iter().map(|s| s.at_us)).collect(),
        };
        times.iter().min().zip(times.iter().max()).map_or(0, |(first, last)| last - first)
    }

    /// Adds the readings of the host's counters around the load.
    #[must_use]
    pub fn between(mut self, before: Snapshot, after: Snapshot) -> Self {
        let (old_before, old_after) = match &mut self {
            Self::Tcp(record) => (&mut record.before, &mut record.after),
            Self::Udp(record) => (&mut record.before, &mut record.after),
            Self::Rr(record) => (&mut record.before, &mut record.after),
        };
        *old_before = before;
        *old_after = after;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_have_ids_of_their_own() {
        let plan = LoadPlan::Tcp(TcpPlan { streams: 2, direction: Direction::Both, ..TcpPlan::default() });
        let ids: Vec<_> = plan.streams().iter().map(|stream| (stream.id, stream.flow)).collect();
        assert_eq!(ids, [(0, Flow::Up), (1, Flow::Up), (2, Flow::Down), (3, Flow::Down)]);
    }

    #[test]
    fn a_load_beside_requests_comes_last_and_has_its_own_options() {
        let load =
            TcpPlan { direction: Direction::Down, congestion_control: Some("reno".into()), ..TcpPlan::default() };
        let rr = RrPlan { transaction: Transaction::Udp, request_bytes: 64, response_bytes: 64, ..RrPlan::default() };
        let plan = LoadPlan::Rr(RrPlan { load: Some(load.clone()), ..rr });
        let streams = plan.streams();
        assert_eq!(streams[0], Wanted { id: 0, flow: Flow::Up, carrier: Carrier::Udp });
        assert_eq!(streams[1], Wanted { id: 1, flow: Flow::Down, carrier: Carrier::Tcp });
        assert_eq!(plan.tcp_of(1), Some(load));
        assert!(plan.tcp_of(0).is_some_and(|tcp| tcp.no_delay));
        let crr = LoadPlan::Rr(RrPlan { transaction: Transaction::TcpConnect, ..RrPlan::default() });
        assert_eq!(crr.streams(), []);
    }
}
