//! # path-capacity
//!
//! The path is at capacity: a healthy path.
//!
//! **Shows**: the goodput equals the slower link less headers, or there is a queue on the path (the RTT under load
//! exceeds the idle RTT) at a steady rate. BBR keeps no queue, and a short queue is hardly visible on a long path;
//! then only the congestion window limits the sender, and four times the streams carry no more. A short or managed queue (CoDel, PIE,
//! ECN marks) drops or marks a few segments, each time when the load filled the path and had begun to wait; a loss-based congestion
//! control then leaves up to a third of the path unused.
//!
//! **Mistaken for**: any other limit. No window, buffer, core or shaper may explain the goodput better.
//!
//! **Fix**: none; more capacity.
//!
//! Source: RFC 6349 section 3; RFC 7567 and RFC 8289 on managed queues.

use crate::causes::shared::bound::{LONG_QUEUE_US, end_bound, held_by_buffer};
use crate::causes::shared::profile::dispersion;
use crate::causes::shared::rule::*;
use crate::causes::shared::window::{SLOW_START, slow_start_bps, window_share};
use crate::causes::shared::words::no_more;
use crate::evidence::profile::NOTICED;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND, EndView, NO_MORE, TAKEN};
use crate::experiments::tcp::MORE_STREAMS;
use crate::judge::Experiment;
use narrows_search::profile::Plateau;
use super::capacity_changed::full_in_each_phase;
use super::flow_limit::of_each_connection;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "path-capacity",
    about: "the path is at capacity",
    roles: &[Role::Path],
    needs: &[keys::NIC_KIND, keys::NIC_SPEED],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-shaper", "path-policer", "link-speed", "tcp-send-buffer", "tcp-receive-window"],
    fix: |_, _| advice("nothing to fix: a higher goodput needs more capacity"),
    healthy: true,
    detailed_by,
    rank: 2,
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let goodput = evidence.goodput_bps();
    if full_in_each_phase(evidence).is_ok() {
        let how = "mean of the phases of the load, each at capacity".to_owned();
        return ceiling_at(CAUSE.id, evidence, role, goodput, [0.97, 1.03], Method::Measured, how);
    }
    if let Some((bps, bytes)) = slow_start_bps(evidence).filter(|(bps, _)| goodput >= SLOW_START[0] * bps) {
        let how = format!("slow start of a transfer of {}", units::bytes(bytes));
        return ceiling_at(CAUSE.id, evidence, role, bps, SLOW_START, Method::Computed, how);
    }
    // Beyond a policer or a shaper nothing was measured but its bursts: what more connections carry passes it, too.
    if drops_or_limits(evidence) {
        return profiled(evidence, role).or_else(|| evidence.policed().then(|| of_link(evidence, role))?);
    }
    // A profile that the load exceeds is of another moment.
    if let Some(ceiling) = profiled(evidence, role).filter(|_| evidence.filled().is_none_or(|filled| filled <= BEYOND)) {
        return Some(ceiling);
    }
    // A queue on the path is the direct sign; without one the slower link is the most that the path can be.
    if evidence.queue_stood() == Some(true) && !host_bound(evidence) {
        let measured = goodput.max(more_streams(evidence).map_or(0.0, |more| more.min(1.1 * goodput)));
        let how = format!("goodput with {}", evidence.queue_words());
        return ceiling_at(CAUSE.id, evidence, role, measured, [0.97, 1.03], Method::Measured, how);
    }
    if let (Ok(Assessment::Supports { .. }), Some(more)) = (without_queue(evidence), more_streams(evidence)) {
        let how = "not exceeded by four times the streams".to_owned();
        return ceiling_at(CAUSE.id, evidence, role, goodput.max(more), [1.0 / NO_MORE, 1.03], Method::Measured, how);
    }
    of_link(evidence, role)
}

fn of_link(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let link = evidence.link_goodput_bps()?;
    let how = format!("slower link {} less headers", units::bps(evidence.link_bps()?));
    ceiling_at(CAUSE.id, evidence, role, link, [0.95, 1.01], Method::Computed, how)
}

