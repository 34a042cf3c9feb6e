//! # ecn-marking
//!
//! A hop marks packets as congested (ECN) below the capacity of the path: TCP reduces its rate as for loss.
//!
//! **Shows**: many delivered segments have a congestion mark and almost none is lost, while UDP shows a higher
//! capacity.
//!
//! **Mistaken for**: a path at capacity (then a queue marks instead of dropping, when the load fills the path and waits), random loss, the
//! congestion control.
//!
//! **Fix**: rate and threshold of the queue management at the marking hop.
//!
//! Source: RFC 3168 section 6.1.2; `tcpi_delivered_ce`, `include/uapi/linux/tcp.h`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::COMMON;
use crate::causes::shared::window::loss_does_not_bind;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "ecn-marking",
    about: "a hop marks packets as congested, though the path has room",
    roles: &[Role::Path],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-capacity", "random-loss", "congestion-control", "path-policer"],
    fix: |_, _| {
        advice("check rate and threshold of the queue management (AQM) of the marking hop; net.ipv4.tcp_ecn=0 shows \
            whether drops follow")
    },
    rank: 6,
    excludes: Excludes::Hosts,
    per_connection: true,
    ..Cause::COMMON
};

/// Fewer marks may be of one moment, as so few losses of random loss are.
const FEW: f64 = 5.0;

/// Whether so many segments were marked that it slows a congestion control down, which answers to marks as to losses (RFC 3168 6.1.2).
pub(super) fn are_common(evidence: &TcpEvidence, marked: f64) -> bool {
    let few = evidence.base.loss.is_some_and(|loss| marked * (loss.sent as f64) < FEW);
    marked >= COMMON && !few
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let marked = known(evidence.base.marked_share, "the sender's kernel does not count congestion marks")?;
    if !are_common(evidence, marked) {
        return Err(contradicts(format!("{} of the delivered segments were marked", units::percent(marked))));
    }
    if let Some(loss) = evidence.base.loss.filter(|loss| loss.rate() > 0.5 * marked) {
        let (part, span) = (units::percent(loss.rate()), evidence.after_start());
        return Err(contradicts(format!("{part} of the segments were lost{span}: loss, not marking, reduces the rate")));
    }
    if evidence.slowed_by_queue() == Some(true) {
        return Err(contradicts("the marks came when the load filled the path and waited: a managed queue marks instead of dropping"));
    }
    let unmeasured = "the capacity of the path was not measured";
    let room = room_or(evidence, "the path is at capacity: its queue marks instead of dropping", unmeasured)?;
    ended(loss_does_not_bind(evidence))?;
    let marks = counter(format!("{} of the delivered segments had a congestion mark, and almost none was \
        lost", units::percent(marked)));
    supports(0.9, [marks, room])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    fn truth() -> Scene {
        Scene { goodput_bps: 40e6, cwnd: 120, marked: 0.03, rtt_us: 35_100, profile: Some(ProfiledPath::default()), ..Scene::default() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[])
    }

    #[test]
    fn marks_on_a_path_with_room_are_named() {
        named(&truth(), &[], "ecn-marking", Place::Path);
        assert_contradicts(&of(&Scene { marked: 0.0, ..truth() }), "were marked");
        assert_contradicts(&of(&Scene { segments: 100_000, lost: 4_000, ..truth() }), "were lost");
    }

    #[test]
    fn as_few_marks_as_losses_are_enough() {
        let marks = |segments, marked| Scene { segments, marked, ..truth() };
        assert_supports(&of(&marks(50_000, 1.4e-4)));
        assert_contradicts(&of(&marks(50_000, 9e-5)), "were marked");
        // Four of them may be of one moment.
        assert_contradicts(&of(&marks(25_000, 1.7e-4)), "were marked");
        let control = &crate::causes::tcp::congestion_control::CAUSE;
        assert_contradicts(&assessment(control, Role::Sender, &marks(50_000, 2e-4), &[]), "had a congestion mark: it reduces its rate for that");
    }

    #[test]
    fn marks_of_a_full_path_are_its_queue_and_without_a_profile_it_is_open() {
        let full = ProfiledPath { rate_bps: 42e6, burst_bps: 42e6, ..ProfiledPath::default() };
        assert_contradicts(&of(&Scene { profile: Some(full), ..truth() }), "the path is at capacity");
        assert_cannot_tell(&of(&Scene { profile: None, ..truth() }), "was not measured");
    }
}
