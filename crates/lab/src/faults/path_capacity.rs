//! # path-capacity
//!
//! The path's rate is lower. To a user at full load this is healthy: only a faster path helps.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "path-capacity",
    about: "the path has a lower rate",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Rate, default: "100M", about: "the rate of the path" }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.rate_bps = value.number();
}
