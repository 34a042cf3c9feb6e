//! # random-loss
//!
//! Each packet is lost with the same probability, whatever the rate: a bad cable, optic or radio.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "random-loss",
    about: "packets are lost at random",
    places: PATH,
    parameter: takes(Unit::Probability, "1%", "share of lost packets"),
    path: Some(|path, value, _| path.loss = value.probability()),
    ..Fault::NONE
};
