//! Questions that the causes of lost datagrams ask of the path profile.

use crate::causes::shared::paced::lost;
use crate::causes::shared::words::{contradicts, experiment};
use crate::evidence::profile::PathProfile;
use crate::evidence::udp::UdpEvidence;
use crate::experiments::paced::{HALF, TENTH};
use crate::judge::Assessment;
use narrows_model::Witness;
use narrows_model::words::units;
use narrows_search::profile::{Plateau, Shape};

/// What a load of UDP met on the path, by its profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Met {
    /// It was offered at more than the path sustains, behind a queue.
    Full,
    /// The same, where what exceeds the capacity is dropped at once by a policer.
    Policed,
    /// The path loses about the same part at any rate.
    Lossy,
    /// Evenly spaced, the path carries the rate without loss: its bursts are what was lost.
    Bursts,
}

/// Loss that the path has at any rate explains this part of a load's loss, at least.
const SAME: f64 = 0.4;

/// What it met; `None` where there is no profile or it does not tell.
pub(crate) fn met(evidence: &UdpEvidence) -> Option<Met> {
    let shape = &evidence.profile.as_ref()?.shape;
    let (sent, lost) = evidence.base.on_the_path();
    #[allow(clippy::cast_precision_loss)] // counts of one trial
    let loss = lost as f64 / sent.max(1) as f64;
    let offered_bps = offered_bps(evidence);
    let gentle = gentle(evidence);
    if gentle.events >= 5 && gentle.lost <= Shape::BUNCH * gentle.events && gentle.loss() >= SAME * loss {
        return Some(Met::Lossy);
    }
    // A load that delivered less shows that the steps met a bucket that was full again.
    let delivered_bps = offered_bps * (1.0 - loss);
    let held = shape.capacity.is_none_or(|capacity| delivered_bps >= 0.9 * capacity.interval_bps[0].min(offered_bps));
    match (shape.capacity.filter(|_| held), shape.plateau) {
        (Some(capacity), Some(plateau)) if offered_bps > 0.97 * capacity.interval_bps[0] => match plateau {
            Plateau::Policer { .. } => Some(Met::Policed),
            Plateau::Queue | Plateau::Shaper { .. } => Some(Met::Full),
            // Too short to see: whether bursts or the rate overflowed it is the paced trials' to say.
            Plateau::ShortQueue => (offered_bps > 1.1 * capacity.interval_bps[1]).then_some(Met::Full),
        },
        _ if held && shape.carried_bps >= 0.95 * offered_bps && shape.lost_below == 0 => Some(Met::Bursts),
        _ => None,
    }
}

/// What was sent evenly spaced at rates that the path carries, and how much of it was lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gentle {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// Losses in a row count once, where that is known.
    pub(crate) events: u64,
}

#[allow(clippy::cast_precision_loss)] // counts of one trial
impl Gentle {
    pub(crate) fn loss(self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }
}

/// The steps of the profile below the capacity, and paced trials below the goodput.
pub(crate) fn gentle(evidence: &UdpEvidence) -> Gentle {
    let profile = evidence.profile.as_ref().map(|profile| &profile.shape);
    let steps = profile.map_or_else(Gentle::default, |shape| Gentle {
        sent: shape.sent_below,
        lost: shape.lost_below,
        events: shape.loss_events_below,
    });
    [TENTH, HALF].iter().filter_map(|id| lost(&evidence.paced, id)).fold(steps, |sum, trial| Gentle {
        sent: sum.sent + trial.sent,
        lost: sum.lost + trial.lost,
        events: sum.events + trial.lost,
    })
}

/// What the load offered, with the headers of IP and UDP.
fn offered_bps(evidence: &UdpEvidence) -> f64 {
    let size = evidence.base.size_bytes.max(1) as f64;
    let headers = if evidence.base.accounting.ipv6 { 48.0 } else { 28.0 };
    evidence.base.offered_bps * (size + headers) / size
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
            format!("evenly paced below the capacity, {lost} of {sent} were lost, {part}")
        }
        Met::Full | Met::Policed => format!("{}, and {offered} were offered (headers included)", profile.words()),
        Met::Bursts => format!("evenly paced, the path carried {} without loss", units::bps(shape.carried_bps)),
    }
}

fn second(profile: &PathProfile, met: Met) -> Witness {
    let shape = &profile.shape;
    experiment(match met {
        Met::Policed => format!(
            "above that rate the excess is dropped while delay rises by at most {}; bursts pass at {}",
            units::micros(
                shape.steps.iter().filter(|step| step.lost > 0).map(|step| step.queue_us).fold(0.0, f64::max) as u64
            ),
            shape.burst_bps.map_or_else(|| "an unknown rate".to_owned(), units::bps)
        ),
        Met::Full => {
            format!("above that rate a queue of {} built up before the loss", units::micros(shape.queue_us as u64))
        }
        Met::Lossy | Met::Bursts => format!("the path kept up with {}", units::bps(shape.carried_bps)),
    })
}
