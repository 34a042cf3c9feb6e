//! Whether an end, and not the path or the CPU, explains the goodput.

use crate::causes::shared::tcp::who;
use crate::causes::tcp::{
    local_shaper, pacing_cap, receiver_app_slow, tcp_receive_buffer_fixed, tcp_receive_window, tcp_send_buffer,
    tcp_send_buffer_fixed,
};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::ceilings::sits_at;
use crate::judge::{Assessment, Evidence as _};
use crate::role::Role;
use narrows_model::words::units;

/// A window or buffer that holds the sender back at the very rate that it allows.
pub(crate) fn held_back(evidence: &TcpEvidence) -> Option<String> {
    let (window, buffer) = (evidence.held_by_window()?, evidence.held_by_buffer()?);
    // More connections would have carried more.
    if let Some(Assessment::Contradicts(_)) = evidence.more_connections_say() {
        return None;
    }
    [
        (&tcp_receive_window::CAUSE, Role::Receiver, window),
        (&tcp_receive_buffer_fixed::CAUSE, Role::Receiver, window),
        (&tcp_send_buffer::CAUSE, Role::Sender, buffer),
        (&tcp_send_buffer_fixed::CAUSE, Role::Sender, buffer),
    ]
    .into_iter()
    .filter(|(_, _, held)| *held >= 0.2)
    .find(|(cause, role, _)| {
        (cause.ceiling)(evidence, *role).is_some_and(|ceiling| sits_at(&ceiling, evidence.goodput_bps()))
    })
    .map(|(cause, _, held)| {
        if evidence.base.is_silent() {
            return format!("{}, at the ceiling of {}", evidence.waited_words(held), cause.id);
        }
        format!("{} limited the sender {} of the time, at its ceiling", cause.id, units::percent(held))
    })
}

/// Why an end, and not the path, explains the goodput, where one does. What an end holds back also makes bursts, and
/// with them small queues and a fast beginning: they say nothing of the path then.
pub(crate) fn end_bound(evidence: &TcpEvidence) -> Option<String> {
    if let Some(why) = held_back(evidence) {
        return Some(why);
    }
    if receiver_app_slow::reader_lags(evidence) {
        return Some("unread data in the receiver's socket: its application limits the sender".to_owned());
    }
    for role in [Role::Sender, Role::Receiver] {
        if let Some(share) = evidence.end(role).and_then(|end| end.thread_share).filter(|share| *share >= 0.85) {
            return Some(format!(
                "the data thread of {} fills {} of a core",
                who(evidence, role),
                units::percent(share)
            ));
        }
    }
    for cause in [&local_shaper::CAUSE, &pacing_cap::CAUSE] {
        if let (Some(ceiling), Assessment::Supports { .. }) =
            ((cause.ceiling)(evidence, Role::Sender), (cause.assess)(evidence, Role::Sender))
            && sits_at(&ceiling, evidence.goodput_bps())
        {
            return Some(format!("{} at the sender explains the rate", cause.id));
        }
    }
    let behind = evidence.writer_behind()?;
    (behind >= 0.2).then(|| format!("the application left the connection idle {} of the time", units::percent(behind)))
}

/// A queue that takes this long to drain is none of packets that wait for a core: a thread that may run waits for
/// some slices of a few milliseconds, and the backlog of a core (1000 packets) is worked off in a few more.
pub(crate) const LONG_QUEUE_US: f64 = 50_000.0;

/// Whether the send buffer held the sender most of the time while less than a window waited on the path: that leaves the path idle at times.
pub(crate) fn held_by_buffer(evidence: &TcpEvidence) -> bool {
    let short = evidence.queue_us().zip(evidence.min_rtt_us).is_some_and(|(queue_us, rtt_us)| queue_us < rtt_us);
    short && evidence.held_by_buffer().is_some_and(|held| held >= 0.5)
}

/// Why the CPU is not what ends the goodput, where that is known: it lies at the slower link, or a window explains it.
pub(crate) fn cpu_innocent(evidence: &TcpEvidence) -> Option<String> {
    if evidence.fills_link() {
        return Some("the goodput equals the capacity of the slower link".to_owned());
    }
    held_back(evidence)
}
