//! # interrupt-coalescing
//!
//! A network card interrupts for nearly every packet, and a core is full of interrupts: nothing gathers packets.
//!
//! **Shows**: a core full of interrupts and soft interrupts, tens of thousands of interrupts a second with few packets each, no adaptive
//! coalescing and a delay of next to nothing.
//!
//! **Mistaken for**: packets that cost too much each (then one interrupt brings many), a card with one queue.
//!
//! **Fix**: `ethtool -C DEVICE adaptive-rx on`, or some tens of microseconds of `rx-usecs`.
//!
//! Source: ethtool(8), `-C`; kernel `Documentation/networking/napi.rst`. Not seen on a real host.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "interrupt-coalescing",
    about: "a network card interrupts for nearly every packet, which saturates a core",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NIC_IRQ_INTERRUPTS,
        keys::NIC_COUNTER_RX_PACKETS,
        keys::NIC_COALESCE_RX_USECS,
        keys::NIC_COALESCE_ADAPTIVE_RX,
        keys::NIC_NAME,
    ],
    assess,
    look_alikes: &["softirq-core-saturated", "single-queue", "heavy-ruleset", "app-core-saturated", "path-capacity"],
    fix,
    rank: 8,
    device: true,
    ..Cause::COMMON
};

/// A core is full from here on.
const FULL: f64 = 0.85;
/// An interrupt takes a few microseconds: fewer a second take less than a tenth of a core.
const MANY_S: f64 = 30_000.0;
/// A card that gathers packets under load brings more with each interrupt.
const PACKETS: f64 = 4.0;
/// A longer delay gathers them.
const DELAY_US: f64 = 10.0;

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let who = who(evidence, role);
    let Some(core) = evidence.softirq_core(role) else { return cannot_tell("the times of the cores could not be read") };
    if core.softirq < FULL {
        return contradicts(format!("no core of {who} spent more than {} in interrupts", units::percent(core.softirq)));
    }
    if let Some(why) = cpu_innocent(evidence) {
        return contradicts(why);
    }
    let (Some(interrupts), Some(packets)) =
        (evidence.grew(role, keys::NIC_IRQ_INTERRUPTS), evidence.grew(role, keys::NIC_COUNTER_RX_PACKETS))
    else {
        return cannot_tell(format!("the interrupts of the device of {who} could not be read"));
    };
    let (each_s, gathered) = (interrupts as f64 / evidence.base.whole_s.max(1e-3), packets as f64 / interrupts.max(1) as f64);
    if each_s < MANY_S || gathered >= PACKETS {
        return contradicts(format!("the device of {who} interrupted {each_s:.0} times a second, for {gathered:.1} packets each"));
    }
    if evidence.flag(role, keys::NIC_COALESCE_ADAPTIVE_RX) == Some(true) {
        return contradicts(format!("the device of {who} adapts its coalescing by itself"));
    }
    let Some(delay_us) = evidence.number(role, keys::NIC_COALESCE_RX_USECS) else {
        return cannot_tell(format!("the coalescing of the device of {who} could not be read"));
    };
    if delay_us >= DELAY_US {
        return contradicts(format!("the device of {who} gathers packets for {delay_us:.0} us"));
    }
    let witnesses = [
        Some(counter(format!("core {} of {who} spent {} of the time in interrupts", core.cpu, units::percent(core.softirq)))),
        Some(counter(format!("its device interrupted {each_s:.0} times a second, for {gathered:.1} packets each"))),
        Some(parameter(format!("rx-usecs is {delay_us:.0}, and adaptive coalescing is not on"))),
        path_has_room(evidence),
    ];
    Assessment::Supports { share: core.softirq, witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let words = "let the card gather packets; where it cannot adapt, 30 us cost a long path nothing (rx-usecs 30)".to_owned();
    command_fix(evidence, role, words, [format!("ethtool -C {device} adaptive-rx on")])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn card(delay_us: i64, adaptive: bool) -> Vec<Fact> {
        let facts = with(ordinary_host(), fact("nic.coalesce.rx_usecs", delay_us, Unit::Microseconds));
        with(facts, fact("nic.coalesce.adaptive_rx", adaptive, Unit::Flag))
    }

    /// 75,000 interrupts a second of one packet each.
    fn truth(interrupts: i64) -> Scene {
        Scene {
            receiver_core: core(0.93, 0.02),
            receiver_facts: card(0, false),
            receiver_counts: vec![("nic.irq.interrupts", interrupts), ("nic.counter.rx_packets", 620_000)],
            ..slow()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn an_interrupt_for_each_packet_that_fills_a_core_is_named() {
        let finding = named(&truth(600_000), &[], "interrupt-coalescing", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "ethtool -C eth0 adaptive-rx on");
    }

    #[test]
    fn gathered_packets_an_adaptive_card_and_an_idle_core_are_not_it() {
        assert_contradicts(&of(&truth(120_000)), "15000 times a second");
        assert_contradicts(&of(&Scene { receiver_facts: card(0, true), ..truth(600_000) }), "by itself");
        assert_contradicts(&of(&Scene { receiver_facts: card(50, false), ..truth(600_000) }), "for 50 us");
        assert_contradicts(&of(&Scene { receiver_core: core(0.5, 0.02), ..truth(600_000) }), "50 %");
        assert_contradicts(&of(&full_path(truth(600_000))), "capacity of the slower link");
        assert_cannot_tell(&of(&Scene { receiver_counts: Vec::new(), ..truth(600_000) }), "could not be read");
        assert_cannot_tell(&of(&Scene { receiver_facts: ordinary_host(), ..truth(600_000) }), "coalescing");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..truth(600_000) }), "times of the cores");
    }
}
