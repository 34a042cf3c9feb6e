//! Jobs of a session: generators that send, or a receiver that counts, until the client reads the record. Each has what it uses for
//! itself alone.

use super::super::events::End;
use super::super::limits::ENGINE_END;
use super::super::refusal::Refused;
use crate::lock;
use crate::port::{Port, Receiving};
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan};
use narrows_traffic::Stop;
use narrows_wire::api::Reason;
use narrows_wire::api::frames::{FramesProgress, FramesRecord};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Jobs of a session that run, or whose record was not read yet.
const MAX_JOBS: usize = 8;

/// What one job has for itself alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Use {
    /// Sending by a device.
    Send(String),
    /// Counting at a device.
    Count(String),
    /// The CPUs, to see what the host alone can do.
    Qualify,
}

impl Use {
    fn words(&self) -> String {
        match self {
            Self::Send(device) => format!("{device} is already sending frames"),
            Self::Count(device) => format!("{device} is already counting frames"),
            Self::Qualify => "the host is already being calibrated".to_owned(),
        }
    }
}

/// What is in use on this server, over all sessions.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Uses(Arc<Mutex<BTreeSet<Use>>>);

/// A use that ends when dropped.
#[derive(Debug)]
pub(in super::super) struct Claim {
    uses: Uses,
    what: Use,
}

impl Uses {
    /// Takes it for one job.
    pub(in super::super) fn claim(&self, what: Use) -> Result<Claim, Refused> {
        if !lock(&self.0).insert(what.clone()) {
            let why = format!("{}; one benchmark at a time per interface", what.words());
            return Err(Refused::new(Reason::Busy, why));
        }
        Ok(Claim { uses: self.clone(), what })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.uses.0).remove(&self.what);
    }
}

/// The jobs of a session.
#[derive(Debug, Default)]
pub(in super::super) struct Jobs {
    next: u32,
    running: HashMap<u32, Arc<Job>>,
    closed: bool,
}

impl Jobs {
    /// Takes a job in, unless the session has ended or has too many.
    pub(super) fn add(&mut self, job: Arc<Job>) -> Result<u32, Refused> {
        if self.closed {
            return Err(Refused::not_found("session"));
        }
        if self.running.len() >= MAX_JOBS {
            let why = format!("a session has at most {MAX_JOBS} frame jobs; delete finished ones");
            return Err(Refused::new(Reason::Busy, why));
        }
        self.next += 1;
        self.running.insert(self.next, job);
        Ok(self.next)
    }

    /// One job; its session no longer has it if `remove`.
    pub(in super::super) fn find(jobs: &Mutex<Self>, number: &str, remove: bool) -> Result<Arc<Job>, Refused> {
        let running = &mut lock(jobs).running;
        let job = number
            .parse()
            .ok()
            .and_then(|number: u32| if remove { running.remove(&number) } else { running.get(&number).cloned() });
        job.ok_or_else(|| Refused::not_found("frame job"))
    }

    /// Ends all jobs and takes no more; whether all ended in time.
    pub(in super::super) async fn end_all(jobs: &Mutex<Self>) -> bool {
        let running = {
            let mut jobs = lock(jobs);
            jobs.closed = true;
            std::mem::take(&mut jobs.running)
        };
        for job in running.values() {
            job.stop();
        }
        let mut in_time = true;
        for job in running.into_values() {
            in_time &= job.gone().await;
        }
        in_time
    }
}

/// The records of generators; `None`: they still send.
type Outcome = Option<Result<Vec<GenerateRecord>, String>>;

pub(in super::super) enum Job {
    Sends { stop: Stop, over: watch::Receiver<Outcome> },
    Counts(Mutex<Option<Counting>>),
}

/// A receiver, and the device that it has for itself. Its end comes before the claim's.
pub(in super::super) struct Counting {
    receiver: Box<dyn Receiving>,
    _claim: Claim,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sends { .. } => "Sends",
            Self::Counts(_) => "Counts",
        })
    }
}

const GONE: &str = "the receiver has reached its time limit";

