//! # reordering
//!
//! Some packets skip the delay and overtake others, as over parallel links that carry one flow. Without a delay nothing is
//! reordered.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "reordering",
    about: "some packets overtake others",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Probability, default: "2%", about: "the share of packets that overtake" }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.reorder = value.probability();
}
