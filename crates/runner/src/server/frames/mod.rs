//! Frames on this host's devices for a forwarding benchmark of a client: sent and counted by jobs, which end with their session.
//! Raw frames can do harm, so the server has none of it unless it was started with `--frames`; [`bounds`] says what then.

mod bounds;
mod job;
mod requests;

pub(super) use requests::{begin, end, links, look, qualify, stop, wait};

use super::refusal::Refused;
use super::session::{Session, lock};
use super::shared::Shared;
use job::Job;
use narrows_wire::api::Reason;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// The most jobs of a session that run or wait to be asked for.
const MOST_JOBS: usize = 8;

/// What one job has for itself alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
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
            Self::Send(device) => format!("frames are sent by {device} already"),
            Self::Count(device) => format!("frames are counted at {device} already"),
            Self::Qualify => "the host is being qualified already".to_owned(),
        }
    }
}

/// What is in use on this server, over all sessions.
#[derive(Debug, Clone, Default)]
pub(super) struct Uses(Arc<Mutex<BTreeSet<Use>>>);

/// A use that ends when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    uses: Uses,
    what: Use,
}

impl Uses {
    /// Takes it for one job.
    pub(super) fn claim(&self, what: Use) -> Result<Claim, Refused> {
        if !lock(&self.0).insert(what.clone()) {
            let why = format!("{}; one benchmark at a time has a device for itself", what.words());
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
pub(super) struct Jobs {
    next: u32,
    running: HashMap<u32, Arc<Job>>,
    closed: bool,
}

impl Jobs {
    /// Takes a job in, unless the session has ended or has too many.
    fn add(&mut self, job: Arc<Job>) -> Result<u32, Refused> {
        if self.closed {
            return Err(Refused::not_found("session"));
        }
        if self.running.len() >= MOST_JOBS {
            let why = format!("a session has at most {MOST_JOBS} jobs of frames; end those that are over");
            return Err(Refused::new(Reason::Busy, why));
        }
        self.next += 1;
        self.running.insert(self.next, job);
        Ok(self.next)
    }
}

impl Session {
    fn job(&self, number: u32) -> Result<Arc<Job>, Refused> {
        lock(&self.frames).running.get(&number).cloned().ok_or_else(|| Refused::not_found("job of frames"))
    }

    /// Ends all jobs and takes no more.
    pub(super) async fn end_frames(&self, shared: &Shared) {
        let running = {
            let mut jobs = lock(&self.frames);
            jobs.closed = true;
            std::mem::take(&mut jobs.running)
        };
        for job in running.values() {
            job.stop();
        }
        for job in running.into_values() {
            if !job.gone().await {
                shared.say("a generator of frames did not end in time; its session is freed all the same");
            }
        }
    }
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
