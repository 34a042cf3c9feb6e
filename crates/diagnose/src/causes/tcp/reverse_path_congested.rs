//! # reverse-path-congested
//!
//! The reverse path is congested: acknowledgements are delayed or lost, so TCP sends less than the forward path carries.
//!
//! **Shows**: the forward path carries more than TCP used. The reverse path, loaded by itself without data beside it, sustains hardly more
//! than the acknowledgements took, which were delayed or lost; or other traffic alone fills it.
//!
//! **Mistaken for**: a path at capacity (the queue is in the other direction), random loss; a busy host, whose late packets raise the RTT,
//! too.
//!
//! **Fix**: rate or traffic of the other direction; fewer acknowledgements.
//!
//! Source: RFC 3449 section 2 (TCP over asymmetric paths).

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;
use crate::evidence::profile::PathProfile;
use crate::experiments::profile::{REVERSE_PROFILE, SEVERAL};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "reverse-path-congested",
    about: "the reverse path is congested, and TCP waits for acknowledgements",
    roles: &[Role::Path],
    needs: &[keys::QDISC_RATE],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-capacity", "random-loss", "tcp-receive-window"],
    fix,
    rank: 5,
    excludes: Excludes::Hosts,
    ..Cause::COMMON
};

/// So much loss would hold TCP back by itself.
const LOSS: f64 = 1e-3;

/// Where so many datagrams come after a later one, the RTT holds the wait of those on the way forth.
const REORDERED: f64 = 0.005;

/// Acknowledgements of this part of what the reverse path sustains of large packets fill it: what a link adds to each packet makes them up
/// to twice as large (see [`SEVERAL`]).
const FILLS: f64 = 0.5;

/// Acknowledgements that are on the way when the count begins or ends are fewer than this.
const ACKS_LOST: f64 = 0.1;

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let unmeasured = "the capacity of the path in this direction was not measured";
    let room = room_or(evidence, "the path is at capacity in this direction", unmeasured)?;
    refuted(end_bound(evidence))?;
    if super::path_capacity::cpu_bound(evidence) {
        return Err(contradicts("a core is full, so packets wait in the host, not on the path"));
    }
    ended(super::softirq_core_saturated::unseen(evidence))?;
    let shape = evidence.profile.as_ref().map(|profile| &profile.shape);
    if shape.is_some_and(|shape| shape.reordered >= REORDERED) {
        return Err(cannot_tell("datagrams are reordered on the forward path, which delays some"));
    }
    if let Some(loss) = evidence.base.loss.filter(|loss| loss.rate() >= LOSS) {
        let (part, span) = (units::percent(loss.rate()), evidence.after_start());
        return Err(contradicts(format!("{part} of the segments were lost{span}")));
    }
    let acks_bps = known(evidence.acks_bps(), "the sockets do not count the acknowledgements")?;
    if let Some(waits) = waits(evidence) {
        return supports(0.8, [room, waits]);
    }
    match &evidence.reverse_path {
        Some(back) => by_reverse_path(evidence, acks_bps, back, room),
        None if evidence.reverse_tried => Err(cannot_tell("the datagrams on the reverse path were lost")),
        None => Err(ask(&REVERSE_PROFILE, "the reverse path was not measured without the load")),
    }
}

/// That the acknowledgements wait longer and longer on the reverse path: longer than they could for a core.
fn waits(evidence: &TcpEvidence) -> Option<Witness> {
    let waits_us = evidence.base.acks?.waits_us()?;
    // The two ends count at slightly different moments.
    (waits_us >= crate::causes::shared::bound::LONG_QUEUE_US.max(evidence.min_rtt_us?)).then(|| {
        let waits = units::micros(waits_us as u64);
        counter(format!("acknowledgements that were sent and had not arrived grew by what waits {waits}, and so did the RTT"))
    })
}