impl Job {
    /// Begins to send. The generators end by their own plans, or by the flag.
    pub(super) fn send(port: Arc<dyn Port>, plans: Vec<GeneratePlan>, claim: Claim) -> Self {
        let (tell, over) = watch::channel(None);
        let stop = Stop::new();
        let flag = stop.clone();
        tokio::task::spawn_blocking(move || {
            let sent = port.generate(&plans, &flag).map_err(|error| error.to_string());
            drop(claim);
            tell.send_replace(Some(sent));
        });
        Self::Sends { stop, over }
    }

    /// Begins to count. Blocks until frames are counted.
    pub(super) fn count(port: &dyn Port, plan: &ReceivePlan, watched: bool, claim: Claim) -> Result<Self, String> {
        let receiver = port.receive(plan, watched).map_err(|error| error.to_string())?;
        Ok(Self::Counts(Mutex::new(Some(Counting { receiver, _claim: claim }))))
    }

    /// Ends a receiver when its time is over, or with its session.
    pub(super) fn expire(self: &Arc<Self>, end: &End, after: Duration) {
        let (job, end) = (Arc::downgrade(self), end.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = end.wait() => {}
                () = tokio::time::sleep(after) => {}
            }
            if let Some(job) = job.upgrade() {
                job.gone().await;
            }
        });
    }

    /// Tells generators to end.
    pub(super) fn stop(&self) {
        if let Self::Sends { stop, .. } = self {
            stop.stop();
        }
    }

    /// Waits for the end of generators, or until so many frames were counted, or for the time.
    pub(super) async fn wait(self: Arc<Self>, least: u64, within: Duration) -> Result<FramesProgress, String> {
        if let Self::Sends { over, .. } = &*self {
            let mut over = over.clone();
            let done = timeout(within, over.wait_for(Option::is_some)).await.is_ok();
            return Ok(FramesProgress { frames: 0, over: done });
        }
        blocking(move || {
            let Self::Counts(counting) = &*self else { return Err(GONE.to_owned()) };
            let mut counting = lock(counting);
            let counting = counting.as_mut().ok_or(GONE)?;
            let frames = counting.receiver.wait(least, within).map_err(|error| error.to_string())?;
            Ok(FramesProgress { frames, over: frames >= least })
        })
        .await
    }

    /// Ends it and returns its record.
    pub(super) async fn end(self: Arc<Self>) -> Result<FramesRecord, String> {
        if let Self::Sends { stop, over } = &*self {
            stop.stop();
            let mut over = over.clone();
            let outcome = match timeout(ENGINE_END, over.wait_for(Option::is_some)).await {
                Ok(Ok(outcome)) => outcome.clone(),
                Ok(Err(_)) => return Err("the generator failed".to_owned()),
                Err(_) => return Err("the generator did not end in time".to_owned()),
            };
            return Ok(FramesRecord::Generated { sent: outcome.unwrap_or(Ok(Vec::new()))? });
        }
        blocking(move || {
            let Self::Counts(counting) = &*self else { return Err(GONE.to_owned()) };
            let Counting { receiver, _claim } = lock(counting).take().ok_or(GONE)?;
            let record = receiver.finish().map_err(|error| error.to_string())?;
            Ok(FramesRecord::Received { record: Box::new(record) })
        })
        .await
    }

    /// Waits until nothing of it is left on a device; whether that was in time.
    pub(super) async fn gone(self: Arc<Self>) -> bool {
        if let Self::Sends { stop, over } = &*self {
            stop.stop();
            let mut over = over.clone();
            return timeout(ENGINE_END, over.wait_for(Option::is_some)).await.is_ok();
        }
        tokio::task::spawn_blocking(move || {
            if let Self::Counts(counting) = &*self {
                drop(lock(counting).take());
            }
        })
        .await
        .is_ok()
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("internal error: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_sends_for_one_job_and_counts_for_another() {
        let uses = Uses::default();
        let sending = uses.claim(Use::Send("eth1".to_owned())).expect("free");
        let counting = uses.claim(Use::Count("eth1".to_owned())).expect("another use");
        assert!(uses.claim(Use::Send("eth1".to_owned())).is_err());
        drop(sending);
        let again = uses.claim(Use::Send("eth1".to_owned())).expect("free again");
        drop((again, counting));
        assert!(lock(&uses.0).is_empty());
    }
}
