//! # random-loss
//!
//! Each packet is lost with the same probability, whatever the rate: a bad cable, optic or radio.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "random-loss",
    about: "packets are lost at random",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Probability, default: "1%", about: "the share of packets that are lost" }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.loss = value.probability();
}
