//! What an end measures with: the collectors and the engines of this host, in the network namespace of the calling thread.

use crate::helper::CountedDrops;
use narrows_collect::drop_watch::{self, DropWatch};
use narrows_collect::{Live, Missing};
use narrows_model::{LoadPlan, LoadRecord, Place, Progress, Snapshot};
use narrows_traffic::{Connections, Stop};
use std::net::IpAddr;

/// Counts the kernel's drops by reason while a trial runs.
#[derive(Debug, Default)]
pub(crate) struct Drops(Option<Result<Counting, Missing>>);

#[derive(Debug)]
enum Counting {
    Here(DropWatch),
    Helper(CountedDrops),
}

impl Drops {
    /// Ends it and puts what was counted, or why nothing was, into the readings around the trial.
    pub(crate) fn end(self, before: &mut Snapshot, after: &mut Snapshot) {
        let counted = match self.0 {
            None => return,
            Some(Ok(Counting::Here(watch))) => Ok(watch.finish()),
            Some(Ok(Counting::Helper(drops))) => drops.finish(),
            Some(Err(why)) => Err(why),
        };
        match counted {
            Ok(facts) => drop_watch::put(facts, before, after),
            Err(why) => drop_watch::put_absent(&why, before, after),
        }
    }

    /// Those that a helper counts.
    pub(crate) fn by_helper(begun: Result<CountedDrops, Missing>) -> Self {
        Self(Some(begun.map(Counting::Helper)))
    }
}

/// The collectors and the engine of this host.
#[derive(Debug, Clone, Copy)]
pub struct LiveInstruments {
    /// Whether counters and CPU times are read around and during a trial; without them nothing can be diagnosed.
    pub collect: bool,
}

impl LiveInstruments {
    /// The counters alone: cheap enough for right before and right after a load.
    pub(crate) fn counters(&self, peer: Option<IpAddr>) -> Snapshot {
        if self.collect { narrows_collect::counters(&Live::new(), peer) } else { Snapshot::default() }
    }

    /// Begins to count the kernel's drops.
    pub(crate) fn watch_drops(&self) -> Drops {
        if self.collect { Drops(Some(DropWatch::start().map(Counting::Here))) } else { Drops::default() }
    }

    /// Runs one end of a trial until it is over or `stop` is raised. The snapshots of the record are left empty. What goes wrong after
    /// the start is a remark in the record.
    pub(crate) fn run(
        &self,
        place: Place,
        plan: &LoadPlan,
        connections: Connections,
        stop: &Stop,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<LoadRecord, String> {
        let none = || Vec::new();
        let cpu_times: &(dyn Fn() -> _ + Sync) = if self.collect { &narrows_collect::cpu_times } else { &none };
        narrows_traffic::run(place, plan, connections, stop, cpu_times, on_progress).map_err(|error| error.to_string())
    }
}
