//! # softirq-core-saturated
//!
//! One core spends all its time in the network stack's receive path.
//!
//! **Shows**: one core at 85 % softirq time or more, while the application's thread and other cores are partly idle.
//!
//! **Mistaken for**: a full application core; `time_squeeze` alone proves nothing.
//!
//! **Fix**: distribute the work (more queues, RPS/RFS, IRQ affinity), or reduce the cost per packet (fewer rules and
//! taps, GRO).
//!
//! Source: `/proc/stat`; Documentation/networking/scaling.rst.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::{BPF_WORTH, bpf_cores, bpf_explains, cpu_ceiling};
use crate::causes::shared::rule::*;
use crate::experiments::tcp::AWAKE_CORES;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "softirq-core-saturated",
    about: "one core is full of packet processing",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::SOFTNET_DROPPED,
        keys::SOFTNET_TIME_SQUEEZE,
        keys::TAPS_COUNT,
        keys::NETFILTER_RULES,
        keys::BPF_RUN_US,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["app-core-saturated", "tester-limited", "receiver-app-slow", "path-capacity", "random-loss"],
    fix,
    rank: 7,
    ..Cause::COMMON
};

/// An ordinary host has a few packet sockets (DHCP, LLDP), whose filters pass nearly nothing.
pub(super) const MANY_TAPS: f64 = 8.0;

/// A rule costs some tens of nanoseconds a packet: a hundred of them cost as much as the rest of the receive path.
const MANY_RULES: f64 = 100.0;

/// What makes a packet cost so much, or shows that one core has more packets than it can take.
fn costly(evidence: &TcpEvidence, role: Role) -> Option<()> {
    let more = |key, many| evidence.number(role, key).is_some_and(|n| n >= many);
    let squeezed = evidence.grew(role, keys::SOFTNET_TIME_SQUEEZE).is_some_and(|n| n > 0);
    let programs = bpf_cores(evidence, role).is_some_and(|cores| cores >= BPF_WORTH);
    (squeezed || programs || more(keys::TAPS_COUNT, MANY_TAPS) || more(keys::NETFILTER_RULES, MANY_RULES)).then_some(())
}

