//! Questions that the causes of lost datagrams ask of the path profile.

use crate::causes::shared::paced::{ENOUGH, Lost, lost};
use crate::causes::shared::words::{contradicts, experiment};
use crate::evidence::profile::PathProfile;
use crate::evidence::udp::UdpEvidence;
use crate::experiments::paced::{HALF, TENTH};
use crate::judge::Assessment;
use narrows_model::Witness;
use narrows_model::words::units;
use narrows_search::profile::{Below, Plateau, Shape};

/// What a load of UDP met on the path, by its profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Met {
    /// It was offered at more than the path sustains, behind a queue.
    Full,
    /// The same, where a bucket lets bursts pass faster, enough to matter.
    Shaped,
    /// The same, where what exceeds the capacity is dropped at once by a policer.
    Policed,
    /// The path loses about the same part at any rate.
    Lossy,
    /// Evenly spaced, the path carries the rate without loss: its bursts are what was lost.
    Bursts,
}

/// Loss that the path has at any rate explains this part of a load's loss, at least.
pub(crate) const SAME: f64 = 0.4;

/// What a load delivers beyond so many times a capacity is not explained by it (`evidence::tcp::BEYOND`), with what bursts add.
const BEYOND: f64 = 1.1;

/// A queue of so long, and of so many packets of the capacity, is none of scheduling.
const STOOD_US: f64 = 5_000.0;
const STOOD_PACKETS: f64 = 16.0;

/// That a queue stood at rates well below what the path carries: others fill it, and its overflow is no loss at any rate.
pub(crate) fn others_fill(evidence: &UdpEvidence) -> Option<String> {
    let shape = &evidence.profile.as_ref()?.shape;
    let packets_us = STOOD_PACKETS * 12_000.0 / shape.carried_bps.max(1.0) * 1e6;
    let low =
        || shape.steps.iter().filter(|step| !step.disturbed && step.offered_bps <= WELL_BELOW * shape.carried_bps);
    let least_us = low().map(|step| step.queue_us).reduce(f64::min).filter(|_| low().count() >= 2)?;
    (least_us >= STOOD_US.max(packets_us)).then(|| {
        format!(
            "a queue of {} stood at any rate: other traffic fills it, and what overflows is lost",
            units::micros(least_us as u64)
        )
    })
}

/// Just below what a path sustains, bursts overflow a short queue; at up to this part of it those of an evenly paced sender do not.
pub(crate) const WELL_BELOW: f64 = 0.75;

/// This many losses in separate runs do not come from a host that paused briefly.
const OFTEN: u64 = 5;

/// What it met; `None` where there is no profile or it does not tell.
pub(crate) fn met(evidence: &UdpEvidence) -> Option<Met> {
    let shape = &evidence.profile.as_ref()?.shape;
    let load = Lost::of(&evidence.base);
    let offered_bps = offered_bps(evidence);
    if is_lossy(evidence, shape, load) {
        return Some(Met::Lossy);
    }
    // A load that delivered less shows that the steps met a bucket that was full again.
    let delivered_bps = offered_bps * (1.0 - load.rate());
    let held = shape.capacity.is_none_or(|capacity| delivered_bps >= 0.9 * capacity.interval_bps[0].min(offered_bps));
    // One that delivered more met another path: the profile is of another moment, or what it met is a limit of each flow.
    let queues = matches!(shape.plateau, Some(Plateau::Queue | Plateau::ShortQueue));
    if queues && shape.capacity.is_some_and(|capacity| delivered_bps > BEYOND * capacity.interval_bps[1]) {
        return None;
    }
    match (shape.capacity.filter(|_| held), shape.plateau) {
        (Some(capacity), Some(plateau)) if offered_bps > 0.97 * capacity.interval_bps[0] => match plateau {
            Plateau::Policer { .. } => Some(Met::Policed),
            Plateau::Shaper { .. } if evidence.profile.as_ref().is_some_and(PathProfile::shaper_limits) => {
                Some(Met::Shaped)
            }
            Plateau::Queue | Plateau::Shaper { .. } => Some(Met::Full),
            // Too short to see: whether bursts or the rate overflowed it is the paced trials' to say.
            Plateau::ShortQueue => (offered_bps > 1.1 * capacity.interval_bps[1]).then_some(Met::Full),
        },
        _ if held && shape.carried_bps >= 0.95 * offered_bps && shape.lost_below == 0 => Some(Met::Bursts),
        _ => None,
    }
}

