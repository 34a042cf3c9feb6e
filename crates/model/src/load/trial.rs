//! Trials: one engine at one setting, as both ends saw it. Samples are cumulative and raw; rates are derived on reading.

use crate::load::kind::{Load, Member, TrialOf};
use crate::load::{LoadPlan, LoadRecord, LoadSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One engine at one setting, as both ends saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// What was asked for.
    pub plan: LoadPlan,
    /// What the client saw.
    pub client: LoadRecord,
    /// What the server saw.
    pub server: LoadRecord,
    /// How long the data flowed, by the client's clock.
    pub elapsed_us: u64,
}

/// A kind of load in the table of loads.
pub trait Kind:
    Load<Record: Member<LoadRecord> + Into<LoadRecord>, Sample: Member<LoadSample> + Into<LoadSample>>
    + Member<LoadPlan>
    + Into<LoadPlan>
{
}

impl<L> Kind for L
where
    L: Load + Member<LoadPlan> + Into<LoadPlan>,
    L::Record: Member<LoadRecord> + Into<LoadRecord>,
    L::Sample: Member<LoadSample> + Into<LoadSample>,
{
}

impl Trial {
    /// A trial of one kind of load.
    pub fn new<L: Kind>(plan: L, client: L::Record, server: L::Record, elapsed_us: u64) -> Self {
        Self { plan: plan.into(), client: client.into(), server: server.into(), elapsed_us }
    }

    /// The trial as one of this kind; `None` where its plan or a record is of another kind.
    pub fn of<L: Kind>(&self) -> Option<TrialOf<'_, L>> {
        let (plan, client, server) = (self.plan.get()?, self.client.get()?, self.server.get()?);
        Some(TrialOf { plan, client, server, elapsed_us: self.elapsed_us })
    }
}
