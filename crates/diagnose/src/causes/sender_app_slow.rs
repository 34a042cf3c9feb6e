//! # sender-app-slow
//!
//! The sending application offers less than the path takes.
//!
//! **Shows**: the connection has nothing to send for a part of the time (elapsed less busy), and nothing waits unsent
//! in the socket.
//!
//! **Mistaken for**: a slow path (then data waits), a full core (then the writing thread never sleeps), a pacing cap.
//!
//! **Fix**: the application: a faster source, larger writes, a thread that only writes.
//!
//! Source: `tcpi_busy_time` (it CONTAINS the window- and buffer-limited times, so idle is elapsed less busy).

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies};
use crate::evidence::{Evidence, Seat};
use narrows_model::{Ceiling, Fix, Method, plan::Application, plan::TcpPlan, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "sender-app-slow",
    about: "the sending application offers less than the path takes",
    seats: &[Seat::Sender],
    needs: &[],
    ceiling: roof,
    witness: testify,
    look_alikes: &["app-core-saturated", "pacing-cap", "tcp-send-buffer", "path-capacity"],
    fix,
    healthy: false,
    rank: 4,
};

/// Idle shares below this are the gaps that any writer leaves on a short path.
const IDLE: f64 = 0.2;

/// A thread that uses this much of a core and is not idle else shares a full core with someone; one that uses less waits for
/// its source, whoever fills the core.
const WRITING: f64 = 0.3;

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let idle = 1.0 - evidence.base.shares?.busy;
    if idle < IDLE {
        return None;
    }
    let how =
        format!("the application wrote this much and left the connection idle {} of the time", units::percent(idle));
    ceiling(CAUSE.id, evidence, seat, evidence.goodput_bps(), [0.98, 1.02], Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let base = &evidence.base;
    let Some(shares) = base.shares else {
        return cannot_tell("the sender's kernel does not say when it had nothing to send");
    };
    let idle = 1.0 - shares.busy;
    if idle < IDLE {
        return denies(format!("the connection had data to send {} of the time", units::percent(shares.busy)));
    }
    if base.sender.thread_share.is_some_and(|share| share >= 0.85) {
        return denies("the writing thread fills a whole core: it is not waiting for its source");
    }
    if evidence.end(seat).and_then(super::super::evidence::EndView::machine_busy).is_some_and(|busy| busy >= 0.93) {
        return cannot_tell("every core of the sender is busy, so the writer may only be waiting for its turn");
    }
    let full = base.sender.cores.iter().any(|core| core.busy >= 0.95);
    if full && base.sender.thread_share.is_none_or(|share| share >= WRITING) {
        return cannot_tell("a core of the sender is full, so the writer may only be waiting for its turn");
    }
    let mut witnesses =
        vec![counter(format!("the connection had nothing to send {} of the time", units::percent(idle)))];
    if let Some(unsent) = base.unsent_share.filter(|share| *share < 0.5) {
        witnesses.push(counter(format!(
            "nothing waited unsent in the socket in {} of the samples",
            units::percent(1.0 - unsent)
        )));
    }
    Testimony::Says { share: idle, witnesses }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    let application = Application { write_bps: 0, write_cpu_us_per_mib: 0, ..evidence.load.application };
    let imitated = application != evidence.load.application;
    Fix {
        load: imitated.then(|| TcpPlan { application, ..evidence.load.clone() }),
        ..advice(
            "make the sending application write faster: a source that keeps up, larger writes, a thread that only \
             writes",
        )
    }
}
