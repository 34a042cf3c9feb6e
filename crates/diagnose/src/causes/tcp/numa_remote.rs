//! # numa-remote
//!
//! The core that processes the packets of a NIC is on another NUMA node than the NIC: each access crosses the
//! interconnect.
//!
//! **Shows**: a core full of softirq time that is not in `local_cpulist` of the NIC, at several Gbit/s.
//!
//! **Mistaken for**: a full core on the NIC's node. At low rates, or with idle time, the detour costs nothing.
//!
//! **Fix**: move the NIC's interrupts and the application to the CPUs of its node.
//!
//! Source: kernel `Documentation/ABI/testing/sysfs-bus-pci`, `local_cpulist`; `Documentation/networking/scaling.rst`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::rule::*;
use narrows_model::Value;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "numa-remote",
    about: "packets are processed on another NUMA node than that of the NIC",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CPU_NUMA_NODES, keys::NIC_LOCAL_CPUS, keys::NIC_KIND, keys::NIC_SPEED],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softirq-core-saturated", "single-queue", "app-core-saturated", "path-capacity"],
    fix,
    rank: 7,
    ..Cause::COMMON
};

/// A core this full of soft interrupts has no time left.
const FULL: f64 = 0.85;

/// Below this rate one core has time for packets wherever their memory is.
const HIGH_BPS: f64 = 5e9;

/// The CPUs next to the card, as ranges.
fn local(evidence: &TcpEvidence, role: Role) -> Option<&[String]> {
    match &evidence.host(role)?.get(keys::NIC_LOCAL_CPUS)?.value {
        Value::List(ranges) => Some(ranges),
        _ => None,
    }
}

fn contains(range: &str, cpu: u32) -> bool {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    matches!((first.parse(), last.parse()), (Ok(first), Ok(last)) if (first..=last).contains(&cpu))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let core = known(evidence.softirq_core(role), "the times of the cores could not be read")?;
    if core.softirq < FULL {
        return Err(contradicts(format!("no core of {who} spent more than {} in softirq", units::percent(core.softirq))));
    }
    if evidence.goodput_bps() < HIGH_BPS {
        return Err(contradicts("the rate is too low for remote memory access to matter"));
    }
    refuted(cpu_innocent(evidence))?;
    match evidence.number(role, keys::CPU_NUMA_NODES) {
        Some(nodes) if nodes < 2.0 => return Err(contradicts(format!("{who} has one NUMA node"))),
        Some(_) => {}
        None => return Err(cannot_tell(format!("the NUMA nodes of {who} could not be read"))),
    }
    let Some(local) = local(evidence, role).filter(|ranges| !ranges.is_empty()) else {
        return Err(cannot_tell(format!("the CPUs on the NUMA node of the NIC of {who} could not be read")));
    };
    if local.iter().any(|range| contains(range, core.cpu)) {
        return Err(contradicts(format!("core {} is on the NUMA node of the NIC of {who}", core.cpu)));
    }
    let witnesses = [
        Some(counter(format!("core {} of {who} spent {} of the time in softirq", core.cpu, units::percent(core.softirq)))),
        Some(parameter(format!("it is not on the NUMA node of the NIC ({})", local.join(",")))),
        path_has_room(evidence),
    ];
    // What the detour costs is a part of the core's time.
    supports(0.7, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let cpus = local(evidence, role).map_or_else(String::new, |ranges| format!(" ({})", ranges.join(",")));
    advice(format!(
        "move the NIC's interrupts to the CPUs of its node{cpus} (/proc/irq/*/smp_affinity_list), and the \
        application, too (numactl --cpunodebind)"
    ))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn card(nodes: i64, local: &[&str]) -> Vec<Fact> {
        let local: Vec<String> = local.iter().map(|range| (*range).to_owned()).collect();
        let facts = with(link(100_000, ordinary_host()), fact("cpu.numa_nodes", nodes, Unit::Number));
        with(facts, fact("nic.local_cpus", local, Unit::Cpu))
    }

    /// 20 Gbit/s, and core 0 is full of packets of a card beside other cores.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 20e9,
            min_rtt_us: 200,
            rtt_us: 400,
            snd_wnd: 30_000_000,
            receiver_core: core(0.96, 0.02),
            sender_facts: link(100_000, ordinary_host()),
            receiver_facts: card(2, &["16-31", "48-63"]),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_full_core_far_from_its_card_is_named() {
        let finding = named(&truth(), &[], "numa-remote", Place::Server);
        assert!(finding.fix.advice.contains("(16-31,48-63)"), "{}", finding.fix.advice);
    }

    #[test]
    fn cores_beside_the_card_with_time_left_or_at_low_rates_are_none() {
        assert_contradicts(&of(&Scene { receiver_facts: card(2, &["0-15", "32"]), ..truth() }), "is on the NUMA node of the NIC of");
        assert_contradicts(&of(&Scene { receiver_facts: card(1, &["1-3"]), ..truth() }), "one NUMA node");
        assert_contradicts(&of(&Scene { receiver_core: core(0.5, 0.02), ..truth() }), "no core of");
        assert_contradicts(&of(&Scene { goodput_bps: 2e9, ..truth() }), "too low");
    }

    #[test]
    fn a_path_at_capacity_and_unknown_cpus_accuse_no_one() {
        let with_time_left = Scene { receiver_core: core(0.9, 0.02), ..truth() };
        assert_eq!(verdict(&full_path(with_time_left), &[]).status, Status::Healthy);
        // What UDP carries ends at the same core.
        assert_ne!(verdict(&full_path(truth()), &[]).status, Status::Healthy);
        let silent = |key| Scene { receiver_facts: without(truth().receiver_facts, key), ..truth() };
        assert_cannot_tell(&of(&silent("nic.local_cpus")), "could not be read");
        assert_cannot_tell(&of(&silent("cpu.numa_nodes")), "NUMA nodes");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..truth() }), "times of the cores");
    }
}
