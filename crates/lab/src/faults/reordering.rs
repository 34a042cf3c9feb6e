//! # reordering
//!
//! Some packets skip the delay and overtake others, as over parallel links that carry one flow. Without a delay nothing is
//! reordered.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "reordering",
    about: "packets are reordered",
    places: PATH,
    parameter: takes(Unit::Probability, "2%", "share of reordered packets"),
    path: Some(|path, value, _| path.reorder = value.probability()),
    ..Fault::NONE
};