/// Bursts that pass at more than so many times the sustained rate were slowed by no link that matters: what the path would sustain
/// without the policer or shaper is not known (behind one limit of a bucket there may be another).
const BURSTS: f64 = 16.0;

/// A burst that no link slowed and that is shorter may have passed the bucket of another limit behind the first (tc-tbf(8): what a
/// bucket must hold grows with its rate).
const UNSEEN_BYTES: f64 = 131_072.0;

/// The ceiling by the profile of the path: what it sustains, or beyond a policer or shaper the rate at which bursts pass it.
fn profiled(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let shape = &evidence.profile.as_ref()?.shape;
    let part = evidence.payload_part()?;
    let carries = |bps: f64| (bps, [0.9, 3.0], format!("the path carries at least {}, less headers", units::bps(bps)), true);
    let bursts = |bps: f64, at_least| {
        let how = format!("bursts pass the path at {} (path profile), less headers", units::bps(bps));
        (bps, [0.7, dispersion(bps)], how, at_least)
    };
    let (bps, spread, how, at_least) = match (shape.capacity, shape.plateau) {
        (Some(capacity), Some(plateau @ (Plateau::Policer { .. } | Plateau::Shaper { .. }))) if drops_or_limits(evidence) => {
            let burst = shape.burst_bps.filter(|burst| (1.0 + NOTICED..=BURSTS).contains(&(*burst / capacity.bps)))?;
            match plateau {
                Plateau::Policer { bucket_bytes } if !shape.burst_slowed && bucket_bytes < UNSEEN_BYTES => carries(capacity.bps),
                _ => bursts(burst, !shape.burst_slowed),
            }
        }
        (Some(capacity), _) => {
            // Nearer to the capacity no sawtooth is needed to explain it.
            let saws = evidence.filled().is_some_and(|part| part < AT_CAPACITY) && is_sawtooth(evidence);
            let least = if saws { least_of_sawtooth(evidence) } else { AT_CAPACITY };
            let gets = if saws { format!("; a window that shrinks at each overflow gets {} and more", units::percent(least)) } else { String::new() };
            let how = format!("capacity {} (path profile), less headers{gets}", units::bps(capacity.bps));
            (capacity.bps, [least, 1.03], how, false)
        }
        // Bursts that the bucket of the sender's own shaper lets pass, and that the path slowed, left at the rate of its slowest link.
        (None, _) if evidence.profile.as_ref()?.own_shaper => {
            let burst = shape.burst_bps.filter(|burst| shape.burst_slowed && *burst <= BURSTS * shape.carried_bps);
            match burst.filter(|burst| *burst >= (1.0 + NOTICED) * shape.carried_bps) {
                Some(burst) => bursts(burst, false),
                None => carries(shape.carried_bps.max(evidence.goodput_bps() / part)),
            }
        }
        // The path is no limit up to there; where it ends is not known.
        (None, _) if shape.carried_bps * part < 1.15 * evidence.goodput_bps() => return None,
        (None, _) => carries(shape.carried_bps),
    };
    let ceiling = ceiling_at(CAUSE.id, evidence, role, bps * part, spread, Method::Measured, how)?;
    Some(Ceiling { at_least, ..ceiling })
}

/// Whether a policer or a shaper matters beyond the capacity that it sets.
fn drops_or_limits(evidence: &TcpEvidence) -> bool {
    evidence.policed() || super::path_shaper::holds_back(evidence)
}

