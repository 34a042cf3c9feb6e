//! # pause-frames
//!
//! Ethernet flow control stops the sender repeatedly: a receiver that is too slow sends pause frames.
//!
//! **Shows**: the NIC of the receiver sends pause frames, or the NIC of the sender receives them, throughout the load;
//! no loss, no full link, and a queue in the sender.
//!
//! **Mistaken for**: a path at capacity (a switch before a slower link also sends pause frames), a slow reader.
//!
//! **Fix**: the slow part behind the receiver's NIC (cores, PCIe slot); flow control off if one slow port must not
//! stop others.
//!
//! Source: IEEE 802.3 annex 31B; ethtool(8), `-a` and `-S`.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::device::statistic;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "pause-frames",
    about: "Ethernet pause frames stop the sender",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::NIC_STAT, keys::NIC_PAUSE_RX, keys::NIC_PAUSE_TX, keys::NIC_KIND, keys::NIC_SPEED, keys::NIC_NAME],
    assess,
    look_alikes: &["path-capacity", "receiver-app-slow", "softirq-core-saturated", "pcie-width"],
    fix,
    rank: 7,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

/// Pause frames that a card got and sent, as drivers call them: e1000e, igb, ixgbe; mlx5; i40e; ice; bnxt; tg3.
const GOT: [&str; 6] = [
    "rx_flow_control_xoff",
    "rx_pause_ctrl_phy",
    "port.link_xoff_rx",
    "link_xoff_rx.nic",
    "rx_pause_frames",
    "rx_xoff_pause_rcvd",
];
const SENT: [&str; 6] = [
    "tx_flow_control_xoff",
    "tx_pause_ctrl_phy",
    "port.link_xoff_tx",
    "link_xoff_tx.nic",
    "tx_pause_frames",
    "tx_xoff_sent",
];

/// Pause frames per second that are no passing burst: a frame stops the sender for 3.4 ms of a link of 10 Gbit/s at most, and mostly
/// far less.
const MANY: f64 = 100.0;

/// More losses than this and a queue overflowed somewhere: pauses are there to lose nothing.
const FEW: u64 = 20;

/// Pause frames of an end by its driver: those that slow this flow down.
fn pauses(evidence: &TcpEvidence, role: Role) -> Option<u64> {
    statistic(evidence, role, if role == Role::Sender { &GOT } else { &SENT }).map(|(_, n)| n)
}

/// Pauses of so much of the time cost something, whatever their number.
const PAUSED: f64 = 0.2;

/// The part of the time for which an end's card was paused, or asked for it, where its driver counts that in microseconds: mlx5.
fn paused(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let name = if role == Role::Sender { "rx_global_pause_duration" } else { "tx_global_pause_duration" };
    Some(statistic(evidence, role, &[name])?.1 as f64 / 1e6 / evidence.base.whole_s.max(1e-3))
}

fn many(evidence: &TcpEvidence, pauses: Option<u64>) -> bool {
    pauses.is_some_and(|n| n as f64 >= MANY * evidence.base.whole_s)
}

