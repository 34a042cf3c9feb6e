//! # host-queue-delay
//!
//! Segments stay in the sender's own queues so long that TCP tries to retransmit them before they have left the host.
//!
//! **Shows**: `TCPSpuriousRtxHostQueues` grows all through the load, the RTT rises under load, and the path itself has room.
//!
//! **Mistaken for**: a queue on the path, a shaper of the sender (then its rate is known), pause frames, random loss.
//!
//! **Fix**: the driver or the queueing discipline that holds packets: `fq_codel` or `fq`, byte queue limits, a smaller transmit ring.
//!
//! Source: `net/ipv4/tcp_output.c`, `skb_still_in_host_queue`; kernel `Documentation/networking/snmp_counter.rst`. Not seen on a real host.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "host-queue-delay",
    about: "segments wait in the sender's own queues so long that TCP assumes they were lost",
    roles: &[Role::Sender],
    needs: &[keys::NETSTAT_TCP_EXT_TCP_SPURIOUS_RTX_HOST_QUEUES, keys::QDISC_RATE],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["local-shaper", "pause-frames", "random-loss", "path-capacity", "reverse-path-congested"],
    fix: |_, _| {
        advice(
            "look at what holds packets in the sender: its queueing discipline (tc -s qdisc; fq_codel keeps queues short), the driver's byte \
             queue limits, the length of its transmit ring",
        )
    },
    rank: 6,
    device: true,
    ..Cause::COMMON
};

/// A few happen whenever a device is reset or a queue stalls once.
const EACH_S: f64 = 5.0;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let Some(times) = evidence.grew(role, keys::NETSTAT_TCP_EXT_TCP_SPURIOUS_RTX_HOST_QUEUES) else {
        return Err(cannot_tell("TCPSpuriousRtxHostQueues of the sender could not be read"));
    };
    if (times as f64) < EACH_S * evidence.base.whole_s {
        return Err(contradicts(format!("TCP tried only {times} times to retransmit segments that were still in the sender's queues")));
    }
    if let Some(rate) = evidence.number(role, keys::QDISC_RATE) {
        return Err(contradicts(format!("the queueing discipline of the sender has a rate: {}", units::bps(rate))));
    }
    refuted(end_bound(evidence))?;
    if !known(evidence.rtt_rose(), "the RTT could not be read")? {
        return Err(contradicts("the RTT did not rise under load: nothing waits"));
    }
    let room = room(evidence)?;
    let waits = counter(format!(
        "TCP tried {times} times to retransmit segments that were still in the sender's queues (TCPSpuriousRtxHostQueues)"
    ));
    supports(0.8, [waits, room])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn truth(times: i64) -> Scene {
        Scene { rtt_us: 90_000, sender_counts: vec![("netstat.TcpExt.TCPSpuriousRtxHostQueues", times)], ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn segments_that_never_left_the_host_are_named() {
        named(&truth(300), &[], "host-queue-delay", Place::Client);
    }

    #[test]
    fn a_few_a_shaper_and_a_full_path_are_not_it() {
        assert_contradicts(&of(&truth(12)), "12 times");
        let shaped = with(truth(300).sender_facts, fact("qdisc.rate", 40_000_000_i64, Unit::BitsPerSecond));
        assert_contradicts(&of(&Scene { sender_facts: shaped, ..truth(300) }), "40.0 Mbit/s");
        assert_contradicts(&of(&full_path(truth(300))), "what the path carries");
        assert_contradicts(&of(&Scene { rtt_us: 35_100, ..truth(300) }), "nothing waits");
        assert_contradicts(&of(&Scene { sender_thread: 0.97, ..truth(300) }), "of a core");
        assert_cannot_tell(&of(&slow()), "could not be read");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Rtt], ..truth(300) }), "RTT could not be read");
    }
}
