//! Forwarding rate at maximum offered load (RFC 2285), FRMOL.

use super::about::{About, Made, Procedure, REPETITIONS, TRIAL_MS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::load::frames_report::FrameRate;
use narrows_model::run::sweep::Spread;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// Forwarding rate at maximum offered load (FRMOL, RFC 2285, section 3.6.2).
    pub struct FrmolTest {
        /// Trial duration.
        pub duration_ms: u64 = "duration", Kind::Duration(TRIAL_MS), D::Presets(Value::Ms(5_000), Value::Ms(60_000));
        /// Repetitions.
        pub repetitions: u32 = "repetitions", Kind::Whole(REPETITIONS), D::Always(Value::Whole(5));
    }
}

impl Procedure for FrmolTest {
    const ABOUT: About = About {
        key: "worst-case",
        what: "forwarding rate at maximum offered load (RFC 2285)",
        title: "FRMOL",
        word: "FRMOL",
        made: Made::OnRequest,
        at_throughput: false,
    };
}

/// The forwarding rate at maximum offered load of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct FrmolResults {
    /// What arrived at line rate.
    #[serde(rename = "worst_case")]
    pub rate: Option<FrmolView>,
}

/// What arrived at line rate. Of both directions the one that carried less counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrmolView {
    /// How many trials say something.
    pub repetitions: u32,
    /// How many say nothing.
    pub invalid: u32,
    /// What was sent, frames a second.
    pub offered_pps: Option<Spread>,
    /// What arrived, frames a second.
    pub received_pps: Option<Spread>,
    /// The median of what arrived.
    pub received: Option<FrameRate>,
    /// Lost of those sent, over all valid trials.
    pub loss_ratio: Option<f64>,
}
