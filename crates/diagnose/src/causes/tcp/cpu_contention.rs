//! # cpu-contention
//!
//! The thread that moves the data is runnable and waits for a core that other threads use.
//!
//! **Shows**: the scheduler counts a large share of the time as run delay of that thread, other programs fill its core,
//! and the connection waits for it.
//!
//! **Mistaken for**: a slow application (it sleeps instead), a core filled by the thread itself, a CPU quota, the other
//! end of this test where it runs on the same machine (then the tester is the limit); on a busy host, whatever limits
//! the connection meanwhile: loss, a window, a buffer, the path.
//!
//! **Fix**: move the other programs, pin the thread, or change its priority.
//!
//! Source: `Documentation/scheduler/sched-stats.rst`, `/proc/PID/task/TID/schedstat`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::rule::*;
use crate::evidence::tcp::{EndView, WAITS};
use narrows_model::words::figures::float;
use super::random_loss;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cpu-contention",
    about: "the data thread waits for a core that other threads use",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CGROUP_CPU_THROTTLED, keys::HOST_BOOT],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["sender-app-slow", "receiver-app-slow", "app-core-saturated", "cgroup-cpu-throttle", "path-capacity"],
    fix: |_, _| advice("move the other programs to other cores or another time, or reserve a core (taskset, isolcpus, \
        nice, cpu.weight)"),
    rank: 8,
    ..Cause::COMMON
};

/// Other programs fill the cores, or a core, where they take so much of it: of two that are ready each gets a half.
const OTHERS: f64 = 0.4;

/// What other programs took of all cores or, where that is more, of the one that they took most of. `peer`: what the other end of this test
/// took of all cores of the same machine.
fn others(end: &EndView, peer: f64) -> Option<f64> {
    let thread = end.thread_share?;
    let peer_of_core = peer * float(end.cores.len() as u64);
    let of_core = end.cores.iter().map(|core| core.busy - core.softirq - thread - peer_of_core).reduce(f64::max)?;
    let of_all = end.machine_busy().zip(end.load_busy()).map_or(0.0, |(busy, own)| busy - own - peer);
    Some(of_core.max(of_all))
}

/// How much of the time the connection waited for the thread, in words: the buffer ran empty at a writer, and full at a reader.
fn waited_for(evidence: &TcpEvidence, role: Role) -> Option<(f64, &'static str)> {
    match role {
        Role::Sender => Some((evidence.writer_behind()?, "the connection had room that the writer did not use")),
        _ => Some((evidence.held_by_window()?, "the sender waited for the receive window")),
    }
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let (end, who) = (evidence.end(role), who(evidence, role));
    let waits = known(end.and_then(|end| end.thread_waits), "how long the data threads waited for a core could not be read")?;
    if waits < WAITS {
        return Err(contradicts(format!("the data thread of {who} waited for a core {} of the time", units::percent(waits))));
    }
    // A quota makes its threads wait, too.
    if evidence.grew(role, keys::CGROUP_CPU_THROTTLED).is_some_and(|times| times > 0) {
        return Err(contradicts("its control group was throttled"));
    }
    refuted(cpu_innocent(evidence).or_else(|| random_loss::explains(evidence)))?;
    let (waited, what) = known(waited_for(evidence, role), "the sender's kernel does not report what limited it")?;
    if waited < WAITS {
        return Err(contradicts(format!("the connection did not wait for that thread: {what} {} of the time", units::percent(waited))));
    }
    // The other end of this test is no other program.
    let same = evidence.same_machine();
    let peer = if same { peer_busy(evidence, role).unwrap_or(0.0) } else { 0.0 };
    let others = known(end.and_then(|end| others(end, peer)), "the times of the cores could not be read")?;
    if others < OTHERS && same {
        return Err(cannot_tell(format!(
            "the data thread of {who} waited for a core {} of the time, and the other end of this test runs on the same machine: \
             measure between two machines",
            units::percent(waits)
        )));
    }
    if others < OTHERS {
        return Err(contradicts(format!("other programs took {} of a core at most", units::percent(others.max(0.0)))));
    }
    let witnesses = [
        format!("the data thread of {who} was ready and waited for a core {} of the time (its run delay)", units::percent(waits)),
        format!("{what} {} of the time", units::percent(waited)),
        format!("other programs took {} of a core or of all cores", units::percent(others)),
    ];
    supports(waits.clamp(0.6, 1.0), witnesses.into_iter().map(counter).chain(path_has_room(evidence)))
}

