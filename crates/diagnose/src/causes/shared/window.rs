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

/// A transfer that is over before its window has grown gets this part of what doubling windows of ten segments give at least: congestion
/// controls that leave slow start early (RFC 9406), and acknowledgements that come late, take the rest.
pub(crate) const SLOW_START: [f64; 2] = [0.4, 1.3];

/// Goodput of a transfer that ends by bytes on the path that was profiled, where most of it is slow start, and its bytes (RFC 5681
/// section 3.1, RFC 6928: ten segments, twice as many each round trip, until the path is full).
pub(crate) fn slow_start_bps(evidence: &TcpEvidence) -> Option<(f64, u64)> {
    let narrows_model::Limit::BytesPerStream(bytes) = evidence.load.limit else { return None };
    let (rtt_s, mss) = (evidence.min_rtt_us? / 1e6, evidence.base.mss_bytes?);
    let streams = evidence.base.streams.max(1) as f64;
    let share_bps = evidence.carries_bps()? / streams;
    let (bits, mut window, mut sent, mut took_s) = (bytes as f64 * 8.0, 10.0 * mss * 8.0, 0.0, 0.0);
    if window <= 0.0 {
        return None;
    }
    while window < share_bps * rtt_s && sent + window < bits {
        (sent, took_s, window) = (sent + window, took_s + rtt_s, 2.0 * window);
    }
    // Where the path is full for longer than that, it is a transfer like any other.
    let rest_s = (bits - sent) / share_bps;
    let bps = streams * bits / (took_s + rest_s + rtt_s / 2.0);
    (bps.is_finite() && rest_s < 2.0 * took_s).then_some((bps, bytes))
}
