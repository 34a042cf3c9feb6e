//! # offloads-off
//!
//! The CPU does segmentation, coalescing or checksums packet by packet, and limits the goodput.
//!
//! **Shows**: TSO, GSO, GRO or checksum offload is off on the interface, and a core or the whole machine is full.
//!
//! **Mistaken for**: a full core: with the offloads on, the same core carries several times as much.
//!
//! **Fix**: enable them.
//!
//! Source: Documentation/networking/segmentation-offloads.rst.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::tcp::{ceiling_at, who};
use crate::causes::shared::words::{cannot_tell, contradicts, counter, parameter};
use crate::judge::{Assessment, Cause, Evidence as _};
use crate::evidence::tcp::{EndView, TcpEvidence};
use crate::role::Role;
use narrows_model::{Ceiling, Command, Fact, FactKey, Fix, Method, Setting, Value, keys, words::units};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "offloads-off",
    about: "offloads are off, so the CPU handles each packet individually and is full",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::NIC_FEATURE_TSO,
        keys::NIC_FEATURE_GSO,
        keys::NIC_FEATURE_GRO,
        keys::NIC_FEATURE_TX_CHECKSUM,
        keys::NIC_FEATURE_RX_CHECKSUM,
        keys::NIC_KIND,
        keys::NIC_NAME,
        keys::NIC_FEATURE_FIXED_OFF,
        keys::NIC_SPEED,
    ],
    ceiling,
    assess,
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "tester-limited"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// Which features matter at a role: fact, and the word of `ethtool -K`.
const fn features(role: Role) -> &'static [(FactKey, &'static str)] {
    match role {
        Role::Sender => &[(keys::NIC_FEATURE_TSO, "tso"), (keys::NIC_FEATURE_GSO, "gso"), (keys::NIC_FEATURE_TX_CHECKSUM, "tx")],
        _ => &[(keys::NIC_FEATURE_GRO, "gro"), (keys::NIC_FEATURE_RX_CHECKSUM, "rx")],
    }
}

/// Whether the device lies above or beside others in the same machine: a veth has GRO off by default and misses
/// nothing, since what it gets was coalesced below it or never cut.
fn is_stacked(evidence: &TcpEvidence, role: Role) -> bool {
    evidence.text(role, keys::NIC_KIND).is_some_and(|kind| !matches!(kind, "physical" | "virtual" | "tun" | "unknown"))
}

/// What is off and could be on; what the device cannot do at all is no cause of anything that a user could mend.
fn off(evidence: &TcpEvidence, role: Role) -> Vec<&'static str> {
    let fixed = |word: &str| match evidence.host(role).and_then(|host| host.get(keys::NIC_FEATURE_FIXED_OFF)) {
        Some(Fact { value: Value::List(words), .. }) => words.iter().any(|fixed| fixed == word),
        _ => false,
    };
    let off = features(role).iter().filter(|(key, _)| evidence.flag(role, *key) == Some(false)).map(|(_, word)| *word);
    let hardware = evidence.text(role, keys::NIC_KIND).is_none_or(|kind| kind == "physical");
    // Only hardware can sum what it receives; a TUN without that feature has nothing switched off.
    let meant = |word: &str| (word != "gro" || !is_stacked(evidence, role)) && (word != "rx" || hardware);
    off.filter(|word| meant(word) && !fixed(word)).collect()
}

/// The fullest that the CPU is at a role: its data thread, its softirq core or the whole machine.
fn fullness(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let end = evidence.end(role)?;
    let softirq = end.softirq_core().map(|core| core.softirq);
    // A core that is full of a neighbour's work and handles no packets is not what offloads would relieve.
    let core = end.cores.iter().filter(|core| core.softirq >= 0.2).map(|core| core.busy).reduce(f64::max);
    // Nor is user code: segments are cut and summed in the kernel.
    let kernel = end.cores.iter().map(|core| core.system + core.softirq).reduce(f64::max);
    [end.thread_share, softirq, core, kernel].into_iter().flatten().reduce(f64::max)
}

