//! # delay
//!
//! The path is longer: the value is added to its one-way delay in each affected direction.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "delay",
    about: "additional delay on the path",
    places: PATH,
    parameter: takes(Unit::Duration, "20ms", "additional one-way delay"),
    path: Some(|path, value, _| path.delay_us = path.delay_us.saturating_add(value.number())),
    ..Fault::NONE
};