/// Whether the path is at capacity. A receiver whose card asks for pauses much of the time is itself what the profile measured,
/// unless its link is full.
fn full(evidence: &TcpEvidence, role: Role, asked: Option<f64>) -> bool {
    let at_link = evidence.link_goodput_bps().is_some_and(|link| evidence.goodput_bps() >= 0.95 * link);
    let measured = evidence.capacity_goodput_bps().is_some() && !evidence.path_has_room();
    at_link || (measured && (role == Role::Sender || asked.is_none()))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let who = who(evidence, role);
    let (key, verb) = if role == Role::Sender { (keys::NIC_PAUSE_RX, "got") } else { (keys::NIC_PAUSE_TX, "sent") };
    if evidence.flag(role, key) == Some(false) {
        return contradicts(format!("the flow control of {who} is off"));
    }
    let Some(own) = pauses(evidence, role) else {
        return match evidence.text(role, keys::NIC_KIND) {
            None | Some("physical") => cannot_tell(format!("the driver of {who} does not count pause frames")),
            Some(kind) => contradicts(format!("the device of {who} ({kind}) counts no pause frames")),
        };
    };
    if !many(evidence, Some(own)) {
        return contradicts(format!("{who} {verb} {own} pause frames"));
    }
    let asked = paused(evidence, role).filter(|part| *part >= PAUSED);
    if full(evidence, role, asked) {
        return contradicts("the path is at capacity: a switch or a burst then sends pause frames");
    }
    if evidence.path_has_room() {
        return contradicts("the path carried clearly more through the same NICs");
    }
    if let Some(loss) = evidence.base.loss_whole.filter(|loss| loss.lost() >= FEW) {
        return contradicts(format!("{} segments were lost; with working pause frames none would be", loss.lost()));
    }
    if let Some(why) = end_bound(evidence) {
        return contradicts(why);
    }
    if role == Role::Sender && many(evidence, pauses(evidence, Role::Receiver)) {
        return contradicts("the receiver's own NIC sends pause frames: the receiver is slow");
    }
    // A sender that is paused has a queue, and so has one whose path is full.
    let queue = evidence.queue_us().filter(|_| role == Role::Receiver && evidence.rtt_rose() == Some(true));
    let peer = pauses(evidence, Role::Sender).filter(|n| role == Role::Receiver && many(evidence, Some(*n)));
    let witnesses = [
        Some(counter(format!("the NIC of {who} {verb} {own} pause frames"))),
        peer.map(|n| counter(format!("the sender's NIC received {n} of them"))),
        queue.map(|us| {
            let queue = units::micros(us as u64);
            counter(format!("a queue of {queue}, without loss and without a full link"))
        }),
        asked.map(|part| counter(format!("they requested pauses for {} of the time", units::percent(part.min(1.0))))),
    ];
    Assessment::Supports { share: 0.85, witnesses: witnesses.into_iter().flatten().collect() }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let advice = if role == Role::Receiver {
        "find why the receiver's NIC is slow: a full core, a short ring, its PCIe slot".to_owned()
    } else {
        "find the port that sends pause frames: a slow receiver behind it, or a slower link".to_owned()
    };
    command_fix(evidence, role, advice, [format!("ethtool -S {device} | grep -i -e pause -e xoff")])
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use super::*;

    /// 3 Gbit/s of a link of ten behind a queue, and nothing lost, since the receiver's card asks for pauses.
    fn paused(sent: i64, got: i64) -> Scene {
        let host = |key: &str| -> Vec<Fact> { with(link(10_000, ordinary_host()), fact(key, true, Unit::Flag)) };
        Scene {
            goodput_bps: 3e9,
            min_rtt_us: 100,
            rtt_us: 2_000,
            early_peak_bps: 3e9,
            sender_facts: host("nic.pause.rx"),
            receiver_facts: host("nic.pause.tx"),
            sender_counts: vec![("nic.stat.rx_flow_control_xoff", got)],
            receiver_counts: vec![("nic.stat.tx_flow_control_xoff", sent)],
            ..Scene::default()
        }
    }

    fn of(role: Role, scene: &Scene) -> Assessment {
        assessment(&CAUSE, role, scene, &[])
    }

    #[test]
    fn a_receiver_that_asks_for_pauses_is_named() {
        named(&paused(9_000, 8_900), &[], "pause-frames", Place::Server);
        assert_contradicts(&of(Role::Sender, &paused(9_000, 8_900)), "the receiver's own NIC sends pause frames: the receiver is slow");
        // A switch asks for them: what it waits for is not known, and a full path looks the same.
        let scene = paused(0, 8_900);
        let switched = verdict(&scene, &no_more(&scene));
        assert_eq!(switched.status, Status::Healthy, "{switched:#?}");
        assert!(switched.hazards.iter().any(|hazard| hazard.starts_with(CAUSE.id)), "{:?}", switched.hazards);
        let mut sender_counts = scene.sender_counts.clone();
        sender_counts.push(("nic.stat.rx_global_pause_duration", 3_000_000));
        named(&Scene { sender_counts, ..scene }, &[], "pause-frames", Place::Client);
    }

    #[test]
    fn a_few_pauses_lost_segments_and_flow_control_that_is_off_are_none() {
        assert_contradicts(&of(Role::Receiver, &paused(700, 0)), "sent 700 pause frames");
        assert_contradicts(&of(Role::Receiver, &paused(0, 0)), "sent 0 pause frames");
        assert_contradicts(&of(Role::Receiver, &Scene { lost: 400, ..paused(9_000, 0) }), "were lost");
        let off = with(paused(0, 0).receiver_facts, fact("nic.pause.tx", false, Unit::Flag));
        assert_contradicts(&of(Role::Receiver, &Scene { receiver_facts: off, ..paused(9_000, 0) }), "is off");
    }

    #[test]
    fn a_path_at_capacity_is_not_accused() {
        let scene = full_path(paused(9_000, 8_900));
        for role in [Role::Sender, Role::Receiver] {
            assert_contradicts(&of(role, &scene), "the path is at capacity");
        }
        assert_eq!(verdict(&scene, &[]).causes[0].id, "path-capacity");
        // What the profile measured is the receiver, where its card asks for pauses much of the time.
        let mut receiver_counts = scene.receiver_counts.clone();
        receiver_counts.push(("nic.stat.tx_global_pause_duration", 3_000_000));
        let paused = Scene { receiver_counts, ..scene };
        named(&paused, &[], "pause-frames", Place::Server);
        let gigabit = Scene { receiver_facts: ordinary_host(), ..paused.clone() };
        assert_contradicts(&of(Role::Receiver, &gigabit), "the path is at capacity");
        assert_contradicts(&of(Role::Receiver, &Scene { goodput_bps: 300e6, ..paused }), "carried clearly more");
    }

    #[test]
    fn unknown_counters_leave_it_open_and_virtual_devices_have_none() {
        let scene = Scene { receiver_counts: Vec::new(), ..paused(0, 0) };
        assert_cannot_tell(&of(Role::Receiver, &scene), "does not count pause frames");
        assert_contradicts(&of(Role::Receiver, &virtual_hosts(scene)), "veth");
    }
}
