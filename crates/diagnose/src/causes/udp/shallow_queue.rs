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

use super::{UdpCause, advice, on_the_path};
use crate::role::Role;

/// See the file's head.
pub const CAUSE: UdpCause = UdpCause {
    id: "shallow-queue",
    about: "a queue on the path is too short for bursts",
    roles: &[Role::Path],
    needs: &[],
    assess: |evidence, _| on_the_path(evidence, "shallow-queue"),
    look_alikes: &["random-loss", "path-policer", "path-capacity"],
    fix: |_, _| {
        advice(
            "send evenly spaced (smaller bursts, no batches, fq or SO_TXTIME); or a longer queue at the hop that drops",
        )
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