/// What the data threads of the other end take of all cores of the machine.
fn peer_busy(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let peer = evidence.end(if role == Role::Sender { Role::Receiver } else { Role::Sender })?;
    Some(peer.threads_share? / float(peer.cores.len() as u64))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// A reader that gets half a core, on a path that carries far more.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 200e6,
            rwnd: 0.6,
            receiver_waits: Some(0.5),
            receiver_thread: 0.2,
            receiver_core: core(0.02, 0.9),
            other_core: core(0.02, 0.9),
            profile: Some(ProfiledPath::default()),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_reader_that_waits_for_its_turn_is_named() {
        named(&truth(), &[], "cpu-contention", Place::Server);
        assert_contradicts(&of(&Scene { receiver_waits: Some(0.1), ..truth() }), "waited for a core 10 %");
        assert_cannot_tell(&of(&Scene { receiver_waits: None, ..truth() }), "could not be read");
    }

    /// A busy host on a path that loses packets at random: Reno gets about as much as that loss allows.
    #[test]
    fn loss_that_explains_the_rate_is_no_contention() {
        let scene = Scene {
            goodput_bps: 170e6,
            early_peak_bps: 170e6,
            min_rtt_us: 6_000,
            rtt_us: 6_400,
            congestion_control: "reno",
            cwnd: 90,
            segments: 117_000,
            lost: 24,
            rwnd: 0.0,
            sender_waits: Some(0.4),
            receiver_waits: Some(0.4),
            sender_core: core(0.1, 0.9),
            ..truth()
        };
        for role in [Role::Sender, Role::Receiver] {
            assert_contradicts(&assessment(&CAUSE, role, &scene, &[]), "the loss explains the goodput");
            // Without the loss something else limits the connection, which never waited for either thread.
            let none = Scene { lost: 0, ..scene.clone() };
            assert_contradicts(&assessment(&CAUSE, role, &none, &[]), "did not wait for that thread");
        }
        none_proven(&Scene { lost: 0, ..scene }, &[]);
    }

    #[test]
    fn a_writer_that_waits_for_its_turn_is_named_where_others_fill_its_core() {
        let scene = Scene {
            busy: 0.5,
            rwnd: 0.0,
            sender_waits: Some(0.6),
            receiver_waits: None,
            sender_core: core(0.02, 0.95),
            ..truth()
        };
        named(&scene, &[], "cpu-contention", Place::Client);
        // A core that the thread fills by itself, and one with time left, are other cases.
        let alone = Scene { sender_thread: 0.8, sender_core: core(0.1, 0.75), other_core: core(0.0, 0.1), ..scene };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &alone, &[]), "other programs took");
    }

    #[test]
    fn the_other_end_of_the_test_is_no_other_program() {
        let booted = |id: &str| with(ordinary_host(), fact("host.boot", id, Unit::Text));
        let on = |id: &str, scene: Scene| {
            Scene { sender_facts: booted("one"), receiver_facts: booted(id), ..scene }
        };
        // Both threads share the one core that this machine has left.
        let shared = Scene {
            receiver_core: core(0.05, 0.95),
            other_core: core(0.0, 0.0),
            receiver_thread: 0.4,
            sender_thread: 0.3,
            ..truth()
        };
        assert_cannot_tell(&of(&on("one", shared.clone())), "the other end of this test runs on the same machine");
        none_proven(&on("one", shared.clone()), &[]);
        named(&on("another", shared), &[], "cpu-contention", Place::Server);
        // Programs that fill both cores are others on one machine, too.
        named(&on("one", truth()), &[], "cpu-contention", Place::Server);
    }

    #[test]
    fn a_thread_that_nobody_waits_for_costs_nothing() {
        let full = Scene { receiver_waits: Some(0.5), rwnd: 0.0, ..Scene::default() };
        assert_contradicts(&of(&full), "capacity of the slower link");
    }
}
