//! # tcp-receive-buffer-fixed
//!
//! The receiving application fixed its receive buffer (`SO_RCVBUF`) below what the path needs, which disables
//! autotuning.
//!
//! **Shows**: as tcp-receive-window, but the socket is locked (`SO_BUF_LOCK`).
//!
//! **Mistaken for**: tcp-receive-window (then the socket is not locked), a slow reader (its queue is full), disabled
//! window scaling (then no buffer helps).
//!
//! **Fix**: remove the call; else raise it together with `net.core.rmem_max`, which limits it (and nothing else).
//!
//! Source: `net/core/sock.c`, `SO_RCVBUF`; socket(7).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::{waits_on_the_path, window_ceiling};
use crate::experiments::tcp::LARGER_BUFFER;
use narrows_model::load::tcp::TcpPlan;
use super::receiver_app_slow::{leaves_unread, unread};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-receive-buffer-fixed",
    about: "the receiving application fixed a receive buffer too small for this RTT",
    roles: &[Role::Receiver],
    needs: &[
        keys::CORE_RMEM_MAX,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "receiver-app-slow", "window-scaling-off"],
    fix,
    rank: 6,
    removed_by: Some(&LARGER_BUFFER),
    per_connection: true,
    ..Cause::COMMON
};

/// Buffers that the kernel tunes must carry this much more before the fixed one is blamed.
const GAIN: f64 = 1.3;

