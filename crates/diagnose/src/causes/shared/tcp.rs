//! What rules of TCP share: ceilings, buffers, names of the ends.

use crate::causes::shared::rule::known;
use crate::causes::shared::words::{ask, cannot_tell, contradicts, experiment, setting_fix};
use crate::evidence::tcp::{FlowView, TcpEvidence};
use crate::experiments::tcp::MORE_STREAMS;
use crate::judge::{Assessment, Evidence as _, Experiment};
use crate::role::Role;
use narrows_model::host::buffers::TcpBuffer;
use narrows_model::{Ceiling, Fix, Method, Witness, keys, words::units};

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

/// The rate that a load keeps to by its own parameters, all streams together: what it reaches once nothing else limits it. 0: it keeps to none.
pub(crate) fn pace_ceiling(id: &str, evidence: &TcpEvidence, role: Role, pace_bps: u64, how: &str) -> Option<Ceiling> {
    let pace = Some(pace_bps as f64).filter(|pace| *pace > evidence.goodput_bps())?;
    ceiling_at(id, evidence, role, pace, [PACED, 1.0], Method::Computed, how.to_owned())
}

/// A thread that sleeps to keep its pace reaches so much of it: 0.90 and more in the drawn runs.
pub(crate) const PACED: f64 = 0.9;

/// A ceiling of a window that is in flight as a whole: at best one window each smallest RTT; where the window leaves
/// as one burst the RTT grows by the time that the burst takes on the slower link. Windows of a few super-packets are
/// also rounded down to whole ones, and on a short path the hosts take most of the RTT under load.
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
    let held = worst <= best && evidence.held_by_window().is_some_and(|held| held >= HELD);
    worst = worst.min(best * slowed_by_hosts(evidence, evidence.held_by_window()));
    let likely = loaded.filter(|_| held).map_or(spaced, |bps| bps.clamp(worst, best));
    // Without the losses it is what it was: they are another's.
    let trips = held.then(|| trips_of_a_window(evidence, window_bytes)).flatten();
    worst /= trips.unwrap_or(1.0);
    let how = match trips {
        Some(trips) => format!("{how}; losses make it take {trips:.1} round trips"),
        None => how,
    };
    let mut ceiling = ceiling_at(id, evidence, role, likely, [1.0, 1.0], method, how)?;
    ceiling.interval_bps = [worst.min(0.9 * likely), best];
    Some(ceiling)
}

/// The round trips that a full window takes on average where packets are lost: what follows a lost segment stays in the receiver's buffer
/// until it was sent again, a round trip later (RFC 6675). `None` where hardly any window loses one.
fn trips_of_a_window(evidence: &TcpEvidence, window_bytes: f64) -> Option<f64> {
    let run = evidence.profile.as_ref().map_or(1.0, |profile| profile.shape.run_below().max(1.0));
    let (rate, segments) = (evidence.base.loss?.rate() / run, window_bytes / evidence.base.mss_bytes?);
    let trips = 2.0 - (1.0 - rate.clamp(0.0, 1.0)).powf(segments);
    (trips > 1.05).then_some(trips)
}

/// What speaks against a window or buffer that gives `bps` at the smallest RTT, where a queue stood and that is clearly more than the path
/// carries: what exceeds the path waits in its queue (Little's law). A path whose capacity varies carries less in the load than in its
/// profile; whether it did more connections tell, since hosts make data wait, too.
pub(crate) fn waits_on_the_path(evidence: &TcpEvidence, bps: Option<f64>) -> Option<Assessment> {
    let (bps, carries) = (bps?, evidence.capacity_goodput_bps()?);
    let shared = evidence.profile.as_ref()?.shape.shared.is_some();
    if evidence.queue_stood() != Some(true) || shared || ROOM * bps < carries {
        return None;
    }
    let [bps, carries] = [bps, carries].map(units::bps);
    let says =
        format!("it allows {bps} at the smallest RTT, of a path that carried {carries}: the rest waited in a queue");
    match evidence.made(&MORE_STREAMS) {
        None => Some(ask(&MORE_STREAMS, says)),
        Some(more) if more.goodput_bps >= GAINS * evidence.goodput_bps() => None,
        Some(_) => Some(contradicts(says)),
    }
}

/// More connections that carry so much more had a limit each.
const GAINS: f64 = 1.3;

/// A sender that waits for a window or buffer so much of the time has one in flight each round trip.
const HELD: f64 = 0.5;

/// The part of its goodput at the smallest RTT that a window or buffer which held the sender back for a part of the time gives at the RTT
/// that it took (Little's law), where no queue of the path stood: the hosts took the rest of it. Else 1.
pub(crate) fn slowed_by_hosts(evidence: &TcpEvidence, held: Option<f64>) -> f64 {
    let part = evidence.window_rtt_us().zip(evidence.base.rtt_us).map_or(1.0, |(least, loaded)| least / loaded);
    let hosts = held.is_some_and(|held| held >= HELD) && evidence.queue_stood() == Some(false);
    if hosts && part.is_finite() { part.min(1.0) } else { 1.0 }
}

/// A window or buffer that holds a sender back for most of the time, on a path that carries more, gives this part of its ceiling at
/// least: bursts, wake-ups and late acknowledgements take the rest.
pub(crate) const ROOM: f64 = 0.6;

