//! Loss over the load.

use super::about::{About, Made, Procedure, TRIAL_MS};
use crate::data::settings::{Default as D, Kind, Value, settings};
use narrows_model::run::search::LossPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

settings! {
    /// Loss from the maximum load down, until two loads in a row have no loss.
    pub struct LossTest {
        /// Step of the load, as a share of the maximum, 0.001 to 0.1.
        pub step: f64 = "step", Kind::Number(0.001..=0.5), D::Always(Value::Number(0.1));
        /// Trial duration.
        pub duration_ms: u64 = "duration", Kind::Duration(TRIAL_MS), D::Presets(Value::Ms(2_000), Value::Ms(60_000));
    }
}

impl Procedure for LossTest {
    const ABOUT: About = About {
        key: "loss",
        what: "loss at loads from the maximum down (RFC 2544, 26.3)",
        title: "frame loss rate",
        word: "loss",
        made: Made::Usually,
        at_throughput: false,
    };

    fn problems(&self) -> Vec<(&'static str, String)> {
        let allowed = "from 0.001 to 0.1: RFC 2544, section 26.3 allows no steps above a tenth";
        let says = (self.step > 0.1).then(|| ("step", format!("it is {}, but must be {allowed}", self.step)));
        says.into_iter().collect()
    }
}

/// The loss curve of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct LossResults {
    /// Loss over the load, highest load first.
    #[serde(rename = "loss")]
    pub curve: Vec<LossPoint>,
}