/// Whether a buffer is fixed, with the witness of the trial where that had to tell: a kernel before 5.15 does not say
/// (`SO_BUF_LOCK`), and where the load asks for a size it may have got enough.
pub(super) fn fixed(
    evidence: &TcpEvidence,
    locked: Option<bool>,
    asked_bytes: Option<u32>,
) -> Result<Option<Witness>, Assessment> {
    match (locked, asked_bytes) {
        (Some(true), _) => return Ok(None),
        (Some(false), _) => return Err(contradicts("the application did not fix the buffer")),
        (None, None) => {
            return Err(cannot_tell(
                "the kernel does not report whether the application fixed the buffer (SO_BUF_LOCK, 5.15)",
            ));
        }
        (None, Some(_)) => {}
    }
    let tuned = made(evidence, &LARGER_BUFFER, "autotuned buffers were not measured")?;
    let says = format!("with autotuned buffers the same load carried {}", units::bps(tuned.goodput_bps));
    if tuned.goodput_bps < GAIN * evidence.goodput_bps() { Err(contradicts(says)) } else { Ok(Some(experiment(says))) }
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let base = &evidence.base;
    fixed(evidence, base.receive_locked, evidence.load.receive_buffer_bytes).ok()?;
    let window = base.snd_wnd_bytes?;
    let how = format!(
        "window of {} (all that SO_RCVBUF {} gives) / RTT {}",
        units::bytes(window as u64),
        units::bytes(base.rcvbuf_bytes? as u64),
        units::micros(evidence.window_rtt_us()? as u64)
    );
    window_ceiling(CAUSE.id, evidence, role, window, Method::Inferred, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let base = &evidence.base;
    let tried = fixed(evidence, base.receive_locked, evidence.load.receive_buffer_bytes)?;
    let held = held(evidence.held_by_window(), "receive window")?;
    let (Some(unread), Some(window)) = (unread(evidence), base.snd_wnd_bytes) else {
        return Err(cannot_tell("the receiver's queue could not be read, so a slow reader cannot be excluded"));
    };
    if unread > 0.25 * window || leaves_unread(evidence) {
        return Err(contradicts(format!(
            "{} unread at {}: the reader is slow",
            units::bytes(unread as u64),
            evidence.place(role)
        )));
    }
    ended(waits_on_the_path(evidence, evidence.window_bps(window)))?;
    let mut witnesses = vec![
        counter(format!("the sender waited for the receive window {} of the time", units::percent(held))),
        parameter(format!(
            "the application fixed SO_RCVBUF at {}",
            units::bytes(base.rcvbuf_bytes.unwrap_or(0.0) as u64)
        )),
    ];
    witnesses.extend(tried);
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let limit = evidence
        .number(role, keys::CORE_RMEM_MAX)
        .map_or_else(String::new, |max| format!(" (now {})", units::bytes(max as u64)));
    Fix {
        load: Some(TcpPlan { receive_buffer_bytes: None, ..evidence.load.clone() }.into()),
        ..advice(format!(
            "remove the application's SO_RCVBUF call, so that the kernel tunes the buffer; else set a larger one and \
            raise net.core.rmem_max{limit}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::BufferLock;
    use super::*;

    /// The story of 2007: `iperf -s -w4M` got 256 KiB, since net.core.rmem_max was 131071; 42 Mbit/s at 35 ms, though
    /// tcp_rmem would have grown to 20 MB.
    fn truth() -> Scene {
        let facts = with(ordinary_host(), fact("tcp.rmem.max", 20_000_000_i64, Unit::Bytes));
        Scene {
            goodput_bps: 42.1e6,
            rtt_us: 35_100,
            rwnd: 0.97,
            snd_wnd: 184_000,
            rcvbuf: 262_142,
            lock: BufferLock { send: false, receive: true },
            receiver_facts: with(facts, fact("core.rmem.max", 131_071_i64, Unit::Bytes)),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn the_call_that_capped_the_buffer_is_named_and_not_the_sysctl() {
        let finding = named(&truth(), &[], "tcp-receive-buffer-fixed", Place::Server);
        assert_rejects(&finding, "tcp-receive-window", "the application fixed the receive buffer");
        assert_rejects(&finding, "receiver-app-slow", "the receiving application keeps up");
        assert_rejects(&finding, "window-scaling-off", "has window scaling");
        assert!(finding.fix.advice.contains("rmem_max (now 128 KiB)"), "{}", finding.fix.advice);
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").receive_buffer_bytes, None);
    }

    #[test]
    fn a_buffer_that_the_kernel_tunes_is_another_cause() {
        assert_contradicts(&of(&Scene { lock: BufferLock::default(), ..truth() }), "the application did not fix the buffer");
    }

    #[test]
    fn a_fixed_buffer_that_is_large_enough_is_no_matter() {
        let wide = |rwnd| Scene { rwnd, snd_wnd: 8_000_000, ..truth() };
        assert_contradicts(&of(&wide(0.19)), "only 19 %");
        assert_supports(&of(&wide(0.21)));
    }

    #[test]
    fn a_slow_reader_fills_a_fixed_buffer_too() {
        assert_contradicts(&of(&Scene { recv_q: 47_000, ..truth() }), "the reader is slow");
        assert_supports(&of(&Scene { recv_q: 45_000, ..truth() }));
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_the_call_is_asked_by_a_trial_with_tuned_buffers() {
        let mut scene = Scene { hidden: &[Hidden::BufferLock], ..truth() };
        scene.load.receive_buffer_bytes = Some(4 << 20);
        assert_asks(&of(&scene), &LARGER_BUFFER);
        assert!(next(&scene, &[]).contains(&LARGER_BUFFER.id));
        let tuned = |goodput_bps| Scene { goodput_bps, ..truth() };
        let with = |tuned: &Scene| assessment(&CAUSE, Role::Receiver, &scene, &[("larger-buffer", tuned)]);
        assert_contradicts(&with(&tuned(54e6)), "carried 54.0 Mbit/s");
        assert_supports(&with(&tuned(55e6)));
        let finding = named(&scene, &[("larger-buffer", &tuned(828e6))], CAUSE.id, Place::Server);
        assert_eq!(finding.prediction.expect("what was measured").bps, tuned(828e6).goodput_bps);
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_the_call_accuses_no_one_else() {
        for hidden in [&[Hidden::BufferLock] as &[Hidden], &[Hidden::RecvQ], &[Hidden::LimitedTimes]] {
            let scene = Scene { hidden, ..truth() };
            assert_cannot_tell(&of(&scene), "");
            none_proven(&scene, &[]);
        }
    }
}
