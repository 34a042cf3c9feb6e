//! # receiver-app-slow
//!
//! The receiving application reads more slowly than the path delivers.
//!
//! **Shows**: the sender is held back by the receive window while the receiver's socket is full of unread data;
//! zero-window announcements and pruning grow.
//!
//! **Mistaken for**: a window that is too small (then nothing waits unread), a full core (then the reader never
//! sleeps).
//!
//! **Fix**: the application: a reader of its own, larger reads, more cores, a faster disk.
//!
//! Source: RFC 9293 3.8.6; `SIOCINQ`, tcp(7).

use super::{Cause, Testimony, advice, cannot_tell, ceiling, counter, denies};
use crate::evidence::{Evidence, Seat};
use narrows_model::fact::Unit;
use narrows_model::{Ceiling, Fix, Key, Method, plan::Application, plan::TcpPlan, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "receiver-app-slow",
    about: "the receiving application reads more slowly than the path delivers",
    seats: &[Seat::Receiver],
    needs: &[Key::new("netstat.TcpExt.TCPToZeroWindowAdv", Unit::Count)],
    ceiling: roof,
    witness: testify,
    look_alikes: &["tcp-receive-window", "tcp-receive-buffer-fixed", "app-core-saturated"],
    fix,
    healthy: false,
    rank: 6,
};

/// What waits unread, as a part of the window that could have been announced: the reader keeps up below a quarter.
fn backlog(evidence: &Evidence<'_>) -> Option<f64> {
    let base = &evidence.base;
    Some(base.recv_q_bytes? / (base.snd_wnd_bytes? + base.recv_q_bytes?).max(1.0))
}

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    if backlog(evidence)? < 0.25 || evidence.held_by_window()? < 0.2 {
        return None;
    }
    let how = "the application read this much while data waited for it".to_owned();
    ceiling(CAUSE.id, evidence, seat, evidence.goodput_bps(), [0.98, 1.02], Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let Some(held) = evidence.held_by_window() else {
        return cannot_tell("the sender's kernel does not say what held it back");
    };
    if held < 0.2 {
        return denies(format!(
            "the receive window held the sender back only {} of the time",
            units::percent(held)
        ));
    }
    let (Some(backlog), Some(unread)) = (backlog(evidence), evidence.base.recv_q_bytes) else {
        return cannot_tell("the receiver's queue could not be read");
    };
    if backlog < 0.25 {
        return denies(format!("the reader keeps up: only {} wait unread", units::bytes(unread as u64)));
    }
    let mut witnesses = vec![
        counter(format!(
            "the sender waited for the receive window {} of the time",
            units::percent(held)
        )),
        counter(format!(
            "{} waited unread at the receiver, {} of what its window allows",
            units::bytes(unread as u64),
            units::percent(backlog)
        )),
    ];
    if let Some(zero) = evidence.grew(seat, "netstat.TcpExt.TCPToZeroWindowAdv").filter(|n| *n > 0) {
        witnesses.push(counter(format!("the receiver closed its window to zero {zero} times")));
    }
    Testimony::Says { share: held, witnesses }
}

fn fix(evidence: &Evidence<'_>, _: Seat) -> Fix {
    let application = Application { read_bps: 0, read_cpu_us_per_mib: 0, ..evidence.load.application };
    let imitated = application != evidence.load.application;
    Fix {
        load: imitated.then(|| TcpPlan { application, ..evidence.load.clone() }),
        ..advice(
            "make the receiving application read faster: a thread that only reads, larger reads, no disk in \
             between, another core",
        )
    }
}
