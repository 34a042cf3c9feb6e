//! # tcp-memory-pressure
//!
//! The TCP sockets of a host use all memory that `tcp_mem` allows: the kernel stops buffer growth and shrinks windows.
//!
//! **Shows**: `TCPMemoryPressuresChrono` grows by a large share of the trial, or `sockstat` stands above the pressure
//! mark, while the sender waits for a window or buffer below its own maximum.
//!
//! **Mistaken for**: a maximum of `tcp_rmem` or `tcp_wmem` that is too small (then the buffer is at it), a slow reader.
//!
//! **Fix**: `net.ipv4.tcp_mem`; fewer sockets with unread data; more memory.
//!
//! Source: tcp(7), `tcp_mem`; kernel `net/ipv4/tcp.c`, `tcp_enter_memory_pressure`.

use crate::causes::shared::rule::*;
use crate::causes::tcp::receiver_app_slow::leaves_unread;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "tcp-memory-pressure",
    about: "the TCP sockets of a host use all memory that tcp_mem allows",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NETSTAT_TCP_EXT_TCP_MEMORY_PRESSURES_CHRONO,
        keys::TCP_MEM_USED,
        keys::TCP_MEM_LOW,
        keys::TCP_MEM_PRESSURE,
        keys::TCP_MEM_HIGH,
        keys::TCP_RMEM_MAX,
        keys::TCP_WMEM_MAX,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["tcp-receive-window", "tcp-send-buffer", "receiver-app-slow", "path-capacity"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// Pressure that lasts for less of the time is over before a window suffers.
const LASTED: f64 = 0.1;

/// How much of the time an end's window or buffer limited the sender, and which, where it stands below its own maximum.
/// Errors: the assessment where that is not so.
pub(super) fn held_below_maximum(evidence: &TcpEvidence, role: Role) -> Result<(f64, &'static str), Assessment> {
    let base = &evidence.base;
    let (part, what, locked, buffer, max) = if role == Role::Sender {
        (evidence.held_by_buffer(), "send buffer", base.send_locked, base.sndbuf_bytes, keys::TCP_WMEM_MAX)
    } else {
        (evidence.held_by_window(), "receive window", base.receive_locked, base.rcvbuf_bytes, keys::TCP_RMEM_MAX)
    };
    let held = held(part, what)?;
    if role == Role::Receiver && leaves_unread(evidence) {
        return Err(contradicts("unread data in the receiver's socket: its application is slow"));
    }
    if locked == Some(true) || buffer.zip(evidence.number(role, max)).is_some_and(|(buffer, max)| buffer >= 0.9 * max) {
        return Err(contradicts(format!("the buffer of the {what} is at its maximum")));
    }
    Ok((held, what))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let (base, who) = (&evidence.base, who(evidence, role));
    let (held, what) = held_below_maximum(evidence, role)?;
    let lasted = evidence.grew(role, keys::NETSTAT_TCP_EXT_TCP_MEMORY_PRESSURES_CHRONO);
    let lasted = lasted.map(|ms| ms as f64 / 1e3 / base.whole_s.max(1e-3));
    let pages = evidence.number(role, keys::TCP_MEM_USED).zip(evidence.number(role, keys::TCP_MEM_PRESSURE));
    if lasted.is_none() && pages.is_none() {
        return Err(cannot_tell(format!("the memory of the TCP sockets of {who} could not be read")));
    }
    let lasted = lasted.filter(|part| *part >= LASTED);
    // The time is counted when the pressure ends.
    let pages = pages.filter(|(used, pressure)| used >= pressure);
    if lasted.is_none() && pages.is_none() {
        return Err(contradicts(format!("the TCP sockets of {who} were not short of memory")));
    }
    let witnesses = [
        Some(counter(format!("the {what} limited the sender {} of the time, below its own \
            maximum", units::percent(held)))),
        lasted.map(|part| counter(format!("TCP of {who} was short of memory {} of the time", units::percent(part.min(1.0))))),
        pages.map(|(used, pressure)| {
            counter(format!("the TCP sockets of {who} hold {used:.0} pages, and pressure begins at {pressure:.0}"))
        }),
        path_has_room(evidence),
    ];
    supports(held, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let words = "raise tcp_mem, and find the sockets with unread data (ss -tm)".to_owned();
    let twice = [keys::TCP_MEM_LOW, keys::TCP_MEM_PRESSURE, keys::TCP_MEM_HIGH]
        .map(|key| evidence.number(role, key).map(|pages| format!("{:.0}", 2.0 * pages)));
    match twice {
        [Some(low), Some(pressure), Some(high)] => {
            command_fix(evidence, role, words, [format!("sysctl -w net.ipv4.tcp_mem='{low} {pressure} {high}'")])
        }
        _ => advice(words),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn memory(used: i64) -> Vec<Fact> {
        let marks = [("tcp.mem.low", 15_000), ("tcp.mem.pressure", 20_000), ("tcp.mem.high", 30_000), ("tcp.mem.used", used)];
        marks.into_iter().fold(ordinary_host(), |facts, (key, n)| with(facts, fact(key, n, Unit::Pages)))
    }

    /// A window that stays at 160 kB, far below the maximum of the buffer.
    fn truth(pressed_ms: i64, used: i64) -> Scene {
        Scene {
            rwnd: 0.9,
            snd_wnd: 162_000,
            rcvbuf: 262_144,
            receiver_facts: memory(used),
            receiver_counts: vec![("netstat.TcpExt.TCPMemoryPressuresChrono", pressed_ms)],
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn windows_that_the_memory_of_all_sockets_keeps_small_are_named() {
        let finding = named(&truth(4_000, 9_000), &[], "tcp-memory-pressure", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_mem='30000 40000 60000'");
        named(&truth(0, 25_000), &[], "tcp-memory-pressure", Place::Server);
    }

    #[test]
    fn pressure_that_passed_and_buffers_at_their_maximum_are_not_why() {
        assert_contradicts(&of(&truth(700, 9_000)), "were not short of memory");
        assert_contradicts(&of(&truth(0, 0)), "were not short of memory");
        assert_contradicts(&of(&Scene { rwnd: 0.1, snd_wnd: 12_000_000, ..truth(4_000, 0) }), "only 10 %");
        assert_contradicts(&of(&Scene { rcvbuf: 33_554_432, ..truth(4_000, 0) }), "is at its maximum");
        assert_contradicts(&of(&Scene { rcvbuf_filled: 0.9, ..truth(4_000, 0) }), "unread data in the receiver's socket: its application is slow");
    }

    #[test]
    fn a_path_at_capacity_and_missing_counters_accuse_no_one() {
        assert_eq!(verdict(&full_path(Scene { rwnd: 0.0, ..truth(4_000, 25_000) }), &[]).status, Status::Healthy);
        let silent = Scene { receiver_facts: ordinary_host(), receiver_counts: Vec::new(), ..truth(0, 0) };
        assert_cannot_tell(&of(&silent), "could not be read");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::LimitedTimes], ..truth(4_000, 0) }), "the sender's kernel does not report what limited it");
    }
}
