//! # receive-autotuning-off
//!
//! Receive buffer autotuning is off on the receiver: buffers keep their initial size.
//!
//! **Shows**: `tcp_moderate_rcvbuf` is 0, and the sender waits for a window of the default size.
//!
//! **Mistaken for**: a maximum that is too small (the buffer is below it), a slow reader.
//!
//! **Fix**: `net.ipv4.tcp_moderate_rcvbuf=1`.
//!
//! Source: kernel `net/ipv4/tcp_input.c`, `tcp_rcv_space_adjust`; tcp(7).

use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "receive-autotuning-off",
    about: "receive buffer autotuning is off on the receiver",
    roles: &[Role::Receiver],
    needs: &[keys::TCP_MODERATE_RCVBUF],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "tcp-receive-buffer-fixed", "receiver-app-slow"],
    fix,
    rank: 7,
    per_connection: true,
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if known(evidence.flag(role, keys::TCP_MODERATE_RCVBUF), "the setting of receive autotuning could not be read")? {
        return Err(contradicts("receive autotuning is on"));
    }
    let held = held(evidence.held_by_window(), "receive window")?;
    if evidence.base.receive_locked == Some(true) {
        return Err(contradicts("the application fixed the receive buffer (SO_RCVBUF)"));
    }
    if super::receiver_app_slow::leaves_unread(evidence) {
        return Err(contradicts("unread data in the receiver's socket: its application is slow"));
    }
    let witnesses = [
        Some(counter(format!("the sender waited for the receive window {} of the time", units::percent(held)))),
        Some(parameter("net.ipv4.tcp_moderate_rcvbuf is 0: the buffer keeps its initial size")),
        path_has_room(evidence),
    ];
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    sysctl_fix(evidence, role, "enable receive buffer autotuning", "net.ipv4.tcp_moderate_rcvbuf", "1")
}
