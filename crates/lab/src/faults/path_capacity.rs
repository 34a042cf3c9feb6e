//! # path-capacity
//!
//! The path's rate is lower. To a user at full load this is healthy: only a faster path helps.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "path-capacity",
    about: "the path has a lower rate",
    places: PATH,
    parameter: takes(Unit::Rate, "100M", "the rate of the path"),
    path: Some(|path, value, _| path.rate_bps = value.number()),
    ..Fault::NONE
};
