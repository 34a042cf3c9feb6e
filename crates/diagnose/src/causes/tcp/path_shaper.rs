//! # path-shaper
//!
//! A shaper on the path limits the rate below the link speed, usually by contract.
//!
//! **Shows**: a first burst passes faster than the steady rate (its bucket), then a queue of constant depth at a
//! constant rate below both links. Only a bucket that gives a transfer of a second 15 % more counts: with a smaller one
//! the shaper is the capacity of the path.
//!
//! **Mistaken for**: a slower link on the path (no first burst), a policer (no queue).
//!
//! **Fix**: the contract, or the shaping device.
//!
//! Source: RFC 2475 2.3.3.3; ITU-T Y.1564 on bucket depth.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::beside_others;
use crate::evidence::profile::NOTICED;
use crate::evidence::tcp::{AT_CAPACITY, BEYOND};
use narrows_search::profile::Plateau;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "path-shaper",
    about: "a shaper on the path limits the rate below the link speed",
    roles: &[Role::Path],
    needs: &[
        keys::NIC_KIND,
        keys::NIC_SPEED,
        keys::QDISC_RATE,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-capacity", "path-policer", "local-shaper", "link-speed"],
    fix,
    rank: 5,
    excludes: Excludes::Hosts,
    explains_link: true,
    ..Cause::COMMON
};

/// A first burst this much faster than the steady rate is a bucket and not the noise of acknowledgements.
const BURST: f64 = 1.5;

fn burst(evidence: &TcpEvidence) -> Option<f64> {
    Some(evidence.base.early_peak_bps? / evidence.goodput_bps())
}

/// By how much the first second of the load exceeded what the steady rate carries in it, as a share: what a bucket gave.
fn given(evidence: &TcpEvidence) -> f64 {
    let steady = evidence.goodput_bps();
    evidence.base.early.iter().map(|(at_s, bits)| bits / steady - at_s).fold(0.0, f64::max)
}

/// Whether the load itself saw a bucket that gives a transfer of a second noticeably more, then a steady rate behind a queue. Steps of a
/// profile that follow each other closely find a deep bucket half empty.
fn seen_by_load(evidence: &TcpEvidence) -> bool {
    let faster = burst(evidence).is_some_and(|burst| burst >= BURST) && given(evidence) >= NOTICED;
    faster && evidence.queue_seen() == Some(true) && steady(evidence) == Some(true)
}

/// Whether a shaper holds back what the path carried before, by the profile or by the load.
pub(super) fn holds_back(evidence: &TcpEvidence) -> bool {
    evidence.profile.as_ref().is_some_and(|profile| {
        let queues = matches!(profile.shape.plateau, Some(Plateau::Queue | Plateau::Shaper { .. }));
        // Others who began after the first moments took the rate of the burst.
        profile.shaper_limits() || (queues && seen_by_load(evidence) && beside_others(evidence).is_none())
    })
}

/// Eight of ten intervals of the later two thirds lie within this part of their median where a shaper holds the rate;
/// flows that share a path give and take more.
const STEADY: f64 = 0.15;

fn steady(evidence: &TcpEvidence) -> Option<bool> {
    let later = &evidence.base.interval_bps[evidence.base.interval_bps.len() / 3..];
    // Closer samples would measure the scheduling of the host.
    let rates: Vec<f64> = later.chunks_exact((later.len() / 12).max(1)).map(mean).collect();
    let [low, middle, high] = [0.1, 0.5, 0.9].map(|p| narrows_stats::quantile(&rates, p));
    (rates.len() >= 6).then_some(high? - middle? <= STEADY * middle? && middle? - low? <= STEADY * middle?)
}

fn mean(rates: &[f64]) -> f64 {
    narrows_stats::mean(rates).unwrap_or(0.0)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let plateau = evidence.profile.as_ref().and_then(|profile| profile.shape.plateau);
    if let Some(plateau) = plateau {
        if !matches!(plateau, Plateau::Queue | Plateau::Shaper { .. }) || !holds_back(evidence) {
            return None;
        }
        let how = "the shaper's rate (path profile), less headers".to_owned();
        let bps = evidence.capacity_goodput_bps()?;
        return ceiling_at(CAUSE.id, evidence, role, bps, [AT_CAPACITY, BEYOND], Method::Measured, how);
    }
    if evidence.queue_seen()? && burst(evidence)? >= BURST && given(evidence) >= NOTICED {
        let how = "steady goodput behind the shaper's queue".to_owned();
        return ceiling_at(CAUSE.id, evidence, role, evidence.goodput_bps(), [0.97, 1.03], Method::Measured, how);
    }
    None
}

