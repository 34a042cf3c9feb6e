//! # reordering
//!
//! The path delivers packets out of order, and TCP takes the gaps for loss.
//!
//! **Shows**: datagrams of UDP come after later ones at any rate; the receiver reports that it had had much of what TCP sent again.
//!
//! **Mistaken for**: random loss (then the segments are missing, and are not reported twice), a congestion control that makes too little
//! of the path.
//!
//! **Fix**: the bond, the parallel links or the queues that spread one flow over several ways; more tolerance of TCP until then.
//!
//! Source: RFC 4737; RFC 2883 (duplicate SACK); kernel `net/ipv4/tcp_input.c`, `tcp_check_sack_reordering`.

use super::path_policer::loss_does_not_bind;
use crate::causes::shared::tcp::path_has_room;
use crate::causes::shared::words::{advice, cannot_tell, contradicts, counter, experiment};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause};
use crate::role::Role;
use narrows_model::{Fix, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "reordering",
    about: "the path delivers packets out of order, and TCP takes it for loss",
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
/// So much of what was sent again was not lost.
const SPURIOUS: f64 = 0.3;
/// Fewer retransmissions over a trial do not slow it down.
const FEW: u64 = 20;

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let Some(profile) = &evidence.profile else { return cannot_tell("whether the path keeps the order was not measured") };
    let Some(loss) = evidence.base.loss_whole else { return cannot_tell("the sender's retransmissions could not be read") };
    let reordered = profile.shape.reordered;
    if reordered < REORDERED {
        return contradicts(format!("{} of the datagrams of UDP came out of order", units::percent(reordered)));
    }
    if loss.retransmitted < FEW {
        return contradicts(format!("TCP sent only {} segments again", loss.retransmitted));
    }
    if let Some(assessment) = loss_does_not_bind(evidence) {
        return assessment;
    }
    let Some(room) = path_has_room(evidence) else { return contradicts("the goodput is what the path carries") };
    #[allow(clippy::cast_precision_loss)] // counts of one trial
    let spurious = loss.spurious as f64 / loss.retransmitted as f64;
    if profile.shape.loss_below() > reordered {
        return contradicts("more datagrams were lost than came out of order");
    }
    let order = experiment(format!("{} of the datagrams of UDP came after a later one", units::percent(reordered)));
    let twice = counter(format!(
        "of {} segments that TCP sent again the receiver had had {} already",
        loss.retransmitted, loss.spurious
    ));
    let witnesses = [Some(order), (spurious >= SPURIOUS).then_some(twice), Some(room)];
    Assessment::Supports { share: 0.9, witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice(
        "find what spreads one flow over several ways (a bond in round-robin mode, per-packet load balancing, parallel queues); until then \
         net.ipv4.tcp_max_reordering and RACK tolerate some of it",
    )
}
