//! # single-queue
//!
//! The receiver's NIC delivers all packets to one core, although it has more queues and the host has more cores.
//!
//! **Shows**: one core full of softirq time while the others are partly idle; fewer channels in use than the NIC has,
//! several connections, no receive packet steering.
//!
//! **Mistaken for**: a single connection, which always uses one queue; a high cost per packet.
//!
//! **Fix**: `ethtool -L`; receive packet steering if the NIC has no more queues.
//!
//! Source: kernel `Documentation/networking/scaling.rst`.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::rule::*;
use narrows_model::{FactKey, Value};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "single-queue",
    about: "the receiver's NIC delivers all packets to one core",
    roles: &[Role::Receiver],
    needs: &[
        keys::NIC_CHANNELS_RX,
        keys::NIC_CHANNELS_RX_MAX,
        keys::NIC_CHANNELS_COMBINED,
        keys::NIC_CHANNELS_COMBINED_MAX,
        keys::RPS_CPUS,
        keys::CPU_COUNT,
        keys::NIC_NAME,
        keys::NIC_KIND,
        keys::NIC_SPEED,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["softirq-core-saturated", "app-core-saturated", "path-capacity"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// A core this full of soft interrupts has no time left …
const FULL: f64 = 0.85;

/// … and one with less than this has time for packets.
const FREE: f64 = 0.5;

/// Channels that receive, in use or at most.
fn channels(evidence: &TcpEvidence, role: Role, combined: FactKey, rx: FactKey) -> Option<f64> {
    let [combined, rx] = [combined, rx].map(|key| evidence.number(role, key));
    combined.or(rx)?;
    Some(combined.unwrap_or(0.0) + rx.unwrap_or(0.0))
}

/// Channels that could be in use: no more than there are cores.
fn useful(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let most = channels(evidence, role, keys::NIC_CHANNELS_COMBINED_MAX, keys::NIC_CHANNELS_RX_MAX)?;
    Some(evidence.number(role, keys::CPU_COUNT).map_or(most, |cores| most.min(cores)))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if evidence.base.streams < 2 {
        return Err(contradicts("one connection always uses one queue"));
    }
    let core = known(evidence.softirq_core(role), "the times of the cores could not be read")?;
    if core.softirq < FULL {
        return Err(contradicts(format!("no core of {} spent more than {} in softirq", who(evidence, role), units::percent(core.softirq))));
    }
    let others = evidence.end(role).map_or(&[][..], |end| &end.cores);
    let Some(free) = others.iter().filter(|other| other.cpu != core.cpu && other.busy + other.steal < FREE).max_by(|a, b| b.busy.total_cmp(&a.busy)) else {
        return Err(contradicts("no other core was idle"));
    };
    let now = channels(evidence, role, keys::NIC_CHANNELS_COMBINED, keys::NIC_CHANNELS_RX);
    let (Some(now), Some(useful)) = (now, useful(evidence, role)) else {
        return Err(cannot_tell(format!("the queues of the NIC of {} could not be read", who(evidence, role))));
    };
    if now > 1.0 || useful < 2.0 {
        return Err(contradicts(format!("{now:.0} of {useful:.0} useful receive queues are in use")));
    }
    let steered = evidence.host(role).and_then(|host| host.get(keys::RPS_CPUS)).is_some_and(|fact| match &fact.value {
        Value::List(cpus) => !cpus.is_empty(),
        _ => false,
    });
    if steered {
        return Err(contradicts("receive packet steering distributes the packets over other cores"));
    }
    refuted(cpu_innocent(evidence))?;
    let witnesses = [
        Some(counter(format!(
            "core {} of {} spent {} of the time in softirq, and core {} was busy only {}",
            core.cpu,
            who(evidence, role),
            units::percent(core.softirq),
            free.cpu,
            units::percent(free.busy)
        ))),
        Some(parameter(format!("{now:.0} of {useful:.0} useful receive queues is in use"))),
        path_has_room(evidence),
    ];
    supports(core.softirq, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let kind = if evidence.number(role, keys::NIC_CHANNELS_COMBINED).is_some_and(|n| n > 0.0) { "combined" } else { "rx" };
    let queues = useful(evidence, role).unwrap_or(2.0);
    command_fix(evidence, role, "use all queues of the NIC that the cores can serve", [format!("ethtool -L {device} \
        {kind} {queues:.0}")])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use narrows_model::load::tcp::TcpPlan;
    use super::*;

    fn card(now: i64, max: i64) -> Vec<Fact> {
        let facts = with(link(10_000, ordinary_host()), fact("nic.channels.combined", now, Unit::Number));
        let facts = with(facts, fact("cpu.count", 4_i64, Unit::Number));
        with(facts, fact("nic.channels.combined.max", max, Unit::Number))
    }

    /// Four connections on one queue, whose core is full.
    fn truth() -> Scene {
        let scene = Scene::default();
        Scene {
            goodput_bps: 2e9,
            rtt_us: 35_300,
            receiver_core: core(0.96, 0.02),
            sender_facts: link(10_000, ordinary_host()),
            receiver_facts: card(1, 8),
            load: TcpPlan { streams: 4, ..scene.load.clone() },
            ..scene
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn one_queue_of_many_with_a_full_core_is_named() {
        let finding = named(&truth(), &[], "single-queue", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "ethtool -L eth0 combined 4");
    }

    #[test]
    fn one_connection_other_cores_and_steering_are_other_cases() {
        assert_contradicts(&of(&Scene { load: Scene::default().load, ..truth() }), "one connection");
        assert_contradicts(&of(&Scene { receiver_core: core(0.5, 0.02), ..truth() }), "no core of");
        assert_contradicts(&of(&Scene { other_core: core(0.4, 0.2), ..truth() }), "no other core");
        assert_contradicts(&of(&Scene { receiver_facts: card(4, 8), ..truth() }), "4 of 4");
        assert_contradicts(&of(&Scene { receiver_facts: card(1, 1), ..truth() }), "1 of 1");
        let steered = with(card(1, 8), fact("rps.cpus", vec!["0-3".to_owned()], Unit::Cpu));
        assert_contradicts(&of(&Scene { receiver_facts: steered, ..truth() }), "steering");
    }

    #[test]
    fn a_path_at_capacity_and_unknown_queues_accuse_no_one() {
        let full = full_path(Scene { receiver_core: core(0.9, 0.02), ..truth() });
        assert_contradicts(&of(&full), "capacity of the slower link");
        assert_eq!(verdict(&full, &[]).status, Status::Healthy);
        // What UDP carries ends at the same core.
        assert_ne!(verdict(&full_path(truth()), &[]).status, Status::Healthy);
        assert_cannot_tell(&of(&Scene { receiver_facts: link(10_000, ordinary_host()), ..truth() }), "could not be read");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Cores], ..truth() }), "times of the cores");
    }
}
