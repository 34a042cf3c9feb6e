//! # delay
//!
//! The path is longer: the value is added to its one-way delay in each affected direction.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "delay",
    about: "the path is longer",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Duration, default: "20ms", about: "one-way delay that is added" }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.delay_us = path.delay_us.saturating_add(value.number());
}
