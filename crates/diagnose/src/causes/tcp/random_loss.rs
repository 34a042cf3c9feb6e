//! # random-loss
//!
//! The path loses packets at any rate: a dirty fibre, a bad cable, a radio link, a failing NIC.
//!
//! **Shows**: loss without a queue, with the same loss ratio at half the rate, be it one packet or several in a row at a time.
//!
//! **Mistaken for**: a policer or a short queue (no loss when paced), drops in the sender's own queue.
//!
//! **Fix**: find the faulty hop by its error counters; until then use a congestion control that tolerates loss.
//!
//! Source: Mathis et al., *The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm*, CCR 27(3), 1997; RFC
//! 9438 5.1.

use crate::causes::udp;
use crate::causes::shared::member::of_a_member;
use crate::causes::shared::profile::WELL_BELOW;
use crate::causes::shared::response::{response_segments, timeouts_part};
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::{COMMON, beside_others, felt_loss, lost_at_home};
use crate::causes::shared::window::loss_does_not_bind;
use crate::evidence::tcp::{FlowView, Loss, SHORT_QUEUE_US};
use crate::experiments::ports::MANY_PORTS;
use crate::experiments::tcp::{OTHER_CONGESTION_CONTROL, PACED_HALF};
use crate::judge::ceilings::sits_at;
use narrows_search::profile::{Below, Plateau, Shape};
use super::path_capacity::least_of_sawtooth;
use super::path_policer::{Paced, TOO_FEW, by_paced_udp, paced};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "random-loss",
    about: "the path loses packets at any rate",
    roles: &[Role::Path],
    needs: &[keys::QDISC_DROPS],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-policer", "qdisc-drop", "path-capacity", "congestion-control", "sack-off"],
    fix,
    rank: 6,
    predicts: false,
    stands_after: Some(&MANY_PORTS),
    per_connection: true,
    lurks,
    ..Cause::COMMON
};

/// That the path loses packets which nothing but another limit hides.
fn lurks(evidence: &TcpEvidence) -> Option<String> {
    let shape = &evidence.profile.as_ref()?.shape;
    let (part, lost, sent) = (shape.loss_below(), shape.lost_below, shape.sent_below);
    (shape.loses_below() && part >= COMMON).then(|| {
        format!(
            "the path loses {} of the packets at rates that it carries ({lost} of {sent}): it holds TCP down where nothing else does",
            units::percent(part)
        )
    })
}

/// The trial under BBR, where it went at twice the rate and more and lost about the same part: what a full queue or a
/// policer drops grows with the rate.
fn at_a_higher_rate(evidence: &TcpEvidence) -> Option<&FlowView> {
    let fast = evidence.made(&OTHER_CONGESTION_CONTROL)?;
    let same =
        fast.loss?.rate() <= 2.5 * evidence.base.loss?.rate() && paced(evidence.base.loss?, fast.loss)? == Paced::Stayed;
    (same && evidence.goodput_bps() > 0.0 && fast.goodput_bps >= 2.0 * evidence.goodput_bps()).then_some(fast)
}

/// The least that it averages, as a part of what it does at best.
fn least_part(p: f64, rtt_s: f64) -> f64 {
    (0.9 * timeouts_part(p, rtt_s)).min(0.45)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    // After a few rare losses the window has not come down to its average yet.
    let rare = is_rare(evidence, evidence.base.loss?);
    response(evidence, role).filter(|_| !rare && evidence.queue_stood() == Some(false))
}

