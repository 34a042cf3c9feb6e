//! # random-loss
//!
//! The path loses packets whatever the rate: a dirty fibre, a bad cable, a radio link, a failing card.
//!
//! **Shows**: the same part is lost at a tenth and at half of the rate.
//!
//! **Mistaken for**: a short queue or a policer: evenly spaced and below the rate their loss ends.
//!
//! **Fix**: find the bad hop by its error counters.
//!
//! Source: RFC 7680; see [`crate::evidence::paced`].

use super::{UdpCause, advice, on_the_path};
use crate::role::Role;

/// See the file's head.
pub const CAUSE: UdpCause = UdpCause {
    id: "random-loss",
    about: "the path loses packets whatever the rate",
    roles: &[Role::Path],
    needs: &[],
    assess: |evidence, _| on_the_path(evidence, "random-loss"),
    look_alikes: &["path-policer", "shallow-queue", "path-capacity"],
    fix: |_, _| advice("find the hop that loses packets by its error counters (cables, optics, radio, duplex)"),
    stages: &["path"],
    healthy: false,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp::{Died, UdpScene, assert_cannot_tell, assert_contradicts, lost, named_with, assessment};

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(43, 50);
        let with = [
            ("paced-udp-tenth", &lost(42, 50)),
            ("paced-udp-half", &lost(43, 50)),
            ("paced-udp-half-bursts", &lost(44, 50)),
            ("paced-udp-plateau", &lost(45, 50)),
        ];
        named_with(&base, &with, "random-loss", narrows_model::Place::Path);
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