/// What a profile of the path says; `None` where it leaves the question to the other evidence.
fn by_profile(evidence: &TcpEvidence) -> Option<Assessment> {
    let profile = evidence.profile.as_ref()?;
    let shape = &profile.shape;
    let goodput = evidence.goodput_bps();
    let (Some(filled), Some(plateau)) = (evidence.filled(), shape.plateau) else {
        let carries = evidence.carries_bps().filter(|carries| goodput < AT_CAPACITY * carries)?;
        return Some(contradicts(format!("the path carried {} of UDP: it has room", units::bps(carries))));
    };
    // TCP went beyond it: the profile is of another moment, or the path treats UDP in a way of its own.
    if filled > evidence.beyond() {
        return None;
    }
    let words = profile.words();
    match plateau {
        Plateau::Policer { .. } => return Some(contradicts(format!("{words}, which drops the excess without a queue"))),
        Plateau::Queue | Plateau::Shaper { .. } if super::path_shaper::holds_back(evidence) => {
            return Some(contradicts(words));
        }
        Plateau::Queue | Plateau::ShortQueue | Plateau::Shaper { .. } => {}
    }
    let says = format!("{words} (UDP in steps); goodput plus headers is {} of that", units::percent(filled));
    let taken = evidence.taken().unwrap_or(0.0);
    if taken >= TAKEN {
        return Some(contradicts(format!("{words}, of which other traffic uses {}", units::percent(taken))));
    }
    if let Some(more) = of_each_connection(evidence) {
        return Some(contradicts(format!("{says}, but four times the streams carried {}", units::bps(more))));
    }
    if filled >= AT_CAPACITY {
        return Some(Assessment::Supports { share: 0.95, witnesses: vec![experiment(says)] });
    }
    if is_sawtooth(evidence) {
        let (signal, times) = (if marks(evidence) { "marks" } else { "losses" }, evidence.base.signals.len());
        let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        let queue = counter(format!("the congestion window filled the path and its queue, and shrank after {signal} ({times})"));
        return Some(Assessment::Supports { share: 0.75, witnesses: vec![experiment(says), queue] });
    }
    Some(contradicts(says))
}

/// The trial that shows it: where one stream fills what is no link of a known speed.
fn detailed_by(evidence: &TcpEvidence) -> Option<&'static Experiment> {
    let plateau = evidence.profile.as_ref().is_some_and(|profile| profile.shape.plateau.is_some());
    (plateau && evidence.base.streams == 1 && !evidence.at_link()).then_some(&MORE_STREAMS)
}

/// Whether a congestion control that shrinks its window when a short or managed queue overflows or marks leaves a part of the path unused.
pub(super) fn is_sawtooth(evidence: &TcpEvidence) -> bool {
    let base = &evidence.base;
    let Some(shape) = evidence.profile.as_ref().map(|profile| &profile.shape) else { return false };
    let rise_us = base.rtt_peak_us.zip(base.rtt_high_us).zip(evidence.min_rtt_us).map(|((peak, high), min)| peak.max(high) - min);
    let overflowed = rise_us.is_some_and(|rise| rise >= 0.8 * shape.queue_us) && base.loss_whole.is_some_and(|loss| loss.lost() > 0);
    // BBR keeps to a rate, and does not shrink at an overflow.
    !base.is_bbr() && evidence.filled().is_some_and(|filled| filled >= least_of_sawtooth(evidence))
        && (overflowed || evidence.slowed_by_queue() == Some(true))
        && window_share(evidence).is_some_and(|share| share >= 0.7)
        && end_bound(evidence).is_none()
        && !shape.loses_below()
        && !cpu_bound(evidence)
        && !evidence.buffer_below_path()
}

/// Whether marks told the sender to slow down, more than losses.
fn marks(evidence: &TcpEvidence) -> bool {
    evidence.base.marked_share.zip(evidence.base.loss).is_some_and(|(marked, loss)| marked > loss.rate())
}

/// The least part of its path that a loss-based congestion control uses in a few seconds, if it shrinks its window at overflows of the
/// queue alone. With a queue of `q` windows of the idle path, the window falls to `beta (1 + q)`, grows by a segment each round trip, and
/// the path is full from 1 on (RFC 5681, RFC 9438, whose growth is faster): three quarters without any queue, all with a long one.
pub(super) fn least_of_sawtooth(evidence: &TcpEvidence) -> f64 {
    let cubic = evidence.base.congestion_control.as_deref() == Some("cubic");
    // A managed queue is kept short, however long it may be.
    let longest_us = || evidence.profile.as_ref().map_or(0.0, |profile| profile.shape.queue_us);
    let queue_us = if evidence.slowed_by_queue() == Some(true) { 0.0 } else { longest_us() };
    let queue = evidence.min_rtt_us.filter(|us| *us > 0.0).map_or(0.0, |min_us| queue_us.max(0.0) / min_us);
    let low = (if cubic { 0.7 } else { 0.5 } * (1.0 + queue)).min(1.0);
    let (rise, full) = (1.0 - low, queue * (1.0 + queue / 2.0));
    let part = if rise + full > 0.0 { (rise * (1.0 + low) / 2.0 + full) / (rise + full) } else { 1.0 };
    FIRST_SECONDS * part
}

