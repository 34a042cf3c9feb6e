//! # bpf-programs
//!
//! BPF programs (XDP, traffic control, control groups, tracing: agents of security and monitoring) take much of the core that carries the
//! data.
//!
//! **Shows**: a core is full, of soft interrupts or of the data thread, and by the kernel's own statistics BPF programs ran for much of
//! its time.
//!
//! **Mistaken for**: a core that has too many packets, a large ruleset, one queue, a machine that is full: there the programs take little
//! of the time. On a host with many cores, programs that run elsewhere.
//!
//! **Fix**: detach the program that is named, or have its agent filter earlier or sample.
//!
//! Source: kernel `kernel/bpf/syscall.c`, `bpf_enable_stats` (Linux 5.8; root only), `include/linux/filter.h`, `__bpf_prog_run`. The
//! statistics are on during trials only. What the programs take of the core is their time in proportion to where the kernel ran.

use crate::causes::shared::bound::held_back;
use crate::causes::shared::cpu::{BPF_WORTH, bpf_cores, bpf_share};
use crate::causes::shared::rule::*;
use crate::evidence::cores::NO_TIME_LEFT;
use crate::evidence::tcp::EndView;
use narrows_model::FactKey;
use super::softirq_core_saturated::unseen;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "bpf-programs",
    about: "BPF programs take much of the core that carries the data",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::BPF_RUN_US,
        keys::BPF_PROGRAM_RUN_US,
        keys::BPF_PROGRAM_RUNS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &[
        "softirq-core-saturated",
        "app-core-saturated",
        "heavy-ruleset",
        "single-queue",
        "tester-limited",
        "path-capacity",
    ],
    fix,
    rank: 9,
    explains_link: true,
    without,
    ..Cause::COMMON
};

/// The program that ran longest, and how often it did.
struct Costliest<'a> {
    /// Its id, type and name, as in the key.
    name: &'a str,
    run_us: u64,
    runs: u64,
}

impl Costliest<'_> {
    /// Its id, its type and its name.
    fn parts(&self) -> [&str; 3] {
        let mut parts = self.name.splitn(3, '.');
        [(); 3].map(|()| parts.next().unwrap_or_default())
    }

    fn words(&self) -> String {
        let [id, kind, name] = self.parts();
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        format!("{kind} program{name} (id {id})")
    }
}

fn costliest(end: &EndView) -> Option<Costliest<'_>> {
    let family = |key: FactKey| key.name.trim_end_matches('*');
    let prefix = family(keys::BPF_PROGRAM_RUN_US);
    let named = end.counts.iter().filter_map(|(key, us)| Some((key.strip_prefix(prefix)?, *us)));
    let (name, run_us) = named.max_by_key(|(_, us)| *us)?;
    let runs = *end.counts.get(&format!("{}{name}", family(keys::BPF_PROGRAM_RUNS)))?;
    Some(Costliest { name, run_us, runs })
}

/// That both ends are hosts of one machine, and the costliest program, which sees received packets, ran for those of the other end.
fn elsewhere(evidence: &TcpEvidence, role: Role) -> Option<String> {
    let other = if role == Role::Sender { Role::Receiver } else { Role::Sender };
    let (own_end, other_end) = (evidence.end(role)?, evidence.end(other)?);
    let (own, seen_there) = (costliest(own_end)?, costliest(other_end)?);
    // Both ends read the machine's counters, at the same moments but for the time between their readings.
    let one_machine = own.name == seen_there.name && own.runs.abs_diff(seen_there.runs) <= own.runs / 4;
    let received = |end: &EndView| end.counts.get(keys::NIC_COUNTER_RX_PACKETS.name).copied();
    let theirs = own.runs.abs_diff(received(other_end)?) < own.runs.abs_diff(received(own_end)?);
    (one_machine && theirs && own.parts()[1] == "xdp").then(|| {
        format!("both ends are one machine, and the {} ran for packets of {}", own.words(), who(evidence, other))
    })
}

/// Why the core is not what ends the goodput. What UDP carries of a path ends at the same core, so a path that is full by its profile says
/// nothing of a core that has no time left.
fn innocent(evidence: &TcpEvidence, full: f64) -> Option<String> {
    let link = evidence.at_link() || evidence.fills_link() && full < NO_TIME_LEFT;
    link.then(|| "the goodput equals the capacity of the slower link".to_owned()).or_else(|| held_back(evidence))
}

