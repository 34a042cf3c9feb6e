//! # heavy-ruleset
//!
//! Each packet is checked against so many packet-filter rules, one after another, that a core is saturated.
//!
//! **Shows**: a core full of soft interrupts, a large ruleset; each packet that passes IP costs many times what it costs elsewhere, and the
//! rules account for that at some nanoseconds each.
//!
//! **Mistaken for**: a core that has too many packets (each costs what it does elsewhere), packet taps, a large ruleset of which a packet
//! sees a few rules only: then each rule would have to take less than a comparison can.
//!
//! **Fix**: sets and verdict maps in place of lists of rules; accept established connections first; a flow table.
//!
//! Source: nft(8), *sets* and *flowtables*; in the lab (Linux 6.18, TUN) an ordinary packet took 3.5 to 7 µs where there were many, and with
//! 5,000 rules that compare an address 42 µs: 7 ns for each rule. Not seen on a real host.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::cpu::views;
use crate::causes::shared::rule::*;
use crate::evidence::tcp::EndView;
use narrows_model::FactKey;
use super::softirq_core_saturated::{CAUSE as SOFTIRQ, MANY_TAPS, unseen};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "heavy-ruleset",
    about: "checking every packet against so many filter rules saturates a core",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NETFILTER_RULES,
        keys::BPF_RUN_US,
        keys::CPU_FREQUENCY_MAX,
        keys::TAPS_COUNT,
        keys::SNMP_IP_IN_RECEIVES,
        keys::SNMP_IP_OUT_REQUESTS,
        keys::SNMP6_IP6_IN_RECEIVES,
        keys::SNMP6_IP6_OUT_REQUESTS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_COUNTER_TX_PACKETS,
    ],
    ceiling: |evidence, role| if rules(evidence, role).is_some() { (SOFTIRQ.ceiling)(evidence, role) } else { None },
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softirq-core-saturated", "app-core-saturated", "single-queue", "filter-drop", "path-capacity"],
    fix: |_, _| {
        advice(
            "shorten what each packet sees (nft list ruleset): accept established connections in the first rule, replace lists of rules by \
             sets or verdict maps, or let forwarded flows bypass them (flowtable)",
        )
    },
    rank: 9,
    predicts: false,
    ..Cause::COMMON
};

/// Fewer rules cost a packet less than the rest of its way.
const MANY: f64 = 100.0;

/// What a packet of the wire costs without rules at most, microseconds of a core of 4 GHz, and what a pass through IP adds (it may be one of
/// many packets that were merged).
const PACKET_US: f64 = 1.5;
const PASS_US: f64 = 8.0;

/// What one rule may cost, microseconds: to load a field and to compare it are some 25 instructions (`nft_do_chain`), 1.5 ns of a core that does
/// four of them in each cycle of 4 GHz; the longest matches take less than half a microsecond. Of 8,109 rules of one hook, 2.3 ns were seen
/// over the packets of both directions.
const RULE_US: [f64; 2] = [0.0015, 0.4];

fn rules(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    evidence.number(role, keys::NETFILTER_RULES).filter(|rules| *rules >= MANY)
}

/// The end in the trial that saw most of its soft interrupts, and the length of that trial in seconds.
fn seen(evidence: &TcpEvidence, role: Role) -> Option<(&EndView, f64)> {
    let softirq = |end: &EndView| end.softirq_core().map(|core| core.softirq);
    views(evidence, role)
        .filter(|(end, _)| softirq(end).is_some())
        .max_by(|(a, _), (b, _)| softirq(a).unwrap_or(0.0).total_cmp(&softirq(b).unwrap_or(0.0)))
}

/// How many times as long the same instructions take on a slower core, by its highest frequency. Where that is not known, none.
fn slower(evidence: &TcpEvidence, role: Role) -> f64 {
    evidence.number(role, keys::CPU_FREQUENCY_MAX).filter(|hertz| *hertz > 0.0).map_or(1.0, |hertz| (4e9 / hertz).clamp(1.0, 8.0))
}

