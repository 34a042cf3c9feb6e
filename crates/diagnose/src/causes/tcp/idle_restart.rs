//! # idle-restart
//!
//! The sending application pauses, and after each pause the kernel restarts with a small congestion window.
//!
//! **Shows**: the connection is idle for a part of the time, the congestion window is found shrunk again and again though nothing was lost,
//! and while there is data it is the congestion window that holds the sender back.
//!
//! **Mistaken for**: a slow application alone (then the window stays), loss (then segments are sent again).
//!
//! **Fix**: `net.ipv4.tcp_slow_start_after_idle=0`.
//!
//! Source: RFC 5681 section 4.1; `net/ipv4/tcp_output.c`, `tcp_cwnd_restart`; kernel `Documentation/networking/ip-sysctl.rst`. Not seen on a
//! real host: the loads of narrows do not pause.

use crate::causes::shared::rule::*;
use crate::causes::shared::window::window_share;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "idle-restart",
    about: "after each pause of the application the kernel restarts with a small congestion window",
    roles: &[Role::Sender],
    needs: &[keys::TCP_SLOW_START_AFTER_IDLE],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["sender-app-slow", "random-loss", "congestion-control", "nagle-delayed-ack", "path-capacity"],
    fix,
    rank: 9,
    ..Cause::COMMON
};

/// So much of the time there is nothing to send …
const IDLE: f64 = 0.1;
/// … and of the rest the congestion window holds so much back.
const HELD: f64 = 0.3;
/// One restart costs a few round trips.
const FEW: u64 = 5;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let base = &evidence.base;
    let (shares, held) = known(base.shares.zip(window_share(evidence)), "the sender's kernel does not say what held it back")?;
    let idle = 1.0 - shares.busy;
    if idle < IDLE {
        return Err(contradicts(format!("the connection was idle {} of the time", units::percent(idle))));
    }
    if held < HELD {
        return Err(contradicts(format!("the congestion window limited the sender only {} of the time", units::percent(held))));
    }
    if !known(evidence.flag(role, keys::TCP_SLOW_START_AFTER_IDLE), "net.ipv4.tcp_slow_start_after_idle of the sender could not be read")? {
        return Err(contradicts("the sender's kernel keeps the window across pauses"));
    }
    if base.is_bbr() {
        return Err(contradicts("BBR keeps its model across pauses"));
    }
    let restarts = known(base.restarts, "the congestion window could not be read")?;
    if restarts < FEW * base.streams.max(1) as u64 {
        return Err(contradicts(format!("the congestion window was found shrunk without a loss {restarts} times")));
    }
    let room = room(evidence)?;
    let shrunk = counter(format!(
        "after pauses ({} of the time) the congestion window was found shrunk {restarts} times though nothing was lost, and it limited \
         the sender {} of the time",
        units::percent(idle),
        units::percent(held)
    ));
    supports(held, [shrunk, room])
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    sysctl_fix(evidence, role, "keep the congestion window across pauses", "net.ipv4.tcp_slow_start_after_idle", "0")
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// Bursts with pauses between them.
    fn truth() -> Scene {
        let facts = with(ordinary_host(), fact("tcp.slow_start_after_idle", true, Unit::Flag));
        Scene { busy: 0.82, restarts: true, sender_facts: facts, ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_window_that_begins_anew_after_each_pause_is_named() {
        let finding = named(&truth(), &[], "idle-restart", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_slow_start_after_idle=0");
    }

    #[test]
    fn pauses_alone_and_windows_that_loss_shrinks_are_not_it() {
        assert_contradicts(&of(&Scene { restarts: false, ..truth() }), "0 times");
        assert_contradicts(&of(&Scene { busy: 1.0, ..truth() }), "idle 0 %");
        assert_contradicts(&of(&Scene { busy: 0.2, ..truth() }), "only 20 %");
        assert_contradicts(&of(&Scene { lost: 8_000, ..truth() }), "0 times");
        assert_contradicts(&of(&Scene { congestion_control: "bbr", ..truth() }), "BBR");
        assert_contradicts(&of(&full_path(truth())), "what the path carries");
        let off = with(ordinary_host(), fact("tcp.slow_start_after_idle", false, Unit::Flag));
        assert_contradicts(&of(&Scene { sender_facts: off, ..truth() }), "keeps the window");
        assert_cannot_tell(&of(&Scene { sender_facts: ordinary_host(), ..truth() }), "could not be read");
        assert_cannot_tell(&of(&Scene { profile: None, ..truth() }), "was not measured");
    }
}
