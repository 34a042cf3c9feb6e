//! # path-policer
//!
//! A policer on the path drops what exceeds its rate, without a queue.
//!
//! **Shows**: below a rate nothing is lost; above it all that exceeds it is, and the delay stays at its minimum.
//!
//! **Mistaken for**: a full queue (the delay grows first), a short queue (bursts are lost below the rate, too).
//!
//! **Fix**: offer less than its rate; the contract.
//!
//! Source: RFC 2475 2.3.3.4; see [`crate::evidence::paced`].

use super::{UdpCause, advice, on_the_path};
use crate::role::Role;

/// See the file's head.
pub const CAUSE: UdpCause = UdpCause {
    id: "path-policer",
    about: "a policer on the path drops what exceeds its rate",
    roles: &[Role::Path],
    needs: &[],
    assess: |evidence, _| on_the_path(evidence, "path-policer"),
    look_alikes: &["random-loss", "shallow-queue", "path-capacity"],
    fix: |evidence, _| {
        advice(format!(
            "offer less than the policer's rate (near {}), or change the contract",
            narrows_model::words::units::bps(evidence.base.goodput_bps)
        ))
    },
    stages: &["path"],
    healthy: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp::{Died, UdpScene, assert_cannot_tell, assert_contradicts, lost, named_with, assessment};

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(425, 60);
        let with = [
            ("paced-udp-tenth", &lost(0, 50)),
            ("paced-udp-half", &lost(0, 50)),
            ("paced-udp-half-bursts", &lost(0, 50)),
            ("paced-udp-plateau", &lost(425, 60)),
        ];
        named_with(&base, &with, "path-policer", narrows_model::Place::Path);
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
