//! # shallow-queue
//!
//! The queue in front of the path's rate holds few packets: bursts are lost although the path is not full on average. A path
//! without a rate gets 1 Gbit/s.

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "shallow-queue",
    about: "the queue in front of the path's rate is short",
    places: PATH,
    parameter: Some(Parameter { unit: Unit::Count, default: "20", about: "packets that the queue holds" }),
    host: None,
    path: Some(impair),
};

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    if path.rate_bps == 0 {
        path.rate_bps = 1_000_000_000;
    }
    path.queue_packets = value.number();
    path.queue_bytes = 0;
}
