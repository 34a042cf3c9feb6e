//! # path-policer
//!
//! A policer on the path drops what exceeds its rate, without a queue.
//!
//! **Shows**: no loss below a rate; above it all excess is lost, and the delay stays at its minimum.
//!
//! **Mistaken for**: a full queue (the delay grows first), a short queue (bursts are lost below the rate, too).
//!
//! **Fix**: offer less than its rate, or change the contract; more flows, where each has the rate for itself.
//!
//! Source: RFC 2475 2.3.3.4; see [`crate::experiments::paced`].

use crate::causes::shared::paced::{Lost, lost, plateau, queue};
use crate::causes::shared::profile::Met;
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::on_the_path;
use crate::evidence::paced::PacedUdp;
use crate::evidence::profile::PathProfile;
use crate::experiments::paced::HALF;
use crate::experiments::udp::MORE_FLOWS;
use narrows_search::profile::Plateau;
use super::shallow_queue;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "path-policer",
    about: "a policer on the path drops what exceeds its rate",
    roles: &[Role::Path],
    assess,
    look_alikes: &["random-loss", "shallow-queue", "path-capacity"],
    fix,
    detailed_by: |_| Some(&MORE_FLOWS),
    beside: for_each_flow,
    stages: &["path"],
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};

/// What the same load delivered over more flows, where that is so much more than the bucket lets pass that each has the policer's rate
/// for itself.
fn for_each_flow(evidence: &UdpEvidence) -> Option<f64> {
    const MORE: f64 = 1.3;
    let view = evidence.experiments.get(MORE_FLOWS.id)?;
    let bucket_bytes = match evidence.profile.as_ref().and_then(|profile| profile.shape.plateau) {
        Some(Plateau::Policer { bucket_bytes }) => bucket_bytes,
        _ => 0.0,
    };
    let more = view.goodput_bps - bucket_bytes * 8.0 / view.arrival_seconds.max(1e-3);
    (more >= MORE * evidence.base.goodput_bps).then_some(view.goodput_bps)
}

fn assess(evidence: &UdpEvidence, _: Role) -> Assessment {
    let mut assessment = on_the_path(evidence, Met::Policed, by_paced_udp);
    if let (Assessment::Supports { witnesses, .. }, Some(more)) = (&mut assessment, for_each_flow(evidence)) {
        let more = units::bps(more);
        witnesses.push(experiment(format!("over four times the flows {more} arrived: each flow has the rate for itself")));
    }
    assessment
}

fn fix(evidence: &UdpEvidence, _: Role) -> Fix {
    let rate = evidence.profile.as_ref().and_then(PathProfile::policed_words);
    // What arrived while the bucket emptied is more than the rate: the least that was seen of it.
    let paced_bps = plateau(&evidence.paced).map_or(f64::INFINITY, |view| view.goodput_bps);
    let rate = rate.unwrap_or_else(|| format!("at most {}", units::bps(paced_bps.min(evidence.base.goodput_bps))));
    advice(match for_each_flow(evidence) {
        Some(_) => format!("spread the load over more flows: the policer gives each {rate}; or change the contract"),
        None => format!("offer less than the policer's rate ({rate}), or change the contract"),
    })
}

/// What the trials of paced UDP say of it.
pub(crate) fn by_paced_udp(paced: &PacedUdp) -> Ruling {
    let view = plateau(paced)?;
    let (queue_us, stood) = queue(view)?;
    if stood {
        return Err(contradicts(format!("above the rate a queue of {queue_us:.0} us built up before the loss")));
    }
    if let Ok(Assessment::Supports { .. }) = shallow_queue::by_paced_udp(paced) {
        return Err(contradicts("bursts are lost below the rate: a short queue, not a policer"));
    }
    let above = Lost::of(view);
    let witnesses = [
        experiment(format!(
            "everything above {} was lost ({}) while delay rose by at most {queue_us:.0} us: dropped, not queued",
            units::bps(view.goodput_bps),
            above.words()
        )),
        experiment(format!(
            "evenly paced at half of the rate, UDP lost {}",
            lost(paced, HALF).map_or_else(|| "nothing".to_owned(), Lost::words)
        )),
    ];
    supports(0.9, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use crate::testing::udp::lost;
    use super::*;

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(425, 60);
        let with = [
            ("paced-udp-tenth", &lost(0, 50)),
            ("paced-udp-half", &lost(0, 50)),
            ("paced-udp-half-bursts", &lost(0, 50)),
            ("paced-udp-plateau", &lost(425, 60)),
        ];
        named_with(&base, &with, "path-policer", narrows_model::Place::Path);
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
