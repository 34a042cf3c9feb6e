//! Reset of the device under test.

use super::about::{About, Made, Procedure, TRIAL_MS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// Outage of a reset.
    pub struct ResetTest {
        /// Command that resets the DUT: a list of arguments, run without a shell.
        pub command: Vec<String> = "command", Kind::Command, D::Required;
        /// Time limit of the reset.
        pub within_ms: u64 = "within", Kind::Duration(TRIAL_MS), D::Always(Value::Ms(120_000));
    }
}

impl Procedure for ResetTest {
    const ABOUT: About = About {
        key: "reset",
        what: "outage of a reset (RFC 6201)",
        title: "reset",
        word: "reset",
        made: Made::OnRequest,
        at_throughput: true,
    };
}

/// The reset of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ResetResults {
    /// Outage of a reset, ns.
    #[serde(rename = "reset_ns")]
    pub outage_ns: Option<Spread>,
    /// What must be known of it.
    #[serde(rename = "reset_notes", default)]
    pub notes: Vec<String>,
}
