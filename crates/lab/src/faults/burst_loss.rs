//! # burst-loss
//!
//! Losses come in bursts of five packets on average (Gilbert–Elliott).

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "burst-loss",
    about: "packets are lost in bursts",
    places: PATH,
    parameter: takes(Unit::Probability, "0.5%", "share of lost packets, over a long time"),
    path: Some(|path, value, _| {
        // The chain is in its bad state for enter / (enter + leave) of the packets.
        let share = value.probability();
        path.burst_loss_enter = (share * LEAVE / (1.0 - share)).min(1.0);
        path.burst_loss_leave = LEAVE;
        path.burst_loss = 1.0;
    }),
    ..Fault::NONE
};

const LEAVE: f64 = 0.2;
