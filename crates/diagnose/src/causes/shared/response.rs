//! What losses leave of the rate of a congestion control that takes them for a full queue: the response functions of RFC 9438.

use super::tcp_stage::lost_at_home;
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Holds, Losses};

/// Segments per RTT that a loss-based congestion control averages at loss event rate `p` (RFC 9438: CUBIC, never below Reno). Losses within
/// a round trip are one event (RFC 5348 section 5).
pub(crate) fn response_segments(p: f64, rtt_s: f64) -> f64 {
    let reno = (1.5 / p).sqrt();
    let cubic = 1.054 * (rtt_s / p).powf(0.75) / rtt_s.max(1e-6) * rtt_s;
    reno.max(cubic)
}

/// The part of that which is left where each loss may take a retransmission timeout, which a short round trip does not hide (RFC 5348
/// section 3.1, with 200 ms as Linux has at least).
pub(crate) fn timeouts_part(p: f64, rtt_s: f64) -> f64 {
    let timeouts = (3.0 * (3.0 * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
    let segments = rtt_s / (rtt_s * (2.0 * p / 3.0).sqrt() + (rtt_s + 0.2) * timeouts);
    (segments / response_segments(p, rtt_s)).min(1.0)
}

/// What the losses that were met would leave of a larger load: the least, were the next ones to come as soon as chance allows (95 % of a
/// Poisson count), and the average, where they are enough to have one.
pub(crate) fn losses_leave(evidence: &TcpEvidence, holds: Holds) -> Option<Losses> {
    let base = &evidence.base;
    let algorithm = base.congestion_control.as_deref()?;
    if !matches!(algorithm, "cubic" | "reno") || lost_at_home(evidence) {
        return None;
    }
    let rtt_us = if holds == Holds::Path { evidence.window_rtt_us() } else { base.rtt_us };
    let (rtt_s, mss) = (rtt_us? / 1e6, base.mss_bytes?);
    let (moments, sent, enough) = match holds {
        Holds::End => beyond_the_end(evidence).or_else(|| below_the_limit(evidence).filter(|(.., enough)| *enough))?,
        Holds::Path => below_the_limit(evidence)?,
    };
    let bps = |losses: f64| {
        let p = (losses / sent).min(1.0);
        evidence.window_bps(response_segments(p, rtt_s) * timeouts_part(p, rtt_s) * mss)
    };
    let seen = evidence.profile.as_ref().is_some_and(|profile| profile.shape.loses_below());
    let id = if enough && seen { "random-loss" } else { "" };
    let likely = if enough { bps(moments) } else { None };
    Some(Losses { least: bps(moments + 2.0 * moments.sqrt() + 2.0)?, likely, id })
}

/// The loss events that the load met, of how many segments, and whether they are enough for an average: where a window or a buffer held
/// it back, and no queue or policer dropped them.
fn beyond_the_end(evidence: &TcpEvidence) -> Option<(f64, f64, bool)> {
    let loss = evidence.base.loss?;
    let held = evidence.held_by_window()? + evidence.held_by_buffer()? >= 0.5;
    let known = held && evidence.queue_stood() == Some(false) && evidence.path_has_room();
    let moments = loss.moments.min(loss.lost());
    (known && !evidence.policed() && moments > 0).then(|| (moments as f64, loss.sent.max(1) as f64, moments >= 5))
}

/// The same of datagrams at rates below the limit of the path.
fn below_the_limit(evidence: &TcpEvidence) -> Option<(f64, f64, bool)> {
    let shape = &evidence.profile.as_ref()?.shape;
    let below = shape.below();
    (below.events > 0).then(|| (below.events as f64, below.sent.max(1) as f64, shape.loses_below()))
}
