//! # tcp-send-buffer-fixed
//!
//! The sending application fixed its send buffer (`SO_SNDBUF`) below what the path needs, and so ended the autotuning.
//!
//! **Shows**: as tcp-send-buffer, but the socket is locked (`SO_BUF_LOCK`) and its buffer lies below `tcp_wmem`'s
//! maximum.
//!
//! **Mistaken for**: tcp-send-buffer (then the socket is not locked), a receive window that is full first, an application
//! that writes slowly (then its buffer is empty).
//!
//! **Fix**: drop the call; if it must stay, raise it together with `net.core.wmem_max`, which caps it.
//!
//! Source: `net/core/sock.c`, `SO_SNDBUF`; socket(7).

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies, parameter};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, plan::TcpPlan, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "tcp-send-buffer-fixed",
    about: "the sending application fixed a send buffer that is too small for this RTT",
    seats: &[Seat::Sender],
    needs: &[Key::new("core.wmem.max", Unit::Bytes)],
    ceiling: roof,
    witness: testify,
    look_alikes: &["tcp-send-buffer", "tcp-receive-window", "sender-app-slow"],
    fix,
    healthy: false,
    rank: 6,
};

/// A writer that found its buffer full sleeps until a third of it is free (`sk_stream_is_writeable`,
/// include/net/sock.h), so on average less than the whole buffer is in flight: between two thirds and all of it.
const FILL: [f64; 3] = [2.0 / 3.0, 5.0 / 6.0, 1.0];

/// Payload per byte of send memory where it was not observed: full segments in page fragments, `struct sk_buff`
/// beside them.
const DENSITY: f64 = 0.9;

/// Goodput from a send buffer of so many bytes, the interval around it as ratios, and the arithmetic.
pub(super) fn from_buffer(evidence: &Evidence<'_>, buffer: f64, name: &str) -> Option<(f64, [f64; 2], String)> {
    let density = evidence.base.send_density.unwrap_or(DENSITY);
    let [low, likely, high] = FILL;
    let how = format!(
        "{name} {} x {density:.2} payload x {likely:.2} fill / RTT {}",
        units::bytes(buffer as u64),
        units::micros(evidence.min_rtt_us? as u64)
    );
    Some((evidence.window_bps(buffer * density * likely)?, [low / likely, high / likely], how))
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if evidence.base.send_locked != Some(true) {
        return None;
    }
    let (bps, spread, how) = from_buffer(evidence, evidence.base.sndbuf_bytes?, "SO_SNDBUF")?;
    ceiling(CAUSE.id, evidence, seat, bps, spread, Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let base = &evidence.base;
    match base.send_locked {
        None => {
            return cannot_tell(
                "the kernel does not say whether the application fixed the send buffer (SO_BUF_LOCK, 5.11)",
            );
        }
        Some(false) => return denies("the application left the send buffer to the kernel"),
        Some(true) => {}
    }
    let Some(shares) = base.shares else { return cannot_tell("the sender's kernel does not say what held it back") };
    if shares.send_buffer < 0.2 {
        return denies(format!(
            "the send buffer held the sender back only {} of the time",
            units::percent(shares.send_buffer)
        ));
    }
    Testimony::Says {
        share: shares.send_buffer,
        witnesses: vec![
            counter(format!(
                "the sender waited for room in its send buffer {} of the time",
                units::percent(shares.send_buffer)
            )),
            parameter(format!(
                "the application fixed SO_SNDBUF: the kernel holds it at {}",
                units::bytes(base.sndbuf_bytes.unwrap_or(0.0) as u64)
            )),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, seat: Seat) -> Fix {
    let limit = evidence
        .number(seat, "core.wmem.max")
        .map_or_else(String::new, |max| format!(" (now {})", units::bytes(max as u64)));
    Fix {
        load: Some(TcpPlan { send_buffer_bytes: None, ..evidence.load.clone() }),
        ..advice(format!(
            "drop the application's SO_SNDBUF call, so that the kernel tunes the buffer; if it must stay, ask for \
             more and raise net.core.wmem_max{limit}"
        ))
    }
}
