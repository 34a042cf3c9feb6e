//! # sender-app-slow
//!
//! The sending application writes less than the path carries.
//!
//! **Shows**: the connection has no data to send for part of the time (elapsed less busy), and the socket has no
//! unsent data.
//!
//! **Mistaken for**: a slow path (then data is queued), a full core (then the writing thread never sleeps), a pacing
//! cap.
//!
//! **Fix**: the application: a faster source, larger writes, a dedicated writer thread.
//!
//! Source: `tcpi_busy_time` (it includes the window- and buffer-limited times, so idle is elapsed less busy).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp::pace_ceiling;
use narrows_model::load::tcp::{Application, TcpPlan};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "sender-app-slow",
    about: "the sending application writes less than the path carries",
    roles: &[Role::Sender],
    ceiling,
    assess,
    look_alikes: &["app-core-saturated", "pacing-cap", "tcp-send-buffer", "path-capacity"],
    fix,
    rank: 4,
    excludes: Excludes::FullCore,
    ..Cause::COMMON
};

/// Idle shares below this are the gaps that any writer leaves on a short path.
const IDLE: f64 = 0.2;

/// A thread that uses this much of a core and is not idle else shares a full core with someone; one that uses less
/// waits for its source, whoever fills the core.
const WRITING: f64 = 0.3;

