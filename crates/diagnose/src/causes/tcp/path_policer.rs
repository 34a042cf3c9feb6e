//! # path-policer
//!
//! A policer on the path drops what exceeds its rate, without a queue.
//!
//! **Shows**: loss while the RTT stays at its minimum; no loss when paced below the rate.
//!
//! A policer for each flow has a bucket for every connection: more connections carry more, and the path profile meets a bucket of its own,
//! at the rate of one connection.
//!
//! **Mistaken for**: random loss (it persists when paced), a full queue (the RTT grows first), a very short queue.
//!
//! **Fix**: pace below the rate, or change the contract; more connections, where each has the rate for itself.
//!
//! Source: RFC 2475 2.3.3.4; Flach et al., *An Internet-Wide Analysis of Traffic Policing*, SIGCOMM 2016.

use crate::causes::udp;
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::{in_a_host, lost_at_home};
use crate::causes::shared::window::{loss_does_not_bind, window_share};
use crate::evidence::paced::PacedUdp;
use crate::evidence::profile::PathProfile;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND, FlowView, Loss};
use crate::experiments::paced::PACED_UDP;
use crate::experiments::tcp::{MORE_STREAMS, OTHER_CONGESTION_CONTROL, PACED_HALF};
use crate::judge::Experiment;
use narrows_search::profile::Plateau;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "path-policer",
    about: "a policer on the path drops what exceeds its rate",
    roles: &[Role::Path],
    needs: &[keys::QDISC_DROPS],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "path-shaper", "path-capacity", "qdisc-drop", "congestion-control"],
    fix,
    rank: 6,
    excludes: Excludes::Hosts,
    explains_link: true,
    detailed_by: |_| Some(&MORE_STREAMS),
    beside: |evidence| Some(for_each_flow(evidence)?.goodput_bps),
    ..Cause::COMMON
};

/// A first burst this much faster than the later rate is a bucket and not the noise of acknowledgements.
const BURST: f64 = 1.5;

/// How loss behaved when the load was paced at half the goodput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Paced {
    /// It was there before, and is gone or nearly so.
    Vanished,
    /// It stayed as it was, within the noise of counting.
    Stayed,
    /// Too few segments or losses to say.
    TooFew,
}

/// Judges the paced trial by counts: with `n` losses expected, `n` ± 2√n is noise, so eight expected ones and no more
/// than a fifth of them seen is a change that chance makes in less than 1 of 100 trials.
pub(super) fn paced(before: Loss, after: Option<Loss>) -> Option<Paced> {
    let after = after?;
    let (expected, seen) = (before.rate() * after.sent as f64, after.lost() as f64);
    // What a burst of a stalled host lost says nothing of the rate.
    let at_once = after.lost() >= 8 && after.bunched > after.lost() / 2;
    Some(if seen <= expected / 5.0 && expected >= 8.0 {
        Paced::Vanished
    } else if expected >= 4.0 && seen >= expected / 2.5 && !at_once {
        Paced::Stayed
    } else {
        Paced::TooFew
    })
}

/// Why UDP is asked where the loss at half of the goodput does not tell.
pub(super) const TOO_FEW: &str = "too few segments were lost to compare the paced trial with";

/// What UDP at rates of its own shows, which loses more in the same time.
pub(super) fn by_paced_udp(evidence: &TcpEvidence, rule: fn(&PacedUdp) -> Ruling, why: impl Into<String>) -> Ruling {
    match rule(&evidence.paced_udp) {
        Err(Assessment::CannotTell { .. }) => Err(ask(&PACED_UDP, why)),
        known => known,
    }
}

/// Goodput of an experiment if it is at least doubled: a policer caps every flow at its rate, of which a loss-based congestion
/// control gets two thirds and more.
fn carried_more(evidence: &TcpEvidence, experiment: &'static Experiment) -> Option<f64> {
    let faster = evidence.made(experiment)?.goodput_bps;
    (faster >= 2.0 * evidence.goodput_bps()).then_some(faster)
}

