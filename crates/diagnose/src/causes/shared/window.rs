//! What the congestion window says: how much of the time it limited the sender, and so whether loss can be what limits; and what more
//! streams say.

use crate::causes::shared::words::{cannot_tell, contradicts};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::Assessment;
use narrows_model::words::units;

/// The part of the time in which nothing but the congestion window (or recovery) limited the sender.
pub(crate) fn window_share(evidence: &TcpEvidence) -> Option<f64> {
    let busy = evidence.base.shares?.busy.min(1.0 - evidence.starved().unwrap_or(0.0));
    Some((busy - evidence.held_by_window()? - evidence.held_by_buffer()?).max(0.0))
}

/// Why loss cannot be what limits, where the congestion window is not: loss slows a sender down through it alone.
pub(crate) fn loss_does_not_bind(evidence: &TcpEvidence) -> Option<Assessment> {
    match window_share(evidence) {
        None => Some(cannot_tell("the sender's kernel does not report what limited it")),
        Some(share) if share < 0.5 => Some(contradicts(format!(
            "the congestion window, which loss acts on, limited the sender only {} of the time",
            units::percent(share)
        ))),
        Some(_) => None,
    }
}
