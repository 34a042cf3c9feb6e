//! # app-core-saturated
//!
//! The thread that moves the data fills one core.
//!
//! **Shows**: the data thread uses a whole core by its CPU clock, while other cores are partly idle.
//!
//! **Mistaken for**: a saturated softirq core (then another core is full), a machine with all cores full.
//!
//! **Fix**: more streams, larger writes, zero copy, a faster core.
//!
//! Source: `pthread_getcpuclockid(3)`, `/proc/stat`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::{bpf_explains, cpu_ceiling, peer_waits};
use crate::causes::shared::rule::*;
use narrows_model::load::tcp::{Application, TcpPlan};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "app-core-saturated",
    about: "the thread that moves the data fills one core",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::BPF_RUN_US],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softirq-core-saturated", "tester-limited", "sender-app-slow", "receiver-app-slow", "path-capacity"],
    fix,
    rank: 7,
    ..Cause::COMMON
};

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let share = evidence.end(role)?.thread_share?;
    // A sender that waits for its window works in small batches, whose cost is none of larger ones.
    if role == Role::Sender && evidence.held_by_window().is_some_and(|held| held >= 0.5) {
        return None;
    }
    let how = format!("goodput / {} of a core that the busiest data thread used", units::percent(share));
    let spread = if share > 0.85 { [0.9, 1.1] } else { [0.7, 1.4] };
    cpu_ceiling(CAUSE.id, evidence, role, share, spread, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let end = evidence.end(role);
    let share = known(end.and_then(|end| end.thread_share), "the CPU time of the data threads could not be read")?;
    if share < 0.88 {
        return Err(contradicts(format!(
            "the busiest data thread of {} used {} of a core",
            who(evidence, role),
            units::percent(share)
        )));
    }
    refuted(cpu_innocent(evidence))?;
    refuted(bpf_explains(evidence, role))?;
    let mut witnesses = vec![counter(format!(
        "the busiest data thread of {} used {} of a core (thread CPU clock)",
        who(evidence, role),
        units::percent(share)
    ))];
    if let Some(core) =
        end.and_then(|end| end.cores.iter().max_by(|a, b| (a.busy - a.softirq).total_cmp(&(b.busy - b.softirq))))
        && core.busy > 0.9
        && core.softirq < 0.5
    {
        witnesses.push(counter(format!(
            "core {} was busy {} of the time, only {} of it in softirq",
            core.cpu,
            units::percent(core.busy),
            units::percent(core.softirq)
        )));
    }
    // A thread that wanders between cores fills none of them for long; this is the witness then.
    witnesses.extend(peer_waits(evidence, role).map(|(_, witness)| witness));
    supports(share, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let load = &evidence.load;
    let application = if role == Role::Sender {
        Application { write_cpu_us_per_mib: 0, ..load.application }
    } else {
        Application { read_cpu_us_per_mib: 0, ..load.application }
    };
    let imitated = application != load.application;
    Fix {
        load: imitated.then(|| TcpPlan { application, ..load.clone() }.into()),
        ..advice(
            "use more streams (--streams), larger writes and reads, zero copy, or a faster core",
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// 4 Gbit/s on a link of ten, since the writing thread never sleeps.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 4e9,
            rtt_us: 35_100,
            sender_thread: 0.98,
            sender_core: core(0.05, 0.94),
            sender_facts: link(10_000, ordinary_host()),
            receiver_facts: link(10_000, ordinary_host()),
            ..Scene::default()
        }
    }

    #[test]
    fn a_thread_that_fills_its_core_is_named() {
        let finding = named(&truth(), &[], "app-core-saturated", Place::Client);
        assert_rejects(&finding, "softirq-core-saturated", "no core of the sender");
        assert_rejects(&finding, "tester-limited", "were busy 50 %");
        assert_rejects(&finding, "sender-app-slow", "had data to send 100 %");
        assert_rejects(&finding, "path-capacity", "a core is full");
    }

    #[test]
    fn the_clock_of_the_thread_alone_is_a_suspicion() {
        let verdict = crate::testing::verdict(&Scene { hidden: &[Hidden::Cores], ..truth() }, &[]);
        assert_eq!((verdict.status, verdict.causes[0].id.as_str()), (Status::Suspected, "app-core-saturated"));
    }

    #[test]
    fn a_socket_that_runs_empty_meanwhile_is_the_second_witness() {
        let scene = Scene { hidden: &[Hidden::Cores], busy: 0.7, ..truth() };
        named(&scene, &[], "app-core-saturated", Place::Client);
        let reader = Scene { sender_thread: 0.2, receiver_thread: 0.97, rwnd: 0.5, busy: 1.0, ..scene };
        named(&reader, &[], "app-core-saturated", Place::Server);
    }

    #[test]
    fn a_thread_with_an_eighth_of_its_core_left_is_not_full() {
        let at = |sender_thread| assessment(&CAUSE, Role::Sender, &Scene { sender_thread, ..truth() }, &[]);
        assert_contradicts(&at(0.87), "used 87 % of a core");
        assert_supports(&at(0.89));
    }

    #[test]
    fn a_third_of_a_core_has_no_ceiling() {
        let of = |sender_thread| {
            let scene = Scene { sender_thread, ..truth() };
            ceiling(&TcpEvidence::of(&scene.run(&[]), 0).expect("a baseline"), Role::Sender)
        };
        assert!(of(0.33).is_none());
        assert!(of(0.5).is_some_and(|ceiling| (ceiling.bps / 8e9 - 1.0).abs() < 0.01));
    }

    #[test]
    fn a_full_softirq_core_is_another_cause() {
        let scene = Scene { sender_thread: 0.3, sender_core: core(0.97, 0.02), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "used 30 %");
    }

    #[test]
    fn threads_that_cannot_be_timed_accuse_no_one_else() {
        let scene = Scene { hidden: &[Hidden::Threads], ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "CPU time of the data threads");
        none_proven(&scene, &[]);
    }

    #[test]
    fn the_fix_of_an_imitated_application_is_to_imitate_it_no_more() {
        let mut scene = truth();
        scene.load.application.write_cpu_us_per_mib = 40_000;
        let finding = crate::testing::verdict(&scene, &[]).causes.remove(0);
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").application, Application::default());
    }
}
