//! # tcp-send-buffer-fixed
//!
//! The sending application fixed its send buffer (`SO_SNDBUF`) below what the path needs, which disables autotuning.
//!
//! **Shows**: as tcp-send-buffer, but the socket is locked (`SO_BUF_LOCK`) and its buffer is below `tcp_wmem`'s
//! maximum.
//!
//! **Mistaken for**: tcp-send-buffer (then the socket is not locked), a receive window that is full first, an
//! application that writes slowly (then its buffer is empty).
//!
//! **Fix**: remove the call; else raise it together with `net.core.wmem_max`, which limits it.
//!
//! Source: `net/core/sock.c`, `SO_SNDBUF`; socket(7).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{ROOM, slowed_by_hosts, waits_on_the_path};
use crate::experiments::tcp::LARGER_BUFFER;
use narrows_model::load::tcp::TcpPlan;
use super::tcp_receive_buffer_fixed::fixed;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-send-buffer-fixed",
    about: "the sending application fixed a send buffer too small for this RTT",
    roles: &[Role::Sender],
    needs: &[keys::CORE_WMEM_MAX],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-send-buffer", "tcp-receive-window", "sender-app-slow"],
    fix,
    rank: 6,
    removed_by: Some(&LARGER_BUFFER),
    per_connection: true,
    ..Cause::COMMON
};

/// A writer that found its buffer full sleeps until a third of it is free (`sk_stream_is_writeable`,
/// include/net/sock.h), then fills it at one go; the freed third waits for the next wake-up. So two thirds of a large
/// buffer are in flight on average. Seen on 6.18 at 35 ms: 0.67 of 4 MiB, 0.71 of 1 MiB; at 1 ms all of 48 KiB.
const FILL: f64 = 2.0 / 3.0;

/// The last write may exceed the limit by a super-packet, which counts where the buffer is small.
const OVERSHOOT_BYTES: f64 = 48.0 * 1024.0;

/// Around that value: a writer that wakes sooner, as with small writes, keeps more in flight.
const SPREAD: [f64; 2] = [0.88, 1.25];

/// Payload per byte of send memory where it was not observed: full super-packets with `struct sk_buff` beside them.
const DENSITY: f64 = 0.97;

/// Goodput from a send buffer of so many bytes, the interval around it as ratios, and the arithmetic.
pub(super) fn from_buffer(evidence: &TcpEvidence, buffer: f64, name: &str) -> Option<(f64, [f64; 2], String)> {
    let density = evidence.base.send_density.unwrap_or(DENSITY);
    let payload = buffer * density;
    // The kernel asks before it queues, not after: a call of any size may follow the last free byte.
    let [mean, most] = evidence.base.queued_bytes.unwrap_or_default().map(|bytes| bytes * density);
    let filled = (payload * FILL + OVERSHOOT_BYTES).min(payload);
    let in_flight = if mean > payload { mean } else { filled };
    let how = format!(
        "{name} {} keeps {} in flight / RTT {}",
        units::bytes(buffer as u64),
        units::bytes(in_flight as u64),
        units::micros(evidence.window_rtt_us()? as u64)
    );
    let [low, high] = SPREAD;
    // Jitter and late acknowledgements make the round trip of a buffer longer than the shortest one.
    let longer = evidence.window_rtt_us()? / evidence.base.rtt_us.filter(|us| *us > 0.0)?;
    let room = evidence.path_has_room() || evidence.has_room_beside_others();
    let longer = if room { longer.min(1.0) } else { slowed_by_hosts(evidence, evidence.held_by_buffer()) };
    let low = if room { low.min(ROOM) } else { low } * longer * filled / in_flight;
    let high = if most > payload { high.max(most / in_flight) } else { high };
    Some((evidence.window_bps(in_flight)?, [low, high], how))
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    fixed(evidence, evidence.base.send_locked, evidence.load.send_buffer_bytes).ok()?;
    let (bps, spread, how) = from_buffer(evidence, evidence.base.sndbuf_bytes?, "SO_SNDBUF")?;
    ceiling_at(CAUSE.id, evidence, role, bps, spread, Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let base = &evidence.base;
    let tried = fixed(evidence, base.send_locked, evidence.load.send_buffer_bytes)?;
    let held = held(evidence.held_by_buffer(), "send buffer")?;
    let allows = base.sndbuf_bytes.and_then(|bytes| from_buffer(evidence, bytes, "SO_SNDBUF")).map(|(bps, ..)| bps);
    ended(waits_on_the_path(evidence, allows))?;
    let mut witnesses = vec![
        counter(format!("the sender waited for its send buffer {} of the time", units::percent(held))),
        parameter(format!(
            "the application fixed SO_SNDBUF at {}",
            units::bytes(base.sndbuf_bytes.unwrap_or(0.0) as u64)
        )),
    ];
    witnesses.extend(tried);
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let limit = evidence
        .number(role, keys::CORE_WMEM_MAX)
        .map_or_else(String::new, |max| format!(" (now {})", units::bytes(max as u64)));
    Fix {
        load: Some(TcpPlan { send_buffer_bytes: None, ..evidence.load.clone() }.into()),
        ..advice(format!(
            "remove the application's SO_SNDBUF call, so that the kernel tunes the buffer; else set a larger one and \
            raise net.core.wmem_max{limit}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::BufferLock;
    use super::*;

    /// SO_SNDBUF of 512 KiB at 35 ms: two thirds of its payload in flight, 83 Mbit/s.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 83e6,
            rtt_us: 35_100,
            sndbuf: 0.92,
            sndbuf_bytes: 524_288,
            cwnd: 400,
            lock: BufferLock { send: true, receive: false },
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn the_call_that_fixed_the_buffer_is_named() {
        let finding = named(&truth(), &[], "tcp-send-buffer-fixed", Place::Client);
        assert_rejects(&finding, "tcp-send-buffer", "SO_SNDBUF");
        assert_rejects(&finding, "tcp-receive-window", "only 0 %");
        assert_rejects(&finding, "sender-app-slow", "had data to send 100 %");
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").send_buffer_bytes, None);
    }

    #[test]
    fn a_buffer_that_the_kernel_tunes_is_another_cause() {
        assert_contradicts(&of(&Scene { lock: BufferLock::default(), ..truth() }), "the application did not fix the buffer");
    }

    #[test]
    fn a_fixed_buffer_that_seldom_fills_is_no_matter() {
        assert_contradicts(&of(&Scene { sndbuf: 0.19, ..truth() }), "only 19 %");
        assert_supports(&of(&Scene { sndbuf: 0.21, ..truth() }));
    }

    #[test]
    fn a_fixed_buffer_that_would_carry_far_more_is_a_hazard() {
        let verdict = crate::testing::verdict(&Scene { sndbuf_bytes: 4_194_304, ..truth() }, &[]);
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.hazards[0].starts_with("tcp-send-buffer-fixed"), "{:?}", verdict.hazards);
    }

    #[test]
    fn a_kernel_that_does_not_tell_leaves_it_open() {
        for (hidden, word) in
            [(&[Hidden::BufferLock] as &[Hidden], "SO_BUF_LOCK"), (&[Hidden::LimitedTimes], "the sender's kernel does not report what limited it")]
        {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(&scene), word);
            none_proven(&scene, &[]);
        }
    }
}