/// Whether the path loses about the same part at any rate, as often, be it one datagram or many in a row at a time.
fn is_lossy(evidence: &UdpEvidence, shape: &Shape, load: Lost) -> bool {
    if others_fill(evidence).is_some() {
        return false;
    }
    let (gentle, well) = (gentle(evidence), well_below(evidence));
    // An evenly paced load that the path carries with much room is gentle itself.
    let even = evidence.base.plan.burst_datagrams.is_none() && !evidence.base.accounting.segmented;
    let itself = even && load.runs() >= OFTEN && offered_bps(evidence) <= WELL_BELOW * shape.carried_bps;
    let often = gentle.events >= OFTEN || (itself && gentle.events >= 2);
    let apart = gentle.lost <= Shape::BUNCH * gentle.events || itself || shape.loses_below();
    // What overflows a short queue is rare well below the rate.
    let short = matches!(shape.plateau, Some(Plateau::ShortQueue));
    let expected = load.expected_runs(well.sent);
    let grows = expected >= ENOUGH && (well.events as f64) <= expected / 5.0;
    often && apart && gentle.loss() >= SAME * load.rate() && !grows && (!short || itself || well.events >= 2)
}

/// What was sent evenly paced at rates that the path carries: the steps of the profile below the capacity, and paced trials below the
/// goodput.
pub(crate) fn gentle(evidence: &UdpEvidence) -> Below {
    let steps = evidence.profile.as_ref().map_or_else(Below::default, |profile| profile.shape.below());
    with_trials(evidence, steps)
}

/// The same, and of the steps those well below it.
fn well_below(evidence: &UdpEvidence) -> Below {
    let steps = evidence.profile.as_ref().map_or_else(Below::default, |profile| profile.shape.well_below(WELL_BELOW));
    with_trials(evidence, steps)
}

fn with_trials(evidence: &UdpEvidence, steps: Below) -> Below {
    [TENTH, HALF].iter().filter_map(|id| lost(&evidence.paced, id)).fold(steps, |sum, trial| Below {
        sent: sum.sent + trial.sent,
        lost: sum.lost + trial.lost,
        events: sum.events + trial.runs(),
    })
}

/// How many datagrams a load lost in a row, where that is more than one: words after a figure of its loss.
pub(crate) fn in_bursts(evidence: &UdpEvidence) -> String {
    let load = Lost::of(&evidence.base);
    let run = load.lost as f64 / load.runs().max(1) as f64;
    if run < 2.0 || evidence.base.loss_runs == 0 {
        return String::new();
    }
    let time = units::micros((run * 1e6 / evidence.base.offered_pps()) as u64);
    format!("; the load lost them in bursts of about {run:.0} datagrams ({time})")
}

/// What the load offered, with the headers of IP and UDP.
fn offered_bps(evidence: &UdpEvidence) -> f64 {
    evidence.base.offered_bps / evidence.base.payload_part(0.0)
}

/// The assessment of a cause that `met` stands for; `None` where the profile does not tell.
pub(crate) fn by_profile(evidence: &UdpEvidence, of: Met) -> Option<Assessment> {
    let profile = evidence.profile.as_ref()?;
    let met = met(evidence)?;
    let words = sentence(evidence, profile, met);
    if met != of {
        return Some(contradicts(words));
    }
    // Bursts below the rate are shown by trials of their own.
    (met != Met::Bursts)
        .then(|| Assessment::Supports { share: 0.95, witnesses: vec![experiment(words), second(profile, met)] })
}

fn sentence(evidence: &UdpEvidence, profile: &PathProfile, met: Met) -> String {
    let (shape, offered) = (&profile.shape, units::bps(offered_bps(evidence)));
    match met {
        Met::Lossy => {
            let gentle = gentle(evidence);
            let (sent, lost, part) = (gentle.sent, gentle.lost, units::percent(gentle.loss()));
            format!("evenly paced below the capacity, {lost} of {sent} were lost, {part}{}", in_bursts(evidence))
        }
        Met::Full | Met::Shaped | Met::Policed => {
            format!("{}, and {offered} were offered (headers included)", profile.words())
        }
        Met::Bursts => format!("evenly paced, the path carried {} without loss", units::bps(shape.carried_bps)),
    }
}

fn second(profile: &PathProfile, met: Met) -> Witness {
    let shape = &profile.shape;
    experiment(match met {
        Met::Policed => format!(
            "above that rate the excess is dropped while delay rises by at most {}; bursts pass {}",
            units::micros(
                shape.steps.iter().filter(|step| step.lost > 0).map(|step| step.queue_us).fold(0.0, f64::max) as u64
            ),
            profile.burst_words().unwrap_or_else(|| "at an unknown rate".to_owned())
        ),
        Met::Full | Met::Shaped => {
            // Steps that ended early met a shorter one.
            let longest_us = shape.steps.iter().map(|step| step.queue_us).fold(shape.queue_us, f64::max);
            format!("above that rate a queue of up to {} built up before the loss", units::micros(longest_us as u64))
        }
        Met::Lossy | Met::Bursts => format!("the path kept up with {}", units::bps(shape.carried_bps)),
    })
}

/// How many times the rate at which ten packets in a row arrived the link may be: an interrupt or a wake-up within them adds a tenth of a
/// millisecond, which of a fast link is as long as all of them.
pub(crate) fn dispersion(burst_bps: f64) -> f64 {
    const GAPS_BITS: f64 = 9.0 * 12_000.0;
    const LATE_S: f64 = 1e-4;
    1.3 + LATE_S * burst_bps / GAPS_BITS
}