/// What a profile of the path says; `None` where it reached no limit.
fn by_profile(evidence: &TcpEvidence) -> Option<Assessment> {
    let profile = evidence.profile.as_ref()?;
    let (filled, plateau) = (evidence.filled()?, profile.shape.plateau?);
    if filled >= AT_CAPACITY && !profile.shaper_limits() && holds_back(evidence) {
        return None;
    }
    let Plateau::Shaper { bucket_bytes } = plateau else { return Some(contradicts(profile.words())) };
    if !profile.shaper_limits() {
        return Some(contradicts(format!("{}; the burst is too small to matter: the shaper's rate is simply the capacity", profile.words())));
    }
    if filled < AT_CAPACITY {
        return Some(contradicts(format!("the goodput is only {} of the shaper's rate", units::percent(filled))));
    }
    Some(Assessment::Supports {
        share: 0.92,
        witnesses: vec![
            experiment(format!(
                "UDP above {} is queued, after a first burst of at least {} at a higher rate",
                units::bps(profile.shape.capacity?.bps),
                units::bytes(bucket_bytes as u64)
            )),
            counter(format!("the goodput and its headers are {} of that rate", units::percent(filled))),
        ],
    })
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let goodput = evidence.goodput_bps();
    if evidence.number(Role::Sender, keys::QDISC_RATE).is_some_and(|rate| goodput > 0.85 * rate) {
        return Err(contradicts("the sender's own shaper explains the rate"));
    }
    refuted(end_bound(evidence))?;
    ended(super::softirq_core_saturated::unseen(evidence))?;
    if super::receiver_app_slow::leaves_unread(evidence) {
        return Err(contradicts("unread data in the receiver's socket: its buffer absorbed the first burst"));
    }
    ended(by_profile(evidence))?;
    if !known(evidence.queue_seen(), "the RTT could not be read, so a queue on the path is not visible")? {
        return Err(contradicts("there was no queue on the path"));
    }
    if evidence.link_bps().is_some_and(|link| goodput > 0.85 * link) {
        return Err(contradicts("the goodput is close to what the slower link carries"));
    }
    let cap = evidence.base.max_pacing_bps.map(|cap| cap * evidence.base.streams as f64);
    if let Some(cap) = cap.filter(|cap| *cap < 1.3 * goodput) {
        return Err(cannot_tell(format!("the sockets are limited to {}", units::bps(cap))));
    }
    let burst = known(burst(evidence), "the delivery rate at the start is unknown")?;
    if burst < BURST {
        return Err(contradicts(format!("the first burst was no faster than the steady rate ({burst:.1} times)")));
    }
    let given = given(evidence);
    if given < NOTICED {
        return Err(contradicts(format!(
            "the first burst gave the first second only {} more than the steady rate: the burst is too small to matter, and the shaper's rate is simply the capacity",
            units::percent(given)
        )));
    }
    if !known(steady(evidence), "too few samples to say whether the rate was constant")? {
        return Err(cannot_tell("the goodput varied: other traffic may have used the rate of the first burst"));
    }
    let witnesses = [
        // How fast, the kernel's delivery rate over a few milliseconds does not tell.
        counter(format!(
            "a first burst of at least {} passed above the steady rate",
            units::bytes((given * goodput / 8.0) as u64)
        )),
        counter(format!(
            "then a queue of up to {} built up at a steady {}",
            units::micros((evidence.base.rtt_peak_us.unwrap_or(0.0) - evidence.min_rtt_us.unwrap_or(0.0)) as u64),
            units::bps(goodput)
        )),
    ];
    supports(0.9, witnesses)
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let capacity = evidence.profile.as_ref().and_then(|profile| profile.shape.capacity);
    let rate = capacity.map_or_else(
        || format!("about {} of goodput", units::bps(evidence.goodput_bps())),
        |capacity| format!("{}, headers included", units::bps(capacity.bps)),
    );
    advice(format!("check the contract or the device that shapes the path to {rate}; no host setting raises it"))
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use crate::testing::profile::{Excess, ProfiledPath};
    use super::*;

    /// A contract of 100 Mbit/s on links of 1 Gbit/s: a bucket passes at once, then a queue of 45 ms stands.
    fn truth() -> Scene {
        Scene { goodput_bps: 96e6, early_peak_bps: 900e6, bucket_s: 0.05, rtt_us: 80_000, ..Scene::default() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[])
    }

    #[test]
    fn a_bucket_and_then_a_queue_at_a_constant_rate_is_named() {
        let finding = named(&truth(), &[], "path-shaper", Place::Path);
        // Of 49.8 Mbit in the first 100 ms, 10.1 pass at the steady rate. How fast the others passed, no sample shows.
        let says: Vec<&str> = finding.witnesses.iter().map(|witness| witness.says.as_str()).collect();
        assert!(says.contains(&"a first burst of at least 4.73 MiB passed above the steady rate"), "{says:?}");
        assert_rejects(&finding, "path-policer", "only 0 segments");
        assert_rejects(&finding, "local-shaper", "has no rate");
        assert!(finding.fix.commands.is_empty());
    }

    #[test]
    fn bursts_far_above_the_shaper_foretell_nothing() {
        let foretold = |burst_bps| {
            let path = ProfiledPath { rate_bps: 101e6, burst_bps, excess: Excess::WaitsAfter(1300), ..ProfiledPath::default() };
            let finding = named(&Scene { profile: Some(path), ..truth() }, &[], "path-shaper", Place::Path);
            // What the load before left of the bucket is what the steps find.
            let says = |words: &str| finding.witnesses.iter().any(|witness| witness.says.contains(words));
            assert!(says("after a first burst of at least 1."), "{:?}", finding.witnesses);
            finding.prediction
        };
        assert!(foretold(900e6).is_some());
        assert_eq!(foretold(3e9), None);
    }

    #[test]
    fn a_slower_link_on_the_path_lets_no_burst_pass() {
        assert_contradicts(&of(&Scene { early_peak_bps: 143e6, bucket_s: 0.8, ..truth() }), "no faster");
        assert_supports(&of(&Scene { early_peak_bps: 160e6, bucket_s: 0.4, ..truth() }));
        // A bucket of some packets gives a transfer nothing that it would notice.
        assert_contradicts(&of(&Scene { bucket_s: 0.01, ..truth() }), "only 8");
        let slow = Scene { early_peak_bps: 110e6, ..truth() };
        assert_eq!(crate::testing::verdict(&slow, &no_more(&slow)).causes[0].id, "path-capacity");
    }

    #[test]
    fn a_burst_before_others_began_is_no_bucket() {
        let beside = |rate_bps, others_bps| {
            let path = ProfiledPath { rate_bps, burst_bps: rate_bps, others_bps, ..ProfiledPath::default() };
            Scene { profile: Some(path), ..truth() }
        };
        // A queue of 100 Mbit/s, which the steps found with a bucket that was still empty.
        assert_supports(&of(&beside(100e6, 0.0)));
        // 150 Mbit/s of a constant rate beside it.
        let shared = beside(250e6, 150e6);
        assert_contradicts(&of(&shared), "beside 150 Mbit/s of other traffic");
        assert_eq!(crate::testing::verdict(&shared, &no_more(&shared)).causes[0].id, "path-capacity");
    }

    #[test]
    fn no_queue_is_no_shaper_and_neither_is_a_full_link() {
        assert_contradicts(&of(&Scene { rtt_us: 36_000, ..truth() }), "no queue");
        assert_contradicts(
            &of(&Scene { goodput_bps: 860e6, early_peak_bps: 2e9, ..truth() }),
            "close to what the slower link",
        );
    }

    #[test]
    fn the_senders_own_shaper_is_another_cause() {
        let own = with(ordinary_host(), fact("qdisc.rate", 100_000_000_i64, Unit::BitsPerSecond));
        assert_contradicts(&of(&Scene { sender_facts: own, ..truth() }), "own shaper");
    }

    #[test]
    fn a_rate_that_swings_is_shared_and_not_shaped() {
        assert_supports(&of(&Scene { wobble: 0.1, ..truth() }));
        assert_cannot_tell(&of(&Scene { wobble: 0.3, ..truth() }), "the goodput varied: other traffic may have used the rate of the first burst");
    }

    #[test]
    fn an_unknown_rtt_leaves_it_open() {
        let scene = Scene { hidden: &[Hidden::Rtt], ..truth() };
        assert_cannot_tell(&of(&scene), "RTT");
        none_proven(&scene, &[]);
    }
}
