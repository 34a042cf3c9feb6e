//! # burst-loss
//!
//! Losses come in bursts of five packets on average (Gilbert–Elliott).

use super::{Fault, PATH, Parameter, Unit, Value, Way};
use narrows_model::lab::Impairment;

pub(super) const FAULT: Fault = Fault {
    id: "burst-loss",
    about: "packets are lost in bursts",
    places: PATH,
    parameter: Some(Parameter {
        unit: Unit::Probability,
        default: "0.5%",
        about: "the share of packets that are lost, over a long time",
    }),
    host: None,
    path: Some(impair),
};

const LEAVE: f64 = 0.2;

fn impair(path: &mut Impairment, value: &Value, _: Way) {
    // The chain is in its bad state for enter / (enter + leave) of the packets.
    let share = value.probability();
    path.burst_loss_enter = (share * LEAVE / (1.0 - share)).min(1.0);
    path.burst_loss_leave = LEAVE;
    path.burst_loss = 1.0;
}
