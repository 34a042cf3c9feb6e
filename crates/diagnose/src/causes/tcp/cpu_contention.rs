//! # cpu-contention
//!
//! The thread that moves the data is runnable and waits for a core that other programs use.
//!
//! **Shows**: the scheduler counts a large share of the time as run delay of that thread, other programs fill the
//! cores, and the connection waits for it.
//!
//! **Mistaken for**: a slow application (it sleeps instead), a core filled by the thread itself, a CPU quota.
//!
//! **Fix**: move the other programs, pin the thread, or change its priority.
//!
//! Source: `Documentation/scheduler/sched-stats.rst`, `/proc/PID/task/TID/schedstat`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::tcp::{path_has_room, who};
use crate::causes::shared::words::{advice, cannot_tell, contradicts, counter};
use crate::evidence::tcp::{EndView, TcpEvidence};
use crate::judge::{Assessment, Cause, Evidence as _};
use crate::role::Role;
use narrows_model::{keys, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cpu-contention",
    about: "the data thread waits for a core that other programs use",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CGROUP_CPU_THROTTLED],
    assess,
    look_alikes: &["sender-app-slow", "receiver-app-slow", "app-core-saturated", "cgroup-cpu-throttle", "path-capacity"],
    fix: |_, _| advice("move the other programs to other cores or another time, or reserve a core (taskset, isolcpus, \
        nice, cpu.weight)"),
    rank: 8,
    ..Cause::COMMON
};

/// A thread that waits less for its turn hardly slows a bulk transfer down.
const WAITS: f64 = 0.2;
/// Other programs fill the cores where they take so much of them.
const OTHERS: f64 = 0.4;

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let (end, who) = (evidence.end(role), who(evidence, role));
    let Some(waits) = end.and_then(|end| end.thread_waits) else {
        return cannot_tell("how long the data threads waited for a core could not be read");
    };
    if waits < WAITS {
        return contradicts(format!("the data thread of {who} waited for a core {} of the time", units::percent(waits)));
    }
    // A quota makes its threads wait, too.
    if evidence.grew(role, keys::CGROUP_CPU_THROTTLED).is_some_and(|times| times > 0) {
        return contradicts("its control group was throttled");
    }
    if let Some(why) = cpu_innocent(evidence) {
        return contradicts(why);
    }
    let waited_for = match role {
        Role::Sender => evidence.writer_behind(),
        _ => evidence.held_by_window(),
    };
    let room = path_has_room(evidence);
    if room.is_none() && waited_for.is_none_or(|part| part < WAITS) {
        return contradicts("the connection did not wait for that thread");
    }
    let first = counter(format!(
        "the data thread of {who} was ready and waited for a core {} of the time (its run delay)",
        units::percent(waits)
    ));
    let others = end.and_then(EndView::machine_busy).zip(end.and_then(EndView::load_busy)).map(|(busy, own)| busy - own);
    let others = others.filter(|others| *others >= OTHERS).map(|others| {
        counter(format!("other programs took {} of all cores", units::percent(others)))
    });
    Assessment::Supports { share: waits.clamp(0.6, 1.0), witnesses: [Some(first), others, room].into_iter().flatten().collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::profile::ProfiledPath;
    use crate::testing::{Scene, assert_cannot_tell, assert_contradicts, assessment, core, named};
    use narrows_model::Place;

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

    #[test]
    fn a_thread_that_nobody_waits_for_costs_nothing() {
        let full = Scene { receiver_waits: Some(0.5), rwnd: 0.0, ..Scene::default() };
        assert_contradicts(&of(&full), "capacity of the slower link");
    }
}
