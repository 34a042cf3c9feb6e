//! The state of a trial: how far it is, and the data connections that it waits for.

use crate::instruments::LiveInstruments;
use crate::lock;
use narrows_model::{Carrier, Flow, LoadPlan, StreamSpec};
use narrows_traffic::rr::Answers;
use narrows_traffic::{DataStream, Stop};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, watch};

/// How far a trial is. The ends wait for each other twice, so that between the readings of their counters lies the load and
/// nothing else: no hello of a stream before it, no record of the other end after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Gathers,
    /// The client has them all, and has read its counters.
    Called,
    /// This end has read its counters, too, and the load begins.
    Begun,
    /// The client has read its counters again: the record may come.
    Released,
    /// Nothing of it is left.
    Over,
}

/// A trial as its session sees it.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) stop: Stop,
    pub(super) phase: watch::Sender<Phase>,
    /// The cookies that the client returned.
    pub(super) cookies: Arc<Mutex<BTreeMap<u32, u64>>>,
    /// What is read of this host for it.
    pub(super) instruments: LiveInstruments,
    /// Both ends are on this machine.
    pub(super) beside: bool,
}

impl Running {
    /// The client is ready; returns when this end is, or the trial is over.
    pub(super) async fn begin(&self, cookies: BTreeMap<u32, u64>) {
        *lock(&self.cookies) = cookies;
        self.raise(Phase::Called);
        self.reach(Phase::Begun).await;
    }

    pub(super) fn raise(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let later = to > *phase;
            *phase = (*phase).max(to);
            later
        });
    }

    pub(super) async fn reach(&self, least: Phase) {
        // The sender is here, so this cannot fail.
        let _ = self.phase.subscribe().wait_for(|phase| *phase >= least).await;
    }
}

/// Says that a trial is over, whatever became of its task.
pub(super) struct Over(pub(super) Running);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.raise(Phase::Over);
    }
}

/// A trial as its data connections see it, while they come.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) missing: BTreeSet<StreamSpec>,
    pub(super) plan: LoadPlan,
    /// The client, where the server sees it (over SSH it may be behind a jump host): UDP streams come from nowhere else.
    pub(super) client: Option<IpAddr>,
    pub(super) arrived: mpsc::UnboundedSender<DataStream>,
    pub(super) answers: Option<Answers>,
}

impl Expected {
    /// Takes the place of one stream, so that no other connection can.
    pub(super) fn claim(
        &mut self,
        id: u32,
        flow: Flow,
        carrier: Carrier,
    ) -> Option<(LoadPlan, mpsc::UnboundedSender<DataStream>)> {
        self.missing.remove(&StreamSpec { id, flow, carrier }).then(|| (self.plan.clone(), self.arrived.clone()))
    }
}
