//! # vm-steal
//!
//! The hypervisor gives the virtual CPU of a host to other guests while it has packets or data to process.
//!
//! **Shows**: steal time on a core that is otherwise busy with system calls or softirqs and has no idle time.
//!
//! **Mistaken for**: a core filled by the guest itself, a slow application, the path. An idle guest with some steal is
//! not slow.
//!
//! **Fix**: another instance size or placement, dedicated or pinned virtual CPUs, fewer guests on the host.
//!
//! Source: proc_stat(5), `steal`; kernel `Documentation/virt/kvm/x86/msr.rst`, MSR_KVM_STEAL_TIME.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::peer_waits;
use crate::causes::shared::rule::*;
use crate::evidence::cores::CoreShare;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "vm-steal",
    about: "the hypervisor takes CPU time from a busy host",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::SOFTNET_TIME_SQUEEZE, keys::NIC_KIND, keys::NIC_SPEED],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "tester-limited", "path-capacity"],
    fix: |_, _| advice("give the guest dedicated CPUs (a larger or dedicated instance, pinned virtual CPUs), or move other guests"),
    rank: 8,
    ..Cause::COMMON
};

/// What is stolen of a core's time before it costs something worth naming …
const STOLEN: f64 = 0.15;

/// … where this much of the core is used or stolen: it had no time left.
const SHORT: f64 = 0.9;

/// A core that spends this much on packets processes those of the load.
const PACKETS: f64 = 0.3;

/// The core with the most stolen time of those that had none left and moved data: in system calls and interrupts, as TCP does.
fn short_core(cores: &[CoreShare]) -> Option<&CoreShare> {
    let short = |core: &&CoreShare| core.busy + core.steal >= SHORT && core.softirq + core.system >= core.user;
    cores.iter().filter(short).max_by(|a, b| a.steal.total_cmp(&b.steal))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let cores = evidence.end(role).map_or(&[][..], |end| &end.cores);
    let most = known(cores.iter().map(|core| core.steal).reduce(f64::max), "the times of the cores could not be read")?;
    if most < STOLEN {
        return Err(contradicts(format!("the hypervisor took {} of a core of {who} at most", units::percent(most))));
    }
    let Some(core) = short_core(cores).filter(|core| core.steal >= STOLEN) else {
        return Err(contradicts(format!("time was stolen from {who}, but the cores that moved its data were partly idle")));
    };
    refuted(cpu_innocent(evidence))?;
    let thread = evidence.end(role).and_then(|end| end.thread_share).unwrap_or(0.0);
    if core.softirq < PACKETS && thread + core.steal < SHORT {
        return Err(contradicts(format!("time was stolen from {who}, but its data used little CPU time")));
    }
    let squeezed = evidence.grew(role, keys::SOFTNET_TIME_SQUEEZE).filter(|n| *n > 0);
    let witnesses = [
        Some(counter(format!(
            "the hypervisor took {} of core {} of {who}, which had only {} idle",
            units::percent(core.steal),
            core.cpu,
            units::percent((1.0 - core.busy - core.steal).max(0.0))
        ))),
        peer_waits(evidence, role).map(|(_, witness)| witness),
        squeezed.map(|n| counter(format!("its softirq stopped {n} times with packets left (time_squeeze)"))),
        path_has_room(evidence),
    ];
    supports((2.0 * core.steal).min(1.0), witnesses)
}

#[cfg(test)]
mod tests {
    use crate::experiments::tcp::AGAIN;
    use crate::testing::*;
    use narrows_model::load::host::CpuTimes;
    use super::*;

    /// A receiver whose only busy core loses so much of its time to other guests.
    fn stolen(steal: f64, idle: f64) -> Scene {
        let us = |part: f64| (part * 8e6) as u64;
        let softirq_us = us(1.0 - steal - idle);
        let receiver_core = CpuTimes { softirq_us, steal_us: us(steal), idle_us: us(idle), ..CpuTimes::default() };
        Scene { receiver_core, ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn time_stolen_from_a_core_that_needs_it_is_named() {
        let finding = named(&stolen(0.45, 0.02), &[], "vm-steal", Place::Server);
        assert_rejects(&finding, "softirq-core-saturated", "no core");
    }

    #[test]
    fn time_stolen_from_a_core_with_time_left_costs_nothing() {
        assert_contradicts(&of(&stolen(0.45, 0.3)), "partly idle");
        assert_contradicts(&of(&stolen(0.1, 0.0)), "10 % of a core");
        assert_contradicts(&of(&stolen(0.0, 0.9)), "0 % of a core");
        // Somebody else's system calls fill the core.
        let CpuTimes { softirq_us, .. } = stolen(0.45, 0.02).receiver_core;
        let receiver_core = CpuTimes { system_us: softirq_us, softirq_us: 0, ..stolen(0.45, 0.02).receiver_core };
        assert_contradicts(&of(&Scene { receiver_core, ..slow() }), "but its data used little CPU time");
    }

    #[test]
    fn an_unknown_limit_of_a_disturbed_host_says_so() {
        let disturbed = verdict(&stolen(0.1, 0.3), &[]);
        assert_eq!(disturbed.status, Status::Unknown, "{disturbed:#?}");
        assert!(disturbed.headline.contains("took 5.0 % of the CPU time of the server"), "{}", disturbed.headline);
        assert!(!verdict(&stolen(0.01, 0.3), &[]).headline.contains("hypervisor"));
    }

    #[test]
    fn a_disturbed_load_is_measured_once_more_and_the_calmer_one_counts() {
        let (disturbed, calm) = (stolen(0.2, 0.3), full_path(stolen(0.02, 0.3)));
        assert_eq!(next(&disturbed, &[]).first(), Some(&AGAIN.id));
        let counted = verdict(&disturbed, &[(AGAIN.id, &calm)]);
        assert_eq!(counted.status, Status::Healthy, "{counted:#?}");
        assert_eq!(counted.goodput_bps, verdict(&calm, &[]).goodput_bps);
        assert!(counted.headline.ends_with("had taken 10 % of the CPU time of a host"), "{}", counted.headline);
        // A repetition that was disturbed as much is none, and a calm load needs none.
        let no_better = verdict(&disturbed, &[(AGAIN.id, &stolen(0.18, 0.3))]);
        assert_eq!(no_better.goodput_bps, verdict(&disturbed, &[]).goodput_bps);
        assert!(!next(&stolen(0.02, 0.3), &[]).contains(&AGAIN.id));
    }

    #[test]
    fn without_a_second_witness_it_is_a_suspicion() {
        let alone = Scene { profile: None, ..stolen(0.45, 0.02) };
        none_proven(&alone, &[]);
        assert_eq!(verdict(&alone, &[]).status, Status::Suspected);
    }

    #[test]
    fn a_path_at_capacity_and_unknown_cores_accuse_no_one() {
        assert_contradicts(&of(&full_path(stolen(0.45, 0.02))), "capacity of the slower link");
        assert_eq!(verdict(&full_path(stolen(0.45, 0.02)), &[]).status, Status::Healthy);
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..stolen(0.45, 0.02) }), "could not be read");
    }
}
