//! What losses leave of the rate of a congestion control that takes them for a full queue: the response functions of RFC 9438.

use super::tcp_stage::lost_at_home;
use crate::evidence::tcp::TcpEvidence;
use narrows_search::profile::Plateau;

/// Segments per RTT that a loss-based congestion control averages at loss event rate `p` (RFC 9438: CUBIC, never below Reno). Losses within
/// a round trip are one event (RFC 5348 section 5).
pub(crate) fn response_segments(p: f64, rtt_s: f64) -> f64 {
    let reno = (1.5 / p).sqrt();
    let cubic = 1.054 * (rtt_s / p).powf(0.75) / rtt_s.max(1e-6) * rtt_s;
    reno.max(cubic)
}

/// What the losses of a load that an end held back would leave of a larger one, bits a second: the least, were the next ones to come as
/// soon as chance allows (95 % of a Poisson count), and the average, where they are enough to have one.
pub(crate) fn beyond_the_end(evidence: &TcpEvidence) -> Option<(f64, Option<f64>)> {
    let base = &evidence.base;
    let (loss, algorithm) = (base.loss?, base.congestion_control.as_deref()?);
    let held = evidence.held_by_window()? + evidence.held_by_buffer()? >= 0.5;
    let known = held && evidence.queue_stood() == Some(false) && evidence.path_has_room() && !lost_at_home(evidence);
    let policed = evidence.profile.as_ref().is_some_and(|it| matches!(it.shape.plateau, Some(Plateau::Policer { .. })));
    let moments = loss.moments.min(loss.lost());
    if !known || policed || moments == 0 || !matches!(algorithm, "cubic" | "reno") {
        return None;
    }
    let (rtt_s, mss) = (base.rtt_us? / 1e6, base.mss_bytes?);
    #[allow(clippy::cast_precision_loss)] // counts of one trial
    let (moments, sent) = (moments as f64, loss.sent.max(1) as f64);
    let bps = |losses: f64| evidence.window_bps(response_segments((losses / sent).min(1.0), rtt_s) * mss);
    Some((bps(moments + 2.0 * moments.sqrt() + 2.0)?, bps(moments).filter(|_| moments >= 5.0)))
}
