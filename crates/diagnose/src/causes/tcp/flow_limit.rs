//! # flow-limit
//!
//! The path gives each connection only a part of what it carries: several connections get more.
//!
//! **Shows**: one flow of UDP and one connection of TCP end at the same rate, and four connections carry clearly more. Where each of them gets
//! as much as one alone, it is a limit of each flow; else it may be a member of a link aggregate, or fair queueing beside other traffic.
//!
//! **Mistaken for**: the capacity of the path, a shaper, a window (which UDP does not have).
//!
//! **Fix**: several connections; a higher limit of each flow, where the path's owner has one (instance types of clouds, policers), a hash of
//! the aggregate that spreads flows.
//!
//! Source: IEEE 802.1AX 5.2.4 (a flow stays on one member); RFC 8290 (queues of flows).

use crate::causes::shared::rule::*;
use crate::experiments::tcp::MORE_STREAMS;
use crate::judge::ceilings::sits_at;
use super::path_capacity::cpu_bound;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "flow-limit",
    about: "the path gives each connection only a part of what it carries",
    roles: &[Role::Path],
    needs: &[keys::NIC_COUNTER_TX_BYTES, keys::NIC_COUNTER_RX_BYTES],
    assess: |evidence, _| answer(assess(evidence)),
    look_alikes: &["path-capacity", "path-shaper", "path-policer", "competing-traffic", "tcp-receive-window"],
    fix: |_, _| {
        advice(
            "use several connections at once; else find what limits each flow: a cloud's limit for one flow, a member of a link aggregate or \
             of equal routes, or fair queueing beside other traffic",
        )
    },
    rank: 3,
    explains_link: true,
    excludes: Excludes::Hosts,
    removed_by: Some(&MORE_STREAMS),
    ..Cause::COMMON
};

/// Four connections that carry so many times what one does are each limited by themselves: fair queueing would need 28 others for that, and
/// a link aggregate four members, on each of which one of them falls by chance.
const EACH: f64 = 3.5;

/// Where more streams carry so many times what the path sustains of one flow, that is no capacity of the path: what varies from one trial to
/// the next seldom varies by so much, and an aggregate of two members gives twice as much.
const OF_EACH: f64 = 1.5;

/// What four times the streams carried, where that is clearly more than the profile found the path to sustain. The profile is one flow: what
/// limits each ends it as the path does.
pub(super) fn of_each_connection(evidence: &TcpEvidence) -> Option<f64> {
    let (more, carries) = (evidence.made(&MORE_STREAMS)?.goodput_bps, evidence.capacity_goodput_bps()?);
    let shared = evidence.profile.as_ref()?.shape.shared.is_some() || evidence.others_bps.is_some_and(|bps| bps > 0.0);
    (!shared && more >= OF_EACH * carries.max(evidence.goodput_bps())).then_some(more)
}

fn assess(evidence: &TcpEvidence) -> Ruling {
    let more = known(evidence.made(&MORE_STREAMS), "more streams were not measured")?.goodput_bps;
    let Some(profile) = evidence.profile.as_ref().filter(|_| evidence.filled().is_some()) else {
        return Err(cannot_tell("the capacity of the path was not measured"));
    };
    if evidence.policed() {
        return Err(contradicts(format!("{}, which drops the excess without a queue", profile.words())));
    }
    if cpu_bound(evidence) || evidence.full_of_packets().is_some() {
        return Err(cannot_tell("a core is full: each flow may be all that a core of its own carries"));
    }
    let shaper = (super::local_shaper::CAUSE.ceiling)(evidence, Role::Sender);
    if shaper.is_some_and(|ceiling| sits_at(&ceiling, evidence.goodput_bps())) {
        return Err(contradicts("the sender's own shaper gives that rate"));
    }
    if !evidence.fills_link() {
        return Err(contradicts("one connection does not get all that one flow of UDP does"));
    }
    if of_each_connection(evidence).is_none() {
        return Err(contradicts(format!("four times the streams carried {}, no more than the path sustains of one flow", units::bps(more))));
    }
    let goodput = evidence.goodput_bps();
    let says = format!("{}, and one connection reached it with {}", profile.words(), units::bps(goodput));
    let four = format!("four times the streams carried {}", units::bps(more));
    let each = (more >= EACH * goodput).then(|| experiment(format!("each of them got {}, as one alone does", units::bps(more / 4.0))));
    supports(0.8, [Some(experiment(format!("{four}; {says}"))), each])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// 1 Gbit/s of one flow, between hosts whose links are not known.
    fn truth() -> Scene {
        virtual_hosts(Scene { profile: Some(ProfiledPath::default()), ..Scene::default() })
    }

    fn carried(times: f64) -> Scene {
        Scene { goodput_bps: times * truth().goodput_bps, ..truth() }
    }

    #[test]
    fn four_connections_that_get_four_times_as_much_name_it() {
        let finding = named(&truth(), &[("more-streams", &carried(3.9))], "flow-limit", Place::Path);
        assert_rejects(&finding, "path-capacity", "four times the streams carried");
        let prediction = finding.prediction.expect("what four carried");
        assert!((prediction.bps / carried(3.9).goodput_bps - 1.0).abs() < 0.01, "{prediction:?}");
    }

    #[test]
    fn twice_as_much_may_be_another_member_or_others_beside_it() {
        let verdict = verdict(&truth(), &[("more-streams", &carried(2.0))]);
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Suspected, "flow-limit"), "{verdict:#?}");
    }

    #[test]
    fn a_path_that_carries_no_more_of_four_is_full() {
        let (full, four) = (truth(), carried(1.02));
        assert_eq!(verdict(&full, &[("more-streams", &four)]).status, Status::Healthy);
        assert_contradicts(&assessment(&CAUSE, Role::Path, &full, &[("more-streams", &four)]), "no more than the path");
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &full, &[]), "not measured");
        let diagnosis = crate::diagnose(&full.run(&[]), 0).expect("a baseline");
        assert!(diagnosis.next.iter().any(|it| it.id == MORE_STREAMS.id), "{:?}", diagnosis.next);
    }
}