/// What the profile of the reverse path says.
fn by_reverse_path(
    evidence: &TcpEvidence,
    (sent_bps, arrived_bps): (f64, Option<f64>),
    back: &PathProfile,
    room: Witness,
) -> Ruling {
    let shape = &back.shape;
    // Where nobody tells how many arrived, as many as the path carries.
    let most_bps = shape.capacity.map_or(f64::MAX, |capacity| capacity.bps);
    let arrived_bps = arrived_bps.unwrap_or(sent_bps.min(most_bps));
    let says = format!("reverse: {}; {} of acknowledgements were sent", back.words(), units::bps(sent_bps));
    if let Some(shared) = shape.shared.filter(|shared| shared.left_bps() < sent_bps) {
        let (others, link) = (units::bps(shared.others_bps), units::bps(shared.link_bps));
        let says = format!("the reverse path is full without the load: others send {others} into a link of {link} (UDP in steps)");
        return supports(0.8, [room, experiment(says)]);
    }
    if let Some(rate_bps) = own_shaper(evidence).filter(|rate_bps| arrived_bps >= FILLS * rate_bps) {
        let delayed = found(delayed(evidence), format!("{says}, which were neither delayed nor lost"))?;
        let shaper = parameter(format!("the receiver's own shaper gives what it sends {}", units::bps(rate_bps)));
        return supports(0.8, [room, experiment(says), delayed, shaper]);
    }
    let Some(capacity) = shape.capacity else {
        let times = shape.carried_bps / sent_bps;
        return Err(if times >= SEVERAL * 0.95 {
            contradicts(format!("{says}: it carries {times:.0} times as much without a queue or loss"))
        } else {
            cannot_tell(format!("{says}: more was not tried"))
        });
    };
    let part = arrived_bps / capacity.bps;
    if capacity.interval_bps[1] < FILLS * sent_bps || part >= FILLS {
        let delayed = found(delayed(evidence), format!("{says}, which were neither delayed nor lost"))?;
        return supports(0.8, [room, experiment(says), delayed]);
    }
    if capacity.bps >= SEVERAL * sent_bps {
        return Err(contradicts(format!("{says}: it carries {:.0} times as much", capacity.bps / sent_bps)));
    }
    Err(cannot_tell(format!("{says}: what a link adds to small packets is unknown")))
}

/// The rate of the receiver's own shaper, where that held the steps on the reverse path back.
fn own_shaper(evidence: &TcpEvidence) -> Option<f64> {
    evidence.number(Role::Receiver, keys::QDISC_RATE).filter(|_| evidence.reverse_path.as_ref().is_some_and(|back| back.own_shaper))
}

