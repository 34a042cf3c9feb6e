//! # competing-traffic
//!
//! Other traffic between the same two hosts uses part of the capacity.
//!
//! **Shows**: the interfaces of both hosts carry more than this connection, and the total reaches the capacity of the
//! path.
//!
//! **Mistaken for**: a congestion control that does not fill the path, random loss, a path of less capacity.
//!
//! **Fix**: another time for one of them, or a separate traffic class.
//!
//! Source: interface counters (`rtnl_link_stats64`); RFC 5681 on how flows share a path.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;
use crate::evidence::tcp::{AT_CAPACITY, TAKEN};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "competing-traffic",
    about: "other traffic between the two hosts uses part of the capacity",
    roles: &[Role::Path],
    needs: &[keys::NIC_COUNTER_TX_BYTES, keys::NIC_COUNTER_RX_BYTES],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-capacity", "congestion-control", "random-loss"],
    fix,
    // The device counts Ethernet headers, and a batch of segments once.
    without: |evidence, _| evidence.with_others_bps().map(|bps| (bps, [0.9 * bps, 1.05 * bps])),
    rank: 6,
    explains_link: true,
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let others = known(evidence.others_bps, "the counters of the devices, or the segments of the connection, could not be read")?;
    if let Some(([before, after], goodput)) = evidence.gave_way() {
        let witnesses = [
            beside(before),
            experiment(format!(
                "under BBR this connection carried {}, and the others {}: they share what limits both",
                units::bps(goodput),
                units::bps(after)
            )),
        ];
        return supports(0.9, witnesses);
    }
    let (Some(profile), Some(taken), Some(filled)) = (&evidence.profile, evidence.taken(), evidence.filled()) else {
        return Err(cannot_tell("the capacity of the path was not measured"));
    };
    // What UDP got beside them is no capacity: they share what limits both, whatever that is.
    let much = others >= TAKEN * (evidence.base.goodput_bps + others);
    if taken < TAKEN && much && profile.shape.gives_way() && end_bound(evidence).is_none() {
        let beyond = format!(
            "{}; the more was offered beyond that, the more was delivered: what else is in the queue gave way",
            profile.words()
        );
        return supports(0.85, [beside(others), experiment(beyond)]);
    }
    if taken == 0.0 && others > 0.0 {
        return Err(cannot_tell("the interfaces carried more than the capacity of the path: some of the traffic took another path"));
    }
    if taken < TAKEN {
        return Err(contradicts(format!("other traffic of both hosts uses {} of the capacity", units::percent(taken))));
    }
    if filled < AT_CAPACITY {
        return Err(contradicts(format!("with all traffic of both hosts the path is used to {}", units::percent(filled))));
    }
    if evidence.has_room_beside_others()
        && let Some(why) = end_bound(evidence)
    {
        return Err(contradicts(format!("{}, which this connection did not use: {why}", profile.words())));
    }
    let witnesses = [
        beside(others),
        experiment(format!(
            "{} (UDP in steps): with this connection, {} of that is in use",
            profile.words(),
            units::percent(filled.min(1.0))
        )),
    ];
    supports(0.9, witnesses)
}

fn beside(others_bps: f64) -> Witness {
    counter(format!("the interfaces of both hosts carried {} in addition to this connection", units::bps(others_bps)))
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice("find the other traffic between the hosts (ss -tnip, ss -unp); run it at another time, or give it its own \
        traffic class")
}

#[cfg(test)]
mod tests {
    use crate::causes::tcp::congestion_control;
    use crate::experiments::tcp::OTHER_CONGESTION_CONTROL;
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    #[test]
    fn what_it_takes_from_other_traffic_of_the_hosts_is_no_gain() {
        let of = |goodput_bps: f64, others_bps: f64| {
            let segments = (goodput_bps / 1448.0) as u64;
            let bytes = goodput_bps as i64 + segments as i64 * 66 + others_bps as i64;
            Scene {
                goodput_bps,
                segments,
                lost: 0,
                rtt_us: 35_100,
                cwnd: 907,
                sender_counts: vec![("nic.counter.tx_bytes", bytes)],
                receiver_counts: vec![("nic.counter.rx_bytes", bytes)],
                congestion_control: "cubic",
                ..Scene::default()
            }
        };
        let (base, greedy) = (of(36e6, 100e6), Scene { congestion_control: "bbr", ..of(119e6, 18e6) });
        let tried = [(OTHER_CONGESTION_CONTROL.id, &greedy)];
        assert_contradicts(&assessment(&congestion_control::CAUSE, Role::Sender, &base, &tried), "it takes from other traffic");
        assert_supports(&assessment(&CAUSE, Role::Path, &base, &tried));
        // Without the others it has their part of what both share: not what a profile beside them got.
        let finding = crate::testing::named(&base, &tried, "competing-traffic", narrows_model::Place::Path);
        let foretold = finding.prediction.expect("a prediction").bps;
        assert!((125e6..140e6).contains(&foretold), "{foretold}");
        // Others that go on as before take another path.
        let beside = Scene { congestion_control: "bbr", ..of(119e6, 100e6) };
        assert_supports(&assessment(&congestion_control::CAUSE, Role::Sender, &base, &[(OTHER_CONGESTION_CONTROL.id, &beside)]));
    }

    #[test]
    fn a_buffer_that_leaves_room_beside_others_is_the_limit() {
        let bytes = 53_000_000 + (53e6 / 1448.0) as i64 * 66 + 120_000_000;
        let scene = Scene {
            goodput_bps: 53e6,
            segments: (53e6 / 1448.0 / 8.0 * 10.0) as u64,
            lost: 0,
            min_rtt_us: 20_000,
            rtt_us: 20_900,
            sndbuf: 0.5,
            sndbuf_bytes: 204_800,
            congestion_control: "bbr",
            sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 204_800_i64, Unit::Bytes)),
            sender_counts: vec![("nic.counter.tx_bytes", bytes)],
            receiver_counts: vec![("nic.counter.rx_bytes", bytes)],
            profile: Some(ProfiledPath { rate_bps: 195e6, burst_bps: 195e6, others_bps: 120e6, idle_rtt_us: 20_000, ..ProfiledPath::default() }),
            ..Scene::default()
        };
        named(&scene, &[], "tcp-send-buffer", Place::Client);
        // What nothing holds back shares what there is.
        let shares = Scene { goodput_bps: 68e6, sndbuf: 0.0, sndbuf_bytes: 4_194_304, sender_facts: ordinary_host(), ..scene };
        assert_supports(&assessment(&CAUSE, Role::Path, &shares, &[]));
    }
}