/// What a loss-based congestion control gets at the loss that was measured, wherever it came from on the path.
fn response(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let base = &evidence.base;
    let loss = base.loss?;
    let algorithm = base.congestion_control.as_deref()?;
    // A few losses have no average, and where all is lost there is none.
    let averages = loss.lost() >= 5 && loss.lost() < loss.sent;
    if !averages || lost_at_home(evidence) || !matches!(algorithm, "cubic" | "reno") {
        return None;
    }
    let run = evidence.profile.as_ref().filter(|profile| profile.shape.loses_below()).map_or(1.0, |it| it.shape.run_below());
    let (p, rtt_s) = (loss.rate() / run, base.rtt_us? / 1e6);
    let window = response_segments(p, rtt_s) * base.mss_bytes?;
    let how = format!(
        "{algorithm} averages {:.0} segments per RTT at a loss of {}{}{}",
        window / base.mss_bytes?,
        units::percent(loss.rate()),
        evidence.profile.as_ref().map_or_else(String::new, |profile| in_bursts(&profile.shape)),
        evidence.after_start()
    );
    // The response functions are averages over many losses; single trials spread by a factor of two.
    ceiling_at(CAUSE.id, evidence, role, evidence.window_bps(window)?, [least_part(p, rtt_s), 2.2], Method::Inferred, how)
}

/// Why the loss explains the goodput by itself, where it does: no CPU is needed for it.
pub(super) fn explains(evidence: &TcpEvidence) -> Option<String> {
    if loss_does_not_bind(evidence).is_some() || evidence.base.loss?.rate() < COMMON {
        return None;
    }
    let ceiling = response(evidence, Role::Path).filter(|ceiling| sits_at(ceiling, evidence.goodput_bps()))?;
    Some(format!("the loss explains the goodput: {}", ceiling.how))
}

/// What a profile of the path says; `None` where it sent too little to say.
fn by_profile(evidence: &TcpEvidence, loss: Loss) -> Option<Assessment> {
    let profile = evidence.profile.as_ref()?;
    let shape = &profile.shape;
    if evidence.policed() && evidence.filled().is_some_and(|part| part > 0.25) {
        return Some(contradicts(profile.words()));
    }
    if evidence.slowed_by_queue() == Some(true) {
        return Some(contradicts("the losses came when the load filled the path and waited: its queue dropped them"));
    }
    // Where the profile found no capacity, what the path carried is no limit either.
    if !evidence.path_has_room() && (shape.capacity.is_some() || evidence.queue_seen() != Some(false)) {
        return Some(contradicts(format!("{}: the loss is that of a full path", profile.words())));
    }
    let below = shape.loss_below();
    let expected = loss.rate() * shape.sent_below as f64;
    // What chance makes of so many expected ones in less than 1 of 100 trials; losses in a row are one event.
    let less = expected >= 8.0 && below < loss.rate() / 5.0;
    let of_tcp = below / shape.run_below() * loss.sent as f64;
    if less || (shape.loses_below() && of_tcp >= 8.0 && loss.rate() < below / 5.0) {
        let than = if less { "far less than TCP" } else { "far more than TCP: it is not the same loss" };
        return Some(contradicts(format!("UDP below the capacity lost {} of {}: {than}", shape.lost_below, shape.sent_below)));
    }
    let Below { sent, lost, .. } = shape.well_below(WELL_BELOW);
    if sent as f64 * loss.rate() >= 8.0 && (lost as f64) < sent as f64 * loss.rate() / 5.0 {
        return Some(contradicts(format!(
            "UDP at up to {} of the capacity lost {lost} of {sent}: the loss grows with the rate",
            units::percent(WELL_BELOW)
        )));
    }
    if let Some(why) = beside_others(evidence) {
        return Some(cannot_tell(why));
    }
    // Where more were expected, UDP lost some, too: few in long bursts tell nothing by themselves.
    if (expected < 8.0 || !shape.loses_below()) && is_rare(evidence, loss) {
        return Some(Assessment::Supports {
            share: 0.85,
            witnesses: vec![
                counter(format!(
                    "segments were lost at {} separate times ({} of {}{}), without a queue",
                    loss.moments, loss.lost(), loss.sent, evidence.after_start()
                )),
                experiment(format!(
                    "{}; at {} of that rate no queue can overflow",
                    profile.words(),
                    units::percent(evidence.filled()?)
                )),
            ],
        });
    }
    (shape.loses_below() && below >= COMMON).then(|| Assessment::Supports {
        share: 0.9,
        witnesses: vec![
            counter(format!(
                "{} of the segments were lost ({} of {}{}) below the capacity",
                units::percent(loss.rate()),
                loss.lost(),
                loss.sent,
                evidence.after_start()
            )),
            experiment(format!(
                "UDP below the capacity lost {} of {}, {}{}",
                shape.lost_below,
                shape.sent_below,
                units::percent(below),
                in_bursts(shape)
            )),
        ],
    })
}

