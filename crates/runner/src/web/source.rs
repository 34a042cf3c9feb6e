//! What a page is of.

use super::gate::Visitor;
use super::live::Live;
use crate::server::refusal::Refused;
use narrows_model::run::fleet::{FleetSeries, FleetStatus};
use narrows_model::run::grid::{Grid, GridMetric};
use narrows_render::web::Front;
use narrows_wire::api::Reason;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// An answer that takes time.
pub(crate) type Soon<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send + 'a>>;

/// How everything is.
#[derive(Debug)]
pub(crate) struct Now {
    pub(crate) front: Front,
    /// One at least; the first is shown unless another is asked for.
    pub(crate) grids: Vec<Grid>,
    /// Of a fleet.
    pub(crate) status: Option<FleetStatus>,
}

impl Now {
    /// The grid of a metric, or the first one where none is named.
    pub(crate) fn grid(&self, metric: &str) -> Result<&Grid, Refused> {
        let found = self.grids.iter().find(|it| metric.is_empty() || it.metric.word() == metric);
        found.ok_or_else(|| {
            let (asked, all) = (metric.chars().take(40).collect::<String>(), self.metrics());
            let words: Vec<&str> = all.into_iter().map(GridMetric::word).collect();
            Refused::new(
                Reason::NotFound,
                format!("the paths have no metric `{asked}` here; there is: {}", words.join(", ")),
            )
        })
    }

    pub(crate) fn metrics(&self) -> Vec<GridMetric> {
        self.grids.iter().map(|it| it.metric).collect()
    }
}

/// What a reader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Acknowledge {
        incident: u64,
        who: String,
    },
    /// For so long; 0: what is muted is reported again.
    Mute {
        element: String,
        for_ms: u64,
    },
    Pause {
        for_ms: u64,
    },
    /// The path between two hosts. Of a host's page: a diagnosis from there, or to there.
    Test {
        from: String,
        to: String,
        down: bool,
    },
    /// The test of this host that began then ends.
    Stop {
        began_unix_ms: u64,
    },
    /// A change of this host's settings, by its id.
    Undo {
        change: String,
    },
}

/// What a page is of.
pub(crate) trait Source: Send + Sync {
    /// Its name.
    fn name(&self) -> String;

    /// Whose token lets a reader in, and where it is.
    fn tokens(&self) -> &'static str;

    /// How everything is.
    fn now(&self) -> Soon<'_, Now>;

    /// What tests of a path found in the last hours; `None`: there are no such tests.
    fn series(&self, _from: String, _to: String, _hours: u64) -> Soon<'_, Option<FleetSeries>> {
        Box::pin(async { Ok(None) })
    }

    /// Settings and interfaces of a host, as a page of a report; `None`: they are not known here.
    fn settings(&self, _host: String) -> Soon<'_, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    /// What limits the connections of a host now, as a page of a report, and when that was read; `None`: that is not known here.
    fn connections(&self, _host: String) -> Soon<'_, Option<(String, u64)>> {
        Box::pin(async { Ok(None) })
    }

    /// Tests of this host; `None`: none are started here.
    fn tests(&self) -> Option<&Arc<Live>> {
        None
    }

    /// Hosts that this host's tests can reach.
    fn ends(&self) -> Soon<'_, Vec<String>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Changes of a host's settings that can be undone: their ids, and what they are.
    fn changes(&self, _host: String) -> Soon<'_, Vec<(String, String)>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Notes in the audit log whose token let a reader in, or why none did.
    fn note_entry(&self, from: Option<IpAddr>, entry: Result<&str, (Reason, &str)>);

    /// Does what a reader asks for who may; what was done, in a sentence.
    fn act(&self, _by: Visitor, _ask: Ask) -> Soon<'_, String> {
        Box::pin(async { Err(Refused::new(Reason::NotAllowed, "nothing can be changed on this page")) })
    }
}
