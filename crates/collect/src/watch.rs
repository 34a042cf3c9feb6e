//! What is counted only while a trial runs, since counting costs something.

use crate::Missing;
use crate::bpf_watch::{self, BpfWatch};
use crate::drop_watch::{self, DropWatch};
use narrows_model::{Absent, Fact, FactKey, Snapshot};
use serde::{Deserialize, Serialize};

/// A subject of such a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// The kernel's drops by reason.
    Drops,
    /// The run time of BPF programs.
    BpfPrograms,
}

/// A count that runs.
#[derive(Debug)]
pub enum Watch {
    Drops(Box<DropWatch>),
    BpfPrograms(BpfWatch),
}

impl Watched {
    pub const ALL: [Self; 2] = [Self::Drops, Self::BpfPrograms];

    /// The id of the collector, as in [`Absent`].
    const fn id(self) -> &'static str {
        match self {
            Self::Drops => drop_watch::ID,
            Self::BpfPrograms => bpf_watch::ID,
        }
    }

    /// Every fact that it provides.
    pub const fn provides(self) -> &'static [FactKey] {
        match self {
            Self::Drops => drop_watch::PROVIDES,
            Self::BpfPrograms => bpf_watch::PROVIDES,
        }
    }

    /// Starts counting.
    /// Errors: why it cannot run here.
    pub fn start(self) -> Result<Watch, Missing> {
        match self {
            Self::Drops => DropWatch::start().map(|watch| Watch::Drops(Box::new(watch))),
            Self::BpfPrograms => BpfWatch::start().map(Watch::BpfPrograms),
        }
    }

    /// Puts what was counted, or why nothing was, into the snapshots around a trial.
    pub fn put(self, counted: Result<Vec<Fact>, Missing>, before: &mut Snapshot, after: &mut Snapshot) {
        let why = match counted {
            Ok(facts) => return drop_watch::put(facts, before, after),
            Err(why) => why.to_string(),
        };
        let absent =
            |key: &FactKey| Absent { collector: self.id().to_owned(), what: key.name.to_owned(), why: why.clone() };
        for snapshot in [before, after] {
            snapshot.absent.extend(self.provides().iter().map(absent));
        }
    }
}

impl Watch {
    /// Ends it: what was counted.
    pub fn finish(self) -> Vec<Fact> {
        match self {
            Self::Drops(watch) => watch.finish(),
            Self::BpfPrograms(watch) => watch.finish(),
        }
    }
}