/// How many are lost in a row, where that is more than one.
fn in_bursts(shape: &Shape) -> String {
    let run = shape.run_below();
    if run < 2.0 { String::new() } else { format!(", in bursts of about {run:.0} packets") }
}

/// Whether TCP lost segments again and again at a rate far below what the path sustains behind a queue that never filled.
pub(super) fn is_rare(evidence: &TcpEvidence, loss: Loss) -> bool {
    let shape = evidence.profile.as_ref().map(|profile| &profile.shape);
    // A queue that overflows would have been seen in the RTT.
    let visible = |shape: &&Shape| shape.plateau == Some(Plateau::Queue) && shape.queue_us >= 2.0 * SHORT_QUEUE_US;
    let plain = loss.rate() >= COMMON && evidence.queue_stood() == Some(false);
    // Fewer, or beside the sender's own bursts on a path that has room, hold back only what has its window full.
    let full = evidence.base.in_flight_bytes.zip(evidence.base.cwnd_bytes).is_some_and(|(bytes, window)| bytes >= FULL * window);
    loss.moments >= MOMENTS
        && loss.spurious < loss.retransmitted.div_ceil(2)
        && shape.filter(visible).is_some()
        && evidence.filled().is_some_and(|part| part < least_of_sawtooth(evidence))
        && (plain || full && evidence.queue_stood().is_some_and(|queue| !queue || evidence.path_has_room()))
        && shape.is_some_and(|shape| evidence.rise_before_loss_us().is_some_and(|rise_us| rise_us < 0.5 * shape.queue_us))
}

/// What is in flight of a window that limits: acknowledgements of two segments leave room for them, and each loss for a round trip.
const FULL: f64 = 0.7;

/// Once or twice a burst may overflow a queue that no sample of the RTT saw.
const MOMENTS: u64 = 3;

