//! # path-capacity
//!
//! The path carries all that it can, and more was offered.
//!
//! **Shows**: below the rate nothing is lost; above it a queue stands first, then the excess is lost. A shaper looks the same.
//!
//! **Mistaken for**: a policer (no queue stands), a short queue.
//!
//! **Fix**: none; offer less, or more capacity.
//!
//! Source: RFC 6349 section 3.

use super::{UdpCause, advice, on_the_path};
use crate::role::Role;

/// See the file's head.
pub const CAUSE: UdpCause = UdpCause {
    id: "path-capacity",
    about: "the path is at capacity: this is what it carries",
    roles: &[Role::Path],
    needs: &[],
    assess: |evidence, _| on_the_path(evidence, "path-capacity"),
    look_alikes: &["random-loss", "shallow-queue", "path-policer"],
    fix: |_, _| advice("nothing to mend: more than this needs more capacity on the path"),
    stages: &["path"],
    healthy: true,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::udp::{Died, UdpScene, assert_cannot_tell, assert_contradicts, lost, assessment, verdict_with};

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
