//! # qdisc-drop
//!
//! The sender's own queueing discipline drops packets: its queue is too short for the bursts of TCP.
//!
//! **Shows**: `drops` of the discipline match the TCP retransmissions. The path has no fault.
//!
//! **Mistaken for**: loss on the path.
//!
//! **Fix**: a longer queue (`limit`, `txqueuelen`).
//!
//! Source: tc(8), `TCA_STATS2`.

use crate::causes::shared::layers::qdisc_device;
use crate::causes::shared::rule::*;
use crate::causes::shared::window::loss_does_not_bind;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "qdisc-drop",
    about: "the sender's own queueing discipline drops packets",
    roles: &[Role::Sender],
    needs: &[
        keys::QDISC_DROPS,
        keys::NIC_NAME,
        keys::QDISC_DEVICE,
        keys::NIC_KIND,
        keys::NIC_SPEED,
        keys::QDISC_RATE,
        keys::QDISC_ROOT_KIND,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "path-policer", "local-shaper", "path-capacity"],
    fix,
    rank: 8,
    device: true,
    ..Cause::COMMON
};

/// Fewer losses than this over a trial do not slow it down.
const FEW: u64 = 20;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let dropped = known(evidence.grew(role, keys::QDISC_DROPS), "the counters of the sender's queueing discipline could not be read")?;
    if dropped == 0 {
        return Err(contradicts("the sender's queueing discipline dropped nothing"));
    }
    let loss = known(evidence.base.loss_whole, "the sender's retransmissions could not be read")?;
    // The counter is the device's: drops of other traffic cost this connection nothing. It has lost, by its
    // congestion window, and not with a queue further on that says that the path is full anyway.
    if loss.is_few(FEW) {
        return Err(contradicts(format!("TCP lost only {} segments", loss.lost())));
    }
    ended(loss_does_not_bind(evidence))?;
    if evidence.queue_stood() == Some(true) {
        return Err(contradicts("the RTT rose as behind a full queue: the path is at capacity regardless of the sender's own drops"));
    }
    let part = dropped as f64 / loss.lost() as f64;
    if part < 0.5 {
        return Err(contradicts(format!(
            "the queueing discipline dropped {dropped} packets, but {} segments were lost",
            loss.lost()
        )));
    }
    // At the rate of the shaper or of the link, drops are how a full queue tells TCP to slow down.
    let rate = evidence.number(role, keys::QDISC_RATE).or_else(|| evidence.link_bps_of(role));
    if let (Some(rate), Some(mss)) = (rate, evidence.base.mss_bytes) {
        let full = rate * evidence.wire_efficiency(mss);
        if evidence.goodput_bps() >= 0.9 * full {
            return Err(contradicts(format!(
                "drops at the rate of the interface or its shaper ({}): its queue is full because it is at capacity",
                units::bps(rate)
            )));
        }
    }
    let witnesses = [
        counter(format!("the sender's queueing discipline dropped {dropped} packets")),
        counter(format!("TCP lost {} segments; the drops explain {}", loss.lost(), units::percent(part.min(1.0)))),
    ];
    supports(part.min(1.0), witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = qdisc_device(evidence, role).to_owned();
    let kind = evidence.text(role, keys::QDISC_ROOT_KIND).unwrap_or("queueing discipline");
    let advice = format!("give {device} a longer queue: replace its {kind} with the default, or raise the limit");
    setting_fix(evidence, role, advice, Setting::RootQdisc { device, kind: "default".to_owned() })
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// A queue of a few packets: 500 dropped, 520 sent again.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 200e6,
            rtt_us: 35_100,
            cwnd: 600,
            lost: 520,
            segments: 140_000,
            sender_counts: vec![("qdisc.drops", 500)],
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    fn dropped(n: i64) -> Scene {
        Scene { sender_counts: vec![("qdisc.drops", n)], ..truth() }
    }

    #[test]
    fn drops_of_the_own_queue_that_account_for_the_loss_are_named() {
        let finding = named(&truth(), &[], "qdisc-drop", Place::Client);
        assert_rejects(&finding, "random-loss", "own queue");
        assert_rejects(&finding, "path-policer", "own queue");
        assert_rejects(&finding, "local-shaper", "has no rate");
    }

    #[test]
    fn half_of_the_loss_must_be_accounted_for() {
        assert_contradicts(&of(&dropped(255)), "but 520 segments were lost");
        assert_supports(&of(&dropped(265)));
        assert_contradicts(&of(&dropped(0)), "dropped nothing");
    }

    #[test]
    fn drops_that_cost_this_connection_nothing_are_not_its_cause() {
        assert_contradicts(&of(&Scene { lost: 19, ..truth() }), "only 19 segments");
        assert_supports(&of(&Scene { lost: 20, ..truth() }));
        assert_contradicts(&of(&Scene { rtt_us: 50_000, ..truth() }), "the RTT rose as behind a full queue: the path is at capacity");
        assert_contradicts(&of(&Scene { rwnd: 0.7, ..truth() }), "congestion window");
    }

    #[test]
    fn a_queue_that_is_full_at_its_rate_is_at_capacity() {
        let shaped = with(ordinary_host(), fact("qdisc.rate", 220_000_000_i64, Unit::BitsPerSecond));
        assert_contradicts(&of(&Scene { sender_facts: shaped, ..truth() }), "at capacity");
        let faster = with(ordinary_host(), fact("qdisc.rate", 260_000_000_i64, Unit::BitsPerSecond));
        assert_supports(&of(&Scene { sender_facts: faster, ..truth() }));
    }

    #[test]
    fn counters_that_cannot_be_read_leave_it_open() {
        let scene = Scene { sender_counts: Vec::new(), ..truth() };
        assert_cannot_tell(&of(&scene), "counters");
        none_proven(&scene, &[]);
        for hidden in [&[Hidden::Segments] as &[Hidden], &[Hidden::LimitedTimes]] {
            assert_cannot_tell(&of(&Scene { hidden, ..truth() }), "");
        }
    }
}
