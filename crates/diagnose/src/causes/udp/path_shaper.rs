//! # path-shaper
//!
//! A shaper on the path limits the rate below what its links carry, usually by contract.
//!
//! **Shows**: a first burst passes faster than the steady rate (its bucket), above which a queue builds up, then the excess is lost. Only a
//! bucket that gives a transfer of a second 15 % more counts: with a smaller one the shaper is the capacity of the path.
//!
//! **Mistaken for**: a slower link on the path (no first burst), a policer (no queue).
//!
//! **Fix**: offer less than its rate, or change the contract.
//!
//! Source: RFC 2475 2.3.3.3; ITU-T Y.1564 on bucket depth.

use crate::causes::shared::profile::Met;
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::on_the_path;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "path-shaper",
    about: "a shaper on the path limits the rate below the link speed",
    roles: &[Role::Path],
    assess: |evidence, _| {
        on_the_path(evidence, Met::Shaped, |_| Err(cannot_tell("without a path profile a shaper looks like a slow link")))
    },
    look_alikes: &["path-capacity", "path-policer", "random-loss"],
    fix: |evidence, _| {
        let capacity = evidence.profile.as_ref().and_then(|profile| profile.shape.capacity);
        let rate = capacity.map_or_else(String::new, |it| format!(" ({}, headers included)", units::bps(it.bps)));
        advice(format!("offer less than the shaper's rate{rate}, or change the contract"))
    },
    stages: &["path"],
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};
