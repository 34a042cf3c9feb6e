//! Ports that are devices of another host, which runs `narrows serve --frames`. One session for a host, as long as the
//! benchmark lasts; what was begun there ends with it.

use crate::hosts::HostAccess;
use hyper::Method;
use narrows_forwarding::data::{ForwardingPlan, TesterPort};
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan, ReceiveRecord};
use narrows_runner::port::{Here, Port, PortError, PortState, Qualified, QualifyRequest, Receiving};
use narrows_runner::remote::{RemoteError, Session};
use narrows_sys::clock;
use narrows_traffic::Stop;
use narrows_wire::api::frames::{
    FramesOrder, FramesProgress, FramesRecord, FramesStarted, FramesWait, MAX_WAIT_MS, PortRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// To attach a receiver, to find a neighbour, to see what the host alone can do.
const SET_UP: Duration = Duration::from_secs(30);
/// For a request that is answered at once, or waits at most [`MAX_WAIT_MS`].
const REQUEST: Duration = Duration::from_secs(10);
/// How often a flag that ends a generator is looked for.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Clone)]
pub(crate) struct Far(Arc<Host>);

struct Host {
    /// The plan's word for it.
    word: String,
    data: SocketAddr,
    session: Session,
}

impl std::fmt::Debug for Far {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Far").field(&self.0.word).finish()
    }
}

impl Host {
    fn error(&self, why: RemoteError) -> PortError {
        // The end of the session explains why a request failed, and does so better.
        PortError::Far { host: self.word.clone(), why: self.session.lost().unwrap_or(why) }
    }

    fn post<T: DeserializeOwned>(
        &self,
        rest: &str,
        body: &(impl Serialize + Sync),
        limit: Duration,
    ) -> Result<T, PortError> {
        self.session.call(Method::POST, rest, body, limit).map_err(|why| self.error(why))
    }

    fn begin(&self, order: &FramesOrder) -> Result<u32, PortError> {
        self.post("frames", order, SET_UP).map(|started: FramesStarted| started.job)
    }

    fn wait(&self, job: u32, least: u64, within: Duration) -> Result<FramesProgress, PortError> {
        let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.post(&format!("frames/{job}/wait"), &FramesWait { least, within_ms }, REQUEST)
    }

    fn end(&self, job: u32) -> Result<FramesRecord, PortError> {
        let record = self.session.call(Method::DELETE, &format!("frames/{job}"), &(), SET_UP);
        record.map_err(|why| self.error(why))
    }

    fn unlike(&self) -> PortError {
        self.error(RemoteError::Server("its job is of another kind".to_owned()))
    }
}

impl Far {
    /// Connects to the host of a port, and waits for its turn there. `stop` is raised when the host is lost. Where it turns out
    /// to be the one that is known by another word, that one is taken: it would wait for itself.
    pub(crate) fn open(
        plan: &ForwardingPlan,
        port: &TesterPort,
        word: &str,
        known: Option<&Self>,
        hosts: &HostAccess,
        stop: &Stop,
        says: &mut dyn FnMut(&str),
    ) -> Result<Self, PortError> {
        let failed = |why| PortError::Far { host: word.to_owned(), why };
        let ports = [&plan.generator, &plan.receiver].into_iter().filter(|port| port.host.as_deref() == Some(word));
        let mut devices: Vec<String> = ports.map(|port| port.device.clone()).collect();
        devices.dedup();
        let remote = hosts.connect(word, port.token_file.as_deref(), devices).map_err(failed)?;
        if let Some(known) = known.filter(|known| known.0.data == remote.data_address()) {
            return Ok(known.clone());
        }
        let mut shown = 0;
        let session = remote.open_session(&mut |position, why| {
            if shown != position {
                says(&format!("{word}: waiting, position {position} in the queue: {why}"));
            }
            shown = position;
            !stop.is_set()
        });
        let session = session.map_err(failed)?;
        session.raise_when_lost(stop);
        Ok(Self(Arc::new(Host { word: word.to_owned(), data: remote.data_address(), session })))
    }
}

