//! # random-loss
//!
//! The path loses packets whatever the rate: a dirty fibre, a bad cable, a radio link, a failing card.
//!
//! **Shows**: segments are lost while no queue stands, and the same part of them is lost at half the rate.
//!
//! **Mistaken for**: a policer or a short queue (paced, their loss ends), drops in the sender's own queue.
//!
//! **Fix**: find the bad hop by its error counters; until then a congestion control that does not slow down at each
//! loss.
//!
//! Source: Mathis et al., *The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm*, CCR 27(3), 1997; RFC
//! 9438 5.1.

use super::path_policer::{Paced, lost_at_home, paced};
use super::{Cause, Testimony, advice, ask, cannot_tell, ceiling, counter, denies};
use crate::evidence::{Evidence, Seat};
use crate::experiment::Experiment;
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "random-loss",
    about: "the path loses packets whatever the rate",
    seats: &[Seat::Path],
    needs: &[Key::new("qdisc.drops", Unit::Count)],
    ceiling: roof,
    witness: testify,
    look_alikes: &["path-policer", "qdisc-drop", "path-capacity", "congestion-control", "sack-off"],
    fix,
    healthy: false,
    rank: 6,
};

/// Loss below this is what long paths have; a congestion control must cope with it.
const COMMON: f64 = 1e-4;

/// Segments per RTT that a loss-based congestion control averages at loss rate `p` (RFC 9438: CUBIC, never below Reno).
fn response_segments(p: f64, rtt_s: f64) -> f64 {
    let reno = (1.5 / p).sqrt();
    let cubic = 1.17 * (rtt_s / p).powf(0.75) / rtt_s.max(1e-6) * rtt_s;
    reno.max(cubic)
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let base = &evidence.base;
    let loss = base.loss?;
    let algorithm = base.congestion_control.as_deref()?;
    if loss.lost() < 5 || lost_at_home(evidence) || evidence.queue_stood()? || !matches!(algorithm, "cubic" | "reno") {
        return None;
    }
    let window = response_segments(loss.rate(), base.rtt_us? / 1e6) * base.mss_bytes?;
    let how = format!(
        "{algorithm} averages {:.0} segments per RTT at a loss of {}",
        window / base.mss_bytes?,
        units::percent(loss.rate())
    );
    // The response functions are averages over many losses; single trials spread by a factor of two.
    ceiling(CAUSE.id, evidence, seat, evidence.window_bps(window)?, [0.45, 2.2], Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let Some(loss) = evidence.base.loss else { return cannot_tell("the sender's retransmissions could not be read") };
    if loss.lost() < 5 || loss.rate() < COMMON {
        return denies(format!("only {} of {} segments were lost", loss.lost(), loss.sent));
    }
    if lost_at_home(evidence) {
        return denies("the sender's own queue dropped them");
    }
    match evidence.queue_stood() {
        None => return cannot_tell("the RTT could not be read, so a full queue cannot be told from random loss"),
        Some(true) => return denies("a queue stood on the path: the loss is how a full queue slows TCP down"),
        Some(false) => {}
    }
    let Some(trial) = evidence.experiments.get(Experiment::PacedHalf.id()) else {
        return ask(Experiment::PacedHalf, "loss without a queue: whether it stays at half the rate was not measured");
    };
    match paced(evidence, trial) {
        Some(Paced::Stayed) => {}
        Some(Paced::Vanished) => return denies("paced at half the goodput the loss ended"),
        Some(Paced::TooFew) | None => return cannot_tell("too few segments were lost to compare the paced trial with"),
    }
    let paced = trial.loss.unwrap_or_default();
    Testimony::Says {
        share: 0.9,
        witnesses: vec![
            counter(format!(
                "{} of the segments were lost ({} of {}) while no queue stood on the path",
                units::percent(loss.rate()),
                loss.lost(),
                loss.sent
            )),
            super::experiment(format!(
                "paced at half of the goodput {} were lost all the same ({} of {})",
                units::percent(paced.rate()),
                paced.lost(),
                paced.sent
            )),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    let help = evidence.experiments.get(Experiment::OtherCongestionControl.id()).map_or_else(String::new, |bbr| {
        format!("; until then BBR carries {} over this path", units::bps(bbr.goodput_bps))
    });
    advice(format!("find the hop that loses packets by its error counters (cables, optics, radio, duplex){help}"))
}