/// The trial of more connections, where it carried more than the rate of the policer that the profile met, and what its bucket let pass:
/// each has the rate for itself.
fn for_each_flow(evidence: &TcpEvidence) -> Option<&FlowView> {
    const MORE: f64 = 1.3;
    let Plateau::Policer { bucket_bytes } = evidence.profile.as_ref()?.shape.plateau? else { return None };
    // Connections that have more than that rate each meet no such policer: it counts batches (nft, tc before segmentation), or UDP alone.
    let each = evidence.filled()? / evidence.base.streams as f64;
    if each > BEYOND {
        return None;
    }
    let view = evidence.made(&MORE_STREAMS)?;
    let more = view.goodput_bps - bucket_bytes * 8.0 / view.counted_s.max(1e-3);
    let times = more / evidence.capacity_goodput_bps()?;
    (times >= MORE && more >= MORE * evidence.goodput_bps()).then_some(view)
}

/// Whether nothing ever queued: not at the end of slow start, or (where packets are too quick to tell) not in a tenth of the samples
/// of a load that goes on losing.
fn queueless(evidence: &TcpEvidence) -> bool {
    let goes_on = evidence.base.loss.is_some_and(|loss| loss.lost() >= 20);
    evidence.never_queued().unwrap_or(goes_on && evidence.queue_filled_at_times() == Some(false))
}

/// Of a policer's rate, what TCP gets at least …
const LEAST: f64 = 0.25;
/// … and mostly: its window halves whenever the bucket is empty.
const MOSTLY: f64 = 0.8;

/// A loss-based congestion control that meets a policer gets so much of its rate, and more.
const GETS: f64 = 0.7;

/// Whether a window or a buffer held the load back for a good part of the time.
fn held_by_an_end(evidence: &TcpEvidence) -> Option<bool> {
    Some(evidence.held_by_window()? + evidence.held_by_buffer()? >= 0.3)
}

/// Whether the congestion control takes the drops of a policer for a full queue.
fn loses_at_the_rate(evidence: &TcpEvidence) -> bool {
    !evidence.base.is_bbr()
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    evidence.policed().then_some(())?;
    // Whatever gets more than that may get all of it.
    let starves = |loss: Loss| loss.rate() >= TIMEOUTS || outgrows_bucket(evidence, loss);
    if evidence.filled()? < LEAST && evidence.base.loss_whole.is_some_and(starves) {
        return None;
    }
    // Several connections have a bucket each.
    if evidence.filled()? > BEYOND {
        return None;
    }
    let rate = evidence.capacity_goodput_bps()?;
    // A load that its end held back did not show what the policer leaves of one that goes on to lose: from what it left so far up to all.
    let bps = match () {
        () if evidence.filled()? <= GETS => MOSTLY * rate,
        () if !evidence.base.is_silent() && held_by_an_end(evidence)? && loses_at_the_rate(evidence) => {
            f64::midpoint(evidence.goodput_bps().clamp(MOSTLY * rate, rate), rate)
        }
        () => rate,
    };
    let how = "TCP's share of the policer's rate (path profile), less headers".to_owned();
    ceiling_at(CAUSE.id, evidence, role, bps, [LEAST, BEYOND].map(|part| part * rate / bps), Method::Measured, how)
}

/// See `assess`.
pub(super) const BBR_IGNORES: f64 = 0.02;

/// From this loss on, retransmission timeouts decide what TCP gets, whatever the RTT (Padhye et al., SIGCOMM 1998, section 3).
const TIMEOUTS: f64 = 0.05;

/// Whether bursts of a window do not fit into the bucket, which holds far less than a round trip's worth of the rate, and are what is lost:
/// evenly spaced datagrams would have shown a loss at any rate.
fn outgrows_bucket(evidence: &TcpEvidence, loss: Loss) -> bool {
    let Some(shape) = evidence.profile.as_ref().map(|profile| &profile.shape) else { return false };
    let (Some(Plateau::Policer { bucket_bytes }), Some(capacity)) = (shape.plateau, shape.capacity) else { return false };
    let window_bytes = evidence.window_rtt_us().map(|rtt_us| capacity.bps * rtt_us / 8e6);
    // What chance makes of so many expected ones in less than 1 of 100 trials, as in `paced`.
    let evenly = !shape.loses_below() && loss.rate() * shape.sent_below as f64 >= 8.0;
    evenly && window_bytes.is_some_and(|window| bucket_bytes < SMALL * window)
}