/// The load without an application that is slower than its socket; `None` where that is what was measured: what narrows writes
/// comes from memory, and a writer that lags behind a fast path then waits for a core or for its wake-up.
fn unslowed(evidence: &TcpEvidence) -> Option<Application> {
    let application = Application { write_bps: 0, write_cpu_us_per_mib: 0, ..evidence.load.application };
    (application != evidence.load.application).then_some(application)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    unslowed(evidence)?;
    let behind = evidence.writer_behind()?;
    if behind < IDLE {
        let write_bps = evidence.load.application.write_bps;
        return pace_ceiling(CAUSE.id, evidence, role, write_bps, "the load writes no more (--app-write-rate)");
    }
    let how = format!("write rate of the application, which left the buffer partly free {} of the \
        time", units::percent(behind));
    ceiling_at(CAUSE.id, evidence, role, evidence.goodput_bps(), [0.98, 1.02], Method::Inferred, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let base = &evidence.base;
    let Some(shares) = base.shares else {
        return cannot_tell("the sender's kernel does not report its idle time");
    };
    let idle = 1.0 - shares.busy;
    let Some(behind) = evidence.writer_behind().filter(|behind| *behind >= IDLE) else {
        return contradicts(format!("the connection had data to send {} of the time", units::percent(shares.busy)));
    };
    if unslowed(evidence).is_none() {
        return contradicts("narrows wrote from memory, as fast as the socket took it");
    }
    if let Some(held) = evidence.held_by_buffer().filter(|held| *held >= IDLE) {
        return contradicts(format!("the writer waited for room in the send buffer {} of the time", units::percent(held)));
    }
    if base.sender.thread_share.is_some_and(|share| share >= 0.85) {
        return contradicts("the writing thread uses a whole core: it does not wait for its source");
    }
    if evidence.end(role).and_then(crate::evidence::tcp::EndView::machine_busy).is_some_and(|busy| busy >= 0.93) {
        return cannot_tell("all cores of the sender are busy: the writer may be waiting for a core");
    }
    let full = base.sender.cores.iter().any(|core| core.busy >= 0.95);
    if full && base.sender.thread_share.is_none_or(|share| share >= WRITING) {
        return cannot_tell("a core of the sender is full: the writer may be waiting for it");
    }
    let mut witnesses = Vec::new();
    if idle >= IDLE {
        witnesses.push(counter(format!("the connection had nothing to send {} of the time", units::percent(idle))));
    }
    if let Some(room) = base.buffer_room_share.filter(|room| *room > 0.5) {
        witnesses.push(counter(format!(
            "more than half of the send buffer was free in {} of the samples",
            units::percent(room)
        )));
    }
    if let Some(starved) = evidence.starved() {
        witnesses.push(counter(format!(
            "the kernel was application-limited in {} of the samples",
            units::percent(starved)
        )));
    }
    // BBR keeps about half of its window in flight when it is busy.
    if let (Some(in_flight), Some(window)) = (base.in_flight_bytes, base.cwnd_bytes)
        && in_flight < 0.4 * window
    {
        witnesses.push(counter(format!(
            "what was in flight filled {} of the congestion window",
            units::percent(in_flight / window)
        )));
    }
    if let Some(unsent) = base.unsent_share.filter(|share| *share < 0.5) {
        witnesses.push(counter(format!(
            "no unsent data in the socket in {} of the samples",
            units::percent(1.0 - unsent)
        )));
    }
    Assessment::Supports { share: behind, witnesses }
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    Fix {
        load: unslowed(evidence).map(|application| TcpPlan { application, ..evidence.load.clone() }.into()),
        ..advice(
            "make the sending application write faster: a faster source, larger writes, a dedicated writer thread",
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::{BufferLock, CpuTimes};
    use super::*;

    /// The writer offers 100 Mbit/s: most of the time there is nothing to send.
    fn truth() -> Scene {
        let mut scene = Scene { goodput_bps: 100e6, rtt_us: 35_050, busy: 0.4, cwnd: 300, ..Scene::default() };
        scene.load.application.write_bps = 100_000_000;
        scene
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_connection_that_waits_for_its_writer_is_named() {
        let finding = named(&truth(), &[], "sender-app-slow", Place::Client);
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert_rejects(&finding, "pacing-cap", "no cap");
        assert_rejects(&finding, "tcp-send-buffer", "only 0 %");
        assert_rejects(&finding, "path-capacity", "left the connection idle");
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").application, Application::default());
    }

    #[test]
    fn what_narrows_writes_from_memory_is_no_slow_application() {
        let mut scene = truth();
        scene.load.application = Application::default();
        assert_contradicts(&of(&scene), "from memory");
        none_proven(&scene, &[]);
    }

    #[test]
    fn gaps_of_a_fifth_are_those_of_any_writer() {
        assert_contradicts(&of(&Scene { busy: 0.81, ..truth() }), "had data to send 81 %");
        assert_supports(&of(&Scene { busy: 0.79, ..truth() }));
    }

    #[test]
    fn a_small_buffer_that_was_never_full_is_no_reason_to_wait() {
        // What the writer gives fills two thirds of the first buffer, which the kernel never had to enlarge.
        let scene = Scene {
            goodput_bps: 52.8e6,
            rtt_us: 35_100,
            busy: 1.0,
            starved: true,
            cwnd: 300,
            sndbuf_bytes: 69_120,
            queued: Some(46_000),
            lock: BufferLock { send: false, receive: false },
            ..truth()
        };
        assert_supports(&of(&scene));
        let locked = Scene { lock: BufferLock { send: true, receive: false }, ..scene };
        assert_contradicts(&of(&locked), "had data to send");
    }

    #[test]
    fn idle_time_alone_is_a_suspicion() {
        let verdict = crate::testing::verdict(&Scene { unsent: 4_000, ..truth() }, &[]);
        assert_eq!(verdict.status, narrows_model::Status::Suspected, "{verdict:#?}");
    }

    #[test]
    fn a_writer_that_computes_or_waits_for_its_turn_is_not_waiting_for_its_source() {
        assert_contradicts(&of(&Scene { sender_thread: 0.86, ..truth() }), "the writing thread uses a whole core: it does not wait for its source");
        let shared = Scene { sender_core: core(0.5, 0.46), ..truth() };
        assert_cannot_tell(&of(&Scene { sender_thread: 0.4, ..shared.clone() }), "a core of the sender is full");
        assert_supports(&of(&Scene { sender_thread: 0.2, ..shared }));
        let full = CpuTimes { user_us: 8_000_000, ..CpuTimes::default() };
        assert_cannot_tell(&of(&Scene { sender_core: full, other_core: full, ..truth() }), "all cores of the sender are busy: the writer may be waiting for a core");
    }

    #[test]
    fn a_kernel_without_chronographs_leaves_it_open() {
        let scene = Scene { hidden: &[Hidden::LimitedTimes], ..truth() };
        assert_cannot_tell(&of(&scene), "does not report");
        none_proven(&scene, &[]);
    }
}