/// In a few seconds the overflow at the end of slow start costs this much, and a long path takes a while to be filled again.
const FIRST_SECONDS: f64 = 0.8;

/// A congestion control that fills a queue loses less than this behind it.
const MUCH_LOSS: f64 = 0.005;

/// A full machine, thread or softirq core makes packets wait without any queue on the path. Where other programs fill the machine, what
/// waits for them is uneven.
pub(super) fn cpu_bound(evidence: &TcpEvidence) -> bool {
    if evidence.queue_us().is_some_and(|queue| queue >= LONG_QUEUE_US) {
        return false;
    }
    [Role::Sender, Role::Receiver].into_iter().any(|role| {
        let end = evidence.end(role);
        let excused = end.is_some_and(EndView::others_fill) && evidence.base.is_even();
        end.and_then(EndView::machine_busy).is_some_and(|busy| busy > 0.93 && !excused)
            || end.and_then(|end| end.thread_share).is_some_and(|share| share > 0.88)
            || evidence.softirq_core(role).is_some_and(|core| core.softirq >= 0.85)
    })
}

/// The same, or data threads that waited for a core: where no plateau of a profile shows the path, more connections that carry no more may
/// have met the host.
fn host_bound(evidence: &TcpEvidence) -> bool {
    let long = evidence.queue_us().is_some_and(|us| us >= LONG_QUEUE_US);
    cpu_bound(evidence)
        || (!long && !evidence.base.is_even() && [&evidence.base.sender, &evidence.base.receiver].into_iter().any(EndView::waits_for_core))
}

/// Goodput of four times the streams, where it was measured.
fn more_streams(evidence: &TcpEvidence) -> Option<f64> {
    evidence.made(&MORE_STREAMS).map(|more| more.goodput_bps)
}

