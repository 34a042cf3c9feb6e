//! One job: generators that send, or a receiver that counts, until it is asked for what it saw.

use super::super::limits::ENGINE_END;
use super::super::session::{Session, lock};
use super::Claim;
use crate::forwarding::port::{Here, Port as _, Receiving};
use narrows_model::load::frames::{GeneratePlan, GenerateRecord, ReceivePlan};
use narrows_traffic::Stop;
use narrows_wire::api::frames::{FramesProgress, FramesRecord};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// What came of generators; `None`: they send.
type Outcome = Option<Result<Vec<GenerateRecord>, String>>;

/// A job.
pub(super) enum Job {
    Sends { stop: Stop, over: watch::Receiver<Outcome> },
    Counts(Mutex<Option<Counting>>),
}

/// A receiver, and the device that it has for itself. Its end comes before the claim's.
pub(super) struct Counting {
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

const GONE: &str = "the receiver has ended: its time was over";

impl Job {
    /// Begins to send. The generators end by their own plans, or by the flag.
    pub(super) fn send(plans: Vec<GeneratePlan>, claim: Claim) -> Self {
        let (tell, over) = watch::channel(None);
        let stop = Stop::new();
        let flag = stop.clone();
        tokio::task::spawn_blocking(move || {
            let sent = Here.generate(&plans, &flag).map_err(|error| error.to_string());
            drop(claim);
            tell.send_replace(Some(sent));
        });
        Self::Sends { stop, over }
    }

    /// Begins to count. Blocks until frames are counted.
    pub(super) fn count(plan: &ReceivePlan, watched: bool, claim: Claim) -> Result<Self, String> {
        let receiver = Here.receive(plan, watched).map_err(|error| error.to_string())?;
        Ok(Self::Counts(Mutex::new(Some(Counting { receiver, _claim: claim }))))
    }

    /// Ends a receiver when its time is over, or with its session.
    pub(super) fn expire(self: &Arc<Self>, session: &Arc<Session>, after: Duration) {
        let (job, session) = (Arc::downgrade(self), session.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = session.wait_for_end() => {}
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

    /// Ends it and tells what it saw.
    pub(super) async fn end(self: Arc<Self>) -> Result<FramesRecord, String> {
        if let Self::Sends { stop, over } = &*self {
            stop.stop();
            let mut over = over.clone();
            let outcome = match timeout(ENGINE_END, over.wait_for(Option::is_some)).await {
                Ok(Ok(outcome)) => outcome.clone(),
                Ok(Err(_)) => return Err("the generator broke down".to_owned()),
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
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("it broke: {error}")))
}
