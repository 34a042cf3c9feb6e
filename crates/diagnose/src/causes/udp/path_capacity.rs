//! # path-capacity
//!
//! The path is at capacity, and the offered load exceeds it.
//!
//! **Shows**: no loss below the rate; above it a queue builds up first, then the excess is lost. A shaper whose bucket is too small to
//! matter looks the same.
//!
//! **Mistaken for**: a policer (no queue), a short queue.
//!
//! **Fix**: none; offer less, or more capacity.
//!
//! Source: RFC 6349 section 3.

use crate::causes::shared::paced::{plateau, queue};
use crate::causes::shared::profile::Met;
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::on_the_path;
use crate::evidence::paced::PacedUdp;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "path-capacity",
    about: "the path is at capacity",
    roles: &[Role::Path],
    assess: |evidence, _| on_the_path(evidence, Met::Full, by_paced_udp),
    look_alikes: &["random-loss", "shallow-queue", "path-policer", "path-shaper"],
    fix: |_, _| advice("nothing to fix: a higher goodput needs more capacity"),
    stages: &["path"],
    healthy: true,
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};

/// What the trials of paced UDP say of it.
pub(crate) fn by_paced_udp(paced: &PacedUdp) -> Ruling {
    let view = plateau(paced)?;
    let goodput = paced.goodput_bps;
    if goodput <= 0.0 {
        return Err(cannot_tell("no goodput to compare with UDP"));
    }
    let (queue_us, stood) = queue(view)?;
    if !stood {
        return Err(contradicts(format!("UDP above the rate was lost without a queue ({queue_us:.0} us of delay)")));
    }
    let ratio = view.goodput_bps / goodput;
    if ratio > 1.12 {
        return Err(contradicts(format!(
            "UDP delivered {}, {ratio:.2} times the goodput",
            units::bps(view.goodput_bps)
        )));
    }
    let witnesses = [
        experiment(format!(
            "UDP above the rate delivered {}, {ratio:.2} times the goodput",
            units::bps(view.goodput_bps)
        )),
        experiment(format!("a queue of {queue_us:.0} us before it, and no loss below the rate")),
    ];
    supports(0.9, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(425, 40000);
        let with = [
            ("paced-udp-tenth", &lost(0, 50)),
            ("paced-udp-half", &lost(0, 50)),
            ("paced-udp-half-bursts", &lost(0, 50)),
            ("paced-udp-plateau", &lost(425, 40000)),
        ];
        let verdict = verdict_with(&base, &with);
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (narrows_model::Status::Healthy, "path-capacity"));
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