/// Segmentation in software, GSO, does nearly as well as TSO: only both off, or a checksum off, costs much; a
/// receiver without GRO always pays.
fn costly(off: &[&str]) -> bool {
    off.contains(&"gso") || off.contains(&"gro") || off.contains(&"tx") || off.contains(&"rx")
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    if !costly(&off(evidence, role)) {
        return None;
    }
    let full = fullness(evidence, role)?;
    if full < 0.5 {
        return None;
    }
    let how = format!("goodput / {} of the busiest core, one packet at a time", units::percent(full));
    ceiling_at(CAUSE.id, evidence, role, evidence.goodput_bps() / full.min(1.0), [0.88, 1.12], Method::Inferred, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let known = features(role).iter().any(|(key, _)| evidence.flag(role, *key).is_some());
    if !known {
        return cannot_tell("the device's features could not be read");
    }
    let off = off(evidence, role);
    if !costly(&off) {
        return contradicts(format!("the relevant offloads are on at {}", who(evidence, role)));
    }
    if let Some(why) = cpu_innocent(evidence) {
        return contradicts(why);
    }
    let Some(full) = fullness(evidence, role) else { return cannot_tell("the times of the cores could not be read") };
    if full < 0.88 {
        return contradicts(format!(
            "{} are off, but the busiest core of {} was idle {} of the time",
            off.join(", "),
            who(evidence, role),
            units::percent(1.0 - full)
        ));
    }
    if evidence.queue_stood() == Some(true)
        && evidence.end(role).and_then(EndView::machine_busy).is_some_and(|busy| busy < 0.6)
    {
        return contradicts("the RTT rose as behind a full queue: the CPU is not the limit");
    }
    Assessment::Supports {
        share: full,
        witnesses: vec![
            parameter(format!("{} off at {}", off.join(", "), who(evidence, role))),
            counter(format!("its busiest core or data thread was busy {} of the time", units::percent(full))),
        ],
    }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE").to_owned();
    let at = evidence.place(role);
    // Order matters: segmentation needs the checksum offload.
    let mut words = off(evidence, role);
    words.sort_by_key(|word| match *word {
        "tx" | "rx" => 0,
        "gso" => 1,
        _ => 2,
    });
    let settings: Vec<_> = words
        .iter()
        .map(|word| (at, Setting::Offload { device: device.clone(), feature: (*word).to_owned(), on: true }))
        .collect();
    let commands = settings.iter().map(|(at, setting)| Command { at: *at, run: setting.to_string() }).collect();
    Fix { advice: format!("turn {} on", words.join(", ")), commands, settings, ..Fix::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Hidden, Scene, assert_cannot_tell, assert_contradicts, assert_rejects, assert_supports, core, fact, link, named,
        none_proven, ordinary_host, assessment, with,
    };
    use narrows_model::{Fact, Place, Unit};

    fn without_features(words: &[&str]) -> Vec<Fact> {
        let off = |facts, word: &&str| with(facts, fact(&format!("nic.feature.{word}"), false, Unit::Flag));
        words.iter().fold(link(10_000, ordinary_host()), off)
    }

    /// 3 Gbit/s on a link of ten: the sender cuts every segment by itself.
    fn truth() -> Scene {
        Scene {
            goodput_bps: 3e9,
            rtt_us: 35_100,
            sender_thread: 0.97,
            sender_core: core(0.03, 0.95),
            sender_facts: without_features(&["tso", "gso"]),
            receiver_facts: link(10_000, ordinary_host()),
            ..Scene::default()
        }
    }

    #[test]
    fn segments_cut_by_a_full_core_are_named_before_the_core() {
        let finding = named(&truth(), &[], "offloads-off", Place::Client);
        assert_rejects(&finding, "tester-limited", "were busy 49 %");
        assert_rejects(&finding, "softirq-core-saturated", "no core of the sender");
        let commands: Vec<&str> = finding.fix.commands.iter().map(|command| command.run.as_str()).collect();
        assert_eq!(commands, ["ethtool -K eth0 gso on", "ethtool -K eth0 tso on"]);
    }

    #[test]
    fn checksums_are_turned_on_before_what_needs_them() {
        let scene = Scene { sender_facts: without_features(&["tso", "gso", "tx_checksum"]), ..truth() };
        let finding = named(&scene, &[], "offloads-off", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ethtool -K eth0 tx on");
    }

    #[test]
    fn segmentation_in_software_is_good_enough() {
        let scene = Scene { sender_facts: without_features(&["tso"]), ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "the relevant offloads are on at");
        named(&scene, &[], "app-core-saturated", Place::Client);
    }

    #[test]
    fn a_core_with_time_left_does_not_miss_them() {
        let at = |sender_thread| {
            let scene = Scene { sender_thread, sender_core: core(0.03, 0.5), ..truth() };
            assessment(&CAUSE, Role::Sender, &scene, &[])
        };
        assert_contradicts(&at(0.87), "was idle 13 % of the time");
        assert_supports(&at(0.89));
    }

    #[test]
    fn a_receiver_without_gro_is_named_and_a_veth_without_it_is_not() {
        let scene = Scene {
            sender_facts: link(10_000, ordinary_host()),
            sender_thread: 0.3,
            sender_core: core(0.1, 0.3),
            receiver_facts: without_features(&["gro"]),
            receiver_core: core(0.96, 0.02),
            ..truth()
        };
        named(&scene, &[], "offloads-off", Place::Server);
        let veth = with(without_features(&["gro"]), fact("nic.kind", "veth", Unit::Text));
        let scene = Scene { receiver_facts: veth, ..scene };
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &scene, &[]), "are on");
    }

    #[test]
    fn features_or_cores_that_cannot_be_read_leave_it_open() {
        let scene = Scene { sender_facts: Vec::new(), ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "features could not be read");
        let scene = Scene { hidden: &[Hidden::Cores, Hidden::Threads], ..truth() };
        assert_cannot_tell(&assessment(&CAUSE, Role::Sender, &scene, &[]), "times of the cores");
        none_proven(&scene, &[]);
    }
}
