//! What a rule answers when it is asked about its cause at one role.

use super::experiment::Experiment;
use narrows_model::Witness;

/// What the evidence says of one cause at one role.
#[derive(Debug, Clone, PartialEq)]
pub enum Assessment {
    /// The dynamic evidence supports it: how strongly, as the share (0 to 1) of time or of loss that it accounts for.
    Supports {
        /// From 0 to 1; orders causes that are supported.
        share: f64,
        /// Independent pieces of evidence, of different kinds or counters; the ceiling is not among them.
        witnesses: Vec<Witness>,
    },
    /// The evidence speaks against it, in one sentence.
    Contradicts(String),
    /// The evidence that would decide is missing.
    CannotTell { why: String, ask: Option<&'static Experiment> },
}