/// A core that is idle but for interrupts runs without the tick by which the kernel accounts, so it may be full of packets and
/// look idle (seen: 94 % in softirq by its tracepoints, 17 % in `/proc/stat`). Where packets cost much, that is measured
/// before anything else takes the blame.
pub(super) fn unseen(evidence: &TcpEvidence) -> Option<Assessment> {
    let known = evidence.made(&AWAKE_CORES).is_some();
    let suspect = [Role::Sender, Role::Receiver].into_iter().find(|role| costly(evidence, *role).is_some());
    let role = suspect.filter(|_| !known && !evidence.fills_link())?;
    Some(ask(
        &AWAKE_CORES,
        format!(
            "packets may fill a core of {} between ticks of the kernel; this was not measured",
            who(evidence, role)
        ),
    ))
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let share = evidence.softirq_core(role)?.softirq;
    let how = format!("goodput / {} softirq of the busiest core", units::percent(share));
    let spread = if share > 0.8 { [0.88, 1.12] } else { [0.6, 1.5] };
    cpu_ceiling(CAUSE.id, evidence, role, share, spread, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let end = evidence.end(role);
    let core = known(evidence.softirq_core(role), "the times of the cores could not be read")?;
    if core.softirq < 0.85 {
        if costly(evidence, role).is_some()
            && let Some(open) = unseen(evidence)
        {
            return Err(open);
        }
        return Err(contradicts(format!(
            "no core of {} spent more than {} in softirq",
            who(evidence, role),
            units::percent(core.softirq)
        )));
    }
    if end.and_then(|end| end.thread_share).is_some_and(|share| share > 0.9) {
        return Err(contradicts("the data thread itself fills a core"));
    }
    refuted(cpu_innocent(evidence))?;
    refuted(bpf_explains(evidence, role))?;
    let mut witnesses = vec![counter(format!(
        "core {} of {} spent {} of the time in softirq",
        core.cpu,
        who(evidence, role),
        units::percent(core.softirq)
    ))];
    if let Some(dropped) = evidence.grew(role, keys::SOFTNET_DROPPED).filter(|n| *n > 0) {
        witnesses.push(counter(format!("the softnet backlog dropped {dropped} packets")));
    }
    if let Some(squeezed) = evidence.grew(role, keys::SOFTNET_TIME_SQUEEZE).filter(|n| *n > 0) {
        witnesses.push(counter(format!("its softirq stopped {squeezed} times with packets left (time_squeeze)")));
    }
    for (key, many, what) in [
        (keys::TAPS_COUNT, MANY_TAPS, "packet sockets listen on this host"),
        (keys::NETFILTER_RULES, MANY_RULES, "netfilter rules are loaded"),
    ] {
        if let Some(n) = evidence.number(role, key).filter(|n| *n >= many) {
            witnesses.push(parameter(format!("{n:.0} {what}: each adds cost per packet")));
        }
    }
    supports(core.softirq, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let taps = evidence.number(role, keys::TAPS_COUNT).filter(|n| *n > 0.0);
    let extra = taps
        .map_or_else(String::new, |n| format!("; stop the {n:.0} packet sockets (captures) if not needed"));
    advice(format!(
        "distribute packet processing over more cores (RSS queues: ethtool -L; RPS: \
        /sys/class/net/*/queues/*/rps_cpus) and reduce the cost per packet (GRO, fewer netfilter rules){extra}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// All packets of a link of ten on one core, whose backlog overflows.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 2e9,
            rtt_us: 35_300,
            receiver_thread: 0.4,
            receiver_core: core(0.96, 0.02),
            receiver_counts: vec![("softnet.dropped", 1_200)],
            sender_facts: link(10_000, ordinary_host()),
            receiver_facts: link(10_000, ordinary_host()),
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_core_full_of_packets_is_named() {
        let finding = named(&truth(), &[], "softirq-core-saturated", Place::Server);
        assert_rejects(&finding, "app-core-saturated", "used 10 % of a core");
        assert_rejects(&finding, "tester-limited", "were busy");
        assert_rejects(&finding, "receiver-app-slow", "only 0 %");
        assert_rejects(&finding, "path-capacity", "a core is full");
    }

    #[test]
    fn the_core_alone_is_a_suspicion_and_its_ceiling_no_second_witness() {
        let alone = Scene { receiver_counts: Vec::new(), ..truth() };
        assert_eq!(verdict(&alone, &[]).status, Status::Suspected);
        let squeezed = Scene { receiver_counts: vec![("softnet.time_squeeze", 900)], ..alone };
        named(&squeezed, &[], "softirq-core-saturated", Place::Server);
    }

    #[test]
    fn many_taps_are_a_witness_and_a_few_are_not() {
        let taps = |n: i64| Scene {
            receiver_counts: Vec::new(),
            receiver_facts: with(truth().receiver_facts, fact("taps.count", n, Unit::Number)),
            ..truth()
        };
        assert_eq!(verdict(&taps(7), &[]).status, Status::Suspected);
        let finding = named(&taps(64), &[], "softirq-core-saturated", Place::Server);
        assert!(finding.fix.advice.contains("stop the 64 packet sockets"), "{}", finding.fix.advice);
    }

    #[test]
    fn a_core_that_looks_idle_while_packets_cost_much_is_measured_awake() {
        // 240 Mbit/s of a gigabit, a queue of 6 ms; the kernel's tick saw 17 % of softirq, with the cores awake 94 %.
        let scene = Scene {
            goodput_bps: 240e6,
            rtt_us: 7_000,
            receiver_core: core(0.17, 0.02),
            receiver_counts: vec![("softnet.time_squeeze", 159)],
            sender_facts: link(1_000, ordinary_host()),
            receiver_facts: with(link(1_000, ordinary_host()), fact("taps.count", 128_i64, Unit::Number)),
            ..Scene::default()
        };
        assert_asks(&of(&scene), &AWAKE_CORES);
        assert!(next(&scene, &[]).contains(&AWAKE_CORES.id));
        let awake = Scene { receiver_core: core(0.94, 0.02), ..scene.clone() };
        let finding = named(&scene, &[("awake-cores", &awake)], "softirq-core-saturated", Place::Server);
        assert_rejects(&finding, "path-capacity", "a core is full");
        // Where the cores were idle indeed, the question is answered.
        let idle = [("awake-cores", &scene)];
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &scene, &idle), "no core of the receiver");
    }

    #[test]
    fn a_third_of_a_core_has_no_ceiling() {
        let of = |softirq| {
            let scene = Scene { receiver_core: core(softirq, 0.02), ..truth() };
            ceiling(&TcpEvidence::of(&scene.run(&[]), 0).expect("a baseline"), Role::Receiver)
        };
        assert!(of(0.33).is_none());
        assert!(of(0.5).is_some_and(|ceiling| (ceiling.bps / 4e9 - 1.0).abs() < 0.01));
    }

    #[test]
    fn squeezes_and_drops_without_a_full_core_mean_nothing() {
        let busy = |softirq| Scene { receiver_core: core(softirq, 0.02), ..truth() };
        assert_contradicts(&of(&busy(0.84)), "no core of the receiver");
        assert_supports(&of(&busy(0.86)));
        assert_contradicts(&of(&Scene { receiver_thread: 0.95, ..truth() }), "the data thread itself");
    }

    #[test]
    fn cores_that_cannot_be_read_leave_it_open() {
        let scene = Scene { hidden: &[Hidden::Cores], ..truth() };
        assert_cannot_tell(&of(&scene), "times of the cores");
        none_proven(&scene, &[]);
    }
}