/// Bursts of a quarter of a window, as slow start and acknowledgements in a row make, overflow it long before the path is full.
const SMALL: f64 = 0.25;

/// What a profile of the path says; `None` where it reached no limit.
fn by_profile(evidence: &TcpEvidence, loss: Loss) -> Option<Assessment> {
    let profile = evidence.profile.as_ref()?;
    let (filled, plateau) = (evidence.filled()?, profile.shape.plateau?);
    let Plateau::Policer { bucket_bytes } = plateau else { return Some(contradicts(profile.words())) };
    let each = for_each_flow(evidence).map(|more| {
        let (all, one) = (more.goodput_bps, evidence.goodput_bps());
        let [carried, goodput] = [all, one].map(units::bps);
        let (streams, times) = (more.streams, all / one);
        experiment(format!("{streams} connections carried {carried}, {times:.1} times the {goodput} of {}: each flow has the rate for itself", evidence.base.streams))
    });
    // Several connections of which each had the rate for itself have more together.
    let streams = if filled > BEYOND { evidence.base.streams as f64 } else { 1.0 };
    if filled > BEYOND && each.is_none() {
        let may_be = streams > 1.0 && filled <= BEYOND * streams && evidence.made(&MORE_STREAMS).is_none();
        return may_be.then(|| ask(&MORE_STREAMS, "each connection may have the policer's rate for itself; more were not measured"));
    }
    let filled = filled / streams;
    // A loss-based congestion control gets two thirds of a policer's rate, and less where the bucket is small.
    // Its bursts exceed the bucket: it loses so much that it waits for timeouts, or again and again, where evenly spaced datagrams pass.
    let starved = !profile.shape.loses_below() && (loss.rate() >= TIMEOUTS || outgrows_bucket(evidence, loss));
    if filled < LEAST && !starved {
        return Some(contradicts(format!("the goodput is only {} of the policer's rate", units::percent(filled))));
    }
    let burst = profile.burst_words().map_or_else(String::new, |words| format!(" {words}"));
    let witnesses = [
            experiment(format!(
                "UDP above {} is dropped with no queueing delay first; bursts of at least {} pass{burst}",
                units::bps(profile.shape.capacity?.bps),
                units::bytes(bucket_bytes as u64)
            )),
            counter(format!(
                "TCP lost {}{} of its segments and carried {}{} of that rate",
                if evidence.base.is_silent() { "at least " } else { "" },
                units::percent(loss.rate()),
                if streams > 1.0 { "on each connection " } else { "" },
                units::percent(filled)
            )),
        ];
    Some(Assessment::Supports { share: 0.92, witnesses: witnesses.into_iter().chain(each).collect() })
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    // Slow start counts: it is what overshoots, and a cautious sender hardly loses anything after it.
    let loss = known(evidence.base.loss_whole, "the sender's retransmissions could not be read")?;
    // A slow load loses few where a profile has seen the policer itself.
    let seen = evidence.policed();
    if loss.is_few(if seen { 3 } else { 20 }) {
        return Err(contradicts(format!("only {} segments of {} were lost", loss.lost(), loss.sent)));
    }
    // At its rate, or at what it leaves of that, it binds whatever else does by turns.
    let by_turns = || evidence.base.is_silent() || window_share(evidence).is_some_and(|share| share >= 0.2);
    let at = |filled: f64| filled >= AT_CAPACITY || (filled >= GETS && loses_at_the_rate(evidence) && by_turns());
    let at_its_rate = seen && evidence.filled().is_some_and(at);
    ended(loss_does_not_bind(evidence).filter(|_| !at_its_rate))?;
    if lost_at_home(evidence) {
        return Err(contradicts(in_a_host(evidence).unwrap_or_else(|| "the sender's own queue dropped them".to_owned())));
    }
    ended(by_profile(evidence, loss))?;
    // Behind a policer BBR, which probes above the rate and ignores less, goes on losing more (draft-ietf-ccwg-bbr, BBR.LossThresh).
    if evidence.base.is_bbr() && loss.rate() < BBR_IGNORES {
        return Err(contradicts(format!("only {} of the segments were lost, which does not slow BBR down", units::percent(loss.rate()))));
    }
    if known(evidence.queue_seen(), "the RTT could not be read, so a full queue and a policer look the same")? {
        return Err(contradicts("the RTT rose before the loss, as behind a queue"));
    }
    let trial = made(evidence, &PACED_HALF, "loss without a queue; half the rate was not measured")?;
    if let Some(faster) = carried_more(evidence, &OTHER_CONGESTION_CONTROL) {
        let id = OTHER_CONGESTION_CONTROL.id;
        return Err(contradicts(format!("{id} carried {}: no policer at the measured rate", units::bps(faster))));
    }
    // A policer of each flow, or none: UDP of one flow tells.
    if let Some(faster) = carried_more(evidence, &MORE_STREAMS) {
        let why = format!("{} carried {}: a policer of each flow, or none", MORE_STREAMS.id, units::bps(faster));
        return by_paced_udp(evidence, udp::path_policer::by_paced_udp, why);
    }
    let burst = evidence
        .base
        .early_peak_bps
        .map(|peak| peak / evidence.goodput_bps())
        .filter(|burst| *burst >= BURST && burst.is_finite());
    match paced(loss, trial.loss) {
        // A short queue loses without standing, too, and its loss ends too when paced. It shows in its RTT now and
        // then, and it lets no burst pass above the rate of the path.
        Some(Paced::Vanished) if burst.is_none() && !queueless(evidence) => {
            let why = "a short queue filled at times; its loss looks like that of a policer";
            return by_paced_udp(evidence, udp::path_policer::by_paced_udp, why);
        }
        Some(Paced::Vanished) => {}
        Some(Paced::Stayed) => return Err(contradicts("the same share was lost when paced at half the goodput")),
        Some(Paced::TooFew) | None => return by_paced_udp(evidence, udp::path_policer::by_paced_udp, TOO_FEW),
    }
    let mut witnesses = vec![
        counter(format!(
            "{} of the segments were lost while the RTT stayed at its minimum: no queue before the loss",
            units::percent(loss.rate())
        )),
        experiment(format!(
            "no loss when paced at half of the goodput ({} of {} segments)",
            trial.loss.map_or(0, |loss| loss.lost()),
            trial.loss.map_or(0, |loss| loss.sent)
        )),
    ];
    if let Some(burst) = burst {
        witnesses.push(counter(format!("a first burst passed at {burst:.1} times the later rate")));
    }
    supports(0.85, witnesses)
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let rate = evidence.profile.as_ref().and_then(PathProfile::policed_words);
    let rate = rate.unwrap_or_else(|| format!("near {}", units::bps(evidence.goodput_bps())));
    let pace = "SO_MAX_PACING_RATE, or tc ... fq maxrate";
    advice(match for_each_flow(evidence) {
        Some(_) => format!(
            "use more connections: the policer gives each {rate}; pace each a twentieth below it ({pace}), or change the contract"
        ),
        None => format!(
            "change the contract for more; paced a twentieth below the policer's rate ({rate}) the sender loses nothing{}: {pace}",
            gets(evidence).unwrap_or_default()
        ),
    })
}

