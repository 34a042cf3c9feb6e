//! # tcp-receive-window
//!
//! The receiver's kernel may not announce a window as large as the path needs: `tcp_rmem` ends the autotuning too
//! early.
//!
//! **Shows**: the sender is held back by the receive window most of the time, the window stands still, the reader has
//! nothing left to read. Goodput is window / RTT.
//!
//! **Mistaken for**: a slow reader (its queue is full), a buffer fixed by the application (the socket is locked), a
//! lossy path.
//!
//! **Fix**: raise the third word of `net.ipv4.tcp_rmem` to twice the bandwidth-delay product and more, since a part
//! of the buffer holds the kernel's overhead.
//!
//! Source: `net/ipv4/tcp_input.c`, `tcp_rcv_space_adjust`; RFC 7323.

use super::{Cause, Testimony, cannot_tell, ceiling, counter, denies, needed_buffer_bytes, raised_max, sysctl_fix};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "tcp-receive-window",
    about: "the receiver's kernel announces a window that is too small for this RTT",
    seats: &[Seat::Receiver],
    needs: &[
        Key::new("tcp.rmem.min", Unit::Bytes),
        Key::new("tcp.rmem.default", Unit::Bytes),
        Key::new("tcp.rmem.max", Unit::Bytes),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &[
        "receiver-app-slow",
        "tcp-receive-buffer-fixed",
        "window-scaling-off",
        "tcp-send-buffer",
        "random-loss",
    ],
    fix,
    healthy: false,
    rank: 5,
};

/// Of a fully grown receive buffer, the part that becomes window where it was not observed: between
/// `tcp_adv_win_scale` 1 (a half) and a payload that fills its memory well (`scaling_ratio`, net/ipv4/tcp_input.c).
const WINDOW_PART: [f64; 3] = [0.45, 0.62, 0.95];

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let base = &evidence.base;
    if base.receive_locked == Some(true) || base.window_scaling == Some(false) {
        return None;
    }
    let max = evidence.number(seat, "tcp.rmem.max")?;
    let grown = base.rcvbuf_bytes.is_some_and(|buffer| buffer >= 0.95 * max);
    let rtt = units::micros(evidence.min_rtt_us? as u64);
    if let (true, Some(window)) = (grown, base.snd_wnd_bytes) {
        let how = format!(
            "window of {} (all that tcp_rmem max {} gives) / RTT {rtt}",
            units::bytes(window as u64),
            units::bytes(max as u64)
        );
        return ceiling(CAUSE.id, evidence, seat, evidence.window_bps(window)?, [0.85, 1.02], Method::Inferred, how);
    }
    // What part of the buffer became window so far, else what kernels are known to give.
    let [low, likely, high] = WINDOW_PART;
    let how =
        format!("tcp_rmem max {} x {likely} (the part that becomes window) / RTT {rtt}", units::bytes(max as u64));
    ceiling(
        CAUSE.id,
        evidence,
        seat,
        evidence.window_bps(max * likely)?,
        [low / likely, high / likely],
        Method::Computed,
        how,
    )
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let base = &evidence.base;
    let Some(shares) = base.shares else { return cannot_tell("the sender's kernel does not say what held it back") };
    if shares.receive_window < 0.2 {
        return denies(format!(
            "the receive window held the sender back only {} of the time",
            units::percent(shares.receive_window)
        ));
    }
    if base.receive_locked == Some(true) {
        return denies("the application fixed the receive buffer (SO_RCVBUF), so tcp_rmem is not what ends it");
    }
    if base.window_scaling == Some(false) {
        return denies("window scaling is off, so the window ends at 64 KiB whatever tcp_rmem says");
    }
    let (Some(unread), Some(buffer), Some(window)) = (base.recv_q_bytes, base.rcvbuf_bytes, base.snd_wnd_bytes) else {
        return cannot_tell("the receiver's socket memory could not be read, so a slow reader cannot be told apart");
    };
    if unread > 0.25 * window {
        return denies(format!(
            "{} wait unread at {}: the reader is slow, not the window",
            units::bytes(unread as u64),
            evidence.place(seat)
        ));
    }
    let Some(max) = evidence.number(seat, "tcp.rmem.max") else {
        return cannot_tell("the receiver's tcp_rmem could not be read");
    };
    if buffer < 0.9 * max {
        return denies(format!(
            "the receive buffer stands at {} and tcp_rmem would let it grow to {}",
            units::bytes(buffer as u64),
            units::bytes(max as u64)
        ));
    }
    Testimony::Says {
        share: shares.receive_window,
        witnesses: vec![counter(format!(
            "the sender waited for the receive window {} of the time, while only {} waited unread at the receiver \
             and its buffer stood at the tcp_rmem maximum of {}",
            units::percent(shares.receive_window),
            units::bytes(unread as u64),
            units::bytes(max as u64)
        ))],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let needed = needed_buffer_bytes(evidence).unwrap_or(32 << 20);
    let now = evidence.number(seat, "tcp.rmem.max").map_or(0, |max| max as u64);
    let needed = needed.max((2 * now).min(1 << 30));
    let value = raised_max(evidence, seat, "tcp.rmem", needed).unwrap_or_else(|| format!("4096 131072 {needed}"));
    let advice = format!(
        "let the receive buffer grow to {}: twice the bandwidth-delay product, overhead included",
        units::bytes(needed)
    );
    sysctl_fix(evidence, seat, advice, "net.ipv4.tcp_rmem", value)
}
