//! # random-loss
//!
//! The path loses packets at any rate: a dirty fibre, a bad cable, a radio link, a failing NIC.
//!
//! **Shows**: the same loss ratio at a tenth and at half of the rate, be it one datagram or several in a row at a time (radio links
//! and interference lose in bursts).
//!
//! **Mistaken for**: a short queue or a policer (no loss when paced below the rate).
//!
//! **Fix**: find the faulty hop by its error counters.
//!
//! Source: RFC 7680; Gilbert, *Capacity of a Burst-Noise Channel*, BSTJ 39(5), 1960; see [`crate::experiments::paced`].

use crate::causes::shared::member::of_a_member;
use crate::causes::shared::paced::{ENOUGH, Lost, lost};
use crate::causes::shared::profile::{Met, SAME, others_fill};
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::on_the_path;
use crate::evidence::paced::PacedUdp;
use crate::experiments::paced::{HALF, TENTH};
use crate::experiments::ports::MANY_PORTS;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "random-loss",
    about: "the path loses packets at any rate",
    roles: &[Role::Path],
    assess: |evidence, _| {
        of_a_member(evidence.paced.get(MANY_PORTS.id))
            .unwrap_or_else(|| as_much(evidence, on_the_path(evidence, Met::Lossy, by_paced_udp)))
    },
    look_alikes: &["path-policer", "shallow-queue", "path-capacity"],
    fix: |_, _| advice("find the hop that loses packets by its error counters (cables, optics, radio, duplex)"),
    stages: &["path"],
    stands_after: Some(&MANY_PORTS),
    ..Cause::COMMON
};

/// The same, unless others fill a queue, or the load lost much more than paced UDP did: that was something else.
fn as_much(evidence: &UdpEvidence, assessment: Assessment) -> Assessment {
    if !matches!(assessment, Assessment::Supports { .. }) {
        return assessment;
    }
    if let Some(why) = others_fill(evidence) {
        return contradicts(why);
    }
    let (load, half) = (Lost::of(&evidence.base), lost(&evidence.paced, HALF));
    match half.filter(|half| half.rate() < SAME * load.rate()) {
        Some(half) => contradicts(format!("at half of the rate, evenly paced, {} were lost, and {} of the load", half.words(), load.words())),
        None => assessment,
    }
}

/// What the trials of paced UDP say of it.
pub(crate) fn by_paced_udp(paced: &PacedUdp) -> Ruling {
    let (tenth, half) = known(lost(paced, TENTH).zip(lost(paced, HALF)), "paced UDP at a tenth and at half of the rate was not measured")?;
    if half.lost == 0 {
        return Err(contradicts(format!("evenly paced at half of the rate, UDP lost nothing ({} sent)", half.sent)));
    }
    // Of losses in a row only the first is by chance.
    let expected = half.expected_runs(tenth.sent);
    let (seen, enough) = (tenth.runs() as f64, expected >= ENOUGH && half.runs() >= 8);
    if enough && seen <= expected / 5.0 {
        return Err(contradicts(format!(
            "UDP lost {} at a tenth of the rate and {} at half the rate: the loss grows with the rate",
            tenth.words(),
            half.words()
        )));
    }
    if !enough || seen < expected / 2.5 {
        return Err(cannot_tell("too little loss to compare a tenth with half of the rate"));
    }
    let witnesses = [
        experiment(format!("UDP at a tenth of the rate: {} ({})", tenth.words(), units::percent(tenth.rate()))),
        experiment(format!("UDP at half of the rate: {} ({})", half.words(), units::percent(half.rate()))),
    ];
    supports(0.95, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use crate::testing::udp::lost;
    use super::*;

    #[test]
    fn the_paced_trials_name_it_and_without_them_it_is_open() {
        let base = lost(43, 50);
        let with = [
            ("paced-udp-tenth", &lost(42, 50)),
            ("paced-udp-half", &lost(43, 50)),
            ("paced-udp-half-bursts", &lost(44, 50)),
            ("paced-udp-plateau", &lost(45, 50)),
        ];
        random_loss(run(&base, &with));
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &base), "was not measured");
    }

    #[test]
    fn what_was_not_lost_on_the_path_is_not_the_paths() {
        let died = Died { buffer: 400, ..Died::default() };
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene { died, ..UdpScene::default() }), "nothing was dropped");
    }
}