/// That they are what limits the goodput, and not the path.
pub(super) fn limit(evidence: &TcpEvidence) -> Option<String> {
    let at = |role: &Role| matches!(assess(evidence, *role), Ok(Assessment::Supports { .. }));
    let role = [Role::Sender, Role::Receiver].into_iter().find(at)?;
    Some(format!(
        "BPF programs take much of a full core of {}: what it carries is no capacity of the path",
        who(evidence, role)
    ))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let run = bpf_cores(evidence, role);
    if let Some(run) = run.filter(|run| *run < BPF_WORTH) {
        return Err(contradicts(format!("BPF programs of {who} ran for {} of a core's time", units::percent(run))));
    }
    if evidence.softirq_core(role).is_none() {
        return Err(cannot_tell("the times of the cores could not be read"));
    }
    let Some(share) = bpf_share(evidence, role) else {
        let open = run.and_then(|_| unseen(evidence));
        return Err(open.unwrap_or_else(|| contradicts(format!("no core of {who} is full"))));
    };
    refuted(innocent(evidence, share.full))?;
    let Some([_, of_core, _]) = share.of_core else {
        return Err(cannot_tell(format!(
            "the run times of the BPF programs of {who} could not be read (that needs root and Linux 5.8)"
        )));
    };
    if of_core < BPF_WORTH {
        return Err(contradicts(format!("BPF programs of {who} took {} of the full core", units::percent(of_core))));
    }
    refuted(elsewhere(evidence, role))?;
    let each = costliest(share.end).map_or_else(String::new, |it| {
        format!("; the {}: {:.1} us for each of {} runs", it.words(), it.run_us as f64 / it.runs.max(1) as f64, it.runs)
    });
    let witnesses = [
        Some(counter(format!("{} of {who} took {} of a core", share.what, units::percent(share.full)))),
        Some(counter(format!("BPF programs took {} of that core (run_time_ns){each}", units::percent(of_core)))),
        path_has_room(evidence),
    ];
    supports(of_core.clamp(0.6, 1.0), witnesses)
}

/// The core does the same work for each byte less what the programs take.
fn without(evidence: &TcpEvidence, role: Role) -> Option<(f64, [f64; 2])> {
    // What remains of the core costs something, however much the programs take.
    let link = evidence.link_goodput_bps().map_or(f64::INFINITY, |bps| bps.max(evidence.goodput_bps()));
    let without = |part: f64| (evidence.goodput_bps() / (1.0 - part).max(0.05)).min(link);
    let [low, likely, high] = bpf_share(evidence, role)?.of_core?.map(without);
    Some((likely, [low, high]))
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let share = bpf_share(evidence, role);
    let Some(costliest) = share.and_then(|share| costliest(share.end)) else {
        return advice(
            "detach the BPF programs (bpftool prog show) that are not needed, or move their agent to another host",
        );
    };
    let [id, ..] = costliest.parts();
    let what = format!(
        "find whose the {} is, and detach it or configure its agent to filter earlier, to sample, or to leave this device out",
        costliest.words()
    );
    command_fix(evidence, role, what, [format!("bpftool prog show id {id}")])
}

#[cfg(test)]
mod tests {
    use crate::experiments::tcp::AWAKE_CORES;
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use narrows_model::load::tcp::TcpPlan;
    use super::*;

