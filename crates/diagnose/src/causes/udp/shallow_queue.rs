//! # shallow-queue
//!
//! A queue on the path is too short for bursts, though it carries their rate.
//!
//! **Shows**: at half of the rate bursts are lost and evenly spaced datagrams are not.
//!
//! **Mistaken for**: a policer (it lets a first burst pass), random loss (it stays when evenly spaced).
//!
//! **Fix**: pace the sender: smaller bursts, no batches.
//!
//! Source: RFC 7567; Appenzeller et al., *Sizing Router Buffers*, SIGCOMM 2004.

use crate::judge::Cause;
use crate::evidence::udp::UdpEvidence;
use crate::causes::shared::paced::{ENOUGH, lost};
use crate::causes::shared::profile::Met;
use crate::causes::shared::udp::on_the_path;
use crate::causes::shared::words::{advice, cannot_tell, contradicts, experiment};
use crate::evidence::paced::PacedUdp;
use crate::experiments::paced::{BURST, HALF, HALF_BURSTS};
use crate::judge::Assessment;
use crate::role::Role;

/// See the file's head.
pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "shallow-queue",
    about: "a queue on the path is too short for bursts",
    roles: &[Role::Path],
    assess: |evidence, _| on_the_path(evidence, Met::Bursts, by_paced_udp),
    look_alikes: &["random-loss", "path-policer", "path-capacity"],
    fix: |_, _| {
        advice(
            "send evenly spaced (smaller bursts, no batches, fq or SO_TXTIME); or a longer queue at the hop that drops",
        )
    },
    stages: &["path"],
    ..Cause::COMMON
};

/// What the trials of paced UDP say of it.
pub(crate) fn by_paced_udp(paced: &PacedUdp) -> Assessment {
    let (Some(even), Some(bursts)) = (lost(paced, HALF), lost(paced, HALF_BURSTS)) else {
        return cannot_tell("UDP at half of the rate, evenly and in bursts, was not measured");
    };
    if bursts.lost == 0 {
        return contradicts(format!(
            "in bursts of {BURST} at half of the rate UDP lost nothing ({} sent)",
            bursts.sent
        ));
    }
    let expected = even.expected(bursts.rate());
    #[allow(clippy::cast_precision_loss)]
    let seen = even.lost as f64;
    if expected < ENOUGH {
        return cannot_tell("too few datagrams were lost in bursts to compare evenly spaced ones with");
    }
    if seen > expected / 5.0 {
        return contradicts(format!(
            "evenly spaced as many were lost: {} against {}",
            even.words(),
            bursts.words()
        ));
    }
    Assessment::Supports {
        share: 0.95,
        witnesses: vec![
            experiment(format!("UDP at half of the rate in bursts of {BURST}: {}", bursts.words())),
            experiment(format!("the same rate evenly spaced: {}", even.words())),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp::{Died, UdpScene, assert_cannot_tell, assert_contradicts, lost, named_with, assessment};

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(800, 900);
        let with = [
            ("paced-udp-tenth", &lost(0, 50)),
            ("paced-udp-half", &lost(0, 50)),
            ("paced-udp-half-bursts", &lost(900, 50)),
            ("paced-udp-plateau", &lost(300, 900)),
        ];
        named_with(&base, &with, "shallow-queue", narrows_model::Place::Path);
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