/// Capacity without a queue to see: BBR keeps none by design, and a short one on a long path hardly shows. Then more
/// streams tell, since a limit of each connection multiplies with them and a limit of the path does not.
fn without_queue(evidence: &TcpEvidence) -> Ruling {
    let idle = || contradicts("no queue on the path, and goodput below the link speeds");
    // Where something other than the congestion window limited the sender, the path had room; a proxy closes its window when its far
    // side is full.
    let half = |share: &f64| *share >= 0.5;
    let by_proxy = evidence.split.as_ref().and(evidence.held_by_window()).filter(half);
    let limited = match (window_share(evidence).filter(half), by_proxy) {
        (Some(share), _) => {
            format!("no window, buffer or application limited the sender: its congestion window or recovery from loss did, {} of the time", units::percent(share))
        }
        (None, Some(held)) => {
            format!("a proxy on the path ends the connection, and limited the sender {} of the time", units::percent(held))
        }
        (None, None) => return Err(idle()),
    };
    if host_bound(evidence) {
        return Err(contradicts("no queue on the path, and a core is full"));
    }
    // Neither a queue nor a plateau: nothing shows that it is the path that carries no more.
    if let Some(shape) = evidence.profile.as_ref().map(|profile| &profile.shape).filter(|shape| shape.host_limited) {
        return Err(cannot_tell(format!(
            "no queue on the path, and its profile ended at {}, where a host could not send or receive UDP faster",
            units::bps(shape.carried_bps)
        )));
    }
    let Some(more) = more_streams(evidence) else {
        // Losses that no queue explains are first looked at for themselves.
        let lossy = evidence.base.loss.is_none_or(|loss| loss.lost() >= 20);
        return Err(if lossy && evidence.queue_filled_at_times() != Some(true) {
            idle()
        } else {
            ask(&MORE_STREAMS, "no queue on the path; more streams were not measured")
        });
    };
    if super::mtu_mismatch::costs(evidence) {
        return Err(contradicts("its packets are smaller than necessary; larger ones would carry more"));
    }
    if more >= NO_MORE * evidence.goodput_bps() {
        return Err(contradicts(format!("four times the streams carried {}", units::bps(more))));
    }
    supports(0.7, [experiment(no_more(more, evidence.goodput_bps())), counter(limited)])
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let goodput = evidence.goodput_bps();
    if let Ok(witnesses) = full_in_each_phase(evidence) {
        return supports(0.97, witnesses);
    }
    if let Some((bps, bytes)) = slow_start_bps(evidence).filter(|(bps, _)| goodput >= SLOW_START[0] * bps) {
        let says = format!(
            "a transfer of {} ends in slow start: at best {} of the path",
            units::bytes(bytes),
            units::bps(bps)
        );
        let words = evidence.profile.as_ref().map(|profile| experiment(profile.words()));
        return supports(0.9, std::iter::once(counter(says)).chain(words));
    }
    refuted(super::bpf_programs::limit(evidence))?;
    let profiled = by_profile(evidence);
    if let (Some(Assessment::Supports { .. }), Some(role)) = (&profiled, evidence.full_of_packets()) {
        let who = who(evidence, role);
        return Err(cannot_tell(format!("packets take all of a core of {who}: what UDP carries of the path may end there as well")));
    }
    ended(profiled)?;
    let (at_link, queue) = (evidence.fills_link(), evidence.queue_stood());
    let mut witnesses = Vec::new();
    if at_link {
        let part = units::percent(goodput / evidence.link_goodput_bps().unwrap_or(goodput));
        witnesses.push(counter(format!("the goodput is {part} of the capacity of the slower link")));
    } else if super::reordering::scrambles(evidence) {
        return Err(cannot_tell("much of what arrives was overtaken: neither the RTT nor the profile shows a queue then"));
    }
    if host_bound(evidence) && !at_link {
        return Err(contradicts("a core is full, so packets wait in the host, not on the path"));
    }
    if !at_link && let Some(why) = end_bound(evidence) {
        return Err(contradicts(why));
    }
    ended(super::softirq_core_saturated::unseen(evidence))?;
    if queue == Some(true)
        && !at_link
        && let Some(open) = [Role::Sender, Role::Receiver]
            .into_iter()
            .find_map(|role| super::pcie_width::may_hold_a_queue(evidence, role))
    {
        return Err(open);
    }
    // A policer loses much, and bursts and jitter make the RTT vary: without a profile a small queue is not the path's for certain.
    let lossy = evidence.base.loss.is_some_and(|loss| loss.rate() >= MUCH_LOSS);
    if queue == Some(true) && !at_link && lossy && evidence.queue_us().is_some_and(|queue_us| queue_us < LONG_QUEUE_US / 5.0) {
        return Err(cannot_tell("much loss with hardly any queue: without a path profile it could be a policer"));
    }
    if queue == Some(true) && !at_link && held_by_buffer(evidence) {
        return Err(cannot_tell("the send buffer held the sender most of the time: without a path profile it may be the limit"));
    }
    if queue == Some(true) && !at_link {
        // Bursts, jitter and windows make a small queue, too: whether it is the path that is full an experiment tells.
        match more_streams(evidence) {
            None => return Err(ask(&MORE_STREAMS, "a queue, but the capacity of the path was not measured")),
            Some(more) if more >= NO_MORE * goodput => {
                return Err(contradicts(format!("four times the streams carried {}", units::bps(more))));
            }
            Some(more) => witnesses.push(experiment(no_more(more, goodput))),
        }
    }
    match queue {
        Some(true) => witnesses.push(counter(evidence.queue_words())),
        Some(false) if !at_link => return without_queue(evidence),
        None if !at_link => return Err(cannot_tell("the RTT could not be read, so a queue on the path is not visible")),
        _ => {}
    }
    if let Some(trend) = evidence.base.trend()
        && trend > 1.2
    {
        return Err(cannot_tell(format!(
            "the goodput was still rising at the end of the trial ({trend:.2} times over its last third)"
        )));
    }
    supports(if at_link { 0.97 } else { 0.85 }, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use crate::testing::profile::{Excess, ProfiledPath};
    use narrows_model::CpuTimes;
    use super::*;

    /// 600 Mbit/s between links of 1 Gbit/s, without a queue to see.
    fn no_queue() -> Scene {
        Scene { goodput_bps: 600e6, early_peak_bps: 620e6, rtt_us: 35_400, ..Scene::default() }
    }

    #[test]
    fn a_full_link_is_healthy_with_what_it_is_not() {
        let verdict = verdict(&Scene::default(), &[]);
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Healthy, "path-capacity"));
        for id in ["path-shaper", "path-policer", "tcp-send-buffer", "tcp-receive-window"] {
            assert!(verdict.causes[0].rejected.iter().any(|rejected| rejected.id == id), "{id}");
        }
    }

    #[test]
    fn a_standing_queue_and_no_room_for_more_are_enough_where_no_link_is_known() {
        let scene = virtual_hosts(Scene { goodput_bps: 300e6, early_peak_bps: 300e6, ..Scene::default() });
        assert_eq!(verdict(&scene, &no_more(&scene)).status, Status::Healthy);
        // A window that leaves in bursts makes a queue, too.
        assert_asks(&assessment(&CAUSE, Role::Path, &scene, &[]), &MORE_STREAMS);
        let more = Scene { goodput_bps: 340e6, ..scene.clone() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &scene, &no_more(&more)), "carried 340 Mbit/s");
    }

    #[test]
    fn beyond_a_policer_more_streams_that_met_it_too_are_no_capacity() {
        // 20 Mbit/s between hosts of no known link; bursts pass at 54 times that, and more streams carry a bucket more.
        let path = ProfiledPath { rate_bps: 20.5e6, burst_bps: 1.1e9, excess: Excess::DroppedAfter(60), ..ProfiledPath::default() };
        let scene = Scene { goodput_bps: 19.7e6, lost: 700, profile: Some(path), ..virtual_hosts(Scene::default()) };
        let more = Scene { goodput_bps: 21.6e6, ..scene.clone() };
        let verdict = verdict(&scene, &[("more-streams", &more)]);
        assert_eq!(verdict.causes[0].id, "path-policer", "{verdict:#?}");
        assert_eq!(verdict.causes[0].prediction, None);
    }

    #[test]
    fn a_capacity_that_changed_since_the_profile_is_that_of_the_load() {
        // Others took 40 % of it half of the time: the steps met them, the load the mean.
        let profile = Some(ProfiledPath { rate_bps: 72e6, burst_bps: 72e6, ..ProfiledPath::default() });
        let scene = Scene { goodput_bps: 90e6, rtt_us: 90_000, profile, ..virtual_hosts(Scene::default()) };
        let verdict = verdict(&scene, &no_more(&scene));
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Healthy, "path-capacity"), "{verdict:#?}");
    }

    #[test]
    fn without_a_queue_more_streams_must_carry_no_more() {
        let with = |goodput_bps| {
            assessment(&CAUSE, Role::Path, &no_queue(), &[("more-streams", &Scene { goodput_bps, ..no_queue() })])
        };
        assert_supports(&with(655e6));
        assert_contradicts(&with(665e6), "four times the streams carried 665 Mbit/s");
        assert_asks(&assessment(&CAUSE, Role::Path, &no_queue(), &[]), &MORE_STREAMS);
    }

    #[test]
    fn more_streams_on_a_full_core_show_no_capacity() {
        let waits = Scene { receiver_waits: Some(0.48), wobble: 0.2, ..no_queue() };
        assert_supports(&assessment(&CAUSE, Role::Path, &Scene { wobble: 0.0, ..waits.clone() }, &no_more(&no_queue())));
        assert_contradicts(&assessment(&CAUSE, Role::Path, &waits, &no_more(&no_queue())), "a core is full");
        assert_ne!(verdict(&waits, &no_more(&waits)).status, Status::Healthy);
        let queued = virtual_hosts(Scene { receiver_waits: Some(0.48), wobble: 0.2, ..Scene::default() });
        assert_contradicts(&assessment(&CAUSE, Role::Path, &queued, &no_more(&queued)), "a core is full");
        // Other programs that fill both machines make no rate even that waits for them.
        let full = CpuTimes { user_us: 7_900_000, softirq_us: 100_000, ..CpuTimes::default() };
        let busy = virtual_hosts(Scene { receiver_core: full, other_core: full, ..Scene::default() });
        assert_contradicts(&assessment(&CAUSE, Role::Path, &Scene { wobble: 0.2, ..busy.clone() }, &[]), "a core is full");
        assert_supports(&assessment(&CAUSE, Role::Path, &busy, &no_more(&busy)));
        // Neither do they where the profile met the host before any plateau.
        let path = ProfiledPath { sends_bps: 300e6, ..ProfiledPath::default() };
        let slow_host = Scene { profile: Some(path), ..no_queue() };
        let ended = assessment(&CAUSE, Role::Path, &slow_host, &no_more(&no_queue()));
        assert_cannot_tell(&ended, "its profile ended at 250 Mbit/s, where a host could not send or receive UDP faster");
        assert_eq!(verdict(&slow_host, &no_more(&slow_host)).status, Status::Unknown);
    }

    #[test]
    fn where_something_else_held_the_sender_back_the_path_had_room() {
        for (scene, why) in [
            (Scene { busy: 0.4, ..no_queue() }, "left the connection idle"),
            (Scene { rwnd: 0.6, ..no_queue() }, "no queue"),
            (Scene { lost: 40, ..no_queue() }, "no queue"),
        ] {
            assert_contradicts(&assessment(&CAUSE, Role::Path, &scene, &[]), why);
        }
    }

    #[test]
    fn a_full_core_makes_packets_wait_but_not_for_fifty_milliseconds() {
        let full =
            Scene { receiver_core: core(0.9, 0.05), goodput_bps: 600e6, early_peak_bps: 600e6, ..Scene::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &full, &[]), "a core is full");
        assert_contradicts(&assessment(&CAUSE, Role::Path, &Scene { rtt_us: 84_000, ..full.clone() }, &[]), "a core is full");
        let queued = Scene { rtt_us: 86_000, ..full };
        assert_supports(&assessment(&CAUSE, Role::Path, &queued, &no_more(&queued)));
    }

    #[test]
    fn a_rate_that_still_grows_or_an_unknown_rtt_leaves_it_open() {
        assert_cannot_tell(
            &assessment(&CAUSE, Role::Path, &Scene { ramp: 0.9, ..Scene::default() }, &[]),
            "the goodput was still rising at the end of the trial",
        );
        assert_supports(&assessment(&CAUSE, Role::Path, &Scene { ramp: 0.4, ..Scene::default() }, &[]));
        let scene = Scene { hidden: &[Hidden::Rtt], ..no_queue() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &scene, &[]), "RTT could not be read");
        assert_eq!(verdict(&scene, &[]).status, Status::Unknown);
    }

    #[test]
    fn a_short_queue_behind_a_full_send_buffer_is_no_capacity_without_a_profile() {
        let held = Scene { goodput_bps: 245e6, min_rtt_us: 60_000, rtt_us: 75_600, sndbuf: 0.76, ..Scene::default() };
        let more = Scene { goodput_bps: 256e6, ..held.clone() };
        let of = |scene: &Scene| assessment(&CAUSE, Role::Path, scene, &[("more-streams", &more)]);
        assert_cannot_tell(&of(&held), "the send buffer held the sender");
        assert_supports(&of(&Scene { rtt_us: 130_000, ..held }));
    }
}
