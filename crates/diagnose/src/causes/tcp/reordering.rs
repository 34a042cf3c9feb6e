//! # reordering
//!
//! The path reorders packets, and TCP treats the gaps as loss.
//!
//! **Shows**: UDP datagrams arrive out of order at any rate; segments of TCP do, too, or the receiver reports many retransmissions as
//! duplicates.
//!
//! **Mistaken for**: random loss (then no duplicates are reported), a congestion control that does not fill the path.
//!
//! **Fix**: the bond, parallel links or queues that distribute one flow over several paths; until then more reordering
//! tolerance in TCP.
//!
//! Source: RFC 4737; RFC 2883 (duplicate SACK); kernel `net/ipv4/tcp_input.c`, `tcp_check_sack_reordering`.

use crate::causes::shared::response::response_segments;
use crate::causes::shared::rule::*;
use crate::causes::shared::window::loss_does_not_bind;
use crate::evidence::tcp::Loss;
use super::path_policer::BBR_IGNORES;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "reordering",
    about: "the path reorders packets, and TCP treats this as loss",
    roles: &[Role::Path],
    assess,
    look_alikes: &["random-loss", "congestion-control", "path-policer"],
    fix,
    rank: 7,
    per_connection: true,
    ..Cause::COMMON
};

/// Less of the datagrams out of order hardly reaches three segments in a window, from which on TCP takes a gap for loss.
const REORDERED: f64 = 5e-4;
/// So many segments that arrived after later ones are no side effect of losses.
const MANY: f64 = 0.01;
/// So much of what was sent again was not lost.
const SPURIOUS: f64 = 0.3;
/// Whether so much arrives out of order that the smallest RTT is that of packets which overtook the others.
pub(super) fn scrambles(evidence: &TcpEvidence) -> bool {
    let shape = evidence.profile.as_ref().map(|profile| &profile.shape);
    shape.is_some_and(|shape| shape.by_totals || shape.reordered >= SCRAMBLED) && evidence.base.loss_whole.is_some_and(seen_by_tcp)
}

/// See above.
const SCRAMBLED: f64 = 0.05;

/// Fewer retransmissions or reordering events over a trial do not slow it down.
const FEW: u64 = 20;

/// Whether TCP saw so many segments out of order that what it retransmits and how it sets its window may come of that.
pub(super) fn seen_by_tcp(loss: Loss) -> bool {
    let part = loss.reordered as f64 / loss.sent.max(1) as f64;
    loss.reordered >= FEW && part >= REORDERED
}

/// Where the loss of the path explains the goodput as well: less than what random loss explains, so that this comes first.
const BESIDE_LOSS: f64 = 0.6;

/// Whether what UDP lost at rates that the path carries explains the goodput by itself.
fn loss_explains(evidence: &TcpEvidence) -> Option<bool> {
    let (base, shape) = (&evidence.base, &evidence.profile.as_ref()?.shape);
    let answers = matches!(base.congestion_control.as_deref()?, "cubic" | "reno");
    let window = response_segments(shape.loss_below() / shape.run_below(), base.rtt_us? / 1e6) * base.mss_bytes?;
    let part = evidence.goodput_bps() / evidence.window_bps(window)?;
    // Response functions are averages over many losses; single trials spread by a factor of two (as of random loss).
    Some(answers && shape.loses_below() && (0.45..=2.2).contains(&part))
}

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let Some(profile) = &evidence.profile else { return cannot_tell("reordering on the path was not measured") };
    let Some(loss) = evidence.base.loss_whole else { return cannot_tell("the sender's retransmissions could not be read") };
    let reordered = profile.shape.reordered;
    // Where the far end does not tell the order of datagrams, TCP's own scoreboard must show much.
    let order_known = !profile.shape.by_totals;
    if !order_known && (loss.reordered as f64) < MANY * loss.sent as f64 {
        return cannot_tell("in which order the far end received datagrams is not known");
    }
    if order_known && reordered < REORDERED {
        return contradicts(format!("{} of the UDP datagrams arrived out of order", units::percent(reordered)));
    }
    if loss.retransmitted.max(loss.reordered) < FEW {
        return contradicts(format!("TCP retransmitted only {} segments", loss.retransmitted));
    }
    if let Some(assessment) = loss_does_not_bind(evidence) {
        return assessment;
    }
    // A loss-based congestion control shrinks its window each time; BBR ignores as many as it ignores of losses.
    let again = loss.retransmitted as f64 / loss.sent.max(1) as f64;
    if evidence.base.congestion_control.as_deref() == Some("bbr") && again < BBR_IGNORES {
        return contradicts(format!("only {} of the segments were sent again, which does not slow BBR down", units::percent(again)));
    }
    let Some(room) = path_has_room(evidence) else { return contradicts("the path is at capacity") };
    let spurious = loss.spurious as f64 / loss.retransmitted.max(1) as f64;
    if order_known && profile.shape.loss_below() > reordered {
        return contradicts("more datagrams were lost than reordered");
    }
    if loss.lost() >= FEW && loss.lost() > loss.reordered.max(loss.retransmitted / 2) {
        return contradicts(format!("of {} retransmitted segments {} were lost", loss.retransmitted, loss.lost()));
    }
    let order = || experiment(format!("{} of the UDP datagrams arrived after a later one", units::percent(reordered)));
    let twice = counter(format!(
        "of {} retransmitted segments the receiver already had {}",
        loss.retransmitted, loss.spurious
    ));
    let seen = counter(format!("TCP itself saw {} segments arrive after later ones", loss.reordered));
    let of_tcp = [(spurious >= SPURIOUS).then_some(twice), seen_by_tcp(loss).then_some(seen)];
    if of_tcp.iter().all(Option::is_none) {
        return cannot_tell("TCP reports neither reordering nor duplicates");
    }
    let witnesses = std::iter::once(order_known.then(order)).chain(of_tcp).chain([Some(room)]);
    let share = if loss_explains(evidence) == Some(true) { BESIDE_LOSS } else { 0.9 };
    Assessment::Supports { share, witnesses: witnesses.flatten().collect() }
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice(
        "find what distributes one flow over several paths (round-robin bonding, per-packet load balancing, parallel \
        queues); until then net.ipv4.tcp_max_reordering and RACK tolerate some reordering",
    )
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    #[test]
    fn loss_that_explains_the_goodput_by_itself_comes_first() {
        let path = ProfiledPath { one_lost_of: Some(150), reordered: 0.01, ..ProfiledPath::default() };
        let of = |goodput_bps| Scene {
            goodput_bps,
            segments: 3_450,
            lost: 60,
            spurious: 37,
            reord_seen: 30,
            cwnd: 15,
            profile: Some(path),
            ..slow()
        };
        // 15 segments a round trip at a loss of one of 150.
        let verdict = verdict(&of(5e6), &[]);
        let ids: Vec<&str> = verdict.causes.iter().map(|cause| cause.id.as_str()).collect();
        assert_eq!(ids, ["random-loss", "reordering"], "{verdict:#?}");
        // Of a fifth of that reordering takes the rest.
        let assessment = assessment(&CAUSE, Role::Path, &of(1e6), &[]);
        assert!(matches!(assessment, Assessment::Supports { share, .. } if share > BESIDE_LOSS), "{assessment:?}");
    }
}
