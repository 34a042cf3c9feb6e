//! Campaigns: what was varied, what was measured, and the effect of each factor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time, a loss.
    Lower,
}
