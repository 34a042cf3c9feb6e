//! # shallow-queue
//!
//! A queue on the path is too short for bursts of a rate that the path carries.
//!
//! **Shows**: at half of the rate bursts are lost, and evenly paced datagrams are not.
//!
//! **Mistaken for**: a policer (it passes a first burst), random loss (it persists when paced).
//!
//! **Fix**: pace the sender: smaller bursts, no batches.
//!
//! Source: RFC 7567; Appenzeller et al., *Sizing Router Buffers*, SIGCOMM 2004.

use crate::causes::shared::paced::{ENOUGH, Lost, lost, plateau};
use crate::causes::shared::profile::{Met, gentle, met};
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::on_the_path;
use crate::evidence::paced::PacedUdp;
use crate::experiments::paced::{BURST, HALF, HALF_BURSTS};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "shallow-queue",
    about: "a queue on the path is too short for bursts",
    roles: &[Role::Path],
    assess,
    look_alikes: &["random-loss", "path-policer", "path-capacity"],
    fix: |_, _| {
        advice(
            "pace the sender (smaller bursts, no batches, fq or SO_TXTIME), or lengthen the queue at the dropping hop",
        )
    },
    stages: &["path"],
    ..Cause::COMMON
};

/// What the trials of paced UDP say of it.
pub(crate) fn by_paced_udp(paced: &PacedUdp) -> Ruling {
    let (Some(even), Some(bursts)) = (lost(paced, HALF), lost(paced, HALF_BURSTS)) else {
        return Err(cannot_tell("UDP at half of the rate, paced and in bursts, was not measured"));
    };
    if bursts.lost == 0 {
        return Err(contradicts(format!(
            "in bursts of {BURST} at half of the rate UDP lost nothing ({} sent)",
            bursts.sent
        )));
    }
    let expected = even.expected(bursts.rate());
    let seen = even.lost as f64;
    if expected < ENOUGH {
        return Err(cannot_tell("too little loss in bursts to compare with paced datagrams"));
    }
    // A queue that is too short for bursts cuts each of them; loss at any rate hits a few, where it comes in bursts of its own.
    let (hit, of) = (bursts.counted_runs()?, bursts.sent / u64::from(BURST));
    if 2 * hit < of {
        return Err(cannot_tell(format!("only {hit} of {of} bursts lost datagrams")));
    }
    if seen > expected / 5.0 {
        return Err(contradicts(format!("equal loss when paced: {} against {}", even.words(), bursts.words())));
    }
    let half = experiment(format!(
        "UDP at half of the rate in bursts of {BURST}: {}; paced: {}",
        bursts.words(),
        even.words()
    ));
    // A policer lets half of its rate pass and stops bursts, too: what tells them apart is whether the whole rate passes evenly spaced.
    let whole = match plateau(paced) {
        Err(Assessment::Contradicts(why)) => Some(experiment(why)),
        _ => None,
    };
    supports(0.95, std::iter::once(half).chain(whole))
}

/// Fewer datagrams in a row are no burst.
const BURST_LEAST: u64 = 4;

/// Where the profile showed that the path carries the rate evenly spaced, that is the other witness.
fn assess(evidence: &UdpEvidence, _: Role) -> Assessment {
    let mut assessment = on_the_path(evidence, Met::Bursts, by_paced_udp);
    if !matches!(assessment, Assessment::Supports { .. }) {
        return assessment;
    }
    let base = &evidence.base;
    if !base.accounting.segmented && base.burst_max < BURST_LEAST {
        return cannot_tell("the load left evenly spaced: it had no bursts that a short queue could lose");
    }
    let (gentle, load) = (gentle(evidence), Lost::of(base));
    if load.lost < 8 {
        return cannot_tell(format!("only {} of {} were lost: too few for a conclusion about \
            bursts", load.lost, load.sent));
    }
    if gentle.lost >= 3 && gentle.loss() >= 0.4 * load.rate() {
        return contradicts(format!(
            "paced, {} of {} were lost, about the same share as of the load",
            gentle.lost, gentle.sent
        ));
    }
    if let (Assessment::Supports { witnesses, .. }, Some(profile)) = (&mut assessment, &evidence.profile)
        && witnesses.len() == 1
        && met(evidence) == Some(Met::Bursts)
    {
        witnesses.push(experiment(format!("{}: paced, the load is not too high", profile.words())));
    }
    assessment
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use crate::testing::udp::lost;
    use super::*;

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = UdpScene { burst: Some(64), ..lost(800, 900) };
        let with = [
            ("paced-udp-tenth", &lost(0, 50)),
            ("paced-udp-half", &lost(0, 50)),
            ("paced-udp-half-bursts", &lost(900, 50)),
            ("paced-udp-plateau", &lost(300, 900)),
        ];
        // A policer with a small bucket looks the same, until evenly spaced datagrams pass at the rate.
        let verdict = verdict_with(&base, &with);
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Suspected, "shallow-queue"), "{verdict:#?}");
        let mut with = with;
        let clean = lost(0, 50);
        with[3].1 = &clean;
        let with: Vec<_> = with.into_iter().chain([("paced-udp-above", &clean)]).collect();
        named_with(&base, &with, "shallow-queue", narrows_model::Place::Path);
        // What is lost of evenly spaced ones as well is not lost by bursts.
        let lossy = lost(100, 50);
        let bursts = lost(900, 50);
        let with = [("paced-udp-tenth", &lossy), ("paced-udp-half", &lossy), ("paced-udp-half-bursts", &bursts)];
        assert_contradicts(&assessment_with(&CAUSE, Role::Path, &UdpScene { burst: Some(64), ..lost(110, 50) }, &with), "were lost, about the same share as of the load");
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
