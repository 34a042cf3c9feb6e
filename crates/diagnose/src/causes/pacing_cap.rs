//! # pacing-cap
//!
//! The socket may not send faster than a cap: `SO_MAX_PACING_RATE` by the application, or `maxrate` of `fq`.
//!
//! **Shows**: `tcpi_max_pacing_rate` is finite and the goodput lies at it; no loss, no window limit.
//!
//! **Mistaken for**: a slow application, a shaper of the path.
//!
//! **Fix**: drop or raise the cap.
//!
//! Source: `include/net/sock.h`, `sk_max_pacing_rate`; tc-fq(8).

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies, parameter};
use crate::evidence::{Evidence, Seat};
use narrows_model::{Ceiling, Fix, Method, plan::TcpPlan, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "pacing-cap",
    about: "the sending socket has a cap on its rate",
    seats: &[Seat::Sender],
    needs: &[],
    ceiling: roof,
    witness: testify,
    look_alikes: &["sender-app-slow", "path-shaper", "local-shaper", "path-capacity", "tcp-send-buffer"],
    fix,
    healthy: false,
    rank: 7,
};

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    #[allow(clippy::cast_precision_loss)]
    let streams = evidence.base.streams as f64;
    let cap = evidence.base.max_pacing_bps?;
    let how = format!("cap of {} on each of {streams:.0} sockets", units::bps(cap));
    // Pacing counts headers too where a qdisc does it, and payload alone where TCP does.
    let low = evidence.wire_efficiency(evidence.base.mss_bytes.unwrap_or(1448.0));
    ceiling(CAUSE.id, evidence, seat, cap * streams, [low * 0.98, 1.01], Method::Computed, how)
}

fn testify(evidence: &Evidence<'_>, _: Seat) -> Testimony {
    let base = &evidence.base;
    let Some(cap) = base.max_pacing_bps else { return denies("the sending sockets have no cap on their rate") };
    let Some(shares) = base.shares else { return cannot_tell("the sender's kernel does not say what held it back") };
    let windows = shares.receive_window + shares.send_buffer;
    if shares.receive_window > 0.5 {
        return denies(format!(
            "the receive window held the sender back {} of the time",
            units::percent(shares.receive_window)
        ));
    }
    if evidence.queue_stood() == Some(true) {
        return denies("a queue stands on the path: it takes less than the cap");
    }
    Testimony::Says {
        share: (1.0 - windows).max(0.5),
        witnesses: vec![
            parameter(format!(
                "the kernel reports a cap of {} on the socket (SO_MAX_PACING_RATE or fq maxrate)",
                units::bps(cap)
            )),
            counter("no queue stood on the path and the receive window did not hold the sender back".to_owned()),
        ],
    }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    Fix {
        load: evidence.load.pacing_bps.is_some().then(|| TcpPlan { pacing_bps: None, ..evidence.load.clone() }),
        ..advice(
            "drop or raise the cap: SO_MAX_PACING_RATE in the application, or maxrate of the fq queueing discipline",
        )
    }
}