/// Generator's and receiver's. A host is connected to once, by whatever words the plan calls it.
pub(crate) fn ports(
    plan: &ForwardingPlan,
    hosts: &HostAccess,
    stop: &Stop,
    says: &mut dyn FnMut(&str),
) -> Result<[Arc<dyn Port>; 2], PortError> {
    let mut open = |port, word: &str, known: Option<&Far>| Far::open(plan, port, word, known, hosts, stop, says);
    let here = || Arc::new(Here) as Arc<dyn Port>;
    let (generator, receiver) = (&plan.generator, &plan.receiver);
    Ok(match (&generator.host, &receiver.host) {
        (None, None) => [here(), here()],
        (Some(host), None) => [Arc::new(open(generator, host, None)?), here()],
        (None, Some(host)) => [here(), Arc::new(open(receiver, host, None)?)],
        (Some(sends), Some(counts)) => {
            let first = open(generator, sends, None)?;
            let second = if sends == counts { first.clone() } else { open(receiver, counts, Some(&first))? };
            [Arc::new(first), Arc::new(second)]
        }
    })
}

impl Port for Far {
    fn host(&self) -> &str {
        &self.0.word
    }

    fn lost(&self) -> Option<PortError> {
        self.0.session.lost().map(|why| self.0.error(why))
    }

    fn look(&self, device: &str, gateway: Option<IpAddr>) -> Result<PortState, PortError> {
        self.0.post("frames/look", &PortRequest { device: device.to_owned(), gateway }, SET_UP)
    }

    fn qualify(&self, request: &QualifyRequest, _: &Stop) -> Result<Qualified, PortError> {
        self.0.post("frames/qualify", request, SET_UP)
    }

    fn generate(&self, plans: &[GeneratePlan], stop: &Stop) -> Result<Vec<GenerateRecord>, PortError> {
        let host = &self.0;
        let job = host.begin(&FramesOrder::Generate { plans: plans.to_vec() })?;
        let mut stopped = false;
        while !host.wait(job, 0, LOOK)?.over {
            if stop.is_set() && !std::mem::replace(&mut stopped, true) {
                host.post::<serde_json::Value>(&format!("frames/{job}/stop"), &(), REQUEST)?;
            }
        }
        match host.end(job)? {
            FramesRecord::Generated { sent } if sent.len() == plans.len() => Ok(sent),
            _ => Err(host.unlike()),
        }
    }

    fn receive(&self, plan: &ReceivePlan, watched: bool) -> Result<Box<dyn Receiving>, PortError> {
        let job = self.0.begin(&FramesOrder::Receive { plan: plan.clone(), watched })?;
        Ok(Box::new(Counting { host: self.0.clone(), job: Some(job) }))
    }
}

/// A receiver of another host.
struct Counting {
    host: Arc<Host>,
    /// `None`: it was asked for.
    job: Option<u32>,
}

impl Receiving for Counting {
    fn wait(&mut self, least: u64, within: Duration) -> Result<u64, PortError> {
        let since = clock::now();
        loop {
            let left = within.saturating_sub(since.elapsed());
            let step = left.min(Duration::from_millis(MAX_WAIT_MS));
            let job = self.job.unwrap_or_default();
            let seen = self.host.wait(job, least, step)?;
            if seen.over || left <= step {
                return Ok(seen.frames);
            }
        }
    }

    fn finish(mut self: Box<Self>) -> Result<ReceiveRecord, PortError> {
        let job = self.job.take().unwrap_or_default();
        match self.host.end(job)? {
            FramesRecord::Received { record } => Ok(*record),
            FramesRecord::Generated { .. } => Err(self.host.unlike()),
        }
    }
}

impl Drop for Counting {
    /// A trial that failed elsewhere must not keep the device.
    fn drop(&mut self) {
        if let Some(job) = self.job.take().filter(|_| self.host.session.lost().is_none()) {
            let _ = self.host.end(job);
        }
    }
}
