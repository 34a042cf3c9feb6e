//! What rules of TCP share: ceilings, buffers, names of the ends.

use crate::causes::shared::words::experiment;
use crate::evidence::tcp::TcpEvidence;
use crate::judge::Evidence as _;
use crate::role::Role;
use narrows_model::{Ceiling, FactKey, Method, Witness, words::units};

/// A ceiling with a relative interval around its value.
pub(crate) fn ceiling_at(
    id: &str,
    evidence: &TcpEvidence,
    role: Role,
    bps: f64,
    [low, high]: [f64; 2],
    method: Method,
    how: String,
) -> Option<Ceiling> {
    (bps.is_finite() && bps > 0.0).then(|| Ceiling {
        id: id.to_owned(),
        at: evidence.place(role),
        bps,
        interval_bps: [bps * low, bps * high],
        at_least: false,
        method,
        how,
    })
}

/// A ceiling of a window that is in flight as a whole: at best one window each smallest RTT; where the window leaves
/// as one burst the RTT grows by the time that the burst takes on the slower link. Windows of a few super-packets are
/// also rounded down to whole ones.
pub(crate) fn window_ceiling(
    id: &str,
    evidence: &TcpEvidence,
    role: Role,
    window_bytes: f64,
    method: Method,
    how: String,
) -> Option<Ceiling> {
    let best = evidence.window_bps(window_bytes)?;
    // What carried the goodput carries that at least, wherever a profile ended.
    let carries = evidence.carries_bps().map(|bps| bps.max(evidence.goodput_bps()));
    let link = carries.or_else(|| evidence.link_bps());
    let mut worst = link.map_or(0.8 * best, |link| best / (1.0 + best / link));
    if evidence.path_has_room() {
        worst = worst.min(ROOM * best);
    }
    // Acknowledgements soon space a window out that takes a small part of the round trip; a large part stays a burst.
    let spaced = best / (1.0 + 0.5 * (best / worst - 1.0).min(0.5));
    // While the window held the sender back, a window was in flight each RTT under load.
    let loaded =
        evidence.base.rtt_us.filter(|us| *us > 0.0).zip(evidence.window_rtt_us()).map(|(us, least)| best * least / us);
    let held = worst <= best && evidence.held_by_window().is_some_and(|held| held >= 0.5);
    let likely = loaded.filter(|_| held).map_or(spaced, |bps| bps.clamp(worst, best));
    let mut ceiling = ceiling_at(id, evidence, role, likely, [1.0, 1.0], method, how)?;
    ceiling.interval_bps = [worst.min(0.9 * likely), best];
    Some(ceiling)
}

/// A window or buffer that holds a sender back for most of the time, on a path that carries more, gives this part of its ceiling at
/// least: bursts, wake-ups and late acknowledgements take the rest.
pub(crate) const ROOM: f64 = 0.6;

/// That the path carries more than the goodput, as a witness against the path.
pub(crate) fn path_has_room(evidence: &TcpEvidence) -> Option<Witness> {
    let carries = evidence.carries_bps().filter(|_| evidence.path_has_room())?;
    Some(experiment(format!("the path carries {} of goodput (UDP): it is not the limit", units::bps(carries))))
}

/// The three words of `tcp_rmem` or `tcp_wmem` with a new maximum, in the kernel's form.
pub(crate) fn raised_max(
    evidence: &TcpEvidence,
    role: Role,
    [min, default]: [FactKey; 2],
    max_bytes: u64,
) -> Option<String> {
    let word = |key| evidence.number(role, key);
    Some(format!("{:.0} {:.0} {max_bytes}", word(min)?, word(default)?))
}

/// The buffer that the path needs once this limit is gone: twice the product of the fastest rate known and the RTT,
/// so that half of it may be overhead, rounded up to a power of two; at least 4 MiB.
pub(crate) fn needed_buffer_bytes(evidence: &TcpEvidence) -> Option<u64> {
    let known = evidence.capacity_goodput_bps().or_else(|| evidence.link_bps());
    let target_bps = known.unwrap_or(10.0 * evidence.goodput_bps()).max(evidence.goodput_bps());
    let bdp = target_bps / 8.0 * evidence.min_rtt_us? / 1e6;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let twice = (2.0 * bdp / 0.5).max(f64::from(4 << 20)) as u64;
    Some(twice.min(1 << 30).next_power_of_two())
}

/// `the sender, client` for sentences.
pub(crate) fn who(evidence: &TcpEvidence, role: Role) -> String {
    match role {
        Role::Sender => format!("the sender ({})", evidence.place(role)),
        Role::Receiver => format!("the receiver ({})", evidence.place(role)),
        Role::Path => "the path".to_owned(),
    }
}
