//! What causes of a slow host share: whether a core is full, and whether the other end waits for the application.

use crate::causes::shared::tcp::who;
use crate::causes::shared::words::counter;
use crate::evidence::tcp::TcpEvidence;
use crate::role::Role;
use narrows_model::{Witness, words::units};

/// A data thread or a softirq core is full from here on.
const FULL: f64 = 0.85;

/// How much of the time the other side of an application's socket waited for it: it ran empty while the writer did something else, or
/// full while the reader did. `None` where it did not, or that is not known.
pub(crate) fn peer_waits(evidence: &TcpEvidence, role: Role) -> Option<(f64, Witness)> {
    let (share, what) = match role {
        Role::Sender => (evidence.writer_behind()?, "the socket buffer had free space"),
        _ => (evidence.held_by_window()?, "the sender waited for the receive window"),
    };
    (share >= 0.2).then(|| (share, counter(format!("{what} {} of the time", units::percent(share)))))
}

/// The full core of an end: that of its busiest data thread, or the one that processes packets.
pub(crate) fn full_core(evidence: &TcpEvidence, role: Role) -> Option<(f64, Witness)> {
    let thread = evidence.end(role)?.thread_share.map(|share| (share, "the busiest data thread"));
    let softirq = evidence.softirq_core(role).map(|core| (core.softirq, "packet processing"));
    let (share, what) = [thread, softirq].into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share >= FULL).then(|| {
        (share, counter(format!("{what} of {} took {} of a core", who(evidence, role), units::percent(share))))
    })
}