/// What pacing alone gives, where that is clearly more.
fn gets(evidence: &TcpEvidence) -> Option<String> {
    let bps = 0.95 * evidence.capacity_goodput_bps()?;
    let times = bps / evidence.goodput_bps();
    (times.is_finite() && times >= 1.15).then(|| format!(" and gets {}, {times:.1} times as much", units::bps(bps)))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::{Excess, ProfiledPath};
    use super::*;

    /// A policer of 100 Mbit/s: what exceeds it is lost at once, after a first burst that its bucket let pass.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 80e6,
            early_peak_bps: 300e6,
            rtt_us: 35_100,
            cwnd: 242,
            lost: 700,
            segments: 56_000,
            ..Scene::default()
        }
    }

    /// Paced at half the rate, with so many lost.
    fn half(lost: u64) -> Scene {
        Scene { goodput_bps: 40e6, segments: 8_600, lost, ..truth() }
    }

    #[test]
    fn what_is_lost_at_one_moment_of_the_paced_trial_tells_nothing_of_the_rate() {
        let before = Loss { sent: 56_676, retransmitted: 60, moments: 14, bunched: 16, ..Loss::default() };
        let after = |bunched| Some(Loss { sent: 12_268, retransmitted: 116, bunched, ..Loss::default() });
        assert_eq!(paced(before, after(116)), Some(Paced::TooFew));
        assert_eq!(paced(before, after(20)), Some(Paced::Stayed));
        assert_eq!(paced(before, None), None);
    }

    fn with(scene: &Scene, paced: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[("paced-half", paced)])
    }

    #[test]
    fn loss_at_the_smallest_rtt_that_ends_when_paced_is_named() {
        let finding = named(&truth(), &[("paced-half", &half(0))], "path-policer", Place::Path);
        assert_rejects(&finding, "random-loss", "no loss when paced at half the goodput");
        assert_rejects(&finding, "path-shaper", "no queue");
        assert!(finding.witnesses.iter().any(|witness| witness.says.contains("first burst passed at 3.8 times")));
        assert_asks(&assessment(&CAUSE, Role::Path, &truth(), &[]), &PACED_HALF);
    }

    /// The same behind a profile that met a policer of 100 Mbit/s on links of 1 Gbit/s.
    fn profiled() -> Scene {
        let path = ProfiledPath { rate_bps: 100e6, burst_bps: 900e6, excess: Excess::DroppedAfter(40), ..ProfiledPath::default() };
        Scene { profile: Some(path), ..truth() }
    }

    #[test]
    fn a_bucket_far_below_a_round_trip_starves_tcp_without_timeouts() {
        // 100 Mbit/s in 35 ms are 438 kB; the bucket holds forty packets.
        let behind = |packets, lost| {
            let excess = Excess::DroppedAfter(packets);
            let profile = profiled().profile.map(|path| ProfiledPath { excess, ..path });
            let scene = Scene { goodput_bps: 20e6, segments: 13_800, cwnd: 60, lost, profile, ..profiled() };
            assessment(&CAUSE, Role::Path, &scene, &[])
        };
        assert_supports(&behind(40, 100));
        // So few may be lost at any rate: UDP would hardly have met one.
        assert_contradicts(&behind(40, 20), "of the policer's rate");
        assert_contradicts(&behind(300, 100), "of the policer's rate");
    }

    /// What `streams` connections carry.
    fn streams(streams: u32, goodput_bps: f64) -> Scene {
        let load = narrows_model::TcpPlan { streams, ..truth().load };
        Scene { goodput_bps, early_peak_bps: goodput_bps, load, ..profiled() }
    }

    #[test]
    fn a_policer_of_each_flow_is_told_by_more_of_them() {
        assert_eq!(crate::testing::next(&profiled(), &[]), ["more-streams"]);
        let each = named(&profiled(), &[("more-streams", &streams(4, 310e6))], "path-policer", Place::Path);
        assert!(each.fix.advice.starts_with("use more connections: the policer gives each 100 Mbit/s"), "{}", each.fix.advice);
        // By the figures beside it, that of the goodput included.
        let says = "4 connections carried 310 Mbit/s, 3.9 times the 80.0 Mbit/s of 1: each flow has the rate for itself";
        assert!(each.witnesses.iter().any(|witness| witness.says == says), "{:#?}", each.witnesses);
        // One that all share gives them no more.
        let shared = named(&profiled(), &[("more-streams", &streams(4, 88e6))], "path-policer", Place::Path);
        assert!(shared.fix.advice.starts_with("change the contract for more; paced a twentieth below"), "{}", shared.fix.advice);
    }

    #[test]
    fn a_connection_that_has_twice_the_rate_alone_has_no_policer_for_itself() {
        // One that counts batches of segments: nft before they are cut.
        let batches = Scene { goodput_bps: 200e6, early_peak_bps: 200e6, ..profiled() };
        let run = batches.run(&[("more-streams", &streams(4, 600e6))]);
        let evidence = TcpEvidence::of(&run, 0).expect("a baseline");
        assert!(evidence.filled().is_some_and(|part| part > BEYOND) && for_each_flow(&evidence).is_none());
        assert!(for_each_flow(&TcpEvidence::of(&profiled().run(&[("more-streams", &streams(4, 310e6))]), 0).expect("a baseline")).is_some());
    }

    #[test]
    fn behind_a_policer_of_each_flow_more_of_them_foretell_what_bursts_do_not_show() {
        let mut scene = profiled();
        // As they were sent.
        scene.profile = scene.profile.map(|path| ProfiledPath { sends_bps: 850e6, ..path });
        let finding = named(&scene, &[("more-streams", &streams(4, 310e6))], "path-policer", Place::Path);
        let foretold = finding.prediction.expect("a prediction");
        assert_eq!((foretold.bps, foretold.interval_bps), (310e6, None));
    }

    #[test]
    fn several_connections_have_a_policer_each() {
        let four = Scene { segments: 224_000, lost: 2_800, ..streams(4, 310e6) };
        assert_asks(&assessment(&CAUSE, Role::Path, &four, &[]), &MORE_STREAMS);
        let finding = named(&four, &[("more-streams", &streams(16, 820e6))], "path-policer", Place::Path);
        assert!(finding.witnesses.iter().any(|it| it.says.contains("on each connection 80 %")), "{:#?}", finding.witnesses);
        // UDP alone is policed, and TCP is lost by chance.
        let no_more = streams(16, 320e6);
        assert!(!matches!(assessment(&CAUSE, Role::Path, &four, &[("more-streams", &no_more)]), Assessment::Supports { .. }));
    }

    #[test]
    fn without_a_profile_more_connections_that_carry_more_leave_it_to_udp() {
        let with = |more: &Scene| assessment(&CAUSE, Role::Path, &truth(), &[("paced-half", &half(0)), ("more-streams", more)]);
        assert_asks(&with(&Scene { profile: None, ..streams(4, 310e6) }), &PACED_UDP);
        assert_supports(&with(&Scene { profile: None, ..streams(4, 120e6) }));
    }

    #[test]
    fn loss_that_stays_when_paced_is_random() {
        // 107 are to be expected in 8600 segments.
        assert_contradicts(&with(&truth(), &half(100)), "the same share was lost when paced at half the goodput");
        assert_cannot_tell(&with(&truth(), &half(30)), "too few");
        assert_supports(&with(&truth(), &half(20)));
    }

    #[test]
    fn a_queue_of_the_path_or_of_the_sender_is_another_cause() {
        assert_contradicts(&with(&Scene { rtt_us: 40_000, ..truth() }, &half(0)), "the RTT rose before the loss");
        let home = Scene { sender_counts: vec![("qdisc.drops", 360)], ..truth() };
        assert_contradicts(&with(&home, &half(0)), "own queue");
        assert_supports(&with(&Scene { sender_counts: vec![("qdisc.drops", 340)], ..truth() }, &half(0)));
    }

    #[test]
    fn a_short_queue_that_fills_at_times_is_told_from_it_by_the_burst() {
        let short = |early_peak_bps, high| Scene { early_peak_bps, rtt_high_us: Some(high), ..truth() };
        // Sixteen packets take 2.46 ms at 80 Mbit/s.
        assert_cannot_tell(&with(&short(119e6, 37_500), &half(0)), "short queue");
        assert_supports(&with(&short(121e6, 37_500), &half(0)));
        assert_supports(&with(&short(119e6, 37_400), &half(0)));
    }

    #[test]
    fn a_few_losses_and_those_of_a_window_limited_sender_do_not_bind() {
        assert_contradicts(&with(&Scene { lost: 19, ..truth() }, &half(0)), "only 19");
        assert_contradicts(&with(&Scene { rwnd: 0.6, ..truth() }, &half(0)), "congestion window");
    }

    #[test]
    fn unknown_losses_round_trips_and_time_leave_it_open() {
        for hidden in [&[Hidden::Segments] as &[Hidden], &[Hidden::Rtt], &[Hidden::LimitedTimes]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&with(&scene, &half(0)), "");
            none_proven(&scene, &[("paced-half", &half(0))]);
        }
    }
}