/// That the path carries more than the goodput, as a witness against the path.
pub(crate) fn path_has_room(evidence: &TcpEvidence) -> Option<Witness> {
    let carries = evidence.carries_bps().filter(|_| evidence.path_has_room())?;
    Some(experiment(format!("the path carries {} of goodput (UDP): it is not the limit", units::bps(carries))))
}

/// That witness.
/// Errors: the assessment where the goodput is all that the path carries, or that is not known.
pub(crate) fn room(evidence: &TcpEvidence) -> Result<Witness, Assessment> {
    room_or(evidence, "the goodput is what the path carries", "what the path carries was not measured")
}

/// The same, with the words of both.
pub(crate) fn room_or(evidence: &TcpEvidence, full: &str, unmeasured: &str) -> Result<Witness, Assessment> {
    let other = || if evidence.profile.is_some() { contradicts(full) } else { cannot_tell(unmeasured) };
    path_has_room(evidence).ok_or_else(other)
}

/// How much of the time a window or buffer limited the sender.
/// Errors: the assessment where that is little, or not known.
pub(crate) fn held(part: Option<f64>, what: &str) -> Result<f64, Assessment> {
    let part = known(part, "the sender's kernel does not report what limited it")?;
    if part < 0.2 {
        return Err(contradicts(format!("the {what} limited the sender only {} of the time", units::percent(part))));
    }
    Ok(part)
}

/// An experiment of this round.
/// Errors: that it is asked for, where it was not made.
pub(crate) fn made<'a>(
    evidence: &'a TcpEvidence,
    experiment: &'static Experiment,
    why: impl Into<String>,
) -> Result<&'a FlowView, Assessment> {
    evidence.made(experiment).ok_or_else(|| ask(experiment, why))
}

/// Commands that find a route's metric, and replace the route by one without metrics.
pub(crate) fn without_metric(evidence: &TcpEvidence, role: Role, metric: &str) -> [String; 2] {
    let via = evidence.text(role, keys::ROUTE_GATEWAY).map_or_else(String::new, |gateway| format!(" via {gateway}"));
    let device = evidence.text(role, keys::ROUTE_DEVICE).unwrap_or("DEVICE");
    [format!("ip route show | grep -w {metric}"), format!("ip route change DESTINATION{via} dev {device}")]
}

/// The buffer that the path needs once this limit is gone: twice the product of the rate that is foretold and the RTT, rounded up to a
/// power of two, at least 4 MiB and twice what it is now.
pub(crate) fn raise(evidence: &TcpEvidence, role: Role, buffer: &TcpBuffer) -> Fix {
    const MOST: u64 = 1 << 30;
    /// Less saves nothing: a buffer takes what its connection needs.
    const LEAST: u64 = 4 << 20;
    let (rate_bps, is_bound) = foretold_bps(evidence);
    let twice = evidence.min_rtt_us.map(|rtt_us| 2.0 * buffer.holds(rate_bps, rtt_us / 1e6));
    let needed = twice.map_or(32 << 20, |bytes| (bytes as u64).clamp(LEAST, MOST).next_power_of_two());
    let host = evidence.host(role);
    let doubled = host.and_then(|host| buffer.max(host)).map_or(0, |max| (max as u64).saturating_mul(2).min(MOST));
    let why = match () {
        () if doubled > needed => "twice what it is".to_owned(),
        // What is said of the size must be near it: a power of two is less than twice as large.
        () if twice.is_some_and(|bytes| 2.0 * bytes < LEAST as f64) && !is_bound => {
            format!("more than this path needs at {}, and enough for longer ones", units::bps(rate_bps))
        }
        () if is_bound => format!(
            "twice the bandwidth-delay product at {}, with overhead; the path may carry more, so raise it again if it is the limit again",
            units::bps(rate_bps)
        ),
        () => format!("twice the bandwidth-delay product at {}, with overhead", units::bps(rate_bps)),
    };
    let bytes = needed.max(doubled);
    let advice = format!("raise the {} maximum to {}: {why}", buffer.name, units::bytes(bytes));
    setting_fix(evidence, role, advice, buffer.setting(host, bytes))
}

/// The goodput that the path carries, and whether that is a lower bound: its capacity, without a profile the slower link, or what it
/// carried as far as the hosts are known to go.
fn foretold_bps(evidence: &TcpEvidence) -> (f64, bool) {
    let goodput = evidence.goodput_bps();
    let carried = evidence.carries_at_least_bps();
    let known = evidence.capacity_goodput_bps().or_else(|| evidence.link_goodput_bps().filter(|_| carried.is_none()));
    let bound = || carried.map_or_else(|| evidence.reach_bps(), |carried| carried.min(evidence.reach_bps()));
    known.map_or_else(|| (bound().max(goodput), true), |bps| (bps.max(goodput), false))
}

/// `the sender, client` for sentences.
pub(crate) fn who(evidence: &TcpEvidence, role: Role) -> String {
    match role {
        Role::Sender => format!("the sender ({})", evidence.place(role)),
        Role::Receiver => format!("the receiver ({})", evidence.place(role)),
        Role::Path => "the path".to_owned(),
    }
}
