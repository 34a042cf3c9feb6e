//! # tcp-send-buffer
//!
//! The sender's kernel may not keep as many unacknowledged bytes as the path needs: `tcp_wmem` ends the autotuning
//! too early.
//!
//! **Shows**: the sender is held back by its send buffer most of the time; the writer is blocked; the local queue is
//! empty. Goodput is what the buffer holds of payload / RTT.
//!
//! **Mistaken for**: a buffer fixed by the application (the socket is locked), a local shaper (its queue is not empty).
//!
//! **Fix**: raise the third word of `net.ipv4.tcp_wmem`.
//!
//! Source: `net/ipv4/tcp_input.c`, `tcp_sndbuf_expand`; `net/core/stream.c`, `sk_stream_wait_memory`.

use super::{Cause, Testimony, cannot_tell, ceiling, counter, denies, needed_buffer_bytes, raised_max, sysctl_fix};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "tcp-send-buffer",
    about: "the sender's kernel keeps too few unacknowledged bytes for this RTT",
    seats: &[Seat::Sender],
    needs: &[
        Key::new("tcp.wmem.min", Unit::Bytes),
        Key::new("tcp.wmem.default", Unit::Bytes),
        Key::new("tcp.wmem.max", Unit::Bytes),
        Key::new("nic.kind", Unit::Text),
        Key::new("nic.speed", Unit::BitsPerSecond),
    ],
    ceiling: roof,
    witness: testify,
    look_alikes: &[
        "tcp-send-buffer-fixed",
        "tcp-receive-window",
        "local-shaper",
        "congestion-control",
        "path-capacity",
    ],
    fix,
    healthy: false,
    rank: 5,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if evidence.base.send_locked == Some(true) {
        return None;
    }
    let max = evidence.number(seat, "tcp.wmem.max")?;
    let (bps, spread, how) = super::tcp_send_buffer_fixed::from_buffer(evidence, max, "tcp_wmem max")?;
    ceiling(CAUSE.id, evidence, seat, bps, spread, Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let base = &evidence.base;
    let Some(held) = evidence.held_by_buffer() else {
        return cannot_tell("the sender's kernel does not say what held it back");
    };
    if held < 0.2 {
        return denies(format!("the send buffer held the sender back only {} of the time", units::percent(held)));
    }
    if base.send_locked == Some(true) {
        return denies("the application fixed the send buffer (SO_SNDBUF), so tcp_wmem is not what ends it");
    }
    let (Some(buffer), Some(max)) = (base.sndbuf_bytes, evidence.number(seat, "tcp.wmem.max")) else {
        return cannot_tell("the sender's buffer or its tcp_wmem could not be read");
    };
    if buffer < 0.9 * max {
        return denies(format!(
            "the send buffer stands at {} and tcp_wmem would let it grow to {}",
            units::bytes(buffer as u64),
            units::bytes(max as u64)
        ));
    }
    Testimony::Says {
        share: held,
        witnesses: vec![counter(format!(
            "the sender waited for room in its send buffer {} of the time, and the buffer stood at the tcp_wmem \
             maximum of {}",
            units::percent(held),
            units::bytes(max as u64)
        ))],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let now = evidence.number(seat, "tcp.wmem.max").map_or(0, |max| max as u64);
    let needed = needed_buffer_bytes(evidence).unwrap_or(32 << 20).max(now.saturating_mul(2).min(1 << 30));
    let value = raised_max(evidence, seat, "tcp.wmem", needed).unwrap_or_else(|| format!("4096 16384 {needed}"));
    let advice = format!(
        "let the send buffer grow to {}: twice the bandwidth-delay product, overhead included",
        units::bytes(needed)
    );
    sysctl_fix(evidence, seat, advice, "net.ipv4.tcp_wmem", value)
}
