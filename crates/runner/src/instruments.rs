//! What an end measures with: the collectors and the engines of this host, in the network namespace of the calling thread.

use crate::helper::HelperWatch;
use narrows_collect::{Live, Missing, Watch, Watched};
use narrows_model::{LoadPlan, LoadRecord, Place, Progress, Snapshot};
use narrows_traffic::{Connections, Stop};
use std::net::IpAddr;

/// What is counted only while a trial runs.
#[derive(Debug, Default)]
pub(crate) struct Watches(Vec<(Watched, Result<Counting, Missing>)>);

#[derive(Debug)]
pub(crate) enum Counting {
    Here(Watch),
    Helper(HelperWatch),
}

impl Watches {
    pub(crate) fn begin(start: impl Fn(Watched) -> Result<Counting, Missing>) -> Self {
        Self(Watched::ALL.map(|watched| (watched, start(watched))).into())
    }

    /// Ends them and puts what was counted, or why nothing was, into the readings around the trial.
    pub(crate) fn end(self, before: &mut Snapshot, after: &mut Snapshot) {
        for (watched, counting) in self.0 {
            let counted = counting.and_then(|counting| match counting {
                Counting::Here(watch) => Ok(watch.finish()),
                Counting::Helper(watch) => watch.finish(),
            });
            watched.put(counted, before, after);
        }
    }
}

/// What is read of this host around and during a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveInstruments {
    /// Nothing can be diagnosed.
    Nothing,
    /// Whether an end had CPU time: for one load among hundreds, each of which would pay for all counters of both hosts.
    Cpu,
    /// All counters, and what is counted only during a trial.
    All,
}

impl LiveInstruments {
    /// All, or nothing.
    pub const fn of(collect: bool) -> Self {
        if collect { Self::All } else { Self::Nothing }
    }

    /// The counters alone: cheap enough for right before and right after a load.
    pub(crate) fn counters(self, peer: Option<IpAddr>) -> Snapshot {
        match self {
            Self::Nothing => Snapshot::default(),
            Self::Cpu => narrows_collect::cpu_quota(&Live::new()),
            Self::All => narrows_collect::counters(&Live::new(), peer),
        }
    }

    /// Begins to count what is counted only while a trial runs.
    pub(crate) fn watch(self) -> Watches {
        if self == Self::All {
            Watches::begin(|watched| watched.start().map(Counting::Here))
        } else {
            Watches::default()
        }
    }

    /// Runs one end of a trial until it is over or `stop` is raised. The snapshots of the record are left empty. What goes wrong after
    /// the start is a remark in the record.
    pub(crate) fn run(
        self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadRecord, String> {
        let none = || Vec::new();
        let cpu_times: &(dyn Fn() -> _ + Sync) =
            if self == Self::Nothing { &none } else { &narrows_collect::cpu_times };
        narrows_traffic::run(place, plan, connections, stop, cpu_times, on_progress).map_err(|error| error.to_string())
    }
}
