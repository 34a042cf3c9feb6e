//! # tcp-send-buffer
//!
//! The sender's send buffer cannot hold the unacknowledged data that the path needs: the maximum of `tcp_wmem` is too
//! small.
//!
//! **Shows**: the send buffer limits the sender most of the time; the writer is blocked; the local queue is empty.
//! Goodput is payload in the buffer / RTT.
//!
//! **Mistaken for**: a buffer fixed by the application (the socket is locked), a local shaper (its queue is not empty).
//!
//! **Fix**: raise the third value of `net.ipv4.tcp_wmem`.
//!
//! Source: `net/ipv4/tcp_input.c`, `tcp_sndbuf_expand`; `net/core/stream.c`, `sk_stream_wait_memory`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{raise, waits_on_the_path};
use narrows_model::host::buffers::SEND;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-send-buffer",
    about: "the sender's send buffer is too small for this RTT",
    roles: &[Role::Sender],
    needs: &[
        keys::TCP_WMEM_MIN,
        keys::TCP_WMEM_DEFAULT,
        keys::TCP_WMEM_MAX,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &[
        "tcp-send-buffer-fixed",
        "tcp-receive-window",
        "local-shaper",
        "congestion-control",
        "path-capacity",
    ],
    fix,
    rank: 5,
    per_connection: true,
    ..Cause::COMMON
};

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    if evidence.base.send_locked == Some(true) {
        return None;
    }
    let max = evidence.number(role, keys::TCP_WMEM_MAX)?;
    let (bps, spread, how) = super::tcp_send_buffer_fixed::from_buffer(evidence, max, "tcp_wmem max")?;
    ceiling_at(CAUSE.id, evidence, role, bps, spread, Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let base = &evidence.base;
    let held = held(evidence.held_by_buffer(), "send buffer")?;
    if base.send_locked == Some(true) {
        return Err(contradicts("the application fixed the send buffer (SO_SNDBUF); tcp_wmem does not apply"));
    }
    let (Some(buffer), Some(max)) = (base.sndbuf_bytes, evidence.number(role, keys::TCP_WMEM_MAX)) else {
        return Err(cannot_tell("the sender's buffer or its tcp_wmem could not be read"));
    };
    if buffer < 0.9 * max {
        return Err(contradicts(format!(
            "the send buffer is {}, and tcp_wmem allows {}",
            units::bytes(buffer as u64),
            units::bytes(max as u64)
        )));
    }
    let allows = super::tcp_send_buffer_fixed::from_buffer(evidence, max, "tcp_wmem max").map(|(bps, ..)| bps);
    ended(waits_on_the_path(evidence, allows))?;
    let waited = counter(format!(
        "the sender waited for its send buffer {} of the time, with the buffer at the tcp_wmem maximum of {}",
        units::percent(held),
        units::bytes(max as u64)
    ));
    supports(held, [Some(waited), path_has_room(evidence)])
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    raise(evidence, role, &SEND)
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use crate::testing::profile::ProfiledPath;
    use narrows_model::BufferLock;
    use super::*;

    /// The second round: 4 MiB at 35 ms carry 634 Mbit/s.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 634e6,
            rtt_us: 35_300,
            sndbuf: 0.9,
            sndbuf_bytes: 4_194_304,
            sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 4_194_304_i64, Unit::Bytes)),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_send_buffer_of_4_mib_at_35_ms_is_named() {
        let finding = named(&truth(), &[], "tcp-send-buffer", Place::Client);
        assert_rejects(&finding, "tcp-send-buffer-fixed", "the application did not fix the buffer");
        assert_rejects(&finding, "tcp-receive-window", "only 0 %");
        assert_rejects(&finding, "local-shaper", "has no rate");
        assert!(
            finding.fix.commands[0].run.starts_with("sysctl -w net.ipv4.tcp_wmem='4096 16384 "),
            "{:?}",
            finding.fix
        );
    }

    /// 100 kB at 6 ms, on a path that carries 1 Gbit/s.
    fn small() -> Scene {
        Scene {
            goodput_bps: 110e6,
            min_rtt_us: 6_000,
            rtt_us: 6_200,
            sndbuf_bytes: 100_000,
            queued: Some(100_000),
            segments: 76_000,
            cwnd: 300,
            in_flight: Some(62),
            congestion_control: "reno",
            sender_facts: with(ordinary_host(), fact("tcp.wmem.max", 100_000_i64, Unit::Bytes)),
            profile: Some(ProfiledPath { idle_rtt_us: 6_000, ..ProfiledPath::default() }),
            ..truth()
        }
    }

    #[test]
    fn what_udp_carried_until_a_host_could_not_foretells_no_more_than_the_load_of_the_hosts() {
        // 3.3 Gbit/s of UDP, where TCP reaches 1.0; a receive window that would allow 1.2 to 2.1, beyond what the cores are known to do.
        let profile = ProfiledPath { rate_bps: 4e9, burst_bps: 4e9, sends_bps: 3.4e9, tried_bps: 5e9, idle_rtt_us: 65_000, ..ProfiledPath::default() };
        let of = |profile, busy| {
            let scene = Scene {
                goodput_bps: 250e6,
                min_rtt_us: 65_000,
                rtt_us: 65_300,
                sndbuf_bytes: 3_000_000,
                rcvbuf: 33_554_432,
                sender_core: core(0.0, busy),
                sender_thread: busy,
                profile: Some(profile),
                ..truth()
            };
            let scene = crate::testing::virtual_hosts(scene);
            let sender_facts = with(scene.sender_facts.clone(), fact("tcp.wmem.max", 3_000_000_i64, Unit::Bytes));
            let receiver_facts = with(scene.receiver_facts.clone(), fact("tcp.rmem.max", 33_554_432_i64, Unit::Bytes));
            named(&Scene { sender_facts, receiver_facts, ..scene }, &[], "tcp-send-buffer", Place::Client)
        };
        let finding = of(profile, 0.25);
        let prediction = finding.prediction.expect("a bound");
        assert_eq!((prediction.interval_bps, prediction.bps), (None, 1e9), "a quarter of a core carries 250 Mbit/s");
        // 1 Gbit/s x 65 ms are 8.1 MB, of which two thirds of a buffer are in flight.
        let advice = finding.fix.advice;
        assert!(advice.starts_with("raise the send buffer maximum to 32 MiB: twice the bandwidth-delay product at 1.00 Gbit/s, with overhead; the path may"), "{advice}");
        let known = of(ProfiledPath { rate_bps: 0.8e9, burst_bps: 0.8e9, sends_bps: 100e9, ..profile }, 0.25);
        assert!(known.prediction.is_some_and(|it| it.interval_bps.is_some() && (it.bps / 772e6 - 1.0).abs() < 0.01));
        assert!(known.fix.advice.ends_with("twice the bandwidth-delay product at 772 Mbit/s, with overhead"), "{:?}", known.fix);
    }

    #[test]
    fn jitter_makes_the_round_trip_of_a_buffer_longer_than_the_shortest_one() {
        named(&Scene { goodput_bps: 64e6, min_rtt_us: 5_000, rtt_us: 7_500, ..small() }, &[], "tcp-send-buffer", Place::Client);
    }

    #[test]
    fn a_buffer_at_its_maximum_was_full_though_the_kernel_counted_no_time() {
        // The kernel counts the time only where the congestion window was not full when the buffer was (`tcp_cwnd_validate`).
        let uncounted = Scene { sndbuf: 0.0, starved: true, lock: BufferLock::default(), ..small() };
        let mut slow = uncounted.clone();
        slow.load.application.write_bps = 500_000_000;
        for scene in [uncounted, slow] {
            let finding = named(&scene, &[], "tcp-send-buffer", Place::Client);
            assert!(finding.rejected.iter().all(|rejected| rejected.id != "sender-app-slow"), "{finding:#?}");
        }
    }

    #[test]
    fn on_a_short_path_the_hosts_take_most_of_the_round_trip() {
        // 58 KiB each 60 us would be 7.9 Gbit/s; each 300 us under load they are 1.57.
        let short =
            Scene { goodput_bps: 1.5e9, min_rtt_us: 60, rtt_us: 300, segments: 1_000_000, sndbuf_bytes: 65_536, ..truth() };
        let virtual_path = crate::testing::virtual_hosts(short);
        let sender_facts = with(virtual_path.sender_facts.clone(), fact("tcp.wmem.max", 65_536_i64, Unit::Bytes));
        named(&Scene { sender_facts, ..virtual_path }, &[], "tcp-send-buffer", Place::Client);
    }

    #[test]
    fn a_fixed_buffer_is_another_cause_and_one_that_may_grow_is_none() {
        let fixed = BufferLock { send: true, receive: false };
        assert_contradicts(&of(&Scene { lock: fixed, ..truth() }), "SO_SNDBUF");
        assert_contradicts(&of(&Scene { sndbuf_bytes: 3_770_000, ..truth() }), "and tcp_wmem allows");
        assert_supports(&of(&Scene { sndbuf_bytes: 3_780_000, ..truth() }));
    }

    #[test]
    fn a_fifth_of_the_time_must_be_lost_to_it() {
        assert_contradicts(&of(&Scene { sndbuf: 0.19, ..truth() }), "only 19 %");
        assert_supports(&of(&Scene { sndbuf: 0.21, ..truth() }));
    }

    #[test]
    fn behind_a_queue_of_the_path_it_is_full_and_not_small() {
        let queued = Scene { goodput_bps: 300e6, early_peak_bps: 300e6, rtt_us: 80_000, ..truth() };
        let verdict = crate::testing::verdict(&queued, &no_more(&queued));
        assert_eq!(verdict.status, Status::Healthy, "{verdict:#?}");
        let rejected = verdict.causes[0].rejected.iter().find(|rejected| rejected.id == CAUSE.id).expect("a look-alike");
        assert!(rejected.why.contains("the limit is not per connection"), "{rejected:?}");
    }

    #[test]
    fn what_a_kernel_or_a_host_does_not_tell_leaves_it_open() {
        for hidden in [&[Hidden::LimitedTimes] as &[Hidden], &[Hidden::SocketMemory]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(&scene), "");
            none_proven(&scene, &[]);
        }
        let scene = Scene { sender_facts: without(ordinary_host(), "tcp.wmem.max"), ..truth() };
        assert_cannot_tell(&of(&scene), "tcp_wmem could not be read");
        none_proven(&scene, &[]);
    }
}
