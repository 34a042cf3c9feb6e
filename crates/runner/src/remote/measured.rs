//! What a trial of any kind measured, and its way into the trial of its own kind.

use super::{RemoteError, TrialError};
use narrows_model::{
    LoadPlan, LoadRecord, Place, RrEndRecord, RrSample, RrStreamRecord, RrTrial, Snapshot, TcpEndRecord, TcpSample,
    TcpStreamRecord, Trial, UdpEndRecord, UdpStreamRecord, UdpTrial,
};
use narrows_wire::api::{StreamProgress, TrialProgress};

/// A trial as both ends saw it.
#[derive(Debug)]
pub struct Measured {
    /// What was run.
    pub plan: LoadPlan,
    /// What this end saw.
    pub client: LoadRecord,
    /// What the other end saw.
    pub server: LoadRecord,
    /// How long the data flowed, by this end's clock.
    pub elapsed_us: u64,
}

impl Measured {
    pub(crate) fn tcp(self) -> Option<Trial> {
        match (self.plan, self.client, self.server) {
            (LoadPlan::Tcp(plan), LoadRecord::Tcp(client), LoadRecord::Tcp(server)) => {
                Some(Trial { plan, client, server, elapsed_us: self.elapsed_us })
            }
            _ => None,
        }
    }

    pub(crate) fn udp(self) -> Option<UdpTrial> {
        match (self.plan, self.client, self.server) {
            (LoadPlan::Udp(plan), LoadRecord::Udp(client), LoadRecord::Udp(server)) => {
                Some(UdpTrial { plan, client, server, elapsed_us: self.elapsed_us })
            }
            _ => None,
        }
    }

    pub(crate) fn rr(self) -> Option<RrTrial> {
        match (self.plan, self.client, self.server) {
            (LoadPlan::Rr(plan), LoadRecord::Rr(client), LoadRecord::Rr(server)) => {
                Some(RrTrial { plan, client, server, elapsed_us: self.elapsed_us })
            }
            _ => None,
        }
    }
}

/// The way from a trial of any kind to one of the kind that was asked for.
pub(super) trait Typed {
    fn typed<T: std::fmt::Debug>(self, into: impl Fn(Measured) -> Option<T>) -> Result<T, TrialError<T>>;
}

impl Typed for Result<Measured, TrialError<Measured>> {
    fn typed<T: std::fmt::Debug>(self, into: impl Fn(Measured) -> Option<T>) -> Result<T, TrialError<T>> {
        match self {
            Ok(measured) => into(measured).ok_or_else(|| {
                let why = "the server's record is of another kind than its trial".to_owned();
                TrialError { partial: None, why: RemoteError::Server(why) }
            }),
            Err(TrialError { partial, why }) => {
                Err(TrialError { partial: partial.and_then(|measured| into(*measured)).map(Box::new), why })
            }
        }
    }
}

/// The server's end as far as it was told before it was lost.
pub(super) fn from_progress(plan: &LoadPlan, latest: TrialProgress, why: &str) -> LoadRecord {
    let at_us = latest.at_us;
    let remarks = vec![format!("the record of this end is only what it told while it ran: {why}")];
    let (before, after, host, place) = (Snapshot::default(), Snapshot::default(), Vec::new(), Place::Server);
    let streams = latest.streams.into_iter();
    match plan {
        LoadPlan::Tcp(_) => {
            let streams = streams.map(|stream| tcp_stream(&stream, at_us)).collect();
            LoadRecord::Tcp(TcpEndRecord { place, streams, host, before, after, remarks })
        }
        LoadPlan::Udp(_) => {
            let streams = streams.map(udp_stream).collect();
            LoadRecord::Udp(UdpEndRecord { place, streams, host, before, after, remarks })
        }
        LoadPlan::Rr(_) => {
            let streams = streams.map(|stream| rr_stream(&stream, at_us)).collect();
            LoadRecord::Rr(RrEndRecord { place, streams, load: None, host, before, after, remarks })
        }
    }
}

fn tcp_stream(progress: &StreamProgress, at_us: u64) -> TcpStreamRecord {
    TcpStreamRecord {
        id: progress.id,
        flow: progress.flow,
        local: String::new(),
        remote: String::new(),
        congestion_control: None,
        mss_bytes: None,
        buffer_lock: None,
        sndbuf_bytes: None,
        rcvbuf_bytes: None,
        method: "unknown".to_owned(),
        samples: vec![TcpSample { at_us, bytes: progress.bytes, ..TcpSample::default() }],
    }
}

fn udp_stream(progress: StreamProgress) -> UdpStreamRecord {
    UdpStreamRecord {
        id: progress.id,
        flow: progress.flow,
        local: String::new(),
        remote: String::new(),
        datagram_bytes: 0,
        path_mtu_bytes: None,
        sndbuf_bytes: None,
        rcvbuf_bytes: None,
        rcvbuf_wanted_bytes: None,
        method: "unknown".to_owned(),
        sent: None,
        received: None,
        samples: progress.udp.into_iter().collect(),
    }
}

fn rr_stream(progress: &StreamProgress, at_us: u64) -> RrStreamRecord {
    let sample = progress.rr.unwrap_or(RrSample { at_us, ..RrSample::default() });
    RrStreamRecord {
        id: progress.id,
        transactions: sample.transactions,
        samples: vec![sample],
        ..RrStreamRecord::default()
    }
}