    /// An agent whose XDP program takes so much of eight seconds, at 80,000 packets, on a core that is full.
    fn truth(run_us: i64) -> Scene {
        Scene {
            receiver_core: core(0.94, 0.02),
            receiver_counts: vec![
                ("bpf.run_us", run_us + 1_000),
                ("bpf.run_us.17.xdp.agent_rx", run_us),
                ("bpf.runs.17.xdp.agent_rx", 80_000),
                ("bpf.run_us.4.cgroup_skb.sd_fw", 1_000),
                ("bpf.runs.4.cgroup_skb.sd_fw", 70_000),
            ],
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_program_that_takes_half_of_the_full_core_is_named_with_its_gain() {
        let scene = truth(4_000_000);
        let finding = named(&scene, &[], "bpf-programs", Place::Server);
        let says = "the xdp program agent_rx (id 17): 50.0 us for each of 80000 runs";
        assert!(finding.witnesses.iter().any(|it| it.says.contains(says)), "{finding:#?}");
        assert_eq!(finding.fix.commands[0].run, "bpftool prog show id 17");
        let packets = assessment(&super::super::softirq_core_saturated::CAUSE, Role::Receiver, &scene, &[]);
        assert_contradicts(&packets, "BPF programs took 50 % of that core");
        assert_rejects(&finding, "path-capacity", "no capacity of the path");
        // It sees the packets of this connection alone, and takes half of a core for them.
        let prediction = finding.prediction.expect("the kernel measured it");
        assert!((73e6..75e6).contains(&prediction.bps), "{prediction:?}");
    }

    #[test]
    fn a_path_that_is_full_by_its_profile_ends_at_the_same_core() {
        let path = ProfiledPath { rate_bps: 40e6, burst_bps: 40e6, ..ProfiledPath::default() };
        let scene = Scene { profile: Some(path), ..virtual_hosts(truth(4_000_000)) };
        let finding = named(&scene, &[], "bpf-programs", Place::Server);
        assert_rejects(&finding, "path-capacity", "no capacity of the path");
        let prediction = finding.prediction.expect("the kernel measured it");
        assert!((73e6..75e6).contains(&prediction.bps), "{prediction:?}");
        // A core with time left is no end of the path.
        let left = Scene { receiver_core: core(0.88, 0.02), ..scene };
        assert_contradicts(&of(&left), "capacity of the slower link");
        assert_eq!(crate::testing::verdict(&left, &[]).status, Status::Healthy);
    }

    #[test]
    fn beyond_what_a_profile_without_a_limit_carried_the_gain_is_a_lower_bound() {
        let of = |rate_bps: f64| {
            let path = ProfiledPath { rate_bps, burst_bps: rate_bps, tried_bps: 0.9 * rate_bps, ..ProfiledPath::default() };
            let scene = Scene { profile: Some(path), ..virtual_hosts(truth(4_000_000)) };
            named(&scene, &[], "bpf-programs", Place::Server).prediction.expect("the kernel measured it")
        };
        // 85 % of the rate were carried, of which 1448 of 1500 bytes are payload; the core alone would give 74 Mbit/s.
        let open = of(60e6);
        assert!(open.interval_bps.is_none() && (49e6..49.5e6).contains(&open.bps), "{open:?}");
        // The steps ended at the same core.
        let ended = of(44e6);
        assert!(ended.interval_bps.is_none() && (70e6..75e6).contains(&ended.bps), "{ended:?}");
        assert!(of(200e6).interval_bps.is_some());
    }

    #[test]
    fn a_full_core_of_which_programs_take_little_has_another_cause() {
        assert_contradicts(&of(&truth(1_000_000)), "ran for 13 %");
        assert_supports(&of(&truth(1_300_000)));
        let verdict = crate::testing::verdict(&truth(1_000_000), &[]);
        assert!(verdict.causes.iter().all(|cause| cause.id != "bpf-programs"), "{verdict:#?}");
        // XDP programs that run in the soft interrupts of another core, too, and tracing of the other core's system calls.
        let spread = Scene { other_core: core(0.7, 0.1), ..truth(1_600_000) };
        assert_contradicts(&of(&spread), "of the full core");
        let traced = |system| Scene {
            receiver_counts: vec![
                ("bpf.run_us", 1_600_000),
                ("bpf.run_us.5.raw_tracepoint.sys", 1_600_000),
                ("bpf.runs.5.raw_tracepoint.sys", 9_000),
            ],
            other_core: core(0.0, system),
            ..truth(0)
        };
        assert_contradicts(&of(&traced(0.9)), "of the full core");
        assert_supports(&of(&traced(0.0)));
    }

    #[test]
    fn look_alikes_with_a_little_bpf_keep_their_own_names() {
        let little = |mut scene: Scene| {
            scene.receiver_counts.push(("bpf.run_us", 400_000));
            scene
        };
        // Too many packets for the core.
        let softirq =
            Scene { receiver_core: core(0.96, 0.02), receiver_counts: vec![("softnet.dropped", 1_200)], ..slow() };
        named(&little(softirq.clone()), &[], "softirq-core-saturated", Place::Server);
        // A thread that fills its core, also where a program takes much of another core.
        let thread =
            Scene { receiver_thread: 0.98, receiver_core: core(0.5, 0.02), other_core: core(0.02, 0.96), ..slow() };
        named(&little(thread.clone()), &[], "app-core-saturated", Place::Server);
        let beside = Scene { receiver_counts: truth(3_000_000).receiver_counts, ..thread.clone() };
        assert_contradicts(&of(&beside), "of the full core");
        named(&beside, &[], "app-core-saturated", Place::Server);
        // Where nothing else runs in the kernel, it is the thread that runs them.
        let within = Scene {
            receiver_counts: vec![
                ("bpf.run_us", 4_000_000),
                ("bpf.run_us.5.lsm.audit", 4_000_000),
                ("bpf.runs.5.lsm.audit", 9_000),
            ],
            receiver_core: core(0.02, 0.02),
            ..thread
        };
        named(&within, &[], "bpf-programs", Place::Server);
        // 3,000 rules.
        let packets = ["snmp.Ip.InReceives", "snmp.Ip.OutRequests", "nic.counter.rx_packets", "nic.counter.tx_packets"];
        let rules = Scene {
            receiver_core: core(0.94, 0.02),
            receiver_facts: with(ordinary_host(), fact("netfilter.rules", 3_000_i64, Unit::Number)),
            receiver_counts: packets.map(|key| (key, 40_000)).to_vec(),
            ..slow()
        };
        named(&little(rules.clone()), &[], "heavy-ruleset", Place::Server);
        // The same core where programs, not rules, take the time.
        let mut programs = rules;
        programs.receiver_counts.extend([
            ("bpf.run_us", 6_000_000),
            ("bpf.run_us.9.sched_cls.lb", 6_000_000),
            ("bpf.runs.9.sched_cls.lb", 80_000),
        ]);
        named(&programs, &[], "bpf-programs", Place::Server);
        let rules = assessment(&super::super::heavy_ruleset::CAUSE, Role::Receiver, &programs, &[]);
        assert_contradicts(&rules, "hardly more than without rules");
        // A machine without time left.
        let busy = Scene { receiver_core: core(0.1, 0.88), other_core: core(0.1, 0.88), ..slow() };
        named(&little(busy.clone()), &[("more-streams", &busy)], "tester-limited", Place::Server);
        // One queue of many.
        let card = with(link(10_000, ordinary_host()), fact("nic.channels.combined", 1_i64, Unit::Number));
        let card = with(card, fact("cpu.count", 4_i64, Unit::Number));
        let card = with(card, fact("nic.channels.combined.max", 8_i64, Unit::Number));
        let queue = Scene {
            receiver_facts: card,
            load: TcpPlan { streams: 4, ..slow().load },
            receiver_counts: Vec::new(),
            ..softirq
        };
        named(&little(queue), &[], "single-queue", Place::Server);
    }

    #[test]
    fn without_a_full_core_they_cost_nothing_that_matters() {
        let idle = Scene { receiver_core: core(0.3, 0.02), ..truth(2_000_000) };
        // The tick of an idle core may not have seen it.
        assert_asks(&of(&idle), &AWAKE_CORES);
        let awake = Scene { receiver_core: core(0.4, 0.02), ..idle.clone() };
        assert_contradicts(
            &assessment(&CAUSE, Role::Receiver, &idle, &[("awake-cores", &awake)]),
            "no core of the receiver",
        );
        let busy = truth(4_000_000);
        named(&idle, &[("awake-cores", &busy)], "bpf-programs", Place::Server);
        assert_contradicts(&of(&full_path(truth(4_000_000))), "capacity of the slower link");
        assert_eq!(crate::testing::verdict(&full_path(truth(4_000_000)), &[]).status, Status::Healthy);
    }

    #[test]
    fn a_programs_work_for_the_other_end_of_one_machine_is_not_this_ends() {
        let mut scene = truth(4_000_000);
        scene.sender_core = scene.receiver_core;
        scene.sender_counts = scene.receiver_counts.clone();
        scene.receiver_counts.push(("nic.counter.rx_packets", 79_000));
        scene.sender_counts.push(("nic.counter.rx_packets", 40_000));
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "ran for packets of the receiver");
        named(&scene, &[], "bpf-programs", Place::Server);
    }

    #[test]
    fn what_cannot_be_read_leaves_it_open() {
        let unread = Scene { receiver_counts: Vec::new(), ..truth(0) };
        assert_cannot_tell(&of(&unread), "needs root");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..truth(4_000_000) }), "times of the cores");
        none_proven(&Scene { hidden: &[Hidden::Cores], ..truth(4_000_000) }, &[]);
    }
}