/// That the acknowledgements were lost or delayed under load.
fn delayed(evidence: &TcpEvidence) -> Option<Witness> {
    let lost = evidence.base.acks.and_then(|acks| acks.lost()).unwrap_or(0.0);
    if lost >= ACKS_LOST {
        return Some(counter(format!("{} of the acknowledgements that the receiver sent did not arrive", units::percent(lost))));
    }
    let idle = evidence.profile.as_ref().and_then(|profile| profile.shape.idle_rtt_us)?;
    let rise_us = evidence.queue_us()?;
    // What the idle path varies by is the yardstick.
    let from_us = (3.0 * (idle.p95 - idle.min)).max(3_000.0).max(0.3 * idle.min);
    (rise_us >= from_us).then(|| {
        let rise = units::micros(rise_us as u64);
        counter(format!("the RTT rose by {rise} under load, with free capacity and almost no loss: acknowledgements are delayed"))
    })
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    if let Some(rate_bps) = own_shaper(evidence) {
        let (rate, at) = (units::bps(rate_bps), evidence.place(Role::Receiver));
        return advice(format!("raise the rate of the shaper of the {at} (tc qdisc show), {rate}, or let its acknowledgements pass first"));
    }
    advice("check traffic and rate of the other direction; TCP needs one acknowledgement per two segments on the \
        reverse path")
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use narrows_model::{Direction, LoadPlan, ProfilePlan};
    use super::*;

    /// 37 Mbit/s of a path of 1 Gbit/s, with 663 kbit/s of acknowledgements, and an RTT that rose to 180 ms.
    fn loaded() -> Scene {
        Scene { rtt_us: 180_000, acks: Some([12_750, 12_700]), ..slow() }
    }

    fn back(rate_bps: f64) -> Option<ProfiledPath> {
        Some(ProfiledPath { rate_bps, burst_bps: rate_bps, tried_bps: 30e6, ..ProfiledPath::default() })
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Path, scene, &[])
    }

    #[test]
    fn an_rtt_that_rises_on_a_path_with_room_only_asks() {
        assert_asks(&of(&loaded()), &REVERSE_PROFILE);
        assert!(verdict(&loaded(), &[]).causes.iter().all(|cause| cause.id != CAUSE.id));
        let evidence = TcpEvidence::of(&loaded().run(&[]), 0).expect("a baseline");
        let plan = REVERSE_PROFILE.planned(&evidence.baseline()).expect("it can be made").plan;
        // Four times the acknowledgements are less than what a step can count.
        let LoadPlan::Profile(ProfilePlan { direction, start_bps, max_bps, .. }) = plan else { panic!("{plan:?}") };
        assert_eq!((direction, start_bps, max_bps), (Direction::Down, 2_400_000, 4_800_000));
    }

    #[test]
    fn a_reverse_path_that_the_acknowledgements_fill_is_named() {
        for rate_bps in [0.4e6, 0.8e6, 1.2e6] {
            let scene = Scene { reverse_path: back(rate_bps), ..loaded() };
            let finding = named(&scene, &[], CAUSE.id, Place::Path);
            assert_rejects(&finding, "path-capacity", "3.8 % of that");
        }
        // They arrive as they should: it is wide enough for them.
        assert_contradicts(&of(&Scene { reverse_path: back(1.2e6), rtt_us: 35_100, ..loaded() }), "neither delayed nor lost");
        assert_supports(&of(&Scene { reverse_path: back(0.4e6), rtt_us: 35_100, acks: Some([12_750, 6_000]), ..loaded() }));
    }

    #[test]
    fn a_reverse_path_that_carries_several_times_as_much_is_not_congested() {
        assert_contradicts(&of(&Scene { reverse_path: back(100e6), ..loaded() }), "38 times as much without a queue or loss");
        assert_contradicts(&of(&Scene { reverse_path: back(3e6), ..loaded() }), "5 times as much");
        let lossy = back(100e6).map(|path| ProfiledPath { one_lost_of: Some(8), ..path });
        assert_contradicts(&of(&Scene { reverse_path: lossy, ..loaded() }), "times as much");
        assert_cannot_tell(&of(&Scene { reverse_path: back(2e6), ..loaded() }), "what a link adds to small packets is unknown");
    }

    #[test]
    fn other_traffic_that_fills_the_reverse_path_is_named_though_its_queue_never_changes() {
        let path = back(10e6).map(|path| ProfiledPath { others_bps: 12e6, ..path });
        let finding = named(&Scene { reverse_path: path, rtt_us: 35_100, ..loaded() }, &[], CAUSE.id, Place::Path);
        assert!(finding.witnesses.iter().any(|it| it.says.contains("others send 12.0 Mbit/s into a link of 10.0")), "{finding:#?}");
    }

    #[test]
    fn acknowledgements_that_wait_as_long_as_the_rtt_grew_need_no_profile_of_their_own() {
        // 2 % of eight seconds are 160 ms; the RTT grew by 145 ms.
        assert_supports(&of(&Scene { acks: Some([12_750, 12_495]), ..loaded() }));
        // Of as many lost ones the RTT does not grow.
        assert_asks(&of(&Scene { acks: Some([12_750, 10_000]), ..loaded() }), &REVERSE_PROFILE);
    }

    #[test]
    fn a_shaper_of_the_receiver_that_acknowledgements_fill_is_named() {
        let shaped = |rate: i64| {
            let receiver_facts = with(ordinary_host(), fact("qdisc.rate", rate, Unit::BitsPerSecond));
            let run = Scene { receiver_facts, reverse_path: back(1.2e6), ..loaded() }.run(&[]);
            let mut evidence = TcpEvidence::of(&run, 0).expect("a baseline");
            // The steps met the shaper, too.
            let back = evidence.reverse_path.take().expect("a profile");
            evidence.reverse_path = Some(PathProfile { shape: back.shape.limited_by_host(), own_shaper: true });
            evidence
        };
        let slow = shaped(800_000);
        assert_supports(&answer(assess(&slow, Role::Path)));
        assert!(fix(&slow, Role::Path).advice.starts_with("raise the rate of the shaper of the server"));
        assert!(!matches!(answer(assess(&shaped(8_000_000), Role::Path)), Assessment::Supports { .. }));
    }

    #[test]
    fn sockets_that_count_no_acknowledgements_leave_it_open() {
        assert_cannot_tell(&of(&Scene { acks: None, ..loaded() }), "do not count");
    }
}