/// The loss of a sender that does not show what limited it: by how often it comes it explains the goodput, on a path that carries more.
fn of_silent(evidence: &TcpEvidence, is_few: impl FnOnce(Loss) -> bool) -> Result<Loss, Assessment> {
    let loss = known(evidence.base.loss, "the sender's retransmissions could not be read")?;
    if is_few(loss) {
        return Err(contradicts(format!("only {} of {} segments were lost", loss.lost(), loss.sent)));
    }
    let response = response(evidence, Role::Path).filter(|ceiling| sits_at(ceiling, evidence.goodput_bps()));
    match response {
        Some(_) if evidence.path_has_room() => Ok(loss),
        _ => Err(cannot_tell("the sender does not show what limited it, and the loss does not explain the goodput by itself")),
    }
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let few = |loss: Loss| (loss.is_few(5) || loss.rate() < COMMON) && !is_rare(evidence, loss);
    let loss = if evidence.base.is_silent() { of_silent(evidence, few)? } else { felt_loss(evidence, evidence.base.loss, few)? };
    ended(of_a_member(evidence.paced_udp.get(MANY_PORTS.id)))?;
    ended(by_profile(evidence, loss))?;
    match evidence.queue_stood() {
        None => return Err(cannot_tell("the RTT could not be read, so a full queue and random loss look the same")),
        // The path has room: what stands in it are the sender's own bursts.
        Some(true) if evidence.path_has_room() => {}
        Some(true) => return Err(contradicts("the RTT rose as behind a full queue, so the loss is ordinary overflow")),
        Some(false) => {}
    }
    let trial = made(evidence, &PACED_HALF, "loss without a queue; half the rate was not measured")?;
    let (at, other) = match paced(loss, trial.loss) {
        Some(Paced::Stayed) => ("paced at half of the goodput".to_owned(), trial.loss.unwrap_or_default()),
        Some(Paced::Vanished) => return Err(contradicts("no loss when paced at half the goodput")),
        // A slow load loses too few to count; one that BBR drives many times as fast loses enough.
        Some(Paced::TooFew) | None => match at_a_higher_rate(evidence) {
            Some(fast) => (
                format!("at {:.0} times the goodput (BBR)", fast.goodput_bps / evidence.goodput_bps()),
                fast.loss.unwrap_or_default(),
            ),
            None => return by_paced_udp(evidence, udp::random_loss::by_paced_udp, TOO_FEW),
        },
    };
    let witnesses = [
        counter(format!(
            "{} of the segments were lost ({} of {}{}) without a queue on the path",
            units::percent(loss.rate()),
            loss.lost(),
            loss.sent,
            evidence.after_start()
        )),
        experiment(format!(
            "{at} {} were still lost ({} of {})",
            units::percent(other.rate()),
            other.lost(),
            other.sent
        )),
    ];
    supports(0.9, witnesses)
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let help = evidence.made(&OTHER_CONGESTION_CONTROL).map_or_else(String::new, |bbr| {
        format!("; until then BBR carries {} over this path", units::bps(bbr.goodput_bps))
    });
    advice(format!("find the hop that loses packets by its error counters (cables, optics, radio, duplex){help}"))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use crate::testing::udp::random_loss;
    use narrows_model::Prediction;
    use super::*;

    /// 0.1 % at 1 ms: CUBIC averages 39 segments a round trip, 449 Mbit/s at best.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 300e6,
            early_peak_bps: 320e6,
            min_rtt_us: 1_000,
            rtt_us: 1_100,
            cwnd: 30,
            lost: 200,
            segments: 200_000,
            ..Scene::default()
        }
    }

    /// Paced at half the rate, with so many lost.
    fn half(lost: u64) -> Scene {
        Scene { goodput_bps: 150e6, segments: 40_000, lost, ..truth() }
    }

    fn with(scene: &Scene, paced: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[("paced-half", paced)])
    }

    #[test]
    fn the_same_loss_at_half_the_rate_is_named() {
        let finding = random_loss(truth().run(&[("paced-half", &half(41))]));
        assert_rejects(&finding, "path-policer", "the same share was lost when paced at half the goodput");
        assert_rejects(&finding, "path-capacity", "no queue");
        assert_rejects(&finding, "sack-off", "has selective acknowledgements");
        assert_asks(&assessment(&CAUSE, Role::Path, &truth(), &[]), &PACED_HALF);
    }

    #[test]
    fn timeouts_count_where_the_round_trip_is_short() {
        assert_eq!([least_part(0.005, 0.02), least_part(0.001, 0.05), least_part(0.0002, 0.002)], [0.45; 3]);
        let short = least_part(0.014, 0.00077);
        assert!((0.08..0.12).contains(&short), "{short}");
        assert!(least_part(0.03, 0.002) < 0.3);
    }

    #[test]
    fn loss_that_ends_when_paced_is_not_random() {
        assert_contradicts(&with(&truth(), &half(0)), "no loss when paced at half the goodput");
        assert_cannot_tell(&with(&truth(), &half(12)), "too few");
        assert_supports(&with(&truth(), &half(16)));
    }

    #[test]
    fn where_too_few_are_lost_when_paced_bbr_shows_the_same_part_at_many_times_the_rate() {
        // 0.5 % at 35 ms: CUBIC carries 6 Mbit/s, so half of that loses three segments.
        let slow = Scene { goodput_bps: 6e6, min_rtt_us: 35_000, rtt_us: 35_100, lost: 21, segments: 4_200, ..truth() };
        let paced = Scene { goodput_bps: 3e6, lost: 3, segments: 640, ..slow.clone() };
        let bbr =
            |lost| Scene { goodput_bps: 600e6, congestion_control: "bbr", lost, segments: 104_000, ..slow.clone() };
        let of = |lost| {
            let bbr = bbr(lost);
            assessment(&CAUSE, Role::Path, &slow, &[("paced-half", &paced), ("other-congestion-control", &bbr)])
        };
        assert_supports(&of(520));
        // A policer or a full queue drops far more at a hundred times the rate.
        assert_cannot_tell(&of(5_000), "too few");
        let experiments = [("paced-half", &paced), ("other-congestion-control", &bbr(520))];
        random_loss(slow.run(&experiments));
    }

    #[test]
    fn common_loss_and_loss_that_does_not_bind_are_left_alone() {
        assert_contradicts(&with(&Scene { lost: 19, ..truth() }, &half(4)), "only 19 of 200000");
        assert_supports(&with(&Scene { lost: 21, ..truth() }, &half(4)));
        assert_contradicts(&with(&Scene { rwnd: 0.7, ..truth() }, &half(41)), "congestion window");
        assert_contradicts(&with(&Scene { congestion_control: "bbr", ..truth() }, &half(41)), "BBR does not reduce its rate at a loss of");
        assert_contradicts(&with(&Scene { rtt_us: 1_700, ..truth() }, &half(41)), "the RTT rose as behind a full queue, so the loss is ordinary overflow");
    }

    #[test]
    fn a_goodput_far_above_what_the_loss_allows_has_another_limit() {
        // 0.1 % at 35 ms allows 13 Mbit/s.
        let scene = Scene { min_rtt_us: 35_000, rtt_us: 35_200, ..truth() };
        none_proven(&scene, &[("paced-half", &half(41))]);
    }

    #[test]
    fn unknown_losses_round_trips_and_time_leave_it_open() {
        for hidden in [&[Hidden::Segments] as &[Hidden], &[Hidden::Rtt], &[Hidden::LimitedTimes]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&with(&scene, &half(41)), "");
            none_proven(&scene, &[("paced-half", &half(41))]);
        }
    }

    #[test]
    fn losses_that_a_small_buffer_hid_are_foretold() {
        // 272 kB of send buffer at 13.8 ms on a path of 365 Mbit/s that loses one segment of 43,000; without the buffer 212 were measured.
        let path = ProfiledPath { rate_bps: 365e6, burst_bps: 365e6, idle_rtt_us: 13_800, ..ProfiledPath::default() };
        let scene = |lost: u64| Scene {
            goodput_bps: 127e6,
            min_rtt_us: 13_800,
            rtt_us: 13_900,
            sndbuf: 0.75,
            sndbuf_bytes: 272_384,
            cwnd: 200,
            segments: 43_000 * lost.clamp(1, 2),
            lost,
            sender_facts: crate::testing::with(ordinary_host(), fact("tcp.wmem.max", 272_384_i64, Unit::Bytes)),
            profile: Some(path),
            ..Scene::default()
        };
        let of = |lost| named(&scene(lost), &[], "tcp-send-buffer", Place::Client).prediction.expect("the path is known");
        let low = |it: &Prediction| it.interval_bps.expect("an interval")[0];
        let (none, one) = (of(0), of(1));
        assert!(none.bps == one.bps && one.then == "path-capacity", "{one:?}");
        assert!(low(&none) > 250e6 && low(&one) < 212e6, "{none:?} {one:?}");
    }

    /// Five losses of 100,000 segments, each alone, of Reno on 305 Mbit/s and 8 ms.
    #[test]
    fn a_full_window_that_rare_losses_halve_is_theirs() {
        let scene = Scene {
            goodput_bps: 192e6,
            min_rtt_us: 8_000,
            rtt_us: 8_700,
            cwnd: 140,
            in_flight: Some(135),
            lost: 5,
            segments: 100_000,
            congestion_control: "reno",
            profile: Some(ProfiledPath { rate_bps: 305e6, burst_bps: 305e6, idle_rtt_us: 8_000, ..ProfiledPath::default() }),
            ..Scene::default()
        };
        assert_supports(&assessment(&CAUSE, Role::Path, &scene, &[]));
        // What has room in its window is held by something else.
        assert_contradicts(&assessment(&CAUSE, Role::Path, &Scene { in_flight: Some(60), ..scene }, &[]), "only 5 of");
    }

    /// Loss of 0.5 % and a receive buffer of 512 KiB on a path of 300 Mbit/s and 20 ms, as measured in the lab with each of two congestion
    /// controls.
    fn loss_and_window(congestion_control: &'static str, goodput_bps: f64, rwnd: f64, lost: u64) -> Scene {
        let path = ProfiledPath {
            rate_bps: 293e6,
            burst_bps: 293e6,
            tried_bps: 500e6,
            idle_rtt_us: 20_100,
            ..ProfiledPath::default()
        };
        Scene {
            goodput_bps,
            congestion_control,
            min_rtt_us: 20_000,
            rtt_us: 20_700,
            rwnd,
            snd_wnd: 341_000,
            rcvbuf: 524_288,
            cwnd: if rwnd > 0.5 { 400 } else { 17 },
            recovery: if rwnd > 0.5 { 0.9 } else { 0.1 },
            segments: 200 * lost,
            lost,
            receiver_facts: crate::testing::with(ordinary_host(), fact("tcp.rmem.max", 524_288_i64, Unit::Bytes)),
            profile: Some(ProfiledPath { one_lost_of: Some(200), ..path }),
            ..slow()
        }
    }

    #[test]
    fn loss_of_a_queue_that_others_fill_and_another_loss_than_tcps_are_not_it() {
        let of = |lost, path| {
            let scene = Scene { goodput_bps: 5e6, segments: 3_450, lost, cwnd: 15, profile: Some(path), ..slow() };
            assessment(&CAUSE, Role::Path, &scene, &[])
        };
        let path = ProfiledPath { one_lost_of: Some(150), ..ProfiledPath::default() };
        assert_supports(&of(23, path));
        assert_cannot_tell(&of(23, ProfiledPath { others_bps: 500e6, ..path }), "other traffic shares its queue");
        // One of 20 UDP datagrams, and one of 150 segments.
        assert_contradicts(&of(23, ProfiledPath { one_lost_of: Some(20), ..path }), "far more than TCP");
    }

    #[test]
    fn without_its_losses_a_window_goes_on_to_bind() {
        let verdict = verdict(&loss_and_window("reno", 9.8e6, 0.0, 25), &[]);
        let prediction = verdict.causes[0].prediction.clone().expect("the window is known");
        assert_eq!((&*verdict.causes[0].id, &*prediction.then), ("random-loss", "tcp-receive-window"));
        // Measured without the loss: 130.
        let [low, high] = prediction.interval_bps.expect("an interval");
        assert!((low..=high).contains(&130e6) && prediction.bps < 150e6, "{prediction:?}");
    }

    #[test]
    fn a_window_that_losses_hold_up_is_named_below_its_ceiling() {
        let finding = named(&loss_and_window("bbr", 61e6, 0.72, 130), &[], "tcp-receive-window", Place::Server);
        assert!(finding.witnesses[0].says.contains("losses make it take 1.7 round trips"), "{:?}", finding.witnesses);
        // Without losses that much less is not what the window gives.
        let clean = Scene { lost: 0, profile: None, ..loss_and_window("bbr", 61e6, 0.72, 130) };
        assert!(verdict(&clean, &[]).causes.iter().all(|cause| cause.id != "tcp-receive-window"));
    }
}
