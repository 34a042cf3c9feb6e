//! # tcp-limit-output
//!
//! The sender's kernel lets TCP hand only a few bytes to the device before they have left it (TCP small queues), and the device reports
//! late what has left.
//!
//! **Shows**: full segments wait unsent though both windows have room, and what TCP has handed down stands at
//! `net.ipv4.tcp_limit_output_bytes`.
//!
//! **Mistaken for**: a window or a buffer (then that is full), a local shaper (then the queueing discipline is what holds the bytes), a
//! paced connection (the kernel then holds back by the pacing rate, and this limit is not asked), a full core.
//!
//! **Fix**: raise `net.ipv4.tcp_limit_output_bytes`; let the device report sooner (`tx-usecs`).
//!
//! Source: `net/ipv4/tcp_output.c`, `tcp_small_queue_check`; kernel `Documentation/networking/ip-sysctl.rst`. Not seen on a real host: the
//! devices of the lab give their packets' memory back at once, so that the limit is never reached there.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-limit-output",
    about: "the sender's kernel hands too few bytes at a time to the device",
    roles: &[Role::Sender],
    needs: &[keys::TCP_LIMIT_OUTPUT_BYTES, keys::QDISC_RATE, keys::QDISC_ROOT_KIND],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-send-buffer", "tcp-receive-window", "local-shaper", "pacing-cap", "congestion-control", "path-capacity"],
    fix,
    rank: 6,
    per_connection: true,
    ..Cause::COMMON
};

/// Samples are instants: a limit that holds the sender back most of the time shows in this part of them.
const HELD: f64 = 0.3;

/// What TCP handed down stands at the limit from this part of it on, and goes beyond it by a super-packet and its overhead.
const AT_LIMIT: f64 = 0.7;
const SUPER_PACKET_BYTES: f64 = 262_144.0;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let base = &evidence.base;
    let held = known(base.held_below_share, "the sender's kernel does not say what waits unsent")?;
    if held < HELD {
        return Err(contradicts(format!("segments waited unsent below open windows in {} of the samples", units::percent(held))));
    }
    let Some(limit) = evidence.number(role, keys::TCP_LIMIT_OUTPUT_BYTES) else {
        return Err(cannot_tell("net.ipv4.tcp_limit_output_bytes of the sender could not be read"));
    };
    let below = known(base.below_bytes, "what TCP had handed to the device could not be read")?;
    if !(AT_LIMIT * limit..=limit + SUPER_PACKET_BYTES).contains(&below) {
        return Err(contradicts(format!(
            "TCP had handed {} to the device, and may hand {} to it",
            units::bytes(below as u64),
            units::bytes(limit as u64)
        )));
    }
    let paces = base.congestion_control.as_deref().is_some_and(|name| name.starts_with("bbr"));
    if paces || base.max_pacing_bps.is_some() || evidence.text(role, keys::QDISC_ROOT_KIND) == Some("fq") {
        return Err(contradicts("the connection is paced: its pacing rate limits it, not this setting"));
    }
    if let Some(rate) = evidence.number(role, keys::QDISC_RATE) {
        return Err(contradicts(format!("the queueing discipline of the sender holds the bytes: its rate is {}", units::bps(rate))));
    }
    refuted(end_bound(evidence))?;
    let room = room(evidence)?;
    let waited = counter(format!(
        "full segments waited unsent in {} of the samples although both windows had room; {} was queued at the device, the limit is {} \
         (net.ipv4.tcp_limit_output_bytes)",
        units::percent(held),
        units::bytes(below as u64),
        units::bytes(limit as u64)
    ));
    supports(held, [waited, room])
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let now = evidence.number(role, keys::TCP_LIMIT_OUTPUT_BYTES).unwrap_or(0.0) as u64;
    let bytes = now.saturating_mul(4).clamp(1 << 20, 16 << 20);
    let advice = "let TCP hand more bytes to the device at a time; look at how late it reports what it sent (ethtool -c: tx-usecs)";
    sysctl_fix(evidence, role, advice, "net.ipv4.tcp_limit_output_bytes", bytes.to_string())
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::TcpPlan;
    use super::*;

    /// 128 KiB at a time, on a path that carries far more; the windows are open.
    fn truth() -> Scene {
        let facts = with(ordinary_host(), fact("tcp.limit_output_bytes", 131_072_i64, Unit::Bytes));
        Scene { starved: false, in_flight: Some(90), below: 140_000, unsent: 2 << 20, cwnd: 400, sender_facts: facts, ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn bytes_that_wait_for_the_device_below_open_windows_are_named() {
        let finding = named(&truth(), &[], "tcp-limit-output", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_limit_output_bytes=1048576");
        let four = Scene { load: TcpPlan { streams: 4, ..truth().load }, goodput_bps: 37.2e6, ..truth() };
        let told = TcpEvidence::of(&truth().run(&[("more-streams", &four)]), 0).expect("a baseline");
        assert_contradicts(&CAUSE.weigh(&told, Role::Sender), "the limit is not per connection");
        // A far end that shows nothing of its machine may be what is full.
        let mut run = truth().run(&[("more-streams", &four)]);
        tcp_end(&mut run.trials[1].trial.server).host.clear();
        let told = TcpEvidence::of(&run, 0).expect("a baseline");
        assert_cannot_tell(&CAUSE.weigh(&told, Role::Sender), "a full machine");
    }

    #[test]
    fn a_low_limit_that_is_not_reached_or_not_asked_costs_nothing() {
        assert_contradicts(&of(&Scene { below: 60_000, ..truth() }), "may hand 128 KiB");
        assert_contradicts(&of(&Scene { in_flight: Some(400), ..truth() }), "0 % of the samples");
        assert_contradicts(&of(&Scene { unsent: 0, ..truth() }), "0 % of the samples");
        assert_contradicts(&of(&Scene { congestion_control: "bbr", ..truth() }), "is paced");
        assert_contradicts(&of(&full_path(truth())), "what the path carries");
    }

    #[test]
    fn a_shaper_and_a_full_thread_hold_the_bytes_themselves() {
        let shaped = with(truth().sender_facts, fact("qdisc.rate", 40_000_000_i64, Unit::BitsPerSecond));
        assert_contradicts(&of(&Scene { sender_facts: shaped, ..truth() }), "its rate is 40.0 Mbit/s");
        assert_contradicts(&of(&Scene { sender_thread: 0.95, ..truth() }), "of a core");
    }

    #[test]
    fn what_cannot_be_read_leaves_it_open() {
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::SocketMemory], ..truth() }), "could not be read");
        assert_cannot_tell(&of(&Scene { sender_facts: ordinary_host(), ..truth() }), "could not be read");
        assert_cannot_tell(&of(&Scene { profile: None, ..truth() }), "was not measured");
    }
}
