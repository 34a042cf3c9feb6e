//! The audit: both hosts' parameters side by side, and what is unusual about them. No load was put on the path.

use crate::host::side_by_side::{Cell, Group};
use crate::words::place::Place;
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the JSON form.
pub const SCHEMA: &str = "narrows.audit/1";

/// Parameters and hazards of one or two hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The client's own name; `None` where it was not asked.
    pub client: Option<String>,
    /// The server's own name; `None` where it was not asked.
    pub server: Option<String>,
    /// The parameters, in groups.
    pub rows: Vec<AuditRow>,
    /// What is unusual, gravest first.
    pub hazards: Vec<Hazard>,
}

/// One parameter of both hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRow {
    /// The group it belongs to.
    pub group: Group,
    /// Its key, or the first of the keys that it is made from.
    pub key: String,
    /// What it is called.
    pub label: String,
    /// The client's side.
    pub client: Option<Cell>,
    /// The server's side.
    pub server: Option<Cell>,
    /// Both are known, and they differ where they usually should not.
    pub differs: bool,
    /// The ids of the hazards that this row is about.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hazards: Vec<String>,
}

words! {
    /// How much a hazard deserves attention. None of them is a verdict: only a diagnosis under load says what limits a path.
    pub enum Severity {
        /// Limits or breaks many transfers.
        Warning = "warning",
        /// Limits some transfers, or hides a fault.
        Notice = "notice",
        /// Good to know when something is slow.
        Info = "info",
    }
}

/// Something unusual about a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hazard {
    /// Its public id.
    pub id: String,
    /// Where it is; `path` where it is about both ends together.
    pub at: Place,
    /// How much attention it deserves.
    pub severity: Severity,
    /// The key of the row that it is about; of several, the first.
    pub key: String,
    /// The keys of all rows that it is about, in the order of the rule; empty in audits of earlier versions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rows: Vec<String>,
    /// What is unusual, with its figures.
    pub says: String,
    /// Why it matters.
    pub matters: String,
    /// When it does not matter.
    pub harmless: String,
    /// What to type on that host, where there is something to type.
    pub command: Option<String>,
}

impl Hazard {
    /// Whether it is about this row.
    pub fn is_about(&self, row: &str) -> bool {
        self.key == row || self.rows.iter().any(|key| key == row)
    }
}

impl Audit {
    /// The hazards of a row, in the audit's order.
    pub fn hazards_of<'a>(&'a self, row: &'a AuditRow) -> impl Iterator<Item = &'a Hazard> {
        self.hazards.iter().filter(|hazard| row.hazards.contains(&hazard.id) && hazard.is_about(&row.key))
    }
}
