//! # stale-metrics
//!
//! The sender's kernel remembers a slow-start threshold of earlier connections to this peer: slow start ends far below what the path
//! carries now.
//!
//! **Shows**: the threshold is there from the first moment, before anything was lost; nothing is lost and no queue stands, and the
//! congestion window still grows slowly far below what the path carries.
//!
//! **Mistaken for**: a congestion control that makes too little of the path (it begins without a threshold), random loss.
//!
//! **Fix**: `ip tcp_metrics flush`; `net.ipv4.tcp_no_ssthresh_metrics_save=1`, the default on Linux 6.18.
//!
//! Source: `net/ipv4/tcp_metrics.c`, `tcp_init_metrics`; ip-tcp_metrics(8). Not seen on a real host.

use super::path_policer::loss_does_not_bind;
use crate::causes::shared::tcp::path_has_room;
use crate::causes::shared::words::{cannot_tell, command_fix, contradicts, counter};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause};
use crate::role::Role;
use narrows_model::{Fix, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "stale-metrics",
    about: "a slow-start threshold from earlier connections ends slow start far too early",
    roles: &[Role::Sender],
    assess,
    look_alikes: &["congestion-control", "random-loss", "path-policer", "tcp-receive-window", "path-capacity"],
    fix,
    rank: 6,
    per_connection: true,
    ..Cause::COMMON
};

/// A threshold above this part of what the path holds costs a few round trips only.
const EARLY: f64 = 0.5;

/// One loss in this many segments would have set a threshold of its own.
const FEW: u64 = 2;

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let base = &evidence.base;
    let Some(threshold) = base.first_ssthresh else {
        return contradicts("the connections began without a slow-start threshold");
    };
    let Some(loss) = base.loss_whole else { return cannot_tell("the sender's retransmissions could not be read") };
    if loss.lost() > FEW {
        return contradicts(format!("{} segments were lost: they set the threshold", loss.lost()));
    }
    if let Some(assessment) = loss_does_not_bind(evidence) {
        return assessment;
    }
    let (Some(carries), Some(rtt_us), Some(mss)) = (evidence.carries_bps(), evidence.min_rtt_us, base.mss_bytes) else {
        return cannot_tell("what the path carries was not measured");
    };
    let Some(room) = path_has_room(evidence) else { return contradicts("the goodput is what the path carries") };
    #[allow(clippy::cast_precision_loss)] // a few connections
    let holds = carries / 8.0 * (rtt_us / 1e6) / mss / base.streams.max(1) as f64;
    if threshold >= EARLY * holds {
        return contradicts(format!(
            "slow start ran to {threshold:.0} segments; the path needs {holds:.0} per connection"
        ));
    }
    if base.cwnd_bytes.is_some_and(|cwnd| cwnd > holds * mss) {
        return contradicts("the congestion window grew beyond what the path holds");
    }
    let early = counter(format!(
        "each connection began with a slow-start threshold of {threshold:.0} segments, {} of what the path holds, before anything was lost",
        units::percent(threshold / holds)
    ));
    Assessment::Supports { share: 0.9, witnesses: vec![early, room] }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let words = "delete the cached threshold and stop caching it".to_owned();
    let commands = ["ip tcp_metrics flush", "sysctl -w net.ipv4.tcp_no_ssthresh_metrics_save=1"];
    command_fix(evidence, role, words, commands.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile::ProfiledPath;
    use crate::testing::{Hidden, Scene, assert_cannot_tell, assert_contradicts, assert_rejects, assessment, full_path, named, slow};
    use narrows_model::Place;

    /// Reno from four segments on, on a path that holds three thousand.
    fn truth() -> Scene {
        Scene { first_ssthresh: Some(4), congestion_control: "reno", ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_threshold_from_the_first_moment_far_below_the_path_is_named() {
        let finding = named(&truth(), &[], "stale-metrics", Place::Client);
        assert_rejects(&finding, "random-loss", "only 0 of");
        assert_eq!(finding.fix.commands[0].run, "ip tcp_metrics flush");
    }

    #[test]
    fn none_a_high_one_and_one_that_loss_set_are_not_why() {
        assert_contradicts(&of(&Scene { first_ssthresh: None, ..truth() }), "without a slow-start threshold");
        assert_contradicts(&of(&Scene { first_ssthresh: Some(1_600), ..truth() }), "slow start ran to 1600");
        assert_contradicts(&of(&Scene { lost: 40, ..truth() }), "40 segments were lost");
        assert_contradicts(&of(&full_path(truth())), "what the path carries");
    }

    #[test]
    fn a_window_or_an_application_that_limits_leaves_the_threshold_without_effect() {
        assert_contradicts(&of(&Scene { rwnd: 0.8, snd_wnd: 162_000, ..truth() }), "limited the sender only");
        assert_contradicts(&of(&Scene { busy: 0.2, ..truth() }), "only 20 %");
    }

    #[test]
    fn without_a_profile_or_counters_it_is_open() {
        assert_cannot_tell(&of(&Scene { profile: None, ..truth() }), "was not measured");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Segments], ..truth() }), "could not be read");
        let path = ProfiledPath { rate_bps: 38e6, burst_bps: 38e6, ..ProfiledPath::default() };
        assert_contradicts(&of(&Scene { profile: Some(path), ..truth() }), "what the path carries");
    }
}