/// Microseconds that the rules took of each pass through IP, and what a pass cost altogether; `None` where it is not counted.
fn cost_us(end: &EndView, whole_s: f64, slower: f64) -> Option<[f64; 2]> {
    let grew = |key: FactKey| end.counts.get(key.name).copied();
    let both = |v4, v6| Some(grew(v4)?.saturating_add(grew(v6).unwrap_or(0)));
    let received = both(keys::SNMP_IP_IN_RECEIVES, keys::SNMP6_IP6_IN_RECEIVES)?;
    let sent = both(keys::SNMP_IP_OUT_REQUESTS, keys::SNMP6_IP6_OUT_REQUESTS)?;
    let passes = received as f64 + sent as f64;
    let frames = grew(keys::NIC_COUNTER_RX_PACKETS)? as f64 + grew(keys::NIC_COUNTER_TX_PACKETS)? as f64;
    let softirq_us = end.cores.iter().map(|core| core.softirq).sum::<f64>() * whole_s * 1e6;
    // What BPF programs took is not the rules'. They run in the kernel, so as much of it is in soft interrupts as of the kernel's time.
    let kernel: f64 = end.cores.iter().map(|core| core.softirq + core.system).sum::<f64>().max(1e-6);
    let bpf_us = grew(keys::BPF_RUN_US).unwrap_or(0) as f64 * softirq_us / (kernel * whole_s * 1e6).max(1.0);
    let ordinary_us = bpf_us + slower * (PACKET_US * frames + PASS_US * passes);
    (passes >= 1_000.0).then(|| [(softirq_us - ordinary_us).max(0.0) / passes, softirq_us / passes])
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let (end, whole_s) = known(seen(evidence, role), "the times of the cores could not be read")?;
    let many = rules(evidence, role);
    let Some(core) = end.softirq_core().filter(|core| core.softirq >= FULL) else {
        let open = many.and_then(|_| unseen(evidence));
        return Err(open.unwrap_or_else(|| contradicts(format!("no core of {who} is full of soft interrupts"))));
    };
    let Some(rules) = many else {
        return Err(match evidence.number(role, keys::NETFILTER_RULES) {
            Some(few) => contradicts(format!("the packet filter of {who} has {few:.0} rules")),
            None => cannot_tell(format!("the packet filter of {who} could not be read")),
        });
    };
    refuted(cpu_innocent(evidence))?;
    if let Some(taps) = evidence.number(role, keys::TAPS_COUNT).filter(|taps| *taps >= MANY_TAPS) {
        return Err(cannot_tell(format!("{taps:.0} packet taps of {who} see each packet as well, and may cost as much")));
    }
    let slower = slower(evidence, role);
    let [excess_us, each_us] = known(cost_us(end, whole_s, slower), format!("the packet counters of IP of {who} could not be read"))?;
    if excess_us < 0.5 * each_us {
        return Err(contradicts(format!("a packet takes {each_us:.1} us of {who}: hardly more than without rules")));
    }
    let rule_us = excess_us / rules;
    if rule_us < slower * RULE_US[0] {
        return Err(contradicts(format!(
            "{rules:.0} rules at {:.1} ns each: less than a comparison takes, so a packet sees a few of them only",
            rule_us * 1e3
        )));
    }
    if rule_us > slower * RULE_US[1] {
        return Err(contradicts(format!("{rules:.0} rules do not account for {excess_us:.0} us of each packet")));
    }
    let witnesses = [
        Some(counter(format!("core {} of {who} spent {} of the time in softirq", core.cpu, units::percent(core.softirq)))),
        Some(parameter(format!(
            "each packet took {each_us:.0} us, and {rules:.0} rules are loaded: {:.0} ns for each accounts for it",
            rule_us * 1e3
        ))),
        path_has_room(evidence),
    ];
    supports(core.softirq, witnesses)
}

/// A core is full from here on, as that of softirq-core-saturated.
const FULL: f64 = 0.85;

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// 3,000 rules: each of 80,000 packets of a trial takes 94 us.
    fn truth(rules: i64, passes: i64) -> Scene {
        Scene {
            receiver_core: core(0.94, 0.02),
            receiver_facts: with(ordinary_host(), fact("netfilter.rules", rules, Unit::Number)),
            receiver_counts: vec![
                ("snmp.Ip.InReceives", passes / 2),
                ("snmp.Ip.OutRequests", passes / 2),
                ("nic.counter.rx_packets", passes / 2),
                ("nic.counter.tx_packets", passes / 2),
            ],
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn rules_that_account_for_a_full_core_are_named() {
        let finding = named(&truth(3_000, 80_000), &[], "heavy-ruleset", Place::Server);
        assert_rejects(&finding, "app-core-saturated", "of a core");
        assert!(finding.witnesses.iter().any(|it| it.says.contains("94 us, and 3000 rules are loaded: 28 ns")), "{finding:#?}");
    }

    #[test]
    fn a_large_ruleset_that_a_packet_hardly_sees_is_not_why() {
        // A cluster's host: 40,000 rules, which the first packet of a connection sees.
        assert_contradicts(&of(&truth(60_000, 80_000)), "1.4 ns each");
        assert_supports(&of(&truth(40_000, 80_000)));
        assert_contradicts(&of(&truth(400, 1_000_000)), "hardly more than without rules");
        // A core of 600 MHz needs that long for a packet without any.
        let slow_core = with(truth(400, 140_000).receiver_facts, fact("cpu.frequency.max", 600_000_000_i64, Unit::Hertz));
        assert_supports(&of(&truth(400, 140_000)));
        assert_contradicts(&of(&Scene { receiver_facts: slow_core, ..truth(400, 140_000) }), "hardly more than without rules");
        assert_contradicts(&of(&truth(150, 80_000)), "do not account for");
        assert_contradicts(&of(&truth(60, 80_000)), "60 rules");
    }

    #[test]
    fn without_a_full_core_rules_cost_nothing() {
        let idle = Scene { receiver_core: core(0.3, 0.02), ..truth(3_000, 80_000) };
        let awake = Scene { receiver_core: core(0.4, 0.02), ..idle.clone() };
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &idle, &[("awake-cores", &awake)]), "no core of the receiver");
        assert_contradicts(&of(&full_path(truth(3_000, 80_000))), "capacity of the slower link");
    }

    #[test]
    fn what_cannot_be_read_leaves_it_open() {
        assert_cannot_tell(&of(&Scene { receiver_facts: ordinary_host(), ..truth(3_000, 80_000) }), "could not be read");
        assert_cannot_tell(&of(&Scene { receiver_counts: Vec::new(), ..truth(3_000, 80_000) }), "packet counters of IP");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..truth(3_000, 80_000) }), "cores could not be read");
        // A capture on the same core: either may take the time.
        let taps = with(truth(3_000, 80_000).receiver_facts, fact("taps.count", 64_i64, Unit::Number));
        assert_cannot_tell(&of(&Scene { receiver_facts: taps, ..truth(3_000, 80_000) }), "64 packet taps");
    }
}
