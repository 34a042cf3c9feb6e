//! # reverse-path-congested
//!
//! The reverse path is congested: acknowledgements are delayed, so TCP sends less than the forward path carries.
//!
//! **Shows**: UDP shows far more capacity in this direction than TCP used, but the RTT grows under load with almost no
//! loss.
//!
//! **Mistaken for**: a path at capacity (the queue is in the other direction), random loss.
//!
//! **Fix**: rate or traffic of the other direction; fewer acknowledgements.
//!
//! Source: RFC 3449 section 2 (TCP over asymmetric paths).

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::tcp::path_has_room;
use crate::causes::shared::words::{advice, cannot_tell, contradicts, counter};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause, Excludes};
use crate::role::Role;
use narrows_model::{Fix, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "reverse-path-congested",
    about: "the reverse path is congested, and TCP waits for acknowledgements",
    roles: &[Role::Path],
    assess,
    look_alikes: &["path-capacity", "random-loss", "tcp-receive-window"],
    fix,
    rank: 5,
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};

/// So much loss would hold TCP back by itself.
const LOSS: f64 = 1e-3;

/// Where so many datagrams come after a later one, the RTT holds the wait of those on the way forth.
const REORDERED: f64 = 0.005;

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let Some(room) = path_has_room(evidence) else {
        return if evidence.profile.is_some() {
            contradicts("the path is at capacity in this direction")
        } else {
            cannot_tell("the capacity of the path in this direction was not measured")
        };
    };
    if let Some(why) = end_bound(evidence) {
        return contradicts(why);
    }
    if super::path_capacity::cpu_bound(evidence) {
        return contradicts("a core is full, so packets wait in the host, not on the path");
    }
    if let Some(open) = super::softirq_core_saturated::unseen(evidence) {
        return open;
    }
    let shape = evidence.profile.as_ref().map(|profile| &profile.shape);
    if shape.is_some_and(|shape| shape.reordered >= REORDERED) {
        return cannot_tell("datagrams are reordered on the forward path, which delays some");
    }
    let idle = shape.and_then(|shape| shape.idle_rtt_us);
    let (Some(rise_us), Some(idle)) = (evidence.queue_us(), idle) else {
        return cannot_tell("the RTT could not be read");
    };
    // What the idle path varies by is the yardstick.
    let from_us = (3.0 * (idle.p95 - idle.min)).max(3_000.0).max(0.3 * idle.min);
    if rise_us < from_us {
        return contradicts(format!("the RTT under load is close to the idle RTT ({rise_us:.0} us more)"));
    }
    if let Some(loss) = evidence.base.loss.filter(|loss| loss.rate() >= LOSS) {
        let (part, span) = (units::percent(loss.rate()), evidence.after_start());
        return contradicts(format!("{part} of the segments were lost{span}"));
    }
    let waited = counter(format!(
        "the RTT rose by {} under load, with free capacity and almost no loss: acknowledgements are delayed",
        units::micros(rise_us as u64)
    ));
    Assessment::Supports { share: 0.8, witnesses: vec![room, waited] }
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice("check traffic and rate of the other direction; TCP needs one acknowledgement per two segments on the \
        reverse path")
}
