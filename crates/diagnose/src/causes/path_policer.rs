//! # path-policer
//!
//! A policer on the path drops what exceeds its rate, without a queue.
//!
//! **Shows**: loss while the RTT stays at its minimum; paced below its rate the path is clean.
//!
//! **Mistaken for**: random loss (it stays when paced), a full queue (the RTT grows first), a very short queue.
//!
//! **Fix**: pace below the rate; the contract.
//!
//! Source: RFC 2475 2.3.3.4; Flach et al., *An Internet-Wide Analysis of Traffic Policing*, SIGCOMM 2016.

use super::{Cause, Testimony, advice, ask, cannot_tell, counter, denies, no_ceiling};
use crate::evidence::{Evidence, FlowView, Seat};
use crate::experiment::Experiment;
use narrows_model::fact::Unit;
use narrows_model::{Fix, Key, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "path-policer",
    about: "a policer on the path drops what exceeds its rate",
    seats: &[Seat::Path],
    needs: &[Key::new("qdisc.drops", Unit::Count)],
    ceiling: no_ceiling,
    witness: testify,
    look_alikes: &["random-loss", "path-shaper", "path-capacity", "qdisc-drop", "congestion-control"],
    fix,
    healthy: false,
    rank: 6,
};

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
pub(super) fn paced(evidence: &Evidence<'_>, paced: &FlowView) -> Option<Paced> {
    let (before, after) = (evidence.base.loss?, paced.loss?);
    #[allow(clippy::cast_precision_loss)]
    let (expected, seen) = (before.rate() * after.sent as f64, after.lost() as f64);
    Some(if seen <= expected / 5.0 && expected >= 8.0 {
        Paced::Vanished
    } else if expected >= 4.0 && seen >= expected / 2.5 {
        Paced::Stayed
    } else {
        Paced::TooFew
    })
}

/// Whether the sender's own queue dropped about as much as was lost.
pub(super) fn lost_at_home(evidence: &Evidence<'_>) -> bool {
    let (Some(drops), Some(loss)) = (evidence.grew(Seat::Sender, "qdisc.drops"), evidence.base.loss_whole) else {
        return false;
    };
    drops > 0 && drops >= loss.lost().div_ceil(2)
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let Some(loss) = evidence.base.loss else { return cannot_tell("the sender's retransmissions could not be read") };
    if loss.lost() < 20 {
        return denies(format!("only {} segments of {} were lost", loss.lost(), loss.sent));
    }
    if lost_at_home(evidence) {
        return denies("the sender's own queue dropped them");
    }
    match evidence.queue_stood() {
        None => {
            return cannot_tell("the RTT could not be read, so a full queue cannot be told from a policer");
        }
        Some(true) => return denies("a queue stood on the path before the loss"),
        Some(false) => {}
    }
    let Some(trial) = evidence.experiments.get(Experiment::PacedHalf.id()) else {
        return ask(Experiment::PacedHalf, "loss without a queue: whether it stays at half the rate was not measured");
    };
    match paced(evidence, trial) {
        Some(Paced::Vanished) => {}
        Some(Paced::Stayed) => return denies("paced at half the goodput the same part was lost"),
        Some(Paced::TooFew) | None => return cannot_tell("too few segments were lost to compare the paced trial with"),
    }
    let mut witnesses = vec![
        counter(format!(
            "{} of the segments were lost while the RTT stayed at its minimum: nothing queued before the loss",
            units::percent(loss.rate())
        )),
        super::experiment(format!(
            "paced at half of the goodput the loss ended ({} of {} segments)",
            trial.loss.map_or(0, |loss| loss.lost()),
            trial.loss.map_or(0, |loss| loss.sent)
        )),
    ];
    if let Some(burst) =
        evidence.base.early_peak_bps.map(|peak| peak / evidence.goodput_bps()).filter(|burst| *burst >= 1.5)
    {
        witnesses.push(counter(format!("a first burst passed at {burst:.1} times the later rate")));
    }
    Testimony::Says { share: 0.85, witnesses }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    advice(format!(
        "pace the sender below the policer's rate (near {}): SO_MAX_PACING_RATE, or tc ... fq maxrate; or change \
         the contract",
        units::bps(evidence.goodput_bps())
    ))
}
