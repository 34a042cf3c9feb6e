//! # tcp-receive-buffer-fixed
//!
//! The receiving application fixed its receive buffer (`SO_RCVBUF`) below what the path needs, and so ended the
//! autotuning.
//!
//! **Shows**: as tcp-receive-window, but the socket is locked (`SO_BUF_LOCK`).
//!
//! **Mistaken for**: tcp-receive-window (then the socket is not locked), a slow reader (its queue is full), window scaling
//! that is off (then no buffer helps).
//!
//! **Fix**: drop the call; if it must stay, raise it together with `net.core.rmem_max`, which caps it (and caps
//! nothing else).
//!
//! Source: `net/core/sock.c`, `SO_RCVBUF`; socket(7).

use super::{Cause, Testimony, advice, cannot_tell, counter, denies, parameter, window_ceiling};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, plan::TcpPlan, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "tcp-receive-buffer-fixed",
    about: "the receiving application fixed a receive buffer that is too small for this RTT",
    seats: &[Seat::Receiver],
    needs: &[
        Key::new("core.rmem.max", Unit::Bytes),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &["tcp-receive-window", "receiver-app-slow", "window-scaling-off"],
    fix,
    healthy: false,
    rank: 6,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let base = &evidence.base;
    if base.receive_locked != Some(true) {
        return None;
    }
    let window = base.snd_wnd_bytes?;
    let how = format!(
        "window of {} (all that SO_RCVBUF {} gives) / RTT {}",
        units::bytes(window as u64),
        units::bytes(base.rcvbuf_bytes? as u64),
        units::micros(evidence.min_rtt_us? as u64)
    );
    window_ceiling(CAUSE.id, evidence, seat, window, Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let base = &evidence.base;
    match base.receive_locked {
        None => {
            return cannot_tell(
                "the kernel does not say whether the application fixed the receive buffer (SO_BUF_LOCK, 5.11)",
            );
        }
        Some(false) => return denies("the application left the receive buffer to the kernel"),
        Some(true) => {}
    }
    let Some(held) = evidence.held_by_window() else {
        return cannot_tell("the sender's kernel does not say what held it back");
    };
    if held < 0.2 {
        return denies(format!("the receive window held the sender back only {} of the time", units::percent(held)));
    }
    let (Some(unread), Some(window)) = (base.recv_q_bytes, base.snd_wnd_bytes) else {
        return cannot_tell("the receiver's queue could not be read, so a slow reader cannot be told apart");
    };
    if unread > 0.25 * window {
        return denies(format!(
            "{} wait unread at {}: the reader is slow",
            units::bytes(unread as u64),
            evidence.place(seat)
        ));
    }
    Testimony::Says {
        share: held,
        witnesses: vec![
            counter(format!("the sender waited for the receive window {} of the time", units::percent(held))),
            parameter(format!(
                "the application fixed SO_RCVBUF: the kernel holds it at {}",
                units::bytes(base.rcvbuf_bytes.unwrap_or(0.0) as u64)
            )),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let limit = evidence
        .number(seat, "core.rmem.max")
        .map_or_else(String::new, |max| format!(" (now {})", units::bytes(max as u64)));
    Fix {
        load: Some(TcpPlan { receive_buffer_bytes: None, ..evidence.load.clone() }),
        ..advice(format!(
            "drop the application's SO_RCVBUF call, so that the kernel tunes the buffer; if it must stay, ask for \
             more and raise net.core.rmem_max{limit}"
        ))
    }
}
