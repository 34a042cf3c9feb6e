//! # nagle-delayed-ack
//!
//! The sending application writes small pieces and waits; the kernel keeps the last one back until what is in flight is acknowledged
//! (Nagle's algorithm), and the receiver acknowledges late, since only a part of a segment came.
//!
//! **Shows**: a part of a segment waits unsent though the windows are open; the receiver's delayed acknowledgements grow with the segments;
//! with `TCP_NODELAY` the same load carries clearly more.
//!
//! **Mistaken for**: a slow application (then `TCP_NODELAY` changes nothing), a long path.
//!
//! **Fix**: `TCP_NODELAY`, or one write for what belongs together.
//!
//! Source: RFC 1122 4.2.3.2 and 4.2.3.4 (delays of up to 500 ms, 40 ms in Linux); `net/ipv4/tcp_output.c`, `tcp_nagle_test`. Bulk loads
//! never wait so: it needs an application that waits between its writes.

use crate::causes::shared::rule::*;
use crate::experiments::tcp::NO_DELAY;
use narrows_model::load::tcp::TcpPlan;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "nagle-delayed-ack",
    about: "small writes wait for acknowledgements that the receiver delays",
    roles: &[Role::Sender],
    needs: &[keys::NETSTAT_TCP_EXT_DELAYED_ACKS],
    assess,
    look_alikes: &["sender-app-slow", "app-core-saturated", "tcp-receive-window", "path-capacity"],
    fix,
    rank: 9,
    removed_by: Some(&NO_DELAY),
    ..Cause::COMMON
};

/// Of the samples, and of the segments: fewer do not slow a connection down by a third.
const HELD: f64 = 0.3;
const DELAYED: f64 = 0.2;

/// Two loads of one path differ by less.
const GAIN: f64 = 1.3;

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let base = &evidence.base;
    if evidence.load.no_delay {
        return contradicts("TCP_NODELAY is set");
    }
    let Some(held) = base.nagle_share else { return cannot_tell("the sender's kernel does not say what waits unsent") };
    if held < HELD {
        return contradicts(format!("a part of a segment waited for an acknowledgement in {} of the samples", units::percent(held)));
    }
    let Some(other) = evidence.made(&NO_DELAY) else {
        return ask(&NO_DELAY, "parts of segments wait for acknowledgements; whether TCP_NODELAY carries more was not measured");
    };
    let gain = other.goodput_bps / evidence.goodput_bps();
    if gain < GAIN {
        return contradicts(format!("with TCP_NODELAY the load carried no more ({})", units::bps(other.goodput_bps)));
    }
    let sent = base.loss_whole.map(|loss| loss.sent);
    let delayed = evidence.grew(Role::Receiver, keys::NETSTAT_TCP_EXT_DELAYED_ACKS).zip(sent).filter(|(delayed, sent)| {
        *delayed as f64 >= DELAYED * *sent as f64
    });
    let witnesses = [
        Some(experiment(format!("with TCP_NODELAY the load carried {}, {gain:.1} times as much", units::bps(other.goodput_bps)))),
        Some(counter(format!(
            "a part of a segment waited for an acknowledgement in {} of the samples, with open windows",
            units::percent(held)
        ))),
        delayed.map(|(delayed, sent)| counter(format!("the receiver delayed {delayed} acknowledgements of {sent} segments"))),
    ];
    Assessment::Supports { share: held.max(0.6), witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    Fix {
        load: Some(TcpPlan { no_delay: true, ..evidence.load.clone() }.into()),
        ..advice("set TCP_NODELAY on the sender's socket, or write what belongs together in one call")
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// Two writes of 500 bytes each 40 ms.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 200e3,
            segments: 400,
            in_flight: Some(1),
            unsent: 500,
            write_bytes: 500,
            cwnd: 10,
            busy: 0.99,
            receiver_counts: vec![("netstat.TcpExt.DelayedACKs", 198)],
            ..slow()
        }
    }

    fn no_delay(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, unsent: 0, ..truth() }
    }

    fn of(scene: &Scene, experiments: &[(&str, &Scene)]) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, experiments)
    }

    #[test]
    fn writes_that_wait_for_a_late_acknowledgement_are_named() {
        assert_asks(&of(&truth(), &[]), &NO_DELAY);
        assert!(next(&truth(), &[]).contains(&NO_DELAY.id));
        let finding = named(&truth(), &[("no-delay", &no_delay(8e6))], "nagle-delayed-ack", Place::Client);
        assert_eq!(finding.witnesses.len(), 3, "{finding:#?}");
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").no_delay);
    }

    #[test]
    fn an_application_that_is_slow_by_itself_gains_nothing() {
        assert_contradicts(&of(&truth(), &[("no-delay", &no_delay(210e3))]), "no more");
        let mut set = truth();
        set.load.no_delay = true;
        assert_contradicts(&of(&set, &[]), "TCP_NODELAY is set");
    }

    #[test]
    fn a_bulk_load_has_full_segments_waiting() {
        assert_contradicts(&of(&full_path(Scene { unsent: 500_000, ..Scene::default() }), &[]), "0 % of the samples");
        assert_contradicts(&of(&Scene { unsent: 0, ..truth() }, &[]), "0 % of the samples");
        assert_contradicts(&of(&Scene { in_flight: Some(0), ..truth() }, &[]), "0 % of the samples");
    }
}
