//! Verdicts: what limits the path, by which evidence, and what to do about it.

use crate::host::change::Setting;
use crate::load::LoadPlan;
use crate::words::place::{Direction, Place};
use crate::words::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// The verdict in a word.
    pub enum Status {
        /// A cause with two independent witnesses binds the goodput.
        Limited = "limited",
        /// The path is at capacity, or does all that was asked of it.
        Healthy = "healthy",
        /// One witness only.
        Suspected = "suspected",
        /// No witness, or the evidence that would decide is missing.
        Unknown = "unknown",
    }
}

/// Evidence for a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Witness {
    /// The kind: `ceiling` (it sits at the observed rate), `counter` (a dynamic counter says the same), `parameter`, `experiment`, `trace` (where on the path).
    pub kind: String,
    /// The sentence, with its figures.
    pub says: String,
}

/// A look-alike that was considered and is not it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rejected {
    /// The id of the other cause.
    pub id: String,
    /// What separates them here, with figures.
    pub why: String,
}

/// One command that a user can type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// Where to type it.
    pub at: Place,
    /// The command, or an advice in words where no command exists.
    pub run: String,
}

/// What to do about a cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Fix {
    /// One sentence: what to do, and the value that it needs.
    pub advice: String,
    /// The exact commands, none where there is nothing to type.
    pub commands: Vec<Command>,
    /// The same as settings that `--try` can apply and set back; empty where narrows cannot do it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub settings: Vec<(Place, Setting)>,
    /// The load after the fix, where the fix is in the application.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load: Option<LoadPlan>,
}

/// The goodput to expect after the fix: the next ceiling up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// The expected goodput.
    pub bps: f64,
    /// Where it should lie; none where `bps` is a lower bound, since the next limit was not reached.
    pub interval_bps: Option<[f64; 2]>,
    /// The id of the ceiling that binds next; empty where none is known.
    pub then: String,
    /// The place of that ceiling; the path without one.
    pub then_at: Place,
}

/// A cause that the evidence supports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The cause's public id.
    pub id: String,
    /// Where it is.
    pub at: Place,
    /// From 0 to 1; above 0.5 needs two witnesses.
    pub confidence: f64,
    /// One sentence for a reader who does not know the word.
    pub summary: String,
    /// Its ceiling.
    pub ceiling_bps: Option<f64>,
    /// What to expect after the fix.
    pub prediction: Option<Prediction>,
    /// The evidence.
    pub witnesses: Vec<Witness>,
    /// The look-alikes that it is not.
    pub rejected: Vec<Rejected>,
    /// What to do.
    pub fix: Fix,
}

/// What limits the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// In a word.
    pub status: Status,
    /// In a sentence.
    pub headline: String,
    /// The measured goodput, over the counted part of the baseline.
    pub goodput_bps: f64,
    /// The direction that was measured.
    pub direction: Direction,
    /// Best first. Of a healthy path: what bounds it, as `path-capacity` or `link-speed`, with status healthy.
    pub causes: Vec<Finding>,
    /// Where the first two causes each hold the goodput down: what to expect after both are fixed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub both: Option<Prediction>,
    /// Evidence that was missing, in sentences: what an *unknown* would need.
    pub missing: Vec<String>,
    /// Things worth fixing that do not limit this path now.
    pub hazards: Vec<String>,
}
