//! # path-policer
//!
//! A token bucket without a queue (RFC 2697 with one colour): packets above the rate are dropped while the round trip time
//! stays.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "path-policer",
    about: "a policer on the path: above its rate packets are dropped",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Rate, default: "100M", about: "the rate of the policer" }),
    host: None,
    path: Some(impair),
};

const BURST_MS: u64 = 10;

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    path.police_bps = value.number();
    path.police_burst_bytes = (value.number() / 8 * BURST_MS / 1000).max(32 << 10);
}
