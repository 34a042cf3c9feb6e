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
use crate::causes::shared::layers::off_below;
use crate::causes::shared::rule::*;
use crate::evidence::cores::CoreShare;
use crate::evidence::tcp::EndView;
use narrows_model::{Command, FactKey, Value};

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
        keys::LAYER_NAME,
        keys::LAYER_KIND,
        keys::LAYER_OFF,
    ],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
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

/// What is off and could be on, and where; what a device cannot do at all is no cause of anything that a user could mend.
///
/// Of hardware below a tunnel, checksums at the sender and receive offload: the kernel segments for a device that cannot, nearly as well.
fn off(evidence: &TcpEvidence, role: Role) -> Vec<(String, &'static str)> {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let below: &[&str] = if role == Role::Sender { &["tx"] } else { &["rx", "gro"] };
    let own = off_on_top(evidence, role).into_iter().map(|word| (device.to_owned(), word));
    own.chain(off_below(evidence, role, below)).collect()
}

fn off_on_top(evidence: &TcpEvidence, role: Role) -> Vec<&'static str> {
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

/// A core is full of the load where its data thread and its packets take so much of what the core does: of two programs that are ready, each
/// gets a half.
const OWN: f64 = 0.6;

/// The fullest that the CPU is at a role: its data thread, its softirq core, or a core that is full of both.
fn fullness(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let end = evidence.end(role)?;
    let softirq = end.softirq_core().map(|core| core.softirq);
    // What a neighbour fills is not what offloads would relieve.
    let own = |core: &&CoreShare| end.thread_share.is_none_or(|thread| thread + core.softirq >= OWN * core.busy);
    let own_cores = || end.cores.iter().filter(own);
    let core = own_cores().filter(|core| core.softirq >= 0.2).map(|core| core.busy).reduce(f64::max);
    // Nor is user code: segments are cut and summed in the kernel.
    let kernel = own_cores().map(|core| core.system + core.softirq).reduce(f64::max);
    [end.thread_share, softirq, core, kernel].into_iter().flatten().reduce(f64::max)
}

/// Segmentation in software, GSO, does nearly as well as TSO: only both off, or a checksum off, costs much; a
/// receiver without GRO always pays.
fn costly(off: &[(String, &str)]) -> bool {
    off.iter().any(|(_, word)| matches!(*word, "gso" | "gro" | "tx" | "rx"))
}

/// The words, and the device of those that are not of the device on the route.
fn listed(evidence: &TcpEvidence, role: Role, off: &[(String, &str)]) -> String {
    let own = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let words = off.iter().map(|(at, word)| if at == own { (*word).to_owned() } else { format!("{word} of {at}") });
    words.collect::<Vec<_>>().join(", ")
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

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if features(role).iter().all(|(key, _)| evidence.flag(role, *key).is_none()) {
        return Err(cannot_tell("the device's features could not be read"));
    }
    let off = off(evidence, role);
    if !costly(&off) {
        return Err(contradicts(format!("the relevant offloads are on at {}", who(evidence, role))));
    }
    refuted(cpu_innocent(evidence))?;
    let full = known(fullness(evidence, role), "the times of the cores could not be read")?;
    if full < 0.88 {
        return Err(contradicts(format!(
            "{} are off, but the load's busiest core of {} was idle {} of the time",
            listed(evidence, role, &off),
            who(evidence, role),
            units::percent(1.0 - full)
        )));
    }
    if evidence.queue_stood() == Some(true)
        && evidence.end(role).and_then(EndView::machine_busy).is_some_and(|busy| busy < 0.6)
    {
        return Err(contradicts("the RTT rose as behind a full queue: the CPU is not the limit"));
    }
    let witnesses = [
        parameter(format!("{} off at {}", listed(evidence, role, &off), who(evidence, role))),
        counter(format!("the busiest core or data thread of the load was busy {} of the time", units::percent(full))),
    ];
    supports(full, witnesses)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let at = evidence.place(role);
    // Order matters: segmentation needs the checksum offload.
    let mut off = off(evidence, role);
    off.sort_by_key(|(_, word)| match *word {
        "tx" | "rx" => 0,
        "gso" => 1,
        _ => 2,
    });
    let advice = format!("turn {} on", listed(evidence, role, &off));
    let setting = |(device, word): (String, &str)| (at, Setting::Offload { device, feature: word.to_owned(), on: true });
    let settings: Vec<_> = off.into_iter().map(setting).collect();
    let commands = settings.iter().map(|(at, setting)| Command { at: *at, run: setting.to_string() }).collect();
    Fix { advice, commands, settings, ..Fix::default() }
}

#[cfg(test)]
mod tests {
    use crate::layers::tests::stack;
    use crate::testing::*;
    use super::*;

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
    fn a_core_that_other_programs_fill_does_not_miss_them() {
        // Their system calls fill the core; the load takes a quarter of it.
        let scene = Scene { sender_thread: 0.15, sender_core: core(0.1, 0.88), goodput_bps: 500e6, ..truth() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &scene, &[]), "was idle");
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
    fn an_offload_of_the_hardware_below_a_tunnel_is_named_with_that_device() {
        let below = |kind: &str| {
            let off = fact("layer.off.1", vec!["tx".to_owned(), "gro".to_owned()], Unit::Text);
            let layers = stack(&[("vx0", "vxlan", 1450, 50), ("eth0", kind, 1500, 0)]);
            let top = with(link(10_000, ordinary_host()), fact("nic.name", "vx0", Unit::Text));
            Scene { sender_facts: top.into_iter().chain(layers).chain([off]).collect(), ..truth() }
        };
        let finding = named(&below("physical"), &[], "offloads-off", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ethtool -K eth0 tx on");
        assert_eq!(finding.fix.advice, "turn tx of eth0 on");
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &below("veth"), &[]), "are on");
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
