//! # stale-metrics
//!
//! The sender's kernel has TCP metrics for this peer that no longer match the path: a slow-start threshold of earlier connections, or a
//! congestion window that the route locks.
//!
//! **Shows**: the threshold is there from the first moment, before anything was lost; nothing is lost and no queue stands, and the
//! congestion window still grows slowly far below what the path carries. Or the congestion window stands at the value of the route
//! (`cwnd lock`).
//!
//! **Mistaken for**: a congestion control that makes too little of the path (it begins without a threshold), random loss.
//!
//! **Fix**: `ip tcp_metrics flush`; `net.ipv4.tcp_no_ssthresh_metrics_save=1`, the default on Linux 6.18; a route without the metric.
//!
//! Source: `net/ipv4/tcp_metrics.c`, `tcp_init_metrics` and `tcpm_suck_dst` (a route's metrics are copied into the cache, and a locked
//! `cwnd` becomes `snd_cwnd_clamp`); ip-tcp_metrics(8), ip-route(8). The threshold was not seen on a real host.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{ROOM, without_metric};
use crate::causes::shared::window::{loss_does_not_bind, window_share};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "stale-metrics",
    about: "the sender's TCP metrics for this peer (of its route, or of earlier connections) hold the congestion window down",
    roles: &[Role::Sender],
    needs: &[keys::ROUTE_CWND, keys::ROUTE_GATEWAY, keys::ROUTE_DEVICE],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["congestion-control", "random-loss", "path-policer", "tcp-receive-window", "path-capacity"],
    fix,
    rank: 6,
    per_connection: true,
    ..Cause::COMMON
};

/// A threshold above this part of what the path holds costs a few round trips only.
const EARLY: f64 = 0.5;

/// More lost segments than this set a slow-start threshold of their own.
const FEW: u64 = 2;

/// The congestion window that the route locks, in segments, where the connections reached it: they begin with ten, and grow by acknowledged
/// segments, so that the median stands at it unless something else holds it down.
fn locked(evidence: &TcpEvidence) -> Option<f64> {
    let locked = evidence.number(Role::Sender, keys::ROUTE_CWND).filter(|segments| *segments > 0.0)?;
    let segments = evidence.base.cwnd_bytes? / evidence.base.mss_bytes?;
    (0.9..=1.01).contains(&(segments / locked)).then_some(locked)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let (segments, rtt_us) = (locked(evidence)?, evidence.window_rtt_us()?);
    let bps = evidence.window_bps(segments * evidence.base.mss_bytes?)?;
    let rtt = units::micros(rtt_us as u64);
    let how = format!("{segments:.0} segments, the congestion window that the route locks, / RTT {rtt}");
    // Its bursts queue, and acknowledgements are late: what a window gives at least.
    ceiling_at(CAUSE.id, evidence, role, bps, [ROOM, 1.0], Method::Computed, how)
}

/// What a congestion window that the route locks explains.
fn by_lock(evidence: &TcpEvidence, segments: f64) -> Ruling {
    ended(loss_does_not_bind(evidence))?;
    let share = window_share(evidence).unwrap_or(0.0);
    if evidence.profile.is_some() && !evidence.path_has_room() {
        return Err(contradicts("the goodput is what the path carries"));
    }
    let route = parameter(format!("the route to the peer locks the congestion window at {segments:.0} segments (cwnd lock)"));
    let stood = counter(format!(
        "the congestion window stood there, and nothing else limited the sender {} of the time",
        units::percent(share)
    ));
    supports(share.clamp(0.9, 1.0), [Some(route), Some(stood), path_has_room(evidence)])
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let base = &evidence.base;
    if let Some(segments) = locked(evidence) {
        return by_lock(evidence, segments);
    }
    let threshold = found(base.first_ssthresh, "the connections began without a slow-start threshold")?;
    let loss = known(base.loss_whole, "the sender's retransmissions could not be read")?;
    if loss.lost() > FEW {
        return Err(contradicts(format!("{} segments were lost: they set the threshold", loss.lost())));
    }
    ended(loss_does_not_bind(evidence))?;
    let (Some(carries), Some(rtt_us), Some(mss)) = (evidence.carries_bps(), evidence.min_rtt_us, base.mss_bytes) else {
        return Err(cannot_tell("what the path carries was not measured"));
    };
    let room = found(path_has_room(evidence), "the goodput is what the path carries")?;
    let holds = carries / 8.0 * (rtt_us / 1e6) / mss / base.streams.max(1) as f64;
    if threshold >= EARLY * holds {
        return Err(contradicts(format!(
            "slow start ran to {threshold:.0} segments; the path needs {holds:.0} per connection"
        )));
    }
    if base.cwnd_bytes.is_some_and(|cwnd| cwnd > holds * mss) {
        return Err(contradicts("the congestion window grew beyond what the path holds"));
    }
    let early = counter(format!(
        "each connection began with a slow-start threshold of {threshold:.0} segments, {} of what the path holds, before anything was lost",
        units::percent(threshold / holds)
    ));
    supports(0.9, [early, room])
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    if locked(evidence).is_some() {
        let commands = without_metric(evidence, role, "cwnd").into_iter().chain(["ip tcp_metrics flush".to_owned()]);
        return command_fix(evidence, role, "remove the locked congestion window from the route", commands);
    }
    let words = "delete the cached threshold and stop caching it".to_owned();
    let commands = ["ip tcp_metrics flush", "sysctl -w net.ipv4.tcp_no_ssthresh_metrics_save=1"];
    command_fix(evidence, role, words, commands.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

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

    /// Forty segments each 35 ms, as the route says.
    fn by_route() -> Scene {
        let facts = with(ordinary_host(), fact("route.cwnd", 40_i64, Unit::Packets));
        let sender_facts = with(facts, fact("route.gateway", "192.0.2.254", Unit::Text));
        let segments = 9_100;
        Scene { goodput_bps: 13.1e6, early_peak_bps: 13.1e6, cwnd: 40, segments, sender_facts, ..slow() }
    }

    #[test]
    fn a_congestion_window_that_stands_where_the_route_locks_it_is_named() {
        let finding = named(&by_route(), &[], "stale-metrics", Place::Client);
        assert!(finding.witnesses.iter().any(|witness| witness.says.contains("cwnd lock")), "{finding:#?}");
        assert_eq!(finding.fix.commands[1].run, "ip route change DESTINATION via 192.0.2.254 dev DEVICE");
        // Losses that do not bring it down change nothing.
        named(&Scene { lost: 30, ..by_route() }, &[], "stale-metrics", Place::Client);
    }

    #[test]
    fn a_lock_that_the_window_does_not_reach_or_the_path_does_not_need_is_not_why() {
        assert_contradicts(&of(&Scene { cwnd: 20, ..by_route() }), "without a slow-start threshold");
        assert_contradicts(&of(&Scene { rwnd: 0.9, snd_wnd: 30_000, ..by_route() }), "limited the sender only");
        let path = ProfiledPath { rate_bps: 14e6, burst_bps: 14e6, ..ProfiledPath::default() };
        assert_contradicts(&of(&Scene { profile: Some(path), ..by_route() }), "what the path carries");
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
