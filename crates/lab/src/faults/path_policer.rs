//! # path-policer
//!
//! A token bucket without a queue (RFC 2697 with one colour): packets above the rate are dropped while the round trip time
//! stays.

use super::{takes, Fault, PATH, Unit};

pub(super) const FAULT: Fault = Fault {
    id: "path-policer",
    about: "a policer on the path drops packets above its rate",
    places: PATH,
    parameter: takes(Unit::Rate, "100M", "the rate of the policer"),
    path: Some(|path, value, _| {
        path.police_bps = value.number();
        path.police_burst_bytes = (value.number() / 8 * BURST_MS / 1000).max(32 << 10);
    }),
    ..Fault::NONE
};

const BURST_MS: u64 = 10;
